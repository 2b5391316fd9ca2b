"""Sampled functions: convolution, interpolation, differences, integrals, phases."""

from __future__ import annotations

import math
from typing import Any, overload

from rune import dtypes
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import default_inexact, floating, inexact, is_on_host, rank, together, value
from rune.numpy.arithmetic import abs, mod
from rune.numpy.composites import composite
from rune.numpy.joining import concatenate
from rune.numpy.logic import where
from rune.numpy.overlaps import check_mode, pads_of, slid
from rune.numpy.reductions import cumsum, diff, sum
from rune.numpy.shapes import moveaxis
from rune.numpy.sorting import argsort, searchsorted
from rune.ops import conventions as c
from rune.ops.family import wide
from rune.ops.promote import scalar_kind, unrounded
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, Axis, DTypeLike

# --- convolution --------------------------------------------------------------------------------


@tiered
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of two sequences: y[k] = sum_j a[j] v[k-j].

    mode:   "full": wherever they overlap; "same": the middle, as long as the longer one; "valid":
            where they overlap completely.
    preferred_element_type: the dtype of the products and sums.
    Shapes: [M], [N] -> [M + N - 1], [max(M, N)], or [max(M, N) - min(M, N) + 1].
    Types:  promoted together; bools and integers become floats, if no dtype is preferred.
    Errors: ShapeError for any other rank or no elements, ArgumentError for an unknown mode.

    >>> import rune.numpy as rnp
    >>> rnp.convolve(rnp.array([1, 2, 3]), rnp.array([0, 1, 2]), preferred_element_type="int32")
    Array([0, 1, 4, 7, 6], i32[5], cpu:0)
    """
    x, y = _sequences("convolve", a, v, mode, preferred_element_type)
    if mode != "full" and type_of(x).shape < type_of(y).shape:
        x, y = y, x
    return slid(x, y[::-1], pads_of(mode, type_of(y).shape[0]))


@tiered
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The cross-correlation of two sequences: y[k] = sum_j a[j+k] conj(v[j]).

    mode:   as for `convolve`; "valid" by default.
    Shapes: as `convolve`. Types: as `convolve`.
    Errors: as `convolve`.

    >>> import rune.numpy as rnp
    >>> rnp.correlate(rnp.array([1, 2, 3]), rnp.array([0, 1, 2]), "same")
    Array([5., 8., 3.], f32[3], cpu:0)
    """
    x, y = _sequences("correlate", a, v, mode, preferred_element_type)
    y = c.conj(y)
    if mode == "full" or type_of(y).shape <= type_of(x).shape:
        return slid(x, y, pads_of(mode, type_of(y).shape[0]))
    return slid(y, x, pads_of(mode, type_of(x).shape[0]))[::-1]


def _sequences(name: str, a: ArrayLike, v: ArrayLike, mode: str, dtype: DTypeLike | None) -> list[Array]:
    """Two vectors of one dtype. Errors: those of `check_mode`, and ShapeError."""
    x, y = together(name, a, v)
    for vector in (x, y):
        if rank(vector) != 1 or type_of(vector).shape[0] == 0:
            why = "vectors with elements required"
            raise ShapeError(f"{name}: cannot slide {type_of(y)} over {type_of(x)} ({why})")
    check_mode(name, mode)
    kind = type_of(default_inexact(name, x)).dtype if dtype is None else dtypes.as_dtype(dtype)
    return [c.astype(x, kind), c.astype(y, kind)]


# --- interpolation ------------------------------------------------------------------------------


@tiered
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """The piecewise linear function through the points (xp, fp), at x.

    xp:     increasing, unless there is a period.
    left, right: the values below and above xp; by default the first and last of fp, or
            "extrapolate" for the line's own continuation.
    period: that of the function; xp and x are taken modulo it, and left and right are not used.
    Shapes: [*S], [N], [N] -> [*S].
    Types:  bools and integers become floats: x and xp to their common dtype, fp to its own, which
            may be complex; the result has the common dtype of the two.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex x and xp;
            ShapeError if the shapes do not match, and for no points.

    >>> import rune.numpy as rnp
    >>> rnp.interp(rnp.array([0.5, 9.0]), rnp.array([0.0, 1.0, 2.0]), rnp.array([3.0, 5.0, 8.0]))
    Array([4., 8.], f32[2], cpu:0)
    """
    is_real = scalar_kind(unrounded("interp", fp))[0] not in dtypes.COMPLEX
    x, xp = _in_floats("interp", x, xp)
    fp = _in_floats("interp", fp)[0] if is_real else value("interp", fp)
    if rank(xp) != 1 or type_of(xp).shape != type_of(fp).shape or type_of(xp).shape == (0,):
        why = "two vectors of one size required, of one point at least"
        raise ShapeError(f"interp: cannot connect {type_of(xp)} and {type_of(fp)} ({why})")
    if period is not None:
        left = right = None
        x, xp, fp = _one_period(x, xp, fp, period)
    return _on_the_line(x, xp, fp, left, right)


def _in_floats(name: str, *xs: ArrayLike) -> list[Array]:
    """Real arrays in one floating dtype; numbers and NumPy data are rounded to it once."""
    numbers = [x if is_on_host(x) else value(name, x) for x in xs]
    return [floating(name, x) for x in together(name, *numbers)]


def _one_period(x: Array, xp: Array, fp: Any, period: ArrayLike) -> tuple[Array, Array, Array]:
    """The points of one period in order, with the nearest point of either neighbouring period."""
    period = abs(period)
    x, xp = mod(x, period), mod(xp, period)
    order = argsort(xp)
    xp, fp = xp[order], fp[order]
    xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, concatenate([fp[-1:], fp, fp[:1]])


def _on_the_line(x: Array, xp: Array, fp: Any, below: ArrayLike | str | None, above: Any) -> Array:
    size = type_of(xp).shape[0]
    if size == 1:
        y = where(x == x, fp[0], x)
    else:
        after = searchsorted(xp, x, side="right").clip(1, size - 1)
        x0, x1, y0, y1 = xp[after - 1], xp[after], fp[after - 1], fp[after]
        is_step = x1 == x0
        share = (x - x0) / where(is_step, 1, x1 - x0)  # the slope may overflow
        y = where(is_step, y0, y0 + share * (y1 - y0))
    for side, end, outside in ((below, 0, x < xp[0]), (above, -1, x > xp[-1])):
        if not isinstance(side, str):
            y = where(outside, fp[end] if side is None else side, y)
        elif side != "extrapolate":
            raise ArgumentError(f"interp: cannot use {side!r} outside (a number or 'extrapolate')")
    return y


# --- differences and integrals ------------------------------------------------------------------


@overload
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int, edge_order: int = 1) -> Array: ...
@overload
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axis = None, edge_order: int = 1) -> Any: ...
@composite
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axis = None, edge_order: int = 1) -> Array | list[Array]:
    """The slopes of a sampled function along its axes, by second-order differences.

    Shapes: f any -> kept by each result.
    Types:  promoted with the spacings; bools and integers become floats.
    varargs: nothing (samples at distance 1), one distance for all axes, or for each axis a
            distance or the coordinates of the samples.
    edge_order: the order of the one-sided differences at the ends, 1 or 2.
    Result: an array of f's shape; a list of them for several axes.
    Errors: ShapeError for fewer than edge_order + 1 samples.
    Source: three-point formulas, Fornberg 1988, Math. Comp. 51.

    >>> import rune.numpy as rnp
    >>> rnp.gradient(rnp.array([1.0, 2.0, 4.0, 7.0]))
    Array([1. , 1.5, 2.5, 3. ], f32[4], cpu:0)
    """
    x, *distances = [inexact("gradient", v) for v in together("gradient", f, *varargs)]
    axes = c.normalised_axes("gradient", axis, type_of(x))
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: cannot use edge_order={edge_order!r} (1 or 2)")
    if len(varargs) not in (0, 1, len(axes)):
        raise ArgumentError(f"gradient: cannot use {len(varargs)} spacings for {len(axes)} axes")
    spacings = distances or [value("gradient", 1.0)]
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    slopes = [_slopes(x, k, by, edge_order) for k, by in zip(axes, spacings, strict=True)]
    return slopes[0] if len(slopes) == 1 else slopes


def _slopes(x: Array, axis: int, spacing: Array, edge_order: int) -> Array:
    """The slopes along one axis."""
    size = type_of(x).shape[axis]
    if size < edge_order + 1:
        raise ShapeError(
            f"gradient: cannot differentiate {type_of(x)} (axis {axis}: {size} samples, {edge_order + 1} required)"
        )
    y = moveaxis(x, axis, 0)
    steps = _steps(spacing, size, y)
    if rank(steps) == 0 and edge_order == 1:
        slopes = [(y[1:2] - y[:1]) / steps, (y[2:] - y[:-2]) / (steps + steps), (y[-1:] - y[-2:-1]) / steps]
        return moveaxis(concatenate(slopes), 0, axis)
    if rank(steps) == 0:
        inner, first, last = (y[2:] - y[:-2]) / (steps + steps), (steps, steps), (-steps, -steps)
    else:
        inner, first, last = _inner_slopes(y, steps), (steps[:1], steps[1:2]), (-steps[-1:], -steps[-2:-1])
    ends = [_end(y[:3], *first, edge_order), _end(y[:-4:-1], *last, edge_order)]
    return moveaxis(concatenate([ends[0], inner, ends[1]]), 0, axis)


def _inner_slopes(y: Array, steps: Array) -> Array:
    """The slopes between the ends; a sample of weight 0 has no influence, however large."""
    before, after = steps[:-1], steps[1:]
    both = before + after
    outer = y[2:] * (before / (after * both)) - y[:-2] * (after / (before * both))
    middle = (after - before) / (before * after)
    even = (y[2:] - y[:-2]) / both
    return where(before == after, even, outer + y[1:-1] * middle)


def _steps(spacing: Array, size: Size, y: Array) -> Array:
    """The distance or distances of neighbours along the first axis, shaped to divide y."""
    if rank(spacing) == 0:
        return spacing
    if rank(spacing) > 1:
        raise ShapeError(f"gradient: cannot use {type_of(spacing)} as a spacing (rank 0 or 1)")
    if type_of(spacing).shape[0] != size:
        raise ShapeError(f"gradient: cannot place {size} samples at {type_of(spacing)}")
    return c.reshape(diff(spacing), (-1, *(1,) * (rank(y) - 1)))


def _end(y: Array, near_step: Array, far_step: Array, edge_order: int) -> Array:
    """The slope at the first sample, from the first three and the distances between them."""
    near = (y[1:2] - y[:1]) / near_step
    if edge_order == 1:
        return near
    far = (y[2:3] - y[1:2]) / far_step
    return near + (near - far) * near_step / (near_step + far_step)


@tiered
def trapezoid(y: ArrayLike, x: Any = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of a sampled function by the trapezoidal rule.

    x: where the samples are, of y's shape or a vector; by default they are dx apart.
    Shapes: y [*A, N, *B] -> [*A, *B]. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.trapezoid(rnp.array([1.0, 2.0, 3.0]))
    Array(4., f32[], cpu:0)
    """
    if x is not None:
        y, x = c.same_dtype("trapezoid", y, x)
        x = inexact("trapezoid", x)
    y = inexact("trapezoid", value("trapezoid", y))
    operands = c.same_dtype("trapezoid", dx if x is None else x, y)
    dtype = type_of(operands[1]).dtype
    steps, y = map(_at_least_f32, operands)
    y = moveaxis(y, axis, -1)
    if x is not None:
        steps = diff(steps if rank(steps) == 1 else moveaxis(steps, axis, -1))
    return c.astype(0.5 * sum(steps * (y[..., 1:] + y[..., :-1]), axis=-1), dtype)


def _at_least_f32(x: Value) -> Array:
    """Half types as f32: sums are rounded once, and do not overflow before they are halved."""
    return c.astype(x, wide(type_of(x).dtype))


@tiered
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: Any = 2 * math.pi) -> Array:
    """Phases without jumps: each is shifted by whole periods to within half a period of the one
    before.

    Shapes: any, unchanged.
    Types:  that of `p`; bools and integers become floats unless period is an integer.
    discont: jumps below this are kept; the default and minimum is half a period.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.unwrap(rnp.array([0, 1, 2, -1, 0]), period=4)
    Array([0, 1, 2, 3, 4], i32[5], cpu:0)
    """
    x = value("unwrap", p)
    x = c.astype(x, dtypes.i32) if type_of(x).dtype == dtypes.bool_ else x
    is_integer = type_of(x).dtype in dtypes.INTEGER and isinstance(period, int)
    x = x if is_integer else floating("unwrap", default_inexact("unwrap", x))
    dtype, x = type_of(x).dtype, _at_least_f32(x)
    steps = diff(x, axis=axis)
    half = period // 2 if is_integer else period / 2
    low = -half
    within = mod(steps - low, period) + low
    if not is_integer or period % 2 == 0:
        # A jump of half a period is ambiguous: keep its direction.
        within = where((within == low) & (steps > 0), half, within)
    least = period / 2 if discont is None else discont
    corrections = where(abs(steps) < least, 0, within - steps)
    first = moveaxis(moveaxis(x, axis, 0)[:1], 0, axis)
    later = moveaxis(moveaxis(x, axis, 0)[1:], 0, axis)
    later = later + c.astype(cumsum(corrections, axis=axis), type_of(x).dtype)
    return c.astype(concatenate([first, later], axis=axis), dtype)
