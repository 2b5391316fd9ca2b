"""Integrals of samples, by trapezoids and parabolas, and of functions, by Gauss and Kronrod."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.number_tables import numbers
from rune.ops import conventions as c
from rune.scipy.special.arguments import points_of, reals, rounded, widened
from rune.typing import ArrayLike


def _rows(name: str, y: ArrayLike, x: ArrayLike | None, dx: ArrayLike, axis: int) -> tuple[Array, Any]:
    """`y` with the axis last, and the steps, which broadcast against pairs of neighbours."""
    if x is None:
        return rnp.moveaxis(_inexact(y), axis, -1), dx  # a Python number takes the dtype of y
    y, x = map(_inexact, c.same_dtype(name, y, x))
    y = rnp.moveaxis(y, axis, -1)
    if x.ndim != 1:
        x = rnp.moveaxis(x, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"{name}: cannot use {x.shape[-1]} points for {y.shape[-1]} values")
    return y, rnp.diff(x, axis=-1)


def _inexact(v: ArrayLike) -> Array:
    """Floating or complex numbers; integers and bools are converted."""
    v = rnp.asarray(v)
    return v if rnp.issubdtype(v.dtype, rnp.inexact) else rnp.true_divide(v, 1)


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of straight lines through values `y` along an axis, at points `x` or dx apart.

    Shapes: y without the axis; x has one axis, or those of y.
    Errors: ShapeError if x and y differ in length.
    Source: DLMF 3.5(i) and 3.5(ii).

    >>> import rune.numpy as rnp
    >>> from rune.scipy.integrate import trapezoid
    >>> trapezoid(rnp.array([1.0, 2.0, 3.0]))
    Array(4., f32[], cpu:0)
    """
    y, steps = _rows("trapezoid", y, x, dx, axis)
    return rnp.sum(0.5 * (y[..., 1:] + y[..., :-1]) * steps, -1)


def cumulative_trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1, initial: ArrayLike | None = None
) -> Array:
    """The integrals of straight lines up to each point, from `initial` on if that is given.

    Shapes: y with one element less along the axis, or with `initial` as many.
    Errors: ShapeError for no values along the axis.
    Source: DLMF 3.5(i) and 3.5(ii).

    >>> import rune.numpy as rnp
    >>> from rune.scipy.integrate import cumulative_trapezoid
    >>> cumulative_trapezoid(rnp.array([1.0, 2.0, 3.0]), initial=0)
    Array([0. , 1.5, 4. ], f32[3], cpu:0)
    """
    y, steps = _rows("cumulative_trapezoid", y, x, dx, axis)
    if y.shape[-1] == 0:
        raise ShapeError(f"cumulative_trapezoid: cannot integrate {type_of(y)} (no elements)")
    total = rnp.cumsum(0.5 * (y[..., 1:] + y[..., :-1]) * steps, -1)
    if initial is not None:
        first = rnp.full_like(y[..., :1], initial)
        total = rnp.concatenate([first, total], -1)
    return rnp.moveaxis(total, -1, axis)


def _parabolas(y: Array, steps: Any) -> Array:
    """Simpson's rule over pairs of steps, for an odd number of values.

    Source: Cartwright 2017, Journal of Mathematical Sciences & Mathematics Education 12(2).
    """
    a, b, c = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if rnp.ndim(steps) == 0:
        return rnp.sum(a + 4.0 * b + c, -1) * (steps / 3.0)
    h, k = steps[..., ::2], steps[..., 1::2]
    total, ratio = h + k, _over(h, k)
    terms = a * (2.0 - _over(1.0, ratio)) + b * (total * _over(total, h * k)) + c * (2.0 - ratio)
    return rnp.sum(total / 6.0 * terms, -1)


def _over(x: Array | float, y: Array) -> Array:
    """x / y, and 0 for a step of no length, as in SciPy."""
    is_zero = y == 0
    return rnp.where(is_zero, 0.0, x / rnp.where(is_zero, 1.0, y))


def simpson(y: ArrayLike, x: ArrayLike | None = None, *, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of parabolas through values `y` along an axis, at points `x` or dx apart.

    For an even number of values, the last step uses the parabola through the last three.

    Shapes: y without the axis; x has one axis, or those of y.
    Types:  the common dtype of y, complex included, and x; bools and integers become f32.
    Errors: ShapeError if x and y differ in length.
    Source: DLMF 3.5(i) and 3.5(ii).

    >>> import rune.numpy as rnp
    >>> from rune.scipy.integrate import simpson
    >>> simpson(rnp.array([0.0, 1.0, 4.0]))
    Array(2.6666667, f32[], cpu:0)
    """
    y, steps = _rows("simpson", y, None if x is None else reals("simpson", x)[0], dx, axis)
    y, dtype = widened(y)
    return rounded(_simpson(y, steps), rnp.result_type(dtype, steps))


def _simpson(y: Array, steps: Array) -> Array:
    """Simpson's rule; for an even number of values, the last step by the parabola before it."""
    count = y.shape[-1]
    if count % 2 == 1:
        return _parabolas(y, steps) if count > 1 else rnp.sum(y[..., :0], -1)
    if count == 2:
        return rnp.sum(0.5 * (y[..., 1:] + y[..., :-1]) * steps, -1)
    h, k = (steps, steps) if rnp.ndim(steps) == 0 else (steps[..., -1], steps[..., -2])
    most = _parabolas(y[..., :-1], steps if rnp.ndim(steps) == 0 else steps[..., :-1])
    alpha = _over(2.0 * h * h + 3.0 * h * k, 6.0 * (k + h))
    beta = _over(h * h + 3.0 * h * k, 6.0 * k)
    eta = _over(h * h * h, 6.0 * k * (k + h))
    return most + alpha * y[..., -1] + beta * y[..., -2] - eta * y[..., -3]


# --- of functions -----------------------------------------------------------------------------

# Kronrod's 21 points of [0, 1] and their weights, and the weights of Gauss' ten among them.
# Source: Piessens et al. 1983, QUADPACK, routine QK21.
_POINTS = numbers("""
    0.995657163025808080735527280689003  0.973906528517171720077964012084452  0.930157491355708226001207180059508
    0.865063366688984510732096688423493  0.780817726586416897063717578345042  0.679409568299024406234327365114874
    0.562757134668604683339000099272694  0.433395394129247190799265943165784  0.294392862701460198131126603103866
    0.14887433898163121088482600112972   0.0
""")
_KRONROD = numbers("""
    0.011694638867371874278064396062192  0.03255816230796472747881897245939   0.05475589657435199603138130024458
    0.07503967481091995276704314091619   0.093125454583697605535065465083366  0.109387158802297641899210590325805
    0.123491976262065851077958109585166  0.134709217311473325928054001771707  0.142775938577060080797094273138717
    0.147739104901338491374841515972068  0.149445554002916905664936468389821
""")
_GAUSS = numbers("""
    0.066671344308688137593568809893332  0.149451349150580593145863396957658  0.219086362515982043995534934228163
    0.269266719309996355091226921569469  0.295524224714752870173815619188769
""")


def _nodes(dtype: np.dtype) -> tuple[Array, Array, Array]:
    """All points of [-1, 1], Kronrod's weights and Gauss' (0 at points that he does not use)."""
    sides = _POINTS[:-1]
    points = [-p for p in sides] + [0.0] + list(reversed(sides))
    outer = _KRONROD[:-1]
    kronrod = [*outer, _KRONROD[-1], *reversed(outer)]
    half = [0.0 if i % 2 == 0 else _GAUSS[i // 2] for i in range(10)]
    gauss = [*half, 0.0, *reversed(half)]
    nodes, first, second = (rnp.array(v, dtype) for v in (points, kronrod, gauss))
    return nodes, first, second


def quad(
    func: Callable[..., Any], a: ArrayLike, b: ArrayLike, args: Sequence[object] = (), *, limit: int = 8
) -> tuple[Array, Array]:
    """(the integral of func(x, *args) from a to b, an estimate of its error).

    func:  elementwise, smooth inside; a and b may be infinite.
    limit: the interval is divided into this many equal parts of 21 points each. The points are
           fixed, so the integral is one sum under every transformation, with exact derivatives.
    Shapes: a, b [] -> [], [].
    Types:  real, the common dtype of a and b; integers become f32.
    Errors: ArgumentError for limit < 1.
    Source: Piessens et al. 1983, QUADPACK, QK21 and QK15I's substitution.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.integrate import quad
    >>> quad(lambda x: rnp.exp(-x), 0.0, rnp.inf)[0]
    Array(1., f32[], cpu:0)
    """
    if limit < 1:
        raise ArgumentError(f"quad: cannot cut an interval into {limit} parts")
    low, high = points_of("quad", lambda x: func(x, *args), a, b)
    nodes, kronrod, gauss = _nodes(low.dtype)
    edges = rnp.arange(limit).astype(low.dtype)[:, None]
    shares = (edges + 0.5 * (nodes + 1.0)) / limit  # [limit, 21] in (0, 1)
    x, weight = _mapped(shares, low, high)
    # Where an infinite end is mapped, the weight overflows where the function has underflowed to 0.
    values = func(x, *args) * weight
    values = rnp.where(rnp.isfinite(weight), values, 0.0)
    half = 0.5 / limit
    fine, coarse = rnp.sum(values * kronrod) * half, rnp.sum(values * gauss) * half
    return fine, rnp.abs(fine - coarse)


def _mapped(shares: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Points between two ends for shares of (0, 1), and the derivative of the map."""
    from_low, to_high = rnp.isinf(low), rnp.isinf(high)
    is_infinite, both = from_low | to_high, from_low & to_high
    a, b = rnp.where(from_low, 0.0, low), rnp.where(to_high, 0.0, high)
    # One infinite end: x = a + t / (1 - t);  two: x = s / (1 - s²) with s = 2 t - 1.
    complement = 1.0 - shares
    one = shares / complement
    s = 2.0 * shares - 1.0
    below = 4.0 * shares * complement
    sign = rnp.where(from_low, -1.0, 1.0)
    half = rnp.where(from_low, b, a) + sign * one
    x = rnp.where(both, s / below, rnp.where(is_infinite, half, a + (b - a) * shares))
    flip = rnp.where(from_low & (low > 0), -1.0, 1.0) * rnp.where(to_high & (high < 0), -1.0, 1.0)
    slope_of_half = 1.0 / (complement * complement)
    slope = rnp.where(both, 2.0 * (1.0 + s * s) / (below * below), slope_of_half)
    return x, rnp.where(is_infinite, flip * slope, b - a)
