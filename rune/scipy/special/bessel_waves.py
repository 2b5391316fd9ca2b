"""Bessel functions J and Y of order 0 and 1, and J of all whole orders.

Up to 6 they are polynomials in x², with the first zeros as factors; beyond, modulus and phase,
√(2/πx) (P cos χ - Q sin χ) with χ = x - (2ν + 1) π/4. Types: relative to the amplitude near zeros.
Source: DLMF 10.8.1, 10.8.2, 10.17.3 and 10.17.4.
"""

from __future__ import annotations

import math

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.control import scan
from rune.errors import ArgumentError
from rune.numpy.arguments import static_count
from rune.scipy.special import tables_bessel as tables
from rune.scipy.special.arguments import elementwise, quotient, reals, rounded, widened, with_slopes
from rune.scipy.special.bessel import odd_over
from rune.typing import ArrayLike

_ROOT_HALF = math.sqrt(0.5)


def _near(x: Array, order: int) -> Array:
    """J at |x| <= 6."""
    square = x * x
    roots, table = (tables.J1_ROOTS, tables.J1) if order else (tables.J0_ROOTS, tables.J0)
    out = _from_zero(x, roots[0]) * _from_zero(x, roots[1]) * quotient(square, table)
    return out * x if order else out


def _from_zero(x: Array, root: float) -> Array:
    """x² - root², the root in two parts, so that the digits near it are kept in f32 too."""
    coarse = float(np.float32(root))
    fine = root - coarse
    return ((x - coarse) - fine) * ((x + coarse) + fine)


def _far(x: Array, order: int) -> tuple[Array, Array]:
    """J and Y at x >= 6."""
    t = 1.0 / x
    p, q = (tables.J1_P, tables.J1_Q) if order else (tables.J0_P, tables.J0_Q)
    even, odd = quotient(t * t, p), quotient(t * t, q) * t
    sine, cosine = rnp.sin(x), rnp.cos(x)
    # cos(x - π/4) and sin(x - π/4), without rounding the difference
    c, s = _ROOT_HALF * (cosine + sine), _ROOT_HALF * (sine - cosine)
    if order:
        c, s = s, -c
    scale = rnp.sqrt((2 / math.pi) * t)
    return scale * (even * c - odd * s), scale * (even * s + odd * c)


def _first_kind(x: Array, order: int) -> Array:
    size = rnp.abs(x)
    low = _near(rnp.minimum(size, 6.0), order)
    high = _far(rnp.where(size == rnp.inf, 6.0, rnp.maximum(size, 6.0)), order)[0]
    out = rnp.where(size <= 6.0, low, rnp.where(size == rnp.inf, 0.0, high))
    return rnp.where(x < 0, -out, out) if order else out


def _second_kind(x: Array, order: int) -> Array:
    low = rnp.clip(x, 0.0, 6.0)
    smooth = quotient(low * low, tables.Y1_NEAR if order else tables.Y0_NEAR)
    wave = _near(low, order) * rnp.log(low)
    if order:
        near = smooth * low + (2 / math.pi) * (wave - 1.0 / low)
    else:
        near = smooth + (2 / math.pi) * wave
    far = _far(rnp.where(x == rnp.inf, 6.0, rnp.maximum(x, 6.0)), order)[1]
    out = rnp.where(x <= 6.0, near, rnp.where(x == rnp.inf, 0.0, far))
    return rnp.where(x < 0, rnp.nan, rnp.where(x == 0, -rnp.inf, out))


@elementwise
@with_slopes(lambda t, y, x: -t * j1(x))
def j0(x: Array) -> Array:
    """J0(x), the Bessel function of order 0.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.8.1, 10.8.2, 10.17.3 and 10.17.4.

    >>> from rune.scipy.special import j0
    >>> j0(0.0)
    Array(1., f32*[], cpu:0)
    """
    return _first_kind(x, 0)


def _j1_slope(t: Array, y: Array, x: Array) -> Array:
    return t * (j0(x) - odd_over(y, x))


@elementwise
@with_slopes(_j1_slope)
def j1(x: Array) -> Array:
    """J1(x), the Bessel function of order 1.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.8.1, 10.8.2, 10.17.3 and 10.17.4.

    >>> from rune.scipy.special import j1
    >>> j1(0.0)
    Array(0., f32*[], cpu:0)
    """
    return _first_kind(x, 1)


@elementwise
@with_slopes(lambda t, y, x: -t * y1(x))
def y0(x: Array) -> Array:
    """Y0(x), the Bessel function of the second kind; -inf at 0, NaN below.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.8.1, 10.8.2, 10.17.3 and 10.17.4.

    >>> from rune.scipy.special import y0
    >>> y0(1.0)
    Array(0.08825696, f32*[], cpu:0)
    """
    return _second_kind(x, 0)


def _y1_slope(t: Array, y: Array, x: Array) -> Array:
    return t * (y0(x) - y / x)


@elementwise
@with_slopes(_y1_slope)
def y1(x: Array) -> Array:
    """Y1(x); -inf at 0, NaN below.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 10.8.1, 10.8.2, 10.17.3 and 10.17.4.

    >>> from rune.scipy.special import y1
    >>> y1(1.0)
    Array(-0.7812128, f32*[], cpu:0)
    """
    return _second_kind(x, 1)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """J0(z) … Jv(z), by the recurrence downwards from order max(v, 0) + n_iter.

    Shapes: z [*S] -> [v + 1, *S].  Good where n_iter is well above |z|.
    Errors: ArgumentError for a negative v.
    Source: DLMF 3.6(iii) and 10.12.4 (Miller's algorithm).

    >>> import rune.numpy as rnp
    >>> from rune.scipy.special import bessel_jn
    >>> bessel_jn(rnp.zeros(1), v=1)
    Array([[1.],
           [0.]], f32[2,1], cpu:0)
    """
    if v < 0:
        raise ArgumentError(f"bessel_jn: cannot use order {v} (at least 0 required)")
    x, dtype = widened(reals("bessel_jn", z)[0])
    start = static_count("bessel_jn", "an order", v + n_iter)
    is_zero = x == 0
    double = 2.0 / rnp.where(is_zero, 1.0, x)
    tiny = float(rnp.finfo(x.dtype).tiny) ** 0.5

    def down(carry: tuple[Array, Array, Array], order: Array) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
        above, current, total = carry
        below = order * double * current - above
        # Large numbers are scaled down; the sum that divides them is scaled too.
        shrink = rnp.where(rnp.abs(below) > 1 / tiny, tiny, 1.0).astype(x.dtype)
        even = rnp.remainder(order, 2.0) == 1.0
        total = (total + rnp.where(even, 2.0 * below, 0.0)) * shrink
        return (current * shrink, below * shrink, total), (below * shrink, shrink)

    orders = rnp.asarray(np.arange(start, 0, -1), x.dtype)
    zero = rnp.zeros_like(x)
    first = zero, rnp.full_like(x, tiny), zero
    (_, last, total), (values, shrinks) = scan(down, first, orders)
    # unscaled[k] has order start - 1 - k, and lacks the scaling of all later steps.
    later = rnp.flip(rnp.cumprod(rnp.flip(shrinks, 0), 0), 0) / shrinks
    out = rnp.flip((values * later)[start - 1 - v :], 0) / (total - last)
    edge = rnp.arange(v + 1).reshape(-1, *(1,) * x.ndim) == 0
    return rounded(rnp.where(is_zero, rnp.where(edge, 1.0, 0.0), out), dtype)
