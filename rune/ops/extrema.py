"""The larger and the smaller of two values; complex numbers by real part, then by imaginary part.

NaN propagates in `larger` and `smaller`; `larger_number` and `smaller_number` prefer a number. Of
two equal complex numbers the first is returned and has the whole derivative; two equal reals have
half of it each.

Source: the order of numpy.sort and numpy.maximum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.core.values import Operand
from rune.ops import arithmetic as a
from rune.ops import complex_numbers as cn
from rune.ops.promote import promoted

if TYPE_CHECKING:
    from rune.array import Array


def larger(x: Operand, y: Operand) -> Array:
    """The larger of two; NaN if either is."""
    return _of_two("maximum", a.max, x, y)


def smaller(x: Operand, y: Operand) -> Array:
    """The smaller of two; NaN if either is."""
    return _of_two("minimum", a.min, x, y)


def _of_two(name: str, primitive: Primitive, x: Operand, y: Operand) -> Array:
    x, y = promoted(name, x, y)
    if type_of(x).dtype not in dtypes.COMPLEX:
        return primitive(x, y)
    in_order = not_below(x, y) if primitive is a.max else not_below(y, x)
    return a.select(a.logical_or(in_order, a.ne(x, x)), x, y)


def larger_number(x: Operand, y: Operand) -> Array:
    """The larger of two; where one is NaN, the other."""
    x, y = promoted("fmax", x, y)
    is_complex = type_of(x).dtype in dtypes.COMPLEX
    in_order = not_below(x, y) if is_complex else a.gt(x, y)
    return a.select(a.logical_or(in_order, a.ne(y, y)), x, y)


def smaller_number(x: Operand, y: Operand) -> Array:
    """The smaller of two; where one is NaN, the other."""
    x, y = promoted("fmin", x, y)
    is_complex = type_of(x).dtype in dtypes.COMPLEX
    in_order = not_below(y, x) if is_complex else a.lt(x, y)
    return a.select(a.logical_or(in_order, a.ne(y, y)), x, y)


def not_below(x: Operand, y: Operand) -> Array:
    """x >= y for complex numbers; False where a part is NaN."""
    (x_real, x_imag), (y_real, y_imag) = ((cn.real(z), cn.imag(z)) for z in (x, y))
    numbers = a.logical_and(a.eq(x_imag, x_imag), a.eq(y_imag, y_imag))
    beyond = a.logical_and(a.gt(x_real, y_real), numbers)
    level = a.logical_and(a.eq(x_real, y_real), a.ge(x_imag, y_imag))
    return a.logical_or(beyond, level)
