"""Linear and extremal filters of a padded array.

A filter of few weights is a sum of shifted views, which become index expressions of one kernel; one
of many weights is a convolution, so that the program does not grow with the window. Separable
filters go axis by axis. Weights may be traced; sizes may not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.dims import Size
from rune.errors import DtypeError, ShapeError
from rune.numpy.overlaps import convolved
from rune.ops.conventions import distinct, normalised_axes, normalised_axis, same_dtype
from rune.scipy.ndimage.borders import padded, per_axis, reach
from rune.scipy.special.arguments import reals, rounded, widened
from rune.typing import ArrayLike, Axis, DTypeLike, Nested

Counts = int | Sequence[int]  # for all axes, or for each
Combine = Callable[[Array, Array], Array]
SHIFTS = 16  # the most weights that are multiplied with shifted views


def image(name: str, x: Nested) -> Array:
    """A floating or complex array; integers become f32, whereas SciPy keeps them."""
    x = rnp.asarray(x)
    return x if rnp.issubdtype(x.dtype, rnp.complexfloating) else reals(name, x)[0]


def _images(name: str, *xs: Nested) -> tuple[list[Array], DTypeLike]:
    """Images to compute with, half types in f32, and the dtype of their products."""
    images = [image(name, x) for x in xs]
    return [widened(x)[0] for x in images], rnp.result_type(*images)


def _slices(x: Array, axis: int, start: int, size: Size) -> Array:
    return x[(slice(None),) * axis + (slice(start, start + size),)]


def correlate1d(
    input: Nested, weights: Nested, axis: int = -1, mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0
) -> Array:
    """Σ weights[k] input[i + k - K // 2 + origin] along an axis; complex weights are conjugated.

    Shapes: input, weights [K] -> as input.  mode, cval: the elements beyond the border
            (borders.py).
    Types:  floating and complex; integers count as f32, whereas SciPy truncates sums to integers.
    Errors: ShapeError for weights of another rank, ArgumentError for an unknown mode and for an
            origin outside the window.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import correlate1d
    >>> correlate1d(rnp.arange(4.0), rnp.array([1.0, 0.0, -1.0]))
    Array([-1., -2., -2., -1.], f32[4], cpu:0)
    """
    (x, weights), dtype = _images("correlate1d", input, weights)
    if weights.ndim != 1:
        raise ShapeError(f"correlate1d: cannot use weights {weights.shape} (rank 1 required)")
    axis = normalised_axis("correlate1d", axis, x.type)
    count = weights.shape[0]
    around = reach("correlate1d", count, origin)
    wide = padded("correlate1d", x, [around if i == axis else (0, 0) for i in range(x.ndim)], mode, cval)
    along_axis = rnp.expand_dims(weights, [i for i in range(x.ndim) if i != axis])
    return rounded(_sums_of_windows(wide, rnp.conj(along_axis)), dtype)


def _sums_of_windows(x: Array, weights: Array) -> Array:
    """Σ weights[k] x[i + k] over each window: x [*N], weights [*K] -> [*(N - K + 1)]."""
    if weights.size > SHIFTS:
        return convolved(*same_dtype("correlate", x, weights))
    shape = [n - k + 1 for n, k in zip(x.shape, weights.shape, strict=True)]
    places = itertools.product(*map(range, weights.shape))
    terms = [weights[p] * x[tuple(slice(i, i + n) for i, n in zip(p, shape))] for p in places]
    return sum(terms[1:], terms[0])


def convolve1d(
    input: Nested, weights: Nested, axis: int = -1, mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0
) -> Array:
    """correlate1d with the weights reversed, none of them conjugated.

    Shapes: as input.
    Types:  bools and integers become floats.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array;
            ShapeError if the shapes do not match; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import convolve1d
    >>> convolve1d(rnp.arange(4.0), rnp.array([1.0, 0.0, -1.0]))
    Array([1., 2., 2., 1.], f32[4], cpu:0)
    """
    weights = rnp.flip(rnp.conj(rnp.asarray(weights)))
    shift = -origin - (1 if weights.size % 2 == 0 else 0)
    return correlate1d(input, weights, axis, mode, cval, shift)


def correlate(
    input: Nested,
    weights: Nested,
    output: None = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: Counts = 0,
) -> Array:
    """Σ weights[k] input[i + k - K // 2 + origin] over all axes; complex weights are conjugated.

    Shapes: input and weights of one rank -> as input.  Types: as correlate1d.
    Errors: ShapeError for ranks that differ, ArgumentError for an origin outside the window.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import correlate
    >>> correlate(rnp.eye(2), rnp.ones((1, 2)))
    Array([[2., 1.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    (x, weights), dtype = _images("correlate", input, weights)
    if x.ndim != weights.ndim:
        raise ShapeError(f"correlate: cannot use weights {weights.shape} on {x.shape}")
    origins = per_axis("correlate", "origin", origin, range(x.ndim))
    widths = [reach("correlate", k, o) for k, o in zip(weights.shape, origins)]
    wide = padded("correlate", x, widths, mode, cval)
    return rounded(_sums_of_windows(wide, rnp.conj(weights)), dtype)


def convolve(
    input: Nested,
    weights: Nested,
    output: None = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: Counts = 0,
) -> Array:
    """correlate with the weights reversed along every axis, none of them conjugated.

    Shapes: as input.
    Types:  bools and integers become floats.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array;
            ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import convolve
    >>> convolve(rnp.eye(2), rnp.ones((1, 1)))
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    x, weights = rnp.asarray(input), rnp.flip(rnp.conj(rnp.asarray(weights)))
    origins = per_axis("convolve", "origin", origin, range(x.ndim))
    reversed_origins = [-o - (1 if k % 2 == 0 else 0) for o, k in zip(origins, weights.shape)]
    return correlate(x, weights, None, mode, cval, reversed_origins)


def total(name: str, x: Array, one: Callable[[Array, int], Array]) -> Array:
    """The sum of a filter along each axis. Errors: ShapeError for rank 0."""
    if not x.ndim:
        raise ShapeError(f"{name}: cannot filter {x.type} (it has no axes)")
    parts = [one(x, axis) for axis in range(x.ndim)]
    return sum(parts[1:], parts[0])


def laplace(input: Nested, mode: str = "reflect", cval: ArrayLike = 0.0) -> Array:
    """The sum of second differences along all axes.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array;
            ShapeError for rank 0.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import laplace
    >>> laplace(rnp.array([0.0, 1.0, 4.0]))
    Array([ 1.,  2., -3.], f32[3], cpu:0)
    """
    x = image("laplace", input)
    weights = rnp.asarray(np.array([1.0, -2.0, 1.0]), x.dtype)
    return total("laplace", x, lambda v, axis: correlate1d(v, weights, axis, mode, cval))


# --- differences ------------------------------------------------------------------------------


def _edges(name: str, x: Nested, axis: int, smoothing: Sequence[float], mode: str, cval: ArrayLike) -> Array:
    """Differences along one axis, weighted sums along the others."""
    x = image(name, x)
    axis = normalised_axis(name, axis, x.type)
    out = correlate1d(x, rnp.asarray(np.array([-1.0, 0.0, 1.0]), x.dtype), axis, mode, cval)
    for other in (i for i in range(x.ndim) if i != axis):
        out = correlate1d(out, rnp.asarray(np.array(smoothing), x.dtype), other, mode, cval)
    return out


def sobel(input: Nested, axis: int = -1, mode: str = "reflect", cval: ArrayLike = 0.0) -> Array:
    """Sobel's differences along an axis, smoothed by (1, 2, 1) along the others.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array;
            AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import sobel
    >>> sobel(rnp.arange(3.0))
    Array([1., 2., 1.], f32[3], cpu:0)
    """
    return _edges("sobel", input, axis, (1.0, 2.0, 1.0), mode, cval)


def prewitt(input: Nested, axis: int = -1, mode: str = "reflect", cval: ArrayLike = 0.0) -> Array:
    """Prewitt's differences along an axis, smoothed by (1, 1, 1) along the others.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array;
            AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import prewitt
    >>> prewitt(rnp.arange(3.0))
    Array([1., 2., 1.], f32[3], cpu:0)
    """
    return _edges("prewitt", input, axis, (1.0, 1.0, 1.0), mode, cval)


# --- windows ----------------------------------------------------------------------------------


def uniform_filter1d(
    input: Nested, size: int, axis: int = -1, mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0
) -> Array:
    """The mean of `size` elements around each along an axis.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array;
            AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import uniform_filter1d
    >>> uniform_filter1d(rnp.arange(3.0), 3)
    Array([0.33333334, 1.        , 1.6666667 ], f32[3], cpu:0)
    """
    x = image("uniform_filter1d", input)
    reach("uniform_filter1d", size, origin)
    weights = rnp.full((size,), 1.0 / size, x.dtype)
    return correlate1d(x, weights, axis, mode, cval, origin)


def uniform_filter(
    input: Nested,
    size: Counts = 3,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: Counts = 0,
    *,
    axes: Axis = None,
) -> Array:
    """The mean of a box of elements around each.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError for an unknown `mode` and another `size`; DtypeError if an argument is not
            an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import uniform_filter
    >>> uniform_filter(rnp.ones((2, 2)))
    Array([[1., 1.],
           [1., 1.]], f32[2,2], cpu:0)
    """
    x = image("uniform_filter", input)
    along = normalised_axes("uniform_filter", axes, x.type)
    settings = (
        per_axis("uniform_filter", w, v, along) for w, v in (("size", size), ("mode", mode), ("origin", origin))
    )
    for axis, count, kind, shift in zip(along, *settings):
        x = uniform_filter1d(x, count, axis, kind, cval, shift)
    return distinct(x, input)


def _extreme1d(
    name: str, combine: Combine, input: Array, size: int, axis: int, mode: str, cval: ArrayLike, origin: int
) -> Array:
    x = rnp.asarray(input)
    axis = normalised_axis(name, axis, x.type)
    around = reach(name, size, origin)
    wide = padded(name, x, [around if i == axis else (0, 0) for i in range(x.ndim)], mode, cval)
    # Windows double until they are as long as requested: log₂(size) comparisons.
    length, count = 1, x.shape[axis] + size - 1
    while 2 * length <= size:
        count -= length
        wide = combine(_slices(wide, axis, 0, count), _slices(wide, axis, length, count))
        length *= 2
    shift = size - length
    n = x.shape[axis]
    return combine(_slices(wide, axis, 0, n), _slices(wide, axis, shift, n))


def _extreme(
    name: str,
    combine: Combine,
    input: Nested,
    size: Counts,
    mode: str | Sequence[str],
    cval: ArrayLike,
    origin: Counts,
    axes: Axis,
) -> Array:
    x = rnp.asarray(input)
    along = normalised_axes(name, axes, x.type)
    settings = (per_axis(name, w, v, along) for w, v in (("size", size), ("mode", mode), ("origin", origin)))
    for axis, count, kind, shift in zip(along, *settings):
        x = _extreme1d(name, combine, x, count, axis, kind, cval, shift)
    return distinct(x, input)


def maximum_filter(
    input: Nested,
    size: Counts = 3,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: Counts = 0,
    *,
    axes: Axis = None,
) -> Array:
    """The maximum of a box of elements around each; elements that tie share the derivative.

    Shapes: any, unchanged. Types: that of `input`.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array or is
            complex; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import maximum_filter
    >>> maximum_filter(rnp.array([1, 5, 2, 0]), 3)
    Array([5, 5, 5, 2], i32[4], cpu:0)
    """
    return _extreme("maximum_filter", rnp.maximum, input, size, mode, cval, origin, axes)


def minimum_filter(
    input: Nested,
    size: Counts = 3,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: Counts = 0,
    *,
    axes: Axis = None,
) -> Array:
    """The minimum of a box of elements around each; elements that tie share the derivative.

    Shapes: any, unchanged. Types: that of `input`.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array or is
            complex; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import minimum_filter
    >>> minimum_filter(rnp.array([1, 5, 2, 0]), 3)
    Array([1, 1, 0, 0], i32[4], cpu:0)
    """
    return _extreme("minimum_filter", rnp.minimum, input, size, mode, cval, origin, axes)


def median_filter(
    input: Nested, size: Counts = 3, mode: str = "reflect", cval: ArrayLike = 0.0, origin: Counts = 0
) -> Array:
    """The median of a box of elements around each; for an even number, the upper of the middle two.

    Shapes: as input. Types: as input.
    Errors: DtypeError for complex numbers, ArgumentError for a size below 1.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import median_filter
    >>> median_filter(rnp.array([1, 9, 2, 3]), 3)
    Array([1, 2, 3, 3], i32[4], cpu:0)
    """
    x = rnp.asarray(input)
    sizes = per_axis("median_filter", "size", size, range(x.ndim))
    origins = per_axis("median_filter", "origin", origin, range(x.ndim))
    if rnp.issubdtype(x.dtype, rnp.complexfloating):
        raise DtypeError(f"median_filter: cannot order {x.dtype} (real dtype required)")
    widths = [reach("median_filter", k, o) for k, o in zip(sizes, origins)]
    wide = padded("median_filter", x, widths, mode, cval)
    places = itertools.product(*(range(k) for k in sizes))
    windows = [wide[tuple(slice(p, p + n) for p, n in zip(at, x.shape))] for at in places]
    return rnp.sort(rnp.stack(windows), axis=0)[math.prod(sizes) // 2]
