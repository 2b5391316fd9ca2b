"""Expressions of kernel code as LLVM IR, in one lane or in several.

An Env says what the names mean here; it is extended, never changed. In a vectorised loop it holds
Lanes: the loop variable is then the number of the first lane, and a value is a vector where it
differs between the lanes and a scalar where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field

import numpy as np

from rune.dims import Size
from rune.lowering.codegen.llvm import functions as llvm_functions
from rune.lowering.codegen.llvm import index as llvm_index
from rune.lowering.codegen.llvm import scalar as llvm_scalar
from rune.lowering.codegen.llvm.ir.memory import Alive, Memory, Slot
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.codegen.llvm.ir.types import constant, from_memory
from rune.lowering.codegen.walk import ExpressionWalk
from rune.lowering.kernel.expr import Const, Expr, Load, Local, Op
from rune.lowering.kernel.rewrite import mentions
from rune.lowering.lanes.choose import step_of
from rune.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Lanes:
    """A vectorised loop: its variable, and how many iterations run together.

    varying: the symbols of indices that differ between the lanes
    """

    var: str
    alive: Alive
    varying: frozenset[str]


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
    def alive(self) -> Alive | None:
        """The lanes of a vectorised loop; None outside."""
        return self.lanes.alive if self.lanes else None

    @property
    def count(self) -> int:
        """Lanes of a varying value here, 0 outside vectorised loops."""
        return self.lanes.alive.count if self.lanes else 0

    def only(self, mask: Value) -> Env:
        """The same with fewer lanes alive."""
        assert self.lanes is not None
        return replace(self, lanes=replace(self.lanes, alive=self.lanes.alive.only(mask)))

    def at(self, symbols: Mapping[str, Value]) -> Env:
        """The same with these symbols, too."""
        return replace(self, symbols={**self.symbols, **symbols})

    def step(self, index: Size) -> int | None:
        """How far apart the lanes' elements lie; None if they are scattered."""
        return step_of(index, self.lanes.var, self.lanes.varying) if self.lanes else 0


@dataclass(slots=True)
class Values(ExpressionWalk[Value]):
    """Writes expressions.

    has_cheap_masks: as in Machine
    env: what names mean where the walk is
    known: the parts of the current expression that have been written, by identity
    """

    writer: Writer
    has_cheap_masks: bool
    env: Env
    known: dict[int, Value] = field(default_factory=dict, kw_only=True)

    @contextmanager
    def inside(self, env: Env) -> Iterator[None]:
        """A context in which `env` defines the names."""
        outer, self.env = self.env, env
        yield
        self.env = outer

    def value(self, expr: Expr) -> Value:
        """The register value of an expression; parts that it shares are computed once."""
        # Not those of other statements, because Vars may change in between.
        self.known = {}
        return self.expr(expr)

    def expr(self, expr: Expr) -> Value:
        if type(expr) is Local and expr.name in self.env.locals:
            return self.env.locals[expr.name]
        value = self.known.get(id(expr))
        if value is None:
            value = self.known[id(expr)] = ExpressionWalk.expr(self, expr)
        return value

    def const(self, c: Const) -> Value:
        return constant(self.writer, c.dtype, c.bits)

    def local(self, name: str) -> Value:
        value = self.env.locals.get(name)
        return self.env.slots[name].read() if value is None else value

    def cast(self, arg: Expr, target: np.dtype) -> Value:
        return llvm_functions.convert(self.expr(arg), arg.dtype, target)

    def bitcast(self, arg: Expr, target: np.dtype) -> Value:
        return llvm_scalar.bitcast(self.expr(arg), arg.dtype, target)

    def integer_part(self, arg: Expr, target: np.dtype) -> Value:
        return llvm_scalar.integer_part(self.expr(arg), target)

    def op(self, op: Op) -> Value:
        values = [self.expr(a) for a in op.args]
        # As vectors if one of them is.
        if self.env.lanes is not None and any([v.lanes for v in values]):
            values = [self.writer.splat(v, self.env.count) for v in values]
        return self.operation(op.name, op.dtype, tuple(values), op.args[-1].dtype)

    def operation(self, name: str, dtype: np.dtype, args: tuple[Value, ...], operand: np.dtype) -> Value:
        """As `functions.operation`."""
        return llvm_functions.operation(name, dtype, args, operand)

    def index(self, dim: Size) -> Value:
        """An index expression as a value, by lane where it varies."""
        env, lanes = self.env, self.env.lanes
        if lanes is None or not mentions(dim, frozenset({lanes.var})):
            return self.first(dim)
        return llvm_index.of_lanes(self.writer, dim, env.symbols, lanes.var, env.count)

    def first(self, dim: Size) -> Value:
        """The value of an index expression in the first lane."""
        return llvm_index.render(self.writer, dim, self.env.symbols)

    def load(self, load: Load) -> Value:
        """One element, or one for each lane."""
        guard = None if load.guard is None else self.expr(load.guard)
        memory, index, alive = self.env.memory[load.buffer], load.indices[0], self.env.alive
        step = 1 if memory.lanes else self.env.step(index)  # the lanes' copies of an element are neighbours
        if step == 0 or alive is None:
            return self.load_one(memory, index, guard)
        if guard is not None:
            alive = alive.only(self.writer.splat(guard, alive.count))
        tile = self.env.tiles.get((load.buffer, index))
        if tile is None and step == 1:
            raw = memory.read(memory.address(self.first(index)), alive)
        elif tile is None and step is not None and (alive.mask is None or self.has_cheap_masks):
            raw = memory.read_apart(self.first(index), step, alive)
        else:
            raw = memory.read(memory.address(self.index(index)) if tile is None else tile, alive)
        return from_memory(raw, memory.dtype)

    def load_one(self, memory: Memory, index: Size, guard: Value | None) -> Value:
        """An element that all lanes share; read only where the guard holds in some lane."""

        def read() -> Value:
            return from_memory(memory.read(memory.address(self.first(index)), None), memory.dtype)

        if guard is None:
            return read()
        # A branch and not a select, because the element may not exist where no guard holds.
        element = self.writer.where(self.writer.any_lane(guard), read)
        if not guard.lanes:
            return element
        return self.writer.select(guard, self.writer.splat(element, self.env.count), 0)
