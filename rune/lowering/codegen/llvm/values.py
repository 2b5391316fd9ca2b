"""Expressions of kernel code as LLVM IR, in one lane or in several.

An Env says what the names mean here; it is extended, never changed. In a vectorised loop it holds
Lanes: the loop variable is then the number of the first lane, and a value is a vector where it
differs between the lanes and a scalar where it does not. A mask, where there is one, says which
lanes are alive: loads touch memory for those only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from rune.dims import Size
from rune.lowering.codegen.llvm import functions as llvm_functions
from rune.lowering.codegen.llvm import index as llvm_index
from rune.lowering.codegen.llvm.names import suffix
from rune.lowering.codegen.llvm.strides import load_apart, step_of
from rune.lowering.codegen.llvm.text import Value, Writer
from rune.lowering.codegen.llvm.types import constant, from_memory, memory_type, register_type
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op
from rune.lowering.kernel.rewrite import mentions
from rune.lowering.lanes.choose import is_contiguous
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Lanes:
    """A vectorised loop: its variable, how many iterations run together, which are alive.

    `all_alive`, where it is known: whether that is all of them, which every step but the last has.
    """

    var: str
    count: int
    mask: Value | None = None
    all_alive: Value | None = None
    varying: frozenset[str] = frozenset()  # symbols of indices that differ between the lanes


@dataclass(frozen=True, slots=True)
class Slot:
    """A mutable scalar: where it lives, its dtype, and its lanes (0 for one value)."""

    pointer: Value
    dtype: np.dtype
    lanes: int = 0

    @property
    def type(self) -> str:
        """The IR type of what is in the slot."""
        scalar = register_type(self.dtype)
        return f"<{self.lanes} x {scalar}>" if self.lanes else scalar


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer or scratch: its first element and its dtype."""

    pointer: Value
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class Env:
    """What names mean: immutable locals, Vars, memory, and the symbols of index expressions."""

    locals: Mapping[str, Value] = field(default_factory=dict)
    slots: Mapping[str, Slot] = field(default_factory=dict)
    memory: Mapping[str, Memory] = field(default_factory=dict)
    symbols: Mapping[str, Value] = field(default_factory=dict)  # i64; a vector where it varies
    lanes: Lanes | None = None
    # Scattered loads served from a copied tile: by buffer and index, where this row's lanes lie.
    tiles: Mapping[tuple[str, Size], Value] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Lanes of a varying value here, 0 outside vectorised loops."""
        return self.lanes.count if self.lanes else 0

    @property
    def mask(self) -> Value | None:
        """The lanes that are alive, None for all."""
        return self.lanes.mask if self.lanes else None

    def with_mask(self, mask: Value) -> Env:
        """The same with fewer lanes alive."""
        assert self.lanes is not None
        return replace(self, lanes=replace(self.lanes, mask=both(self.mask, mask), all_alive=None))


def both(a: Value | None, b: Value) -> Value:
    """The conjunction of masks, where None is all."""
    return b if a is None else a & b


@dataclass(slots=True)
class Values:
    """Writes expressions."""

    writer: Writer
    masked: bool  # whether masked loads and stores are cheap

    def value(self, expr: Expr, env: Env) -> Value:
        """The register value of an expression; parts that it shares are computed once."""
        # A new memo for each statement, because Vars may change in between.
        return self._value(expr, env, {})

    def _value(self, expr: Expr, env: Env, done: dict[int, Value]) -> Value:
        value = done.get(id(expr))
        if value is None:
            value = done[id(expr)] = self._compute(expr, env, done)
        return value

    def _compute(self, expr: Expr, env: Env, done: dict[int, Value]) -> Value:
        match expr:
            case Const():
                return constant(self.writer, expr)
            # A name that is not a Let here is a Var.
            case Local(name=name) if name in env.locals:
                return env.locals[name]
            case Local(name=name):
                slot = env.slots[name]
                return self.writer.load(slot.type, slot.pointer)
            case Index(dim=dim):
                return self.index(dim, env)
            case Cast(arg=arg, dtype=dtype):
                return llvm_functions.convert(self._value(arg, env, done), arg.dtype, dtype)
            case Op(name=name, args=args, dtype=dtype):
                values = self.aligned([self._value(a, env, done) for a in args], env)
                return llvm_functions.operation(name, dtype, values, args[-1].dtype)
            case Load(guard=guard):
                held = self._value(guard, env, done) if guard is not None else None
                return self.load(expr, held, env)

    def aligned(self, values: list[Value], env: Env) -> tuple[Value, ...]:
        """Values as vectors if one of them is."""
        lanes = env.count if any(v.lanes for v in values) else 0
        return tuple(self.writer.splat(v, lanes) for v in values)

    def index(self, size: Size, env: Env) -> Value:
        """An index expression as a value, by lane where it varies."""
        lanes = env.lanes
        if lanes is None or not mentions(size, frozenset({lanes.var})):
            return llvm_index.render(self.writer, size, env.symbols)
        # The symbol is the first lane's value; the other lanes count up from it.
        first = self.writer.splat(env.symbols[lanes.var], lanes.count)
        each = first + self.writer.iota(lanes.count, "i64")
        return llvm_index.render(self.writer, size, {**env.symbols, lanes.var: each})

    def address(self, memory: Memory, index: Value) -> Value:
        """Where the element, or each lane's element, lies."""
        type = memory_type(memory.dtype)
        result = f"<{index.lanes} x ptr>" if index.lanes else "ptr"
        text = f"getelementptr inbounds {type}, ptr {memory.pointer.text}, {index.type} "
        return self.writer.emit(result, text + index.text)

    def load(self, load: Load, guard: Value | None, env: Env) -> Value:
        """One element, or one for each lane."""
        memory, index = env.memory[load.buffer], load.indices[0]
        lanes = env.lanes
        if lanes is None or not mentions(index, lanes.varying):
            return self.load_one(memory, index, guard, env)
        mask = env.mask if guard is None else both(env.mask, self.writer.splat(guard, lanes.count))
        if is_contiguous(index, lanes.var, lanes.varying):
            at = self.address(memory, llvm_index.render(self.writer, index, env.symbols))
            raw = self.load_neighbours(
                memory, at, lanes if guard is None else replace(lanes, mask=mask, all_alive=None)
            )
            return from_memory(raw, memory.dtype)
        tile = env.tiles.get((load.buffer, index))
        step = step_of(index, lanes.var, lanes.varying)
        if tile is None and step is not None and (mask is None or self.masked):
            first = llvm_index.render(self.writer, index, env.symbols)

            def read(elements: int, some: Value | None) -> Value:
                some_lanes = Lanes(lanes.var, lanes.count, some)
                return self.load_neighbours(memory, self.address(memory, first + elements), some_lanes)

            raw = load_apart(step, lanes.count, mask, read)
        else:
            at = self.address(memory, self.index(index, env)) if tile is None else tile
            raw = self.gather(memory, at, mask)
        return from_memory(raw, memory.dtype)

    def load_one(self, memory: Memory, index: Size, guard: Value | None, env: Env) -> Value:
        """An element that all lanes share; read only where the guard holds in some lane."""

        def read() -> Value:
            at = llvm_index.render(self.writer, index, env.symbols)
            type = memory_type(memory.dtype)
            raw = self.writer.load(type, self.address(memory, at), memory.dtype.itemsize)
            return from_memory(raw, memory.dtype)

        if guard is None:
            return read()
        # A branch and not a select, because the element may not exist where no guard holds.
        element = self.writer.where(self.writer.any_lane(guard), read)
        if not guard.lanes:
            return element
        return self.writer.select(guard, self.writer.splat(element, env.count), 0)

    def load_neighbours(self, memory: Memory, at: Value, lanes: Lanes) -> Value:
        """Adjacent elements, one for each lane that is alive, else 0, which nothing reads."""
        type, align = f"<{lanes.count} x {memory_type(memory.dtype)}>", memory.dtype.itemsize
        mask = lanes.mask

        def plain() -> Value:
            return self.writer.load(type, at, align)

        if mask is None:
            return plain()

        def some() -> Value:
            zero, alignment = self.writer.constant(type, 0), self.writer.constant("i32", align)
            return self.writer.call(type, f"@llvm.masked.load.{suffix(type)}.p0", at, alignment, mask, zero)

        # Not all processors fetch ahead of masked loads (a Zen 5: 6.1 ns a vector beside 2.6).
        return some() if lanes.all_alive is None else self.writer.choose(lanes.all_alive, plain, some)

    def gather(self, memory: Memory, at: Value, mask: Value | None) -> Value:
        """Scattered elements, one for each lane."""
        type = f"<{at.lanes} x {memory_type(memory.dtype)}>"
        alive = mask or self.writer.constant(f"<{at.lanes} x i1>", 1)
        alignment = self.writer.constant("i32", memory.dtype.itemsize)
        name = f"@llvm.masked.gather.{suffix(type)}.v{at.lanes}p0"
        return self.writer.call(type, name, at, alignment, alive, self.writer.constant(type, 0))
