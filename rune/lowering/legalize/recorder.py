"""Numbers that record kernel code: arithmetic on them appends Lets to a block.

`x * y + 1.0` binds two names; an expression written twice has one name while the first is in scope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import numpy as np

from rune import dtypes
from rune.dims import Size, symbol
from rune.lowering.kernel.expr import Cast, Const, Expr, Local, Op, const
from rune.lowering.kernel.nodes import Assign, For, If, Kind, Let, Stmt, Var
from rune.lowering.scalar.number import Ability, Number, Plain, Variable
from rune.lowering.scalar.table import result_dtype
from rune.records import dataclass


@dataclass(slots=True)
class Block:
    """The statements of a function under construction. `known`: names of expressions, by region."""

    stmts: list[Stmt] = field(default_factory=list)
    known: list[dict[Expr, Local]] = field(default_factory=lambda: [{}])
    count: int = 0

    def name(self, stem: str) -> str:
        """A new name."""
        self.count += 1
        return f"{stem}{self.count}"

    def bind(self, expr: Expr) -> Expr:
        """A name for the expression; returns a constant or a name as it is."""
        if isinstance(expr, Const | Local):
            return expr
        # Searches outer regions too: names bound around a branch are valid inside it.
        for table in self.known:
            if expr in table:
                return table[expr]
        local = Local(self.name("t"), expr.dtype)
        self.known[-1][expr] = local
        self.stmts.append(Let(local.name, expr))
        return local

    def inside(self, write: Callable[[], None]) -> tuple[Stmt, ...]:
        """The statements that `write` appends, removed from the block."""
        outer, self.stmts = self.stmts, []
        # Names bound in a branch end with it.
        self.known.append({})
        write()
        self.known.pop()
        inner, self.stmts = self.stmts, outer
        return tuple(inner)


@dataclass(slots=True)
class Bound(Block):
    """A block for functions without branches, which binds its names elsewhere."""

    give: Callable[[Expr], Expr] = field(kw_only=True)

    def bind(self, expr: Expr) -> Expr:
        return self.give(expr)


@dataclass(frozen=True, slots=True)
class Recorded(Number):
    """An expression of one node in a block."""

    block: Block
    expr: Expr

    @property
    def dtype(self) -> np.dtype:
        return self.expr.dtype

    def bound(self, expr: Expr) -> Recorded:
        """The expression under a name of this block."""
        return Recorded(self.block, self.block.bind(expr))

    def like(self, other: Number | Plain) -> Recorded:
        if isinstance(other, Number):
            assert isinstance(other, Recorded)
            return other
        if self.dtype in dtypes.INTEGER:
            info = np.iinfo(self.dtype)
            # Wrapped into the dtype's range, because functions write masks such as -1 for unsigned
            # types too.
            other = (int(other) - int(info.min)) % (1 << (8 * self.dtype.itemsize)) + int(info.min)
        return Recorded(self.block, const(other, self.dtype))

    def apply(self, name: str, *others: Number | Plain) -> Recorded:
        result = result_dtype(name, self.dtype)
        assert result is not None
        return self.bound(Op(name, (self.expr, *(self.like(o).expr for o in others)), result))

    def convert(self, dtype: np.dtype) -> Recorded:
        return self if dtype == self.dtype else self.bound(Cast(self.expr, dtype))

    def integer_part(self, dtype: np.dtype) -> Recorded:
        return self.bound(Op("integer_part", (self.expr,), dtype))

    def nearest(self, dtype: np.dtype) -> Recorded:
        return self.bound(Op("nearest", (self.expr,), dtype))

    def bits_as(self, dtype: np.dtype) -> Recorded:
        if isinstance(self.expr, Const):
            return Recorded(self.block, Const(self.expr.bits, dtype))
        return self.bound(Op("bitcast", (self.expr,), dtype))

    def choose(self, a: Number | Plain, b: Number | Plain) -> Recorded:
        known = a if isinstance(a, Recorded) else b
        assert isinstance(known, Recorded)
        args = (self.expr, known.like(a).expr, known.like(b).expr)
        return self.bound(Op("select", args, known.dtype))

    def has(self, ability: Ability) -> bool:
        return False

    def variable(self) -> RecordedVariable:
        local = Local(self.block.name("v"), self.dtype)
        self.block.stmts.append(Var(local.name, self.expr))
        return RecordedVariable(self.block, local)

    def when(self, then: Callable[[], None], orelse: Callable[[], None] | None = None) -> None:
        block = self.block
        bodies = block.inside(then), block.inside(orelse) if orelse else ()
        block.stmts.append(If(self.expr, *bodies))

    def repeat(self, most: int, body: Callable[[], None]) -> None:
        block, var = self.block, self.block.name("k")
        loop = For(var, self._extent(most), Kind.SERIAL, block.inside(body))
        block.stmts.append(loop)

    def _extent(self, most: int) -> Size:
        if isinstance(self.expr, Const):
            return int(self.expr.value)
        assert isinstance(self.expr, Local)
        return symbol(self.expr.name, 0, most)


@dataclass(frozen=True, slots=True)
class RecordedVariable(Variable):
    """A Var of a block."""

    block: Block
    local: Local

    def get(self) -> Recorded:
        """Its value now, under a name of its own."""
        # A copy, because the Var may change before the value is used.
        local = Local(self.block.name("t"), self.local.dtype)
        self.block.stmts.append(Let(local.name, self.local))
        return Recorded(self.block, local)

    def set(self, value: Number) -> None:
        assert isinstance(value, Recorded)
        self.block.stmts.append(Assign(self.local.name, value.expr))
