"""Filters by normal densities and their derivatives: products of filters along the axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.errors import ArgumentError
from rune.ops.conventions import distinct, normalised_axes
from rune.scipy.ndimage.borders import number, per_axis
from rune.scipy.ndimage.filters import correlate1d, image, total
from rune.scipy.special.arguments import rounded, widened
from rune.typing import ArrayLike, Axis, Nested


def _weights(sigma: float, order: int, truncate: float, radius: int | None) -> np.ndarray:
    """exp(-x²/2σ²), normalised to sum 1, times the polynomial of its order-th derivative."""
    reach = int(truncate * sigma + 0.5) if radius is None else radius
    x = np.arange(-reach, reach + 1)
    bell = np.exp(-0.5 / (sigma * sigma) * x**2)
    bell /= bell.sum()
    # The polynomial q of the derivative q·φ:  q' + q·(-x/σ²), repeated.
    q = np.zeros(order + 1)
    q[0] = 1.0
    for _ in range(order):
        next_q = np.zeros(order + 1)
        next_q[:-1] += q[1:] * np.arange(1, order + 1)
        next_q[1:] -= q[:-1] / (sigma * sigma)
        q = next_q
    return sum(c * x.astype(float) ** k for k, c in enumerate(q)) * bell


def gaussian_filter1d(
    input: Nested,
    sigma: float,
    axis: int = -1,
    order: int = 0,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Array:
    """The convolution with a normal density of standard deviation sigma, or its order-th
    derivative.

    sigma, order, truncate, radius: known while tracing; the density is cut off after `truncate`
            deviations, or `radius` elements.
    Shapes: as input. Types: as input, complex included; bools and integers become f32.
    Errors: ArgumentError for a sigma that is not positive, a negative order or radius.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import gaussian_filter1d
    >>> gaussian_filter1d(rnp.ones(3), 1.0)
    Array([0.99999994, 0.99999994, 0.99999994], f32[3], cpu:0)
    """
    x = image("gaussian_filter1d", input)
    width = _deviation("gaussian_filter1d", sigma)
    if width == 0 or order < 0 or (radius is not None and radius < 0):
        raise ArgumentError(
            f"gaussian_filter1d: cannot use sigma={width}, order={order}, radius={radius} "
            "(a positive sigma, order and radius not negative)"
        )
    weights = _weights(width, order, truncate, radius)[::-1].copy()
    y, dtype = widened(x)
    return rounded(correlate1d(y, rnp.asarray(weights, y.dtype), axis, mode, cval), dtype)


def gaussian_filter(
    input: Nested,
    sigma: ArrayLike | Sequence[float],
    order: int | Sequence[int] = 0,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | Sequence[int] | None = None,
    axes: Axis = None,
) -> Array:
    """gaussian_filter1d along each of the axes, all by default.

    sigma, order, mode, radius: one for all axes, or one for each; an axis of sigma 0 stays.
    Shapes: as input. Types: as input, complex included; bools and integers become f32.
    Errors: ArgumentError for a negative sigma, and those of gaussian_filter1d.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import gaussian_filter
    >>> gaussian_filter(rnp.ones((1, 2)), 1.0)
    Array([[0.99999994, 0.99999994]], f32[1,2], cpu:0)
    """
    x = image("gaussian_filter", input)
    along = normalised_axes("gaussian_filter", axes, x.type)
    arguments = (("sigma", sigma), ("order", order), ("mode", mode))
    settings = [per_axis("gaussian_filter", argument, v, along) for argument, v in arguments]
    settings.append([None] * len(along))
    if radius is not None:
        settings[-1] = per_axis("gaussian_filter", "radius", radius, along)
    for axis, width, times, kind, reach in zip(along, *settings):
        if _deviation("gaussian_filter", width) > 1e-15:
            x = gaussian_filter1d(x, width, axis, times, kind, cval, truncate, radius=reach)
    return distinct(x, input)


def _deviation(name: str, sigma: float | str) -> float:
    deviation = number(name, "sigma", sigma)
    if not 0 <= deviation < float("inf"):
        raise ArgumentError(f"{name}: cannot use sigma={deviation} (0 or more, and finite)")
    return deviation


def gaussian_laplace(input: Nested, sigma: ArrayLike, mode: str = "reflect", cval: ArrayLike = 0.0) -> Array:
    """The sum over axes of the second derivative of gaussian_filter.

    Shapes: as input. Types: as input, complex included; bools and integers become f32.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array;
            ShapeError for rank 0.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import gaussian_laplace
    >>> gaussian_laplace(rnp.zeros(2), 1.0)
    Array([0., 0.], f32[2], cpu:0)
    """
    x = image("gaussian_laplace", input)
    second = lambda v, axis: gaussian_filter(v, sigma, _twice(v, axis, 2), mode, cval)  # noqa: E731
    return total("gaussian_laplace", x, second)


def _twice(x: Array, axis: int, order: int) -> list[int]:
    return [order if i == axis else 0 for i in range(x.ndim)]


def gaussian_gradient_magnitude(input: Nested, sigma: ArrayLike, mode: str = "reflect", cval: ArrayLike = 0.0) -> Array:
    """The length of the gradient of gaussian_filter; its derivative is NaN where that is 0.

    Shapes: as input. Types: as input, complex included; bools and integers become f32.
    Errors: ArgumentError for an unknown `mode`; DtypeError if an argument is not an array;
            ShapeError for rank 0.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.ndimage import gaussian_gradient_magnitude
    >>> gaussian_gradient_magnitude(rnp.zeros(2), 1.0)
    Array([0., 0.], f32[2], cpu:0)
    """
    x = image("gaussian_gradient_magnitude", input)
    return rnp.sqrt(
        total(
            "gaussian_gradient_magnitude",
            x,
            lambda v, axis: rnp.square(gaussian_filter(v, sigma, _twice(v, axis, 1), mode, cval)),
        )
    )
