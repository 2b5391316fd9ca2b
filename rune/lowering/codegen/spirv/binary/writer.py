"""The body of a SPIR-V function under construction: instructions, memory, structured control flow.

Values are ids here, and types have the names of module.KINDS. A pure instruction that is written
twice is one id where the first one is visible: each region of blocks has a table of them. No float
operation may be contracted. Mutable scalars and scratch are variables of the function, which
drivers turn into registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field

import numpy as np

from rune.lowering.codegen.spirv.binary.module import Module, width
from rune.lowering.codegen.spirv.binary.words import (
    ALIGNED,
    BARRIER_SEMANTICS,
    DEVICE_SCOPE,
    NO_CONTROL,
    RELAXED,
    SUBGROUP_SCOPE,
    WORKGROUP_SCOPE,
    Capability,
    Decoration,
    Op,
    StorageClass,
    instruction,
)
from rune.records import dataclass

_EXACTLY = frozenset({Op.FAdd, Op.FSub, Op.FMul, Op.FDiv, Op.FNegate})


@dataclass(frozen=True, slots=True)
class Pointer:
    """An array in memory: its id and the type of its elements. `in_block`: within a structure."""

    id: int
    kind: str
    space: StorageClass
    in_block: bool = False

    @property
    def alignment(self) -> tuple[int, ...]:
        """Operands that loads and stores need."""
        return (ALIGNED, width(self.kind) // 8) if self.in_block else ()


@dataclass(slots=True)
class Writer:
    """One function. `variables` stand at the start of its first block; `block` is the current."""

    module: Module
    lines: list[int] = field(default_factory=list)
    variables: list[int] = field(default_factory=list)
    known: list[dict[tuple[int, ...], int]] = field(default_factory=lambda: [{}])
    block: int = 0
    barrier_scope: int = WORKGROUP_SCOPE

    # --- instructions ------------------------------------------------------------------------

    def do(self, op: Op, *operands: int) -> None:
        """Append an instruction that has no result."""
        self.lines += instruction(op, *operands)

    def effect(self, op: Op, type: int, *operands: int) -> int:
        """Append an instruction that reads memory, or belongs to its block."""
        result_id = self.module.new_id()
        self.lines += instruction(op, type, result_id, *operands)
        return result_id

    def emit(self, op: Op, type: int, *operands: int) -> int:
        """The result of a pure instruction, appended unless an equal one is visible here."""
        key = (op, type, *operands)
        for table in self.known:
            if key in table:
                return table[key]
        result_id = self.known[-1][key] = self.effect(op, type, *operands)
        if op in _EXACTLY:
            self.module.decorate(result_id, Decoration.NoContraction)
        return result_id

    def constant(self, kind: str, value: float | bool) -> int:
        """A constant of a type."""
        if kind[0] == "f":
            with np.errstate(all="ignore"):
                number = np.float64(value).astype(f"f{width(kind) // 8}")
            value = int(number.view(f"u{width(kind) // 8}"))
        return self.module.constant(kind, int(value))

    def barrier(self) -> None:
        """Wait for all threads of the workgroup, or of the subgroup that it is."""
        scope = self.module.constant("i32", self.barrier_scope)
        semantics = self.module.constant("i32", BARRIER_SEMANTICS)
        self.do(Op.ControlBarrier, scope, scope, semantics)

    def of_lanes(self, kind: str, value: int, lane: int) -> int:
        """The value of the thread of a number, which may differ from thread to thread.

        All threads of the subgroup must be active.
        """
        for capability in (Capability.GroupNonUniform, Capability.GroupNonUniformShuffle):
            self.module.need(capability)
        scope = self.module.constant("i32", SUBGROUP_SCOPE)
        return self.emit(Op.GroupNonUniformShuffle, self.module.type(kind), scope, value, lane)

    # --- memory ------------------------------------------------------------------------------

    def variable(self, pointee: int) -> int:
        """A variable of the function; `pointee` is the id of its type."""
        type = self.module.pointer(StorageClass.Function, pointee)
        variable_id = self.module.new_id()
        self.variables += instruction(Op.Variable, type, variable_id, StorageClass.Function)
        return variable_id

    def member(self, type: int, base: int, number: int) -> int:
        """A pointer to a member of a structure, or to a component of a vector."""
        pointer_id = self.module.new_id()
        self.lines += instruction(Op.AccessChain, type, pointer_id, base, self.module.constant("i32", number))
        return pointer_id

    def element(self, array: Pointer, index: int) -> int:
        """A pointer to an element."""
        type = self.module.pointer(array.space, self.module.type(array.kind))
        block = [self.module.constant("i32", 0)] if array.in_block else []
        return self.emit(Op.AccessChain, type, array.id, *block, index)

    def load(self, array: Pointer, index: int) -> int:
        """Read an element."""
        return self.effect(Op.Load, self.module.type(array.kind), self.element(array, index), *array.alignment)

    def store(self, array: Pointer, index: int, value: int) -> None:
        """Write an element."""
        self.do(Op.Store, self.element(array, index), value, *array.alignment)

    def place(self, array: Pointer, kind: str, index: int) -> int:
        """The index of an access, which is of this kind."""
        return index

    def load_pair(self, array: Pointer, index: int) -> int:
        """Read two neighbours of 32 bits as one integer; the first is its low half."""
        return self.effect(Op.Load, self.module.type("i64"), self.pair(array, index), ALIGNED, 8)

    def store_pair(self, array: Pointer, index: int, values: tuple[int, int]) -> None:
        """Write two neighbours of 32 bits as one integer."""
        vector_id = self.module.new_id()
        self.lines += instruction(Op.CompositeConstruct, self.module.vector(array.kind, 2), vector_id, *values)
        place = self.pair(array, index)
        self.do(Op.Store, place, self.emit(Op.Bitcast, self.module.type("i64"), vector_id), ALIGNED, 8)

    def pair(self, array: Pointer, index: int) -> int:
        """A pointer to an element and the next one."""
        type, pair_id = self.module.pointer(array.space, self.module.type("i64")), self.module.new_id()
        self.lines += instruction(Op.Bitcast, type, pair_id, self.element(array, index))
        return pair_id

    def halves(self, pair: int, kind: str) -> tuple[int, int]:
        """The two values of 32 bits in an integer, the low half first."""
        vector_id, type = self.module.new_id(), self.module.type(kind)
        self.lines += instruction(Op.Bitcast, self.module.vector(kind, 2), vector_id, pair)
        first, second = (self.emit(Op.CompositeExtract, type, vector_id, number) for number in (0, 1))
        return first, second

    def atomic(self, op: Op, array: Pointer, index: int, value: int) -> None:
        """Change an element atomically."""
        scope = WORKGROUP_SCOPE if array.space is StorageClass.Workgroup else DEVICE_SCOPE
        scope, order = self.module.constant("i32", scope), self.module.constant("i32", RELAXED)
        self.effect(op, self.module.type(array.kind), self.element(array, index), scope, order, value)

    # --- blocks ------------------------------------------------------------------------------

    def label(self, id: int | None = None) -> int:
        """Begin a block."""
        self.block = self.module.new_id() if id is None else id
        self.do(Op.Label, self.block)
        return self.block

    @contextmanager
    def region(self, label: int) -> Iterator[None]:
        """Blocks from `label` on, whose values are not visible after them."""
        self.label(label)
        self.known.append({})
        yield
        self.known.pop()

    def either(self, condition: int, then: Callable[[], None], orelse: Callable[[], None] | None = None) -> None:
        """if (condition) then() else orelse()."""
        yes, no, join = (self.module.new_id() for _ in range(3))
        self.do(Op.SelectionMerge, join, NO_CONTROL)
        self.do(Op.BranchConditional, condition, yes, no if orelse else join)
        for label, write in ((yes, then), (no, orelse)):
            if write:
                with self.region(label):
                    write()
                    self.do(Op.Branch, join)
        self.label(join)

    def where(self, condition: int, kind: str, compute: Callable[[], int]) -> int:
        """The result of `compute` where the condition holds, else 0."""
        before, outcomes = self.block, list[tuple[int, int]]()

        def write() -> None:
            outcomes.append((compute(), self.block))

        self.either(condition, write)
        zero = self.module.constant(kind, 0)
        return self.effect(Op.Phi, self.module.type(kind), *outcomes[0], zero, before)

    def count_up(self, kind: str, extent: int, body: Callable[[int], None], control: int) -> None:
        """for (i = 0; i < extent; i++) body(i), with i of the extent's type."""
        header, test, inside, following, after = (self.module.new_id() for _ in range(5))
        type = self.module.type(kind)
        counter = self.variable(type)
        self.do(Op.Store, counter, self.module.constant(kind, 0))
        self.do(Op.Branch, header)
        self.label(header)
        self.do(Op.LoopMerge, after, following, control)
        self.do(Op.Branch, test)
        with self.region(test):
            i = self.effect(Op.Load, type, counter)
            is_inside = self.emit(Op.SLessThan, self.module.type("bool"), i, extent)
            self.do(Op.BranchConditional, is_inside, inside, after)
            with self.region(inside):
                body(i)
                self.do(Op.Branch, following)
            self.label(following)
            self.do(Op.Store, counter, self.effect(Op.IAdd, type, i, self.module.constant(kind, 1)))
            self.do(Op.Branch, header)
        self.label(after)
