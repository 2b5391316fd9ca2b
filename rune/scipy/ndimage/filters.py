"""Linear and extremal filters, as sums and extremes of shifted copies of a padded array.

A filter of k weights reads k shifted views, which become index expressions of one kernel; filters
that are products over axes go axis by axis. Weights may be traced; sizes may not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune.errors import ShapeError
from rune.ops.conventions import normalised_axes, normalised_axis
from rune.scipy.ndimage.borders import padded, per_axis
from rune.scipy.special.arguments import reals

Combine = Callable[[Any, Any], Any]


def _array(name: str, x: Any) -> Any:
    """A floating array; integers as f32, unlike SciPy's, which keeps them."""
    x = rnp.asarray(x)
    return x if rnp.issubdtype(x.dtype, rnp.complexfloating) else reals(name, x)[0]


def _slices(x: Any, axis: int, start: int, size: int) -> Any:
    return x[(slice(None),) * axis + (slice(start, start + size),)]


def correlate1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    """Σ weights[k] input[i + k - K // 2 + origin] along an axis.

    Shapes: input, weights [K] -> as input.  mode, cval: what lies beyond the border (borders.py).
    Errors: ShapeError for weights of another rank, ArgumentError for another mode.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import correlate1d
    >>> correlate1d(rnp.arange(4.0), rnp.array([1.0, 0.0, -1.0]))
    Array([-1., -2., -2., -1.], f32[4], cpu:0)
    """
    x = _array("correlate1d", input)
    weights = _array("correlate1d", weights)
    if weights.ndim != 1:
        raise ShapeError(f"correlate1d: cannot use weights {weights.shape} (rank 1 required)")
    axis = normalised_axis("correlate1d", axis, x.type)
    count = weights.shape[0]
    before = count // 2 + origin
    widths = [(before, count - 1 - before) if i == axis else (0, 0) for i in range(x.ndim)]
    wide = padded("correlate1d", x, widths, mode, cval)
    size = x.shape[axis]
    terms = [weights[k] * _slices(wide, axis, k, size) for k in range(count)]
    return sum(terms[1:], terms[0])


def convolve1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    """correlate1d with the weights reversed.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import convolve1d
    >>> convolve1d(rnp.arange(4.0), rnp.array([1.0, 0.0, -1.0]))
    Array([1., 2., 2., 1.], f32[4], cpu:0)
    """
    weights = rnp.flip(rnp.asarray(weights))
    shift = -origin - (1 if weights.shape[0] % 2 == 0 else 0)
    return correlate1d(input, weights, axis, mode, cval, shift)


def correlate(
    input: Any, weights: Any, output: None = None, mode: str = "reflect", cval: Any = 0.0,
    origin: Any = 0,
) -> Any:  # fmt: skip
    """Σ weights[k] input[i + k - K // 2 + origin] over all axes.

    Shapes: input and weights of one rank -> as input.
    Errors: ShapeError for ranks that differ.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import correlate
    >>> correlate(rnp.eye(2), rnp.ones((1, 2)))
    Array([[2., 1.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    x, weights = _array("correlate", input), _array("correlate", weights)
    if x.ndim != weights.ndim:
        raise ShapeError(f"correlate: cannot use weights {weights.shape} on {x.shape}")
    origins = per_axis("correlate", "origin", origin, range(x.ndim))
    before = [k // 2 + o for k, o in zip(weights.shape, origins)]
    widths = [(b, k - 1 - b) for b, k in zip(before, weights.shape)]
    wide = padded("correlate", x, widths, mode, cval)
    total: Any = None
    for place in itertools.product(*(range(k) for k in weights.shape)):
        part = wide[tuple(slice(p, p + n) for p, n in zip(place, x.shape))]
        term = weights[place] * part
        total = term if total is None else total + term
    return total


def convolve(
    input: Any, weights: Any, output: None = None, mode: str = "reflect", cval: Any = 0.0,
    origin: Any = 0,
) -> Any:  # fmt: skip
    """correlate with the weights reversed along every axis.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import convolve
    >>> convolve(rnp.eye(2), rnp.ones((1, 1)))
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    x, weights = rnp.asarray(input), rnp.flip(rnp.asarray(weights))
    origins = per_axis("convolve", "origin", origin, range(x.ndim))
    turned = [-o - (1 if k % 2 == 0 else 0) for o, k in zip(origins, weights.shape)]
    return correlate(x, weights, None, mode, cval, turned)


# --- Gauss ------------------------------------------------------------------------------------


def _gaussian_weights(sigma: float, order: int, truncate: float, radius: int | None) -> np.ndarray:
    """exp(-x²/2σ²), of sum 1, times the polynomial of its order-th derivative."""
    reach = int(truncate * sigma + 0.5) if radius is None else radius
    x = np.arange(-reach, reach + 1)
    bell = np.exp(-0.5 / (sigma * sigma) * x**2)
    bell /= bell.sum()
    # The polynomial q of the derivative q·φ:  q' + q·(-x/σ²), repeated.
    q = np.zeros(order + 1)
    q[0] = 1.0
    for _ in range(order):
        grown = np.zeros(order + 1)
        grown[:-1] += q[1:] * np.arange(1, order + 1)
        grown[1:] -= q[:-1] / (sigma * sigma)
        q = grown
    return sum(c * x.astype(float) ** k for k, c in enumerate(q)) * bell


def gaussian_filter1d(
    input: Any, sigma: float, axis: int = -1, order: int = 0, mode: str = "reflect",
    cval: Any = 0.0, truncate: float = 4.0, *, radius: int | None = None,
) -> Any:  # fmt: skip
    """The convolution with a normal density of deviation sigma, or its order-th derivative.

    sigma, order, truncate, radius: known while tracing; the density is cut off after `truncate`
            deviations, or `radius` elements.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import gaussian_filter1d
    >>> gaussian_filter1d(rnp.ones(3), 1.0)
    Array([0.99999994, 0.99999994, 0.99999994], f32[3], cpu:0)
    """
    x = _array("gaussian_filter1d", input)
    weights = _gaussian_weights(float(sigma), order, truncate, radius)[::-1].copy()
    return correlate1d(x, rnp.asarray(weights, x.dtype), axis, mode, cval)


def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, mode: Any = "reflect", cval: Any = 0.0,
    truncate: float = 4.0, *, radius: Any = None, axes: Any = None,
) -> Any:  # fmt: skip
    """gaussian_filter1d along each of the axes, all by default.

    sigma, order, mode, radius: one for all axes, or one for each.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import gaussian_filter
    >>> gaussian_filter(rnp.ones((1, 2)), 1.0)
    Array([[0.99999994, 0.99999994]], f32[1,2], cpu:0)
    """
    x = _array("gaussian_filter", input)
    along = normalised_axes("gaussian_filter", axes, x.type)
    settings = (("sigma", sigma), ("order", order), ("mode", mode))
    given = [per_axis("gaussian_filter", what, v, along) for what, v in settings]
    given.append([None] * len(along))
    if radius is not None:
        given[-1] = per_axis("gaussian_filter", "radius", radius, along)
    for axis, width, times, kind, reach in zip(along, *given):
        if width > 1e-15:
            x = gaussian_filter1d(x, width, axis, times, kind, cval, truncate, radius=reach)
    return x


def _total(x: Any, one: Callable[[Any, int], Any]) -> Any:
    """The sum of a filter along each axis."""
    parts = [one(x, axis) for axis in range(x.ndim)]
    return sum(parts[1:], parts[0])


def laplace(input: Any, mode: str = "reflect", cval: Any = 0.0) -> Any:
    """The sum of second differences along all axes.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import laplace
    >>> laplace(rnp.array([0.0, 1.0, 4.0]))
    Array([ 1.,  2., -3.], f32[3], cpu:0)
    """
    x = _array("laplace", input)
    weights = rnp.asarray(np.array([1.0, -2.0, 1.0]), x.dtype)
    return _total(x, lambda v, axis: correlate1d(v, weights, axis, mode, cval))


def gaussian_laplace(input: Any, sigma: Any, mode: str = "reflect", cval: Any = 0.0) -> Any:
    """The sum over axes of the second derivative of gaussian_filter.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import gaussian_laplace
    >>> gaussian_laplace(rnp.zeros(2), 1.0)
    Array([0., 0.], f32[2], cpu:0)
    """
    x = _array("gaussian_laplace", input)
    return _total(x, lambda v, axis: gaussian_filter(v, sigma, _twice(v, axis, 2), mode, cval))


def _twice(x: Any, axis: int, order: int) -> list[int]:
    return [order if i == axis else 0 for i in range(x.ndim)]


def gaussian_gradient_magnitude(
    input: Any, sigma: Any, mode: str = "reflect", cval: Any = 0.0
) -> Any:
    """The length of the gradient of gaussian_filter; its derivative is NaN where that is 0.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import gaussian_gradient_magnitude
    >>> gaussian_gradient_magnitude(rnp.zeros(2), 1.0)
    Array([0., 0.], f32[2], cpu:0)
    """
    x = _array("gaussian_gradient_magnitude", input)
    return rnp.sqrt(_total(
        x, lambda v, axis: rnp.square(gaussian_filter(v, sigma, _twice(v, axis, 1), mode, cval))
    ))  # fmt: skip


# --- differences ------------------------------------------------------------------------------


def _edges(name: str, x: Any, axis: int, beside: Sequence[float], mode: str, cval: Any) -> Any:
    """Differences along one axis, weighed sums along the others."""
    x = _array(name, x)
    axis = normalised_axis(name, axis, x.type)
    out = correlate1d(x, rnp.asarray(np.array([-1.0, 0.0, 1.0]), x.dtype), axis, mode, cval)
    for other in (i for i in range(x.ndim) if i != axis):
        out = correlate1d(out, rnp.asarray(np.array(beside), x.dtype), other, mode, cval)
    return out


def sobel(input: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0) -> Any:
    """Sobel's differences along an axis, smoothed by (1, 2, 1) along the others.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import sobel
    >>> sobel(rnp.arange(3.0))
    Array([1., 2., 1.], f32[3], cpu:0)
    """
    return _edges("sobel", input, axis, (1.0, 2.0, 1.0), mode, cval)


def prewitt(input: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0) -> Any:
    """Prewitt's differences along an axis, smoothed by (1, 1, 1) along the others.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import prewitt
    >>> prewitt(rnp.arange(3.0))
    Array([1., 2., 1.], f32[3], cpu:0)
    """
    return _edges("prewitt", input, axis, (1.0, 1.0, 1.0), mode, cval)


# --- windows ----------------------------------------------------------------------------------


def uniform_filter1d(
    input: Any, size: int, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """The mean of `size` elements around each along an axis.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import uniform_filter1d
    >>> uniform_filter1d(rnp.arange(3.0), 3)
    Array([0.33333334, 1.        , 1.6666667 ], f32[3], cpu:0)
    """
    x = _array("uniform_filter1d", input)
    weights = rnp.full((size,), 1.0 / size, x.dtype)
    return correlate1d(x, weights, axis, mode, cval, origin)


def uniform_filter(
    input: Any, size: Any = 3, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The mean of a box of elements around each.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import uniform_filter
    >>> uniform_filter(rnp.ones((2, 2)))
    Array([[1., 1.],
           [1., 1.]], f32[2,2], cpu:0)
    """
    x = _array("uniform_filter", input)
    along = normalised_axes("uniform_filter", axes, x.type)
    given = (per_axis("uniform_filter", w, v, along)
             for w, v in (("size", size), ("mode", mode), ("origin", origin)))  # fmt: skip
    for axis, count, kind, shift in zip(along, *given):
        x = uniform_filter1d(x, count, axis, kind, cval, shift)
    return x


def _extreme1d(
    name: str, combine: Combine, input: Any, size: int, axis: int, mode: str, cval: Any, origin: int
) -> Any:
    x = rnp.asarray(input)
    axis = normalised_axis(name, axis, x.type)
    before = size // 2 + origin
    widths = [(before, size - 1 - before) if i == axis else (0, 0) for i in range(x.ndim)]
    wide = padded(name, x, widths, mode, cval)
    # Windows double until they are as long as asked for: log₂(size) comparisons.
    length, count = 1, x.shape[axis] + size - 1
    while 2 * length <= size:
        count -= length
        wide = combine(_slices(wide, axis, 0, count), _slices(wide, axis, length, count))
        length *= 2
    rest = size - length
    n = x.shape[axis]
    return combine(_slices(wide, axis, 0, n), _slices(wide, axis, rest, n))


def _extreme(
    name: str, combine: Combine, input: Any, size: Any, mode: Any, cval: Any, origin: Any, axes: Any
) -> Any:
    x = rnp.asarray(input)
    along = normalised_axes(name, axes, x.type)
    given = (per_axis(name, w, v, along)
             for w, v in (("size", size), ("mode", mode), ("origin", origin)))  # fmt: skip
    for axis, count, kind, shift in zip(along, *given):
        x = _extreme1d(name, combine, x, count, axis, kind, cval, shift)
    return x


def maximum_filter(
    input: Any, size: Any = 3, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The largest of a box of elements around each; equal ones share the derivative.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import maximum_filter
    >>> maximum_filter(rnp.array([1, 5, 2, 0]), 3)
    Array([5, 5, 5, 2], i32[4], cpu:0)
    """
    return _extreme("maximum_filter", rnp.maximum, input, size, mode, cval, origin, axes)


def minimum_filter(
    input: Any, size: Any = 3, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The smallest of a box of elements around each; equal ones share the derivative.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import minimum_filter
    >>> minimum_filter(rnp.array([1, 5, 2, 0]), 3)
    Array([1, 1, 0, 0], i32[4], cpu:0)
    """
    return _extreme("minimum_filter", rnp.minimum, input, size, mode, cval, origin, axes)


def median_filter(
    input: Any, size: Any = 3, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0
) -> Any:
    """The middle one (of an even number the upper) of a box of elements around each.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import median_filter
    >>> median_filter(rnp.array([1, 9, 2, 3]), 3)
    Array([1, 2, 3, 3], i32[4], cpu:0)
    """
    x = rnp.asarray(input)
    sizes = per_axis("median_filter", "size", size, range(x.ndim))
    origins = per_axis("median_filter", "origin", origin, range(x.ndim))
    before = [k // 2 + o for k, o in zip(sizes, origins)]
    wide = padded("median_filter", x, [(b, k - 1 - b) for b, k in zip(before, sizes)], mode, cval)
    places = itertools.product(*(range(k) for k in sizes))
    windows = [wide[tuple(slice(p, p + n) for p, n in zip(at, x.shape))] for at in places]
    return rnp.sort(rnp.stack(windows), axis=0)[math.prod(sizes) // 2]
