"""Numbers that write kernel code: arithmetic on them appends Lets to a block.

`x * y + 1.0` binds two names; an expression written twice is one name where the first is seen.
Python numbers become constants of the other side's dtype. Nothing is fused and nothing rests on
a fused multiply-add, which few devices promise: where a product must be exact, `short` cuts both
factors to half of their bits first. Every operation is exact or rounds once; only the division,
the root and what their results decide may be a little off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rune import dtypes
from rune.dims import Size, symbol
from rune.lowering.kernel.expr import Cast, Const, Expr, Local, Op, const
from rune.lowering.kernel.nodes import Assign, For, If, Kind, Let, Stmt, Var
from rune.lowering.kernel.types import result_dtype

Plain = int | float


@dataclass(slots=True)
class Block:
    """The statements of a function in the making. `known`: names of expressions, by region."""

    stmts: list[Stmt] = field(default_factory=list)
    known: list[dict[Expr, Local]] = field(default_factory=lambda: [{}])
    count: int = 0

    def name(self, stem: str) -> str:
        """A name that nothing has."""
        self.count += 1
        return f"{stem}{self.count}"

    def bind(self, expr: Expr) -> Expr:
        """A name for the expression; a constant or name is itself."""
        if isinstance(expr, Const | Local):
            return expr
        for table in self.known:
            if expr in table:
                return table[expr]
        made = Local(self.name("t"), expr.dtype)
        self.known[-1][expr] = made
        self.stmts.append(Let(made.name, expr))
        return made

    def number(self, expr: Expr) -> Number:
        """The expression as a number."""
        return Number(self, self.bind(expr))

    def inside(self, write: Callable[[], None]) -> tuple[Stmt, ...]:
        """The statements that `write` appends, taken out."""
        outer, self.stmts = self.stmts, []
        self.known.append({})
        write()
        self.known.pop()
        made, self.stmts = self.stmts, outer
        return tuple(made)

    def variable(self, start: Number) -> Variable:
        """A mutable number."""
        made = Local(self.name("v"), start.dtype)
        self.stmts.append(Var(made.name, start.expr))
        return Variable(self, made)

    def when(
        self, condition: Number, then: Callable[[], None], orelse: Callable[[], None] | None = None
    ) -> None:
        """Run `then` where the condition holds, else `orelse`."""
        bodies = self.inside(then), self.inside(orelse) if orelse else ()
        self.stmts.append(If(condition.expr, *bodies))

    def repeat(self, count: Size, body: Callable[[], None]) -> None:
        """Run the body so many times."""
        self.stmts.append(For(self.name("k"), count, Kind.SERIAL, self.inside(body)))


@dataclass(frozen=True, slots=True)
class Number:
    """A value of a dtype: an expression of one node."""

    block: Block
    expr: Expr

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        return self.expr.dtype

    @property
    def is_single(self) -> bool:
        """f32 rather than f64."""
        return self.dtype == dtypes.f32

    def like(self, other: Number | Plain) -> Number:
        """`other`, as a constant of this dtype if it is a Python number."""
        if isinstance(other, Number):
            return other
        if self.dtype in dtypes.INTEGER:
            info = np.iinfo(self.dtype)
            other = (int(other) - int(info.min)) % (1 << (8 * self.dtype.itemsize)) + int(info.min)
        return Number(self.block, const(other, self.dtype))

    def apply(self, name: str, *others: Number | Plain) -> Number:
        """An operation on this number and others of its dtype."""
        result = result_dtype(name, self.dtype)
        assert result is not None
        args = (self.expr, *(self.like(o).expr for o in others))
        return self.block.number(Op(name, args, result))

    def _swapped(self, name: str, other: Plain) -> Number:
        return self.like(other).apply(name, self)

    def __add__(self, other: Number | Plain) -> Number:
        return self.apply("add", other)

    def __radd__(self, other: Plain) -> Number:
        return self._swapped("add", other)

    def __sub__(self, other: Number | Plain) -> Number:
        return self.apply("sub", other)

    def __rsub__(self, other: Plain) -> Number:
        return self._swapped("sub", other)

    def __mul__(self, other: Number | Plain) -> Number:
        return self.apply("mul", other)

    def __rmul__(self, other: Plain) -> Number:
        return self._swapped("mul", other)

    def __truediv__(self, other: Number | Plain) -> Number:
        return self.apply("div", other)

    def __rtruediv__(self, other: Plain) -> Number:
        return self._swapped("div", other)

    def __mod__(self, other: Number) -> Number:
        return self.apply("rem", other)

    def __neg__(self) -> Number:
        return self.apply("neg")

    def __and__(self, other: Number | int) -> Number:
        return self.apply("and", other)

    def __or__(self, other: Number | int) -> Number:
        return self.apply("or", other)

    def __xor__(self, other: Number | int) -> Number:
        return self.apply("xor", other)

    def __invert__(self) -> Number:
        return self.apply("not")

    def __lshift__(self, other: Number | int) -> Number:
        return self.apply("shl", other)

    def __rshift__(self, other: Number | int) -> Number:
        return self.apply("shr", other)

    def __lt__(self, other: Number | Plain) -> Number:
        return self.apply("lt", other)

    def __le__(self, other: Number | Plain) -> Number:
        return self.apply("le", other)

    def __gt__(self, other: Number | Plain) -> Number:
        return self.apply("gt", other)

    def __ge__(self, other: Number | Plain) -> Number:
        return self.apply("ge", other)

    def equals(self, other: Number | Plain) -> Number:
        """Equality; false where either is NaN."""
        return self.apply("eq", other)

    def abs(self) -> Number:
        """The magnitude."""
        return self.apply("abs")

    def copysign(self, sign: Number) -> Number:
        """This magnitude with the sign of `sign`."""
        return self.apply("copysign", sign)

    def sqrt(self) -> Number:
        """The root."""
        return self.apply("sqrt")

    def is_nan(self) -> Number:
        """Whether it is NaN, by its bits."""
        sign, endless = (1 << 31, 0x7F800000) if self.is_single else (1 << 63, 0x7FF << 52)
        return (self.bits() & (sign - 1)) > endless

    def cast(self, dtype: np.dtype) -> Number:
        """A conversion."""
        return self if dtype == self.dtype else self.block.number(Cast(self.expr, dtype))

    def bits_as(self, dtype: np.dtype) -> Number:
        """The same bits as another dtype."""
        if isinstance(self.expr, Const):
            return Number(self.block, Const(self.expr.bits, dtype))
        return self.block.number(Op("bitcast", (self.expr,), dtype))

    def bits(self) -> Number:
        """The bits of a float as a signed integer."""
        return self.bits_as(dtypes.i32 if self.is_single else dtypes.i64)

    def short(self) -> Number:
        """A float cut to half of its bits: 12 of 24, 26 of 53."""
        cut = 12 if self.is_single else 27
        return (self.bits() & -(1 << cut)).bits_as(self.dtype)

    def symbol(self, high: int) -> Size:
        """An integer as a symbol of indices, from 0 to `high`."""
        assert isinstance(self.expr, Local)
        return symbol(self.expr.name, 0, high)


@dataclass(frozen=True, slots=True)
class Variable:
    """A mutable number."""

    block: Block
    local: Local

    def get(self) -> Number:
        """Its value now, under a name of its own."""
        made = Local(self.block.name("t"), self.local.dtype)
        self.block.stmts.append(Let(made.name, self.local))
        return Number(self.block, made)

    def set(self, value: Number) -> None:
        """Give it a value."""
        self.block.stmts.append(Assign(self.local.name, value.expr))


Pair = tuple[Number, Number]  # a sum of two, the first `short`


def select(condition: Number, a: Number | Plain, b: Number | Plain) -> Number:
    """a where the condition holds, else b."""
    known = a if isinstance(a, Number) else b
    assert isinstance(known, Number)
    args = (condition.expr, known.like(a).expr, known.like(b).expr)
    return condition.block.number(Op("select", args, known.dtype))


def at_least(x: Number, low: float) -> Number:
    """x, or `low` where x is less; NaN stays."""
    return select(x < low, low, x)


def at_most(x: Number, high: float) -> Number:
    """x, or `high` where x is greater; NaN stays."""
    return select(x > high, high, x)


def horner(x: Number, coefficients: Sequence[float]) -> Number:
    """The polynomial with `coefficients`, lowest first."""
    result = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result * x + c
    return result


def halves(value: float, dtype: np.dtype) -> tuple[float, float]:
    """A number as a constant of half of the bits and the rest: its product with a `short` is exact.

    >>> halves(1.0, dtypes.f32)
    (1.0, 0.0)
    """
    cut = 12 if dtype == dtypes.f32 else 27
    whole = np.asarray(value, dtype).reshape(1)
    integers = whole.view(np.int32 if dtype == dtypes.f32 else np.int64)
    high = (integers & -(1 << cut)).view(dtype)
    return float(high[0]), value - float(high[0])


def pair(high: Number, low: Number) -> Pair:
    """high + low with a short first part, where |high| >= |low|."""
    first = (high + low).short()
    return first, (high - first) + low


def residual(a: Number, q: Number, b: Number) -> Number:
    """a - q b, where q b is nearly a."""
    first, other = q.short(), b.short()
    q_rest, b_rest = q - first, b - other
    return (((a - first * other) - first * b_rest) - q_rest * other) - q_rest * b_rest


def root(x: Number, low: Number) -> Pair:
    """The root of x + low as a sum, more exact than the device's; 0 where x is."""
    near = x.sqrt()
    first = near.short()
    rest = ((x - first * first) + low) / (near + first)
    return first, select(x.equals(0.0), 0.0, rest)


LN2, LOG2E = math.log(2.0), math.log2(math.e)

__all__ = [
    "LN2", "LOG2E", "Block", "Number", "Pair", "Plain", "Variable", "at_least", "at_most",
    "halves", "horner", "pair", "residual", "root", "select",
]  # fmt: skip
