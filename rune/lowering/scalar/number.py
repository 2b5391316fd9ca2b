"""The numbers in which scalar functions are written: values with a dtype and few operations.

    def square_plus_one(x: Number) -> Number:
        return x * x + 1.0

`Number` defines the operations on a value while a function is recorded: legalize/recorder.py
records them as kernel code, codegen/llvm/functions.py as LLVM IR. Python numbers become constants
of the other side's dtype. Functions rely on a fused multiply-add, which few devices promise, only
behind `has(Ability.FUSED)`; without it, where a product must be exact, `short` cuts both factors to
half of their bits first. Every operation is exact or rounds once; only division, the root and
values that depend on them may be slightly off.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np

from rune import dtypes
from rune.lowering.scalar.operators import Operators, Plain


class Ability(Enum):
    """What a target does well, which decides the form of a function and how it is written."""

    FUSED = "fma rounds once, and costs what a product does"
    DENORMALS = "arithmetic keeps denormal numbers"
    ASSISTED = "arithmetic on denormal numbers takes a hundred times as long as on others"
    SCALED = "y * 2**n is one instruction"
    WIDE = "f64 costs about twice what f32 does"
    LIBRARY = "the C library's functions of f64 can be called, one lane after the other"
    BRANCHES = "a branch costs what its lanes take: the compiler or the device forms them"
    COUNTS = "the bits of a word of 32 bits are counted by one instruction"


class Number(Operators["Number"]):
    """A value of a dtype. An implementation defines the abstract methods."""

    __slots__ = ()

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """The dtype."""

    @abstractmethod
    def like(self, other: Number | Plain) -> Number:
        """`other`, as a constant of this dtype if it is a Python number; integers wrap."""

    def swapped(self, name: str, other: Plain) -> Number:
        return self.like(other).apply(name, self)

    @abstractmethod
    def convert(self, dtype: np.dtype) -> Number:
        """The nearest value of another dtype, as Cast defines it."""

    @abstractmethod
    def integer_part(self, dtype: np.dtype) -> Number:
        """A float within the range of an integer dtype, truncated to it; undefined outside."""

    def nearest(self, dtype: np.dtype) -> Number:
        """f32 as f64 or f64 as f32: like `convert`, but undefined if the f32 is denormal."""
        return self.convert(dtype)

    @abstractmethod
    def bits_as(self, dtype: np.dtype) -> Number:
        """The same bits as another dtype of the same size."""

    @abstractmethod
    def choose(self, a: Number | Plain, b: Number | Plain) -> Number:
        """For a bool: a if it holds, else b."""

    @abstractmethod
    def has(self, ability: Ability) -> bool:
        """Whether the function's target has an ability."""

    @abstractmethod
    def variable(self) -> Variable:
        """A mutable number with this initial value."""

    @abstractmethod
    def when(self, then: Callable[[], None], orelse: Callable[[], None] | None = None) -> None:
        """For a bool: run `then` if it holds, else `orelse`. Only variables keep their results."""

    @abstractmethod
    def repeat(self, most: int, body: Callable[[], None]) -> None:
        """For an integer: run the body that many times, at most `most`."""

    def is_literal_besides(self, *numbers: int) -> bool:
        """Whether this is known to be a literal other than all of these numbers."""
        return False

    def scaled(self, n: Number, where: Number | None = None) -> Number:
        """This times 2ⁿ for a whole n of the same dtype, rounded once; 0 where `where` is false.

        Needs Ability.SCALED.
        """
        raise NotImplementedError(f"{type(self).__name__} has no instruction for it")

    def by_library(self, name: str) -> Number:
        """A function of the C library on f64. Needs Ability.LIBRARY."""
        raise NotImplementedError(f"{type(self).__name__} calls no library")

    # --- named operations ----------------------------------------------------------------------

    def abs(self) -> Number:
        """The magnitude."""
        return self.apply("abs")

    def copysign(self, sign: Number) -> Number:
        """This magnitude with the sign of `sign`."""
        return self.apply("copysign", sign)

    def sqrt(self) -> Number:
        """The root."""
        return self.apply("sqrt")

    def fma(self, factor: Number | Plain, addend: Number | Plain) -> Number:
        """self * factor + addend with one rounding. Needs Ability.FUSED."""
        return self.apply("fma", factor, addend)

    def times_plus(self, factor: Number | Plain, addend: Number | Plain) -> Number:
        """self * factor + addend, fused if that costs nothing; either rounding is acceptable."""
        if self.has(Ability.FUSED):
            return self.fma(factor, addend)
        return self * factor + addend

    @property
    def is_single(self) -> bool:
        """Whether it is f32 rather than f64."""
        return self.dtype == dtypes.f32

    def is_nan(self) -> Number:
        """Whether it is NaN, by its bits."""
        return self.magnitude() > int(np.array(np.inf, self.dtype).view(f"i{self.dtype.itemsize}"))

    def bits(self) -> Number:
        """The bits of a float as a signed integer."""
        return self.bits_as(np.dtype(f"i{self.dtype.itemsize}"))

    def magnitude(self) -> Number:
        """The bits of a float without its sign, which are in the order of magnitudes."""
        return self.bits() & ((1 << (8 * self.dtype.itemsize - 1)) - 1)

    def short(self) -> Number:
        """A float cut to half of its bits: 12 of 24, 26 of 53."""
        cut = 12 if self.is_single else 27
        return (self.bits() & -(1 << cut)).bits_as(self.dtype)


class Variable(ABC):
    """A mutable number."""

    __slots__ = ()

    @abstractmethod
    def get(self) -> Number:
        """Its current value."""

    @abstractmethod
    def set(self, value: Number) -> None:
        """Set its value."""


Pair = tuple[Number, Number]  # a sum of two, the first `short`


def select(condition: Number, a: Number | Plain, b: Number | Plain) -> Number:
    """a if the condition holds, else b; at least one of them is a Number."""
    return condition.choose(a, b)


def at_least(x: Number, low: float) -> Number:
    """x, or `low` if x is less; NaN stays NaN."""
    return select(x < low, low, x)


def at_most(x: Number, high: float) -> Number:
    """x, or `high` if x is greater; NaN stays NaN."""
    return select(x > high, high, x)


def horner(x: Number, coefficients: Sequence[Number | Plain]) -> Number:
    """The polynomial with `coefficients`, lowest first."""
    result = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result.times_plus(x, c)
    return result


def halves(value: float, dtype: np.dtype) -> tuple[float, float]:
    """A number as a constant of half the bits, whose product with a `short` is exact, and the rest.

    >>> halves(1.0, dtypes.f32)
    (1.0, 0.0)
    """
    cut = 12 if dtype == dtypes.f32 else 27
    number = np.asarray(value, dtype).reshape(1)
    integers = number.view(np.int32 if dtype == dtypes.f32 else np.int64)
    high = (integers & -(1 << cut)).view(dtype)
    return float(high[0]), value - float(high[0])


def pair(high: Number, low: Number) -> Pair:
    """high + low with a short first part, where |high| >= |low|."""
    first = (high + low).short()
    return first, (high - first) + low


def residual(a: Number, q: Number, b: Number) -> Number:
    """a - q b, where q b is nearly a."""
    if a.has(Ability.FUSED):
        return (-q).fma(b, a)
    first, other = q.short(), b.short()
    q_rest, b_rest = q - first, b - other
    return (((a - first * other) - first * b_rest) - q_rest * other) - q_rest * b_rest


def root(x: Number, low: Number) -> Pair:
    """The root of x + low as a sum, more accurate than the device's; 0 for x = 0."""
    near = x.sqrt()
    first = near.short()
    error = ((x - first * first) + low) / (near + first)
    return first, select(x.equals(0.0), 0.0, error)


LN2, LOG2E = math.log(2.0), math.log2(math.e)
