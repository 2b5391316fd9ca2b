"""The body of one SPIR-V function in the making: values with arithmetic, structured control flow.

A Value knows its type and the writer that it belongs to; `x * y + 1.0` appends a multiply and an
add that may not be contracted. Python numbers become constants of the other side's type. A pure
instruction written twice is one value where the first is seen: each region of blocks has a table.
Mutable scalars and scratch are variables of the function; drivers make registers of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field

import numpy as np

from rune.lowering.codegen.spirv.module import Module, width
from rune.lowering.codegen.spirv.words import (
    ALIGNED,
    BARRIER_SEMANTICS,
    DEVICE_SCOPE,
    NO_CONTROL,
    RELAXED,
    SUBGROUP_SCOPE,
    WORKGROUP_SCOPE,
    Capability,
    Decoration,
    Glsl,
    Op,
    StorageClass,
    instruction,
)
from rune.records import dataclass

Number = int | float
_EXACTLY = frozenset({Op.FAdd, Op.FSub, Op.FMul, Op.FDiv, Op.FNegate})
_INTEGER = {"+": Op.IAdd, "-": Op.ISub, "*": Op.IMul}
_FLOAT = {"+": Op.FAdd, "-": Op.FSub, "*": Op.FMul, "/": Op.FDiv}


@dataclass(slots=True)
class Writer:
    """One function. `variables` stand at the start of its first block; `block` is the current."""

    module: Module
    lines: list[int] = field(default_factory=list)
    variables: list[int] = field(default_factory=list)
    known: list[dict[tuple[int, ...], Value]] = field(default_factory=lambda: [{}])
    block: int = 0

    # --- instructions ------------------------------------------------------------------------

    def do(self, op: Op, *operands: int) -> None:
        """Append an instruction that has no result."""
        self.lines += instruction(op, *operands)

    def effect(self, op: Op, kind: str, *operands: int) -> Value:
        """Append an instruction that reads memory, or belongs to its block."""
        result_id = self.module.new_id()
        self.lines += instruction(op, self.module.type(kind), result_id, *operands)
        return Value(self, kind, result_id)

    def emit(self, op: Op, kind: str, *operands: int) -> Value:
        """A pure instruction: appended, or found where it was appended before."""
        key = (op, self.module.type(kind), *operands)
        for table in self.known:
            if key in table:
                return table[key]
        value = self.known[-1][key] = self.effect(op, kind, *operands)
        if op in _EXACTLY:
            self.module.decorate(value.id, Decoration.NoContraction)
        return value

    def glsl(self, name: Glsl, kind: str, *args: Value) -> Value:
        """An instruction of GLSL.std.450."""
        return self.emit(Op.ExtInst, kind, self.module.glsl(), name, *(a.id for a in args))

    def constant(self, kind: str, value: Number | bool) -> Value:
        """A constant of a type."""
        if kind[0] == "f":
            with np.errstate(all="ignore"):
                number = np.float64(value).astype(f"f{width(kind) // 8}")
            value = int(number.view(f"u{width(kind) // 8}"))
        return Value(self, kind, self.module.constant(kind, int(value)))

    def select(self, condition: Value, a: Value | Number, b: Value | Number) -> Value:
        """a where the condition holds, else b."""
        known = a if isinstance(a, Value) else b
        assert isinstance(known, Value)
        a, b = known.like(a), known.like(b)
        return a if a == b else self.emit(Op.Select, a.kind, condition.id, a.id, b.id)

    def barrier(self) -> None:
        """Wait for all threads of the workgroup."""
        scope = self.module.constant("i32", WORKGROUP_SCOPE)
        semantics = self.module.constant("i32", BARRIER_SEMANTICS)
        self.do(Op.ControlBarrier, scope, scope, semantics)

    def of_lane(self, value: Value, lane: int) -> Value:
        """The value that a thread of the subgroup has. All threads of it must be at work."""
        for capability in (Capability.GroupNonUniform, Capability.GroupNonUniformShuffle):
            self.module.need(capability)
        scope, number = (self.module.constant("i32", n) for n in (SUBGROUP_SCOPE, lane))
        return self.emit(Op.GroupNonUniformShuffle, value.kind, scope, value.id, number)

    # --- memory ------------------------------------------------------------------------------

    def variable(self, pointed: int) -> int:
        """A variable of the function, for a type's id."""
        type = self.module.pointer(StorageClass.Function, pointed)
        variable_id = self.module.new_id()
        self.variables += instruction(Op.Variable, type, variable_id, StorageClass.Function)
        return variable_id

    def element(self, array: Pointer, index: Value) -> int:
        """A pointer to an element."""
        type = self.module.pointer(array.space, self.module.type(array.kind))
        steps = [index.id]
        if array.in_block:
            steps.insert(0, self.module.constant("i32", 0))
        key = (Op.AccessChain, type, array.id, *steps)
        for table in self.known:
            if key in table:
                return table[key].id
        pointer_id = self.module.new_id()
        self.lines += instruction(Op.AccessChain, type, pointer_id, array.id, *steps)
        self.known[-1][key] = Value(self, array.kind, pointer_id)
        return pointer_id

    def load(self, array: Pointer, index: Value) -> Value:
        """Read an element."""
        return self.effect(Op.Load, array.kind, self.element(array, index), *array.alignment)

    def store(self, array: Pointer, index: Value, value: Value) -> None:
        """Write an element."""
        self.do(Op.Store, self.element(array, index), value.id, *array.alignment)

    def load_pair(self, array: Pointer, index: Value) -> Value:
        """Read two neighbours of 32 bits as one integer; the first is its low half."""
        return self.effect(Op.Load, "i64", self.pair(array, index), ALIGNED, 8)

    def store_pair(self, array: Pointer, index: Value, values: tuple[Value, Value]) -> None:
        """Write two neighbours of 32 bits as one integer."""
        vector = self.module.new_id()
        self.lines += instruction(
            Op.CompositeConstruct, self.module.vector(array.kind, 2), vector, *(v.id for v in values)
        )
        self.do(Op.Store, self.pair(array, index), self.emit(Op.Bitcast, "i64", vector).id, ALIGNED, 8)

    def pair(self, array: Pointer, index: Value) -> int:
        """A pointer to an element and the next one."""
        type, pair_id = self.module.pointer(array.space, self.module.type("i64")), self.module.new_id()
        self.lines += instruction(Op.Bitcast, type, pair_id, self.element(array, index))
        return pair_id

    def halves(self, pair: Value, kind: str) -> tuple[Value, Value]:
        """The two values of 32 bits in an integer, the low half first."""
        vector = self.module.new_id()
        self.lines += instruction(Op.Bitcast, self.module.vector(kind, 2), vector, pair.id)
        return self.emit(Op.CompositeExtract, kind, vector, 0), self.emit(Op.CompositeExtract, kind, vector, 1)

    def atomic(self, op: Op, array: Pointer, index: Value, value: Value) -> None:
        """Change an element atomically."""
        scope = WORKGROUP_SCOPE if array.space is StorageClass.Workgroup else DEVICE_SCOPE
        scope, order = self.module.constant("i32", scope), self.module.constant("i32", RELAXED)
        self.effect(op, array.kind, self.element(array, index), scope, order, value.id)

    # --- blocks ------------------------------------------------------------------------------

    def label(self, id: int | None = None) -> int:
        """Begin a block."""
        self.block = self.module.new_id() if id is None else id
        self.do(Op.Label, self.block)
        return self.block

    @contextmanager
    def region(self, label: int) -> Iterator[None]:
        """Blocks from `label` on whose values are not seen after them."""
        self.label(label)
        self.known.append({})
        yield
        self.known.pop()

    def either(self, condition: Value, then: Callable[[], None], orelse: Callable[[], None] | None = None) -> None:
        """if (condition) then() else orelse()."""
        yes, no, join = (self.module.new_id() for _ in range(3))
        self.do(Op.SelectionMerge, join, NO_CONTROL)
        self.do(Op.BranchConditional, condition.id, yes, no if orelse else join)
        for label, write in ((yes, then), (no, orelse)):
            if write:
                with self.region(label):
                    write()
                    self.do(Op.Branch, join)
        self.label(join)

    def where(self, condition: Value, compute: Callable[[], Value]) -> Value:
        """What `compute` gives where the condition holds, else 0."""
        before, outcomes = self.block, list[tuple[Value, int]]()

        def write() -> None:
            outcomes.append((compute(), self.block))

        self.either(condition, write)
        value, after = outcomes[0]
        return self.effect(Op.Phi, value.kind, value.id, after, value.like(0).id, before)

    def count_up(self, extent: Value, body: Callable[[Value], None], control: int) -> None:
        """for (i = 0; i < extent; i++) body(i), with i of the extent's type."""
        header, test, inside, following, after = (self.module.new_id() for _ in range(5))
        counter = Variable(self, extent.kind)
        counter.write(extent.like(0))
        self.do(Op.Branch, header)
        self.label(header)
        self.do(Op.LoopMerge, after, following, control)
        self.do(Op.Branch, test)
        with self.region(test):
            i = counter.read()
            self.do(Op.BranchConditional, (i < extent).id, inside, after)
            with self.region(inside):
                body(i)
                self.do(Op.Branch, following)
            self.label(following)
            counter.write(self.effect(Op.IAdd, i.kind, i.id, i.like(1).id))
            self.do(Op.Branch, header)
        self.label(after)


@dataclass(frozen=True, slots=True)
class Pointer:
    """An array in memory: elements of a type behind an id. `in_block`: within a structure."""

    id: int
    kind: str
    space: StorageClass
    in_block: bool = False

    @property
    def alignment(self) -> tuple[int, ...]:
        """Operands that loads and stores need."""
        return (ALIGNED, width(self.kind) // 8) if self.in_block else ()


class Variable:
    """A mutable scalar of the function."""

    __slots__ = ("id", "kind", "writer")

    def __init__(self, writer: Writer, kind: str):
        self.writer = writer
        self.kind = kind
        self.id = writer.variable(writer.module.type(kind))

    def read(self) -> Value:
        """Its value now."""
        return self.writer.effect(Op.Load, self.kind, self.id)

    def write(self, value: Value) -> None:
        """Give it a value."""
        self.writer.do(Op.Store, self.id, value.id)


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One scalar: its type and its id."""

    writer: Writer
    kind: str
    id: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    @property
    def is_float(self) -> bool:
        """True for f16, f32 and f64."""
        return self.kind[0] == "f"

    def like(self, other: Value | Number) -> Value:
        """`other`, as a constant of this type if it is a Python number."""
        return other if isinstance(other, Value) else self.writer.constant(self.kind, other)

    def binary(self, op: Op, other: Value | Number, kind: str | None = None) -> Value:
        """An instruction on two operands of this type."""
        return self.writer.emit(op, kind or self.kind, self.id, self.like(other).id)

    def _arithmetic(self, sign: str, a: Value | Number, b: Value | Number) -> Value:
        op = (_FLOAT if self.is_float else _INTEGER)[sign]
        return self.writer.emit(op, self.kind, self.like(a).id, self.like(b).id)

    def __add__(self, other: Value | Number) -> Value:
        return self._arithmetic("+", self, other)

    def __sub__(self, other: Value | Number) -> Value:
        return self._arithmetic("-", self, other)

    def __rsub__(self, other: Number) -> Value:
        return self._arithmetic("-", other, self)

    def __mul__(self, other: Value | Number) -> Value:
        return self._arithmetic("*", self, other)

    def __truediv__(self, other: Value | Number) -> Value:
        return self._arithmetic("/", self, other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._arithmetic("/", other, self)

    def __neg__(self) -> Value:
        return self.unary(Op.FNegate if self.is_float else Op.SNegate)

    def __and__(self, other: Value | int) -> Value:
        return self.binary(Op.LogicalAnd if self.kind == "bool" else Op.BitwiseAnd, other)

    def __or__(self, other: Value | int) -> Value:
        return self.binary(Op.LogicalOr if self.kind == "bool" else Op.BitwiseOr, other)

    def __xor__(self, other: Value | int) -> Value:
        return self.binary(Op.LogicalNotEqual if self.kind == "bool" else Op.BitwiseXor, other)

    def __invert__(self) -> Value:
        return self.unary(Op.LogicalNot if self.kind == "bool" else Op.Not)

    def __lt__(self, other: Value | Number) -> Value:
        return self.binary(Op.FOrdLessThan if self.is_float else Op.SLessThan, other, "bool")

    def unary(self, op: Op, kind: str | None = None) -> Value:
        """An instruction on this value alone, giving this type or another."""
        return self.writer.emit(op, kind or self.kind, self.id)

    def bits(self) -> Value:
        """The bits of a float as an integer."""
        return self.as_kind(f"i{width(self.kind)}")

    def as_kind(self, kind: str) -> Value:
        """The same bits as another type of this size."""
        return self if kind == self.kind else self.unary(Op.Bitcast, kind)

    def glsl(self, name: Glsl, *others: Value) -> Value:
        """An instruction of GLSL.std.450 that gives this type."""
        return self.writer.glsl(name, self.kind, self, *others)


__all__ = ["Number", "Pointer", "Value", "Variable", "Writer"]
