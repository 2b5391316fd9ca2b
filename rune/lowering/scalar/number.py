"""What a function of scalars is written in: numbers that know their dtype, and how few they need.

    def square_plus_one(x: Number) -> Number:
        return x * x + 1.0

`Number` says what may be done with a value while a function is written down: legalize/recorder.py
makes kernel code of it, codegen/llvm/functions.py LLVM IR. Python numbers become constants of the
other side's dtype. Nothing rests on a fused multiply-add, which few devices promise, but behind
`has(Ability.FUSED)`: where a product must be exact, `short` cuts both factors to half of their bits
first. Every operation is exact or rounds once; only the division, the root and what their results
decide may be a little off.
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
    """What a target is good at, by which a function is chosen or written."""

    FUSED = "fma rounds once, and costs what a product does"
    DENORMALS = "arithmetic keeps denormal numbers"
    SCALED = "y * 2**n is one instruction"
    WIDE = "f64 costs about twice what f32 does"
    LIBRARY = "the C library's functions of f64 can be called, one lane after the other"
    BRANCHES = "a branch costs what its lanes take: the compiler or the device forms them"
    COUNTS = "the bits of a word of 32 bits are counted by one instruction"


class Number(Operators["Number"]):
    """A value of a dtype. An implementation says the abstract methods."""

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
        """The nearest value of another dtype, as Cast has it."""

    @abstractmethod
    def integer_part(self, dtype: np.dtype) -> Number:
        """Of a float between the ends of an integer dtype: towards 0, as that; else undefined."""

    def nearest(self, dtype: np.dtype) -> Number:
        """Of f32 and f64 the other: as `convert`, but undefined where the f32 is denormal."""
        return self.convert(dtype)

    @abstractmethod
    def bits_as(self, dtype: np.dtype) -> Number:
        """The same bits as another dtype of the same size."""

    @abstractmethod
    def choose(self, a: Number | Plain, b: Number | Plain) -> Number:
        """Of a bool: a where it holds, else b."""

    @abstractmethod
    def has(self, ability: Ability) -> bool:
        """Whether the target that the function is written for has an ability."""

    @abstractmethod
    def variable(self) -> Variable:
        """A mutable number that begins as this one."""

    @abstractmethod
    def when(self, then: Callable[[], None], orelse: Callable[[], None] | None = None) -> None:
        """Of a bool: run `then` where it holds, else `orelse`. Only variables leave them."""

    @abstractmethod
    def repeat(self, most: int, body: Callable[[], None]) -> None:
        """Of an integer: run the body so many times, which are at most `most`."""

    def scaled(self, n: Number) -> Number:
        """This times 2ⁿ for a whole n of the same dtype, rounded once. Needs Ability.SCALED."""
        raise NotImplementedError(f"{type(self).__name__} has no instruction for it")

    def by_library(self, name: str) -> Number:
        """A function of the C library, of f64. Needs Ability.LIBRARY."""
        raise NotImplementedError(f"{type(self).__name__} calls no library")

    # --- what reads better by name -------------------------------------------------------------

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
        """self * factor + addend, fused where that is free: either rounding will do."""
        if self.has(Ability.FUSED):
            return self.fma(factor, addend)
        return self * factor + addend

    @property
    def is_single(self) -> bool:
        """f32 rather than f64."""
        return self.dtype == dtypes.f32

    def is_nan(self) -> Number:
        """Whether it is NaN, by its bits."""
        return self.magnitude() > int(np.array(np.inf, self.dtype).view(f"i{self.dtype.itemsize}"))

    def bits(self) -> Number:
        """The bits of a float as a signed integer."""
        return self.bits_as(np.dtype(f"i{self.dtype.itemsize}"))

    def magnitude(self) -> Number:
        """The bits of a float without its sign: in the order of magnitudes."""
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
        """Its value now."""

    @abstractmethod
    def set(self, value: Number) -> None:
        """Give it a value."""


Pair = tuple[Number, Number]  # a sum of two, the first `short`


def select(condition: Number, a: Number | Plain, b: Number | Plain) -> Number:
    """a where the condition holds, else b; one of them is a Number."""
    return condition.choose(a, b)


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
        result = result.times_plus(x, c)
    return result


def halves(value: float, dtype: np.dtype) -> tuple[float, float]:
    """A number as a constant of half of the bits and the rest: its product with a `short` is exact.

    >>> halves(1.0, dtypes.f32)
    (1.0, 0.0)
    """
    cut = 12 if dtype == dtypes.f32 else 27
    rounded = np.asarray(value, dtype).reshape(1)
    integers = rounded.view(np.int32 if dtype == dtypes.f32 else np.int64)
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
    """The root of x + low as a sum, more exact than the device's; 0 where x is."""
    near = x.sqrt()
    first = near.short()
    error = ((x - first * first) + low) / (near + first)
    return first, select(x.equals(0.0), 0.0, error)


LN2, LOG2E = math.log(2.0), math.log2(math.e)
