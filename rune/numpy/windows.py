"""Windows that fade a signal out at both ends, and the Bessel function that one of them needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rune.array import Array
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError
from rune.numpy.arguments import floating, static_size, value
from rune.numpy.arithmetic import abs, maximum
from rune.numpy.composites import composite
from rune.numpy.creation import arange, ones, zeros
from rune.numpy.docstrings import documented
from rune.numpy.logic import where
from rune.numpy.transcendental import cos, exp, sqrt
from rune.numpy.types import finfo
from rune.ops import conventions as c
from rune.ops.family import wide
from rune.transforms.compile.tiers import tiered
from rune.transforms.custom.jvp import custom_jvp
from rune.typing import ArrayLike

_NEAR = 20.0  # the power series below, the asymptotic one above
_POWERS, _RECIPROCALS = 48, 24  # terms: the next ones are below 1e-16 of the sum


def _positions(name: str, M: ArrayLike) -> tuple[Array, Size]:
    """0, 1, … M-1 as floats, and M; a window of no points is empty."""
    size = _count(name, M)
    return (zeros(0), 0) if size < 1 else (arange(size, dtype=float), size)


def _count(name: str, M: Any) -> Size:
    """A number of points as a size: floats lose their fraction, as in JAX, and True is 1."""
    number: Any = M.item() if type(M) is Array and M.ndim == 0 else M
    if not isinstance(number, bool | np.bool_ | float | np.floating):
        return static_size(name, "a number of points", number)
    if not math.isfinite(number):
        raise ArgumentError(f"{name}: cannot use {M!r} as a number of points (a finite number required)")
    return int(number)


_SHAPE = """Shapes: M points -> [M]; a fraction of M does not count. Types: f32.
    Errors: ArgumentError if `M` is not a number.
    Source: Harris 1978, Proc. IEEE 66(1)."""


def _cosines(name: str, doc: str, *weights: float) -> Callable[[ArrayLike], Array]:
    """The window that is a sum of cosines, sum_k (-1)^k weights[k] cos(2πkn/(M-1))."""

    @tiered
    def window(M: ArrayLike) -> Any:
        n, size = _positions(name, M)
        if size < 2:
            return n + 1
        angle = n * (2 * math.pi / (size - 1))
        terms = (w * (-1) ** k * cos(k * angle) for k, w in enumerate(weights) if k)
        return sum(terms, weights[0])

    result_text = {
        "hanning": "Array([0., 1., 0.], f32[3], cpu:0)",
        "hamming": "Array([0.08, 1.  , 0.08], f32[3], cpu:0)",
        "blackman": "Array([0., 1., 0.], f32[3], cpu:0)",
    }[name]
    return documented(window, name, doc, _SHAPE, f"rnp.{name}(3).round(5) + 0", result_text)


hanning = _cosines("hanning", "A raised cosine that ends in zeros.", 0.5, 0.5)
hamming = _cosines("hamming", "A raised cosine on a pedestal.", 0.54, 0.46)
blackman = _cosines("blackman", "Three cosine terms.", 0.42, 0.5, 0.08)


@tiered
def bartlett(M: ArrayLike) -> Array:
    """A triangle that ends in zeros. Types: f32.

    Shapes: M points -> [M]; a fraction of M does not count.
    Errors: ArgumentError if `M` is not a number.

    >>> import rune.numpy as rnp
    >>> rnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], f32[5], cpu:0)
    """
    n, size = _positions("bartlett", M)
    return n + 1 if size < 2 else 1 - abs(n * (2 / (size - 1)) - 1)


@tiered
def kaiser(M: ArrayLike, beta: ArrayLike) -> Array:
    """Nearly the window with most energy in the main lobe: I0(β sqrt(1 - x²)) / I0(β).

    Shapes: M points -> [M]; a fraction of M does not count.
    Types:  that of f32 and `beta` together.
    Source: Kaiser & Schafer 1980, IEEE Trans. ASSP 28(1).
    Errors: ArgumentError if an argument is not an array or `M` is not a number; DtypeError for
            complex numbers.

    >>> import rune.numpy as rnp
    >>> rnp.kaiser(3, 0.0)
    Array([1., 1., 1.], f32[3], cpu:0)
    """
    n, size = _positions("kaiser", M)
    if size < 2:
        return n + 1
    x = n * (2 / (size - 1)) - 1
    # The difference of squares as a product: nothing is lost near the ends.
    inside = maximum((1 - x) * (1 + x), 0)
    beta = floating("kaiser", value("kaiser", beta))
    return _scaled_i0(beta * sqrt(inside)) * exp(abs(beta) * (sqrt(inside) - 1)) / _scaled_i0(beta)


@composite
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function I0.

    Source: DLMF 10.25.2 (power series, |x| up to 20) and 10.40.1 (asymptotic series beyond).
    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.numpy as rnp
    >>> rnp.i0(rnp.array([0.0, 1.0]))
    Array([1.       , 1.2660658], f32[2], cpu:0)
    """
    x = floating("i0", value("i0", x))
    dtype = type_of(x).dtype
    return c.astype(_i0(c.astype(x, wide(dtype))), dtype)


@custom_jvp
def _i0(x: ArrayLike) -> Array:
    return _bessel(x, 0)


@custom_jvp
def _i1(x: Array) -> Array:
    return where(x < 0, -1, 1) * _bessel(x, 1)


def _slope_at(x: Array, y: Array) -> Array:
    """I1(x) / x; 1/2 at 0."""
    is_zero = x == 0
    return where(is_zero, 0.5, y / where(is_zero, 1, x))


# A derivative taken through the series would be NaN where the value overflows.
_i0.defjvps(lambda t, y, x: t * _i1(x))
_i1.defjvps(lambda t, y, x: t * (_i0(x) - _slope_at(x, y)))


def _bessel(x: ArrayLike, order: int) -> Array:
    """I of |x|, which is about exp(|x|) / sqrt(2π|x|): it overflows later than exp."""
    size, most = abs(x), float(finfo(type_of(x).dtype).max)
    is_finite = size <= math.log(most) + 5
    inside = where(is_finite, size, 0)
    half = exp(inside / 2)  # taken twice, so that it does not overflow before the result
    return where(is_finite, half * (_scaled(inside, order) * half), size * math.inf)


def _scaled_i0(x: ArrayLike) -> Array:
    """I0(x) exp(-|x|), in f32 at least: the terms are larger than the sum."""
    dtype = type_of(x).dtype
    return c.astype(_scaled(c.astype(x, wide(dtype)), 0), dtype)


def _scaled(x: Array, order: int) -> Array:
    size = abs(x)
    is_near = size <= _NEAR
    # Select the operand of each side, since clipping would halve the derivative at the seam.
    near_x, far_x = where(is_near, x, 0), where(is_near, _NEAR, size)
    quarter = near_x**2 / 4
    near = ones((), type_of(x).dtype)
    for k in range(_POWERS, 0, -1):
        near = 1 + quarter / (k * (k + order)) * near
    far = ones((), type_of(x).dtype)
    for k in range(_RECIPROCALS, 0, -1):
        far = 1 + ((2 * k - 1) ** 2 - 4 * order) / (8 * k) / far_x * far
    near = near * near_x / 2 if order else near
    far = far / (math.sqrt(2 * math.pi) * sqrt(far_x))  # 2πx may overflow
    return where(is_near, near * exp(-abs(near_x)), far)
