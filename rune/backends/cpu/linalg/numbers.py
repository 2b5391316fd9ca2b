"""Real and complex numbers in vectors, so that lanes.py says each algorithm once.

A number stands for one in every lane: a real one is a vector, a complex one a vector of real parts
and one of imaginary parts.
"""

from __future__ import annotations

from typing import Protocol

from rune.lowering.codegen.llvm_text import Value
from rune.records import dataclass

Number = tuple[Value, ...]  # its parts, or a divisor in the form that `quotient` takes


class Numbers(Protocol):
    """What factorisations do with their elements."""

    @property
    def parts(self) -> int:
        """Vectors of a number."""
        ...

    def less_product(self, x: Number, a: Number, b: Number) -> Number:
        """x - a b."""
        ...

    def conjugate(self, x: Number) -> Number:
        """The same real parts, with opposite imaginary parts."""
        ...

    def divisor(self, x: Number) -> Number:
        """What `quotient` takes, of a number by which many are divided."""
        ...

    def quotient(self, x: Number, divisor: Number) -> Number:
        """A quotient."""
        ...

    def size(self, x: Number) -> Value:
        """|re| + |im|, by which LAPACK chooses pivots."""
        ...

    def is_zero(self, x: Number) -> Value:
        """In which lanes all parts are zero."""
        ...


@dataclass(frozen=True)
class Reals:
    """Numbers of one part."""

    parts: int = 1

    def less_product(self, x: Number, a: Number, b: Number) -> Number:
        """x - a b."""
        return ((-a[0]).fma(b[0], x[0]),)

    def conjugate(self, x: Number) -> Number:
        """The number itself."""
        return x

    def divisor(self, x: Number) -> Number:
        """The number itself: a quotient is rounded once."""
        return x

    def quotient(self, x: Number, divisor: Number) -> Number:
        """A quotient."""
        return (x[0] / divisor[0],)

    def size(self, x: Number) -> Value:
        """The absolute value."""
        return x[0].abs()

    def is_zero(self, x: Number) -> Value:
        """In which lanes it is zero."""
        return x[0].equals(0.0)


@dataclass(frozen=True)
class Complexes:
    """Numbers of a real and an imaginary part."""

    parts: int = 2

    def less_product(self, x: Number, a: Number, b: Number) -> Number:
        """x - a b."""
        (re, im), (p, q), (r, s) = x, a, b
        return q.fma(s, (-p).fma(r, re)), (-q).fma(r, (-p).fma(s, im))

    def conjugate(self, x: Number) -> Number:
        """The same real part, with the opposite imaginary part."""
        return x[0], -x[1]

    def divisor(self, x: Number) -> Number:
        """The reciprocal of x / s, and s, the greater part: no square leaves the range."""
        re, im = (part.abs() for part in x)
        scale = re.writer.select(re > im, re, im)
        p, q = (part / scale for part in x)
        norm = p.fma(p, q * q)
        return p / norm, -q / norm, scale

    def quotient(self, x: Number, divisor: Number) -> Number:
        """A quotient."""
        p, q, scale = divisor
        re, im = (part / scale for part in x)
        return re.fma(p, -(im * q)), re.fma(q, im * p)

    def size(self, x: Number) -> Value:
        """|re| + |im|."""
        return x[0].abs() + x[1].abs()

    def is_zero(self, x: Number) -> Value:
        """In which lanes both parts are zero."""
        return x[0].equals(0.0) & x[1].equals(0.0)
