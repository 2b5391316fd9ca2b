"""Arithmetic of real and complex numbers, so that each algorithm is written once for both.

In lanes.py a number represents one in each lane: a real number is a vector, a complex one a vector
of real parts and one of imaginary parts. In rows of matrices numbers are side by side, each with
its parts together; there a number is one or two scalars.
"""

from __future__ import annotations

from typing import Protocol

from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

Number = tuple[Value, ...]  # its parts, or a divisor in the form that `quotient` expects


class Numbers(Protocol):
    """The operations of factorisations on their elements."""

    @property
    def parts(self) -> int:
        """The number of vectors or scalars of a number."""
        ...

    def product(self, a: Number, b: Number) -> Number:
        """A product."""
        ...

    def less_product(self, x: Number, a: Number, b: Number) -> Number:
        """x - a b."""
        ...

    def conjugate(self, x: Number) -> Number:
        """The same real parts, with opposite imaginary parts."""
        ...

    def divisor(self, x: Number) -> Number:
        """A number in the form that `quotient` expects, made once for many quotients."""
        ...

    def quotient(self, x: Number, divisor: Number) -> Number:
        """A quotient."""
        ...

    def size(self, x: Number) -> Value:
        """|re| + |im|: LAPACK compares pivots by this size, which needs no root."""
        ...

    def is_zero(self, x: Number) -> Value:
        """The lanes in which all parts are zero."""
        ...

    def turns(self, row: Value) -> tuple[Value, ...]:
        """The vectors that the parts of a factor multiply, for a vector of numbers side by side."""
        ...

    def conjugates(self, row: Value) -> Value:
        """The conjugate of each number of such a vector."""
        ...

    def quotients(self, row: Value, divisor: Number) -> Value:
        """Each number of such a vector divided by a divisor, which is in every lane."""
        ...


@dataclass(frozen=True)
class Reals:
    """Numbers of one part."""

    parts: int = 1

    def product(self, a: Number, b: Number) -> Number:
        """A product."""
        return (a[0] * b[0],)

    def less_product(self, x: Number, a: Number, b: Number) -> Number:
        """x - a b."""
        return ((-a[0]).fma(b[0], x[0]),)

    def conjugate(self, x: Number) -> Number:
        """The number itself."""
        return x

    def divisor(self, x: Number) -> Number:
        """The number itself. A reciprocal would round quotients twice."""
        return x

    def quotient(self, x: Number, divisor: Number) -> Number:
        """A quotient."""
        return (x[0] / divisor[0],)

    def size(self, x: Number) -> Value:
        """The absolute value."""
        return x[0].abs()

    def is_zero(self, x: Number) -> Value:
        """The lanes in which it is zero."""
        return x[0].equals(0.0)

    def turns(self, row: Value) -> tuple[Value, ...]:
        """The vector itself."""
        return (row,)

    def conjugates(self, row: Value) -> Value:
        """The vector itself."""
        return row

    def quotients(self, row: Value, divisor: Number) -> Value:
        """Quotients."""
        return row / divisor[0]


@dataclass(frozen=True)
class Complexes:
    """Numbers of a real and an imaginary part."""

    parts: int = 2

    def product(self, a: Number, b: Number) -> Number:
        """A product."""
        (p, q), (r, s) = a, b
        return p.fma(r, -(q * s)), p.fma(s, q * r)

    def less_product(self, x: Number, a: Number, b: Number) -> Number:
        """x - a b."""
        (re, im), (p, q), (r, s) = x, a, b
        return q.fma(s, (-p).fma(r, re)), (-q).fma(r, (-p).fma(s, im))

    def conjugate(self, x: Number) -> Number:
        """The same real part, with the opposite imaginary part."""
        return x[0], -x[1]

    def divisor(self, x: Number) -> Number:
        """The reciprocal of x / s, and s, the greater part, so that no square overflows.

        The reciprocal of an infinite number is zero.
        """
        re, im = (part.abs() for part in x)
        # 1 / x = conj(x / s) / |x / s|² / s.
        scale = re.writer.select(re > im, re, im)
        p, q = (part / scale for part in x)
        norm, is_infinite = p.fma(p, q * q), scale.equals(float("inf"))
        scale = re.writer.select(is_infinite, scale.like(1.0), scale)
        return *(re.writer.select(is_infinite, scale.like(0.0), x / norm) for x in (p, -q)), scale

    def quotient(self, x: Number, divisor: Number) -> Number:
        """A quotient."""
        p, q, scale = divisor
        re, im = (part / scale for part in x)
        return re.fma(p, -(im * q)), re.fma(q, im * p)

    def size(self, x: Number) -> Value:
        """|re| + |im|."""
        return x[0].abs() + x[1].abs()

    def is_zero(self, x: Number) -> Value:
        """The lanes in which both parts are zero."""
        return x[0].equals(0.0) & x[1].equals(0.0)

    def turns(self, row: Value) -> tuple[Value, ...]:
        """The vector, and i times it."""
        count = row.lanes
        # i (x + i y) = -y + i x: parts change places, and -y is taken from the second operand.
        return row, row.writer.shuffle(row, -row, [k - 1 if k % 2 else count + k + 1 for k in range(count)])

    def conjugates(self, row: Value) -> Value:
        """The imaginary parts with the opposite sign."""
        count = row.lanes
        return row.writer.shuffle(row, -row, [count + k if k % 2 else k for k in range(count)])

    def quotients(self, row: Value, divisor: Number) -> Value:
        """Quotients."""
        p, q, scale = divisor
        real_turn, imag_turn = self.turns(row / scale)
        return real_turn.fma(p, imag_turn * q)
