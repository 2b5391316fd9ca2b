"""Random kernel code that is correct by construction: in bounds, written before read, no races.

A number gives a kernel: `random_code(seed)`. Each grid point owns a row of the result and its
scratch; indices into shared inputs are taken modulo their size or guarded. Sums are of small
integers, so that the order of an Accumulate does not matter.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rune import dtypes
from rune.dims import Size, symbol
from rune.lowering.kernel.expr import Cast, Expr, Index, Load, Local, Op, const
from rune.lowering.kernel.nodes import (
    Access,
    Accumulate,
    AddressSpace,
    Alloc,
    Assign,
    For,
    If,
    KernelCode,
    Kind,
    Let,
    Param,
    Stmt,
    Store,
    Var,
)
from rune.lowering.scalar.table import result_dtype

GRID, ROW, INPUT = 5, 8, 40
f32, i32, i64, bool_ = dtypes.f32, dtypes.i32, dtypes.i64, dtypes.bool_

_FLOAT = ("add", "sub", "mul", "max", "min", "neg", "abs", "floor", "round", "select")
_INT = ("add", "sub", "mul", "div", "rem", "max", "min", "and", "xor", "shl", "shr", "neg")


def op(name: str, *args: Expr) -> Op:
    """An operation with its result's dtype."""
    result = result_dtype(name, args[-1].dtype)
    assert result is not None
    return Op(name, args, result)


@dataclass
class Maker:
    """Makes statements over what is in scope."""

    floats: ClassVar[tuple[str, ...]] = _FLOAT
    integers: ClassVar[tuple[str, ...]] = _INT
    nested: ClassVar[tuple[str, ...]] = ("reduce", "reduce", "branch", "fill", "carry", "copies")
    rng: random.Random
    names: int = 0
    loops: list[Size] = field(default_factory=list)  # symbols of the loops around
    lets: list[Local] = field(default_factory=list)
    symbols: list[Size] = field(default_factory=list)  # integer Lets
    variables: list[Local] = field(default_factory=list)
    scratch: list[str] = field(default_factory=list)  # filled allocations of ROW elements
    row: Size = 0
    depth: int = 0

    def name(self, base: str) -> str:
        self.names += 1
        return f"{base}{self.names}"

    def index(self) -> Size:
        """Some index expression over what is in scope."""
        parts = [*self.loops, *self.symbols]
        total: Size = self.rng.randrange(4)
        for s in self.rng.sample(parts, min(len(parts), 2)):
            total = total + self.rng.choice((1, 2, 3, 7)) * s
        if self.rng.random() < 0.3:
            total = total // self.rng.choice((2, 3, 4))
        return total

    def boolean(self, depth: int) -> Expr:
        comparison = self.rng.choice(("lt", "le", "eq", "ne", "gt", "ge"))
        if self.rng.random() < 0.5:
            bound = const(self.rng.randrange(12), i64)
            return op(comparison, Index(self.index()), bound)
        if self.rng.random() < 0.3 and depth:
            both = self.boolean(depth - 1), self.boolean(depth - 1)
            return op(self.rng.choice(("and", "or")), *both)
        return op(comparison, self.number(f32, depth - 1), self.number(f32, depth - 1))

    def leaf(self, dtype: np.dtype) -> Expr:
        known = [x for x in (*self.lets, *self.variables) if x.dtype == dtype]
        choice = self.rng.random()
        if known and choice < 0.4:
            return self.rng.choice(known)
        if choice < 0.5:
            return const(self.rng.randrange(-3, 4), dtype)
        if choice < 0.6:
            return Cast(Index(self.index()), dtype)
        if dtype == f32 and self.scratch and choice < 0.8:
            return Load(self.rng.choice(self.scratch), (self.index() % ROW,), f32)
        if choice < 0.9:
            return Load("x" if dtype == f32 else "k", (self.index() % INPUT,), dtype)
        at = self.index() - 3
        low, high = op("ge", Index(at), const(0, i64)), op("lt", Index(at), const(INPUT, i64))
        return Load("x" if dtype == f32 else "k", (at,), dtype, op("and", low, high))

    def number(self, dtype: np.dtype, depth: int) -> Expr:
        if depth <= 0 or self.rng.random() < 0.2:
            return self.leaf(dtype)
        if self.rng.random() < 0.1:
            return Cast(self.number(i32 if dtype == f32 else f32, depth - 1), dtype)
        name = self.rng.choice(self.floats if dtype == f32 else self.integers)
        args = [self.number(dtype, depth - 1) for _ in range(1 if name in _UNARY else 2)]
        return op(name, *([self.boolean(depth - 1)] if name == "select" else []), *args)

    # --- statements --------------------------------------------------------------------------

    def body(self, count: int) -> tuple[Stmt, ...]:
        """A body of about `count` statements; what it binds is forgotten after it."""
        scope = {n: list(getattr(self, n)) for n in ("lets", "symbols", "variables", "scratch")}
        self.depth += 1
        statements = [s for _ in range(count) for s in self.statements()]
        self.depth -= 1
        for name, value in scope.items():
            setattr(self, name, value)
        return tuple(statements)

    def statements(self) -> list[Stmt]:
        makers = [self.let, self.let, self.integer, self.store, self.assign]
        if self.depth < 4:
            makers += [getattr(self, name) for name in self.nested]
        return self.rng.choice(makers)()

    def let(self) -> list[Stmt]:
        dtype = self.rng.choice((f32, f32, i32))
        let = Let(self.name("t"), self.number(dtype, 3))
        self.lets.append(Local(let.name, dtype))
        return [let]

    def integer(self) -> list[Stmt]:
        """An integer Let that indices may mention, clamped to its bounds."""
        high = self.rng.randrange(1, 9)
        index = op("max", const(0, i32), op("min", const(high, i32), self.number(i32, 2)))
        let = Let(self.name("k"), index)
        self.symbols.append(symbol(let.name, 0, high))
        return [let]

    def store(self) -> list[Stmt]:
        value = self.number(f32, 3)
        at = self.row * ROW + self.index() % ROW
        if self.rng.random() < 0.3:
            return [Store("y", at, value, self.rng.choice(("max", "min")))]
        return [Store("y", at, value)]

    def assign(self) -> list[Stmt]:
        if self.variables and self.rng.random() < 0.7:
            target = self.rng.choice(self.variables)
            return [Assign(target.name, self.number(target.dtype, 2))]
        var = Var(self.name("v"), self.number(f32, 2))
        self.variables.append(Local(var.name, f32))
        return [var]

    def small(self) -> Expr:
        """A small integer as f32: sums of them are exact in any order."""
        bounds = op("max", const(-8, f32), op("min", const(8, f32), self.number(f32, 2)))
        return op("round", bounds)

    def inside(self, extent: int, kind: Kind, make) -> For:
        var = self.name("j")
        self.loops.append(symbol(var, 0, extent - 1))
        body = make(self.loops[-1])
        self.loops.pop()
        return For(var, extent, kind, body)

    def reduce(self) -> list[Stmt]:
        total = Var(self.name("s"), self.small())
        combine = self.rng.choice(("add", "max", "min"))
        kind = self.rng.choice((Kind.SERIAL, Kind.VECTOR, Kind.UNROLLED))
        outer_variables = self.variables
        self.variables = []  # a reduction does not read what it changes

        def make(j: Size) -> tuple[Stmt, ...]:
            lets = self.let()
            statements = (*lets, Accumulate(total.name, combine, self.small()))
            self.lets.pop()
            return statements

        loop = self.inside(self.rng.randrange(1, 7), kind, make)
        self.variables = outer_variables
        self.lets.append(Local(total.name, f32))
        return [total, loop]

    def carry(self) -> list[Stmt]:
        """A loop whose iterations depend on each other."""
        var = Var(self.name("v"), self.number(f32, 1))
        self.variables.append(Local(var.name, f32))
        loop = self.inside(
            self.rng.randrange(1, 4),
            self.rng.choice((Kind.SERIAL, Kind.UNROLLED)),
            lambda j: (*self.body(2), Assign(var.name, self.number(f32, 2))),
        )
        return [var, loop]

    def copies(self) -> list[Stmt]:
        extent = self.rng.randrange(0, 4)
        kind = self.rng.choice((Kind.SERIAL, Kind.UNROLLED))
        return [self.inside(extent, kind, lambda j: self.body(2))]

    def fill(self) -> list[Stmt]:
        """Scratch, filled: one element per iteration."""
        name = self.name("e")
        kind = self.rng.choice((Kind.SERIAL, Kind.VECTOR, Kind.UNROLLED))
        outer_variables = self.variables
        self.variables = []
        loop = self.inside(ROW, kind, lambda j: (Store(name, j, self.number(f32, 2)),))
        self.variables = outer_variables
        self.scratch.append(name)
        return [Alloc(name, f32, ROW, AddressSpace.LOCAL), loop]

    def branch(self) -> list[Stmt]:
        orelse = self.body(1) if self.rng.random() < 0.5 else ()
        return [If(self.boolean(2), self.body(2), orelse)]


_UNARY = frozenset({"neg", "abs", "floor", "round"})


def random_code(seed: int, statements: int = 6, maker_of: type[Maker] = Maker) -> KernelCode:
    """The kernel of this number: y[GRID*ROW] from x: f32[INPUT] and k: i32[INPUT]."""
    maker = maker_of(random.Random(seed))
    maker.row = symbol("i", 0, GRID - 1)
    maker.loops.append(maker.row)
    zero = maker.inside(ROW, Kind.SERIAL, lambda j: (Store("y", maker.row * ROW + j, const(0, f32)),))
    body = (zero, *maker.body(statements), *maker.store(), *maker.store())
    params = (
        Param("x", f32, INPUT, Access.READ),
        Param("k", i32, INPUT, Access.READ),
        Param("y", f32, GRID * ROW, Access.WRITE),
    )
    return KernelCode(f"random{seed}", params, (), (For("i", GRID, Kind.GRID, body),))


def random_inputs(seed: int) -> list[np.ndarray]:
    """x, k and an uninitialised y."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-20, 20, INPUT).astype(np.float32) / 2
    k = rng.integers(-50, 50, INPUT).astype(np.int32)
    return [x, k, np.full(GRID * ROW, np.nan, np.float32)]
