"""rune.image: resizes images and volumes.

Along each axis a new pixel is a weighted sum of old ones. The weights are a kernel around the new
pixel's centre in old coordinates, and sum to 1. So resampling is one matrix product for each axis,
and is differentiable. Centres are at half integers: each of 2 new pixels covers two of 4 old ones.
If an image becomes smaller, antialiasing stretches the kernel over the pixels that become one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from math import pi

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.listing import names as _names
from rune.numpy.arguments import inexact
from rune.ops.conventions import distinct, normalised_axes
from rune.records import dataclass
from rune.transforms.arguments import value_leaves
from rune.tree import structure
from rune.typing import ArrayLike

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How new pixels are computed from old ones; functions also take the names as strings.

    NEAREST:        the old pixel whose area contains the new centre
    LINEAR:         linear between old centres ("bilinear", "trilinear", "triangle")
    LANCZOS3, LANCZOS5: a windowed sinc over 3 or 5 pixels to each side
    CUBIC:          Keys' cubic with a = -1/2 ("bicubic", "tricubic")
    CUBIC_PYTORCH:  PyTorch's, with a = -3/4 and repeated borders; with antialiasing CUBIC
    AREA:           the mean over the area of the new pixel

    >>> import rune
    >>> rune.image.ResizeMethod.from_string("bilinear")
    <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method with this name. Errors: ArgumentError for an unknown name."""
        if s not in _NAMES:
            raise ArgumentError(f"image: cannot resize by method={s!r} ({', '.join(_NAMES)})")
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


# --- kernels ------------------------------------------------------------------------------------


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def kernel(x: Array) -> Array:
        # sinc(x) * sinc(x / radius), which is 1 at 0, where the quotient would be 0 / 0.
        near = x <= 1e-3
        angle = pi * rnp.where(near, 1.0, x)
        value = radius * rnp.sin(angle) * rnp.sin(angle / radius) / (angle * angle)
        return rnp.where(x > radius, 0.0, rnp.where(near, 1.0, value))

    return kernel


def _cubic(a: float) -> Callable[[Array], Array]:
    """The cubic convolution kernel: Keys 1981, IEEE Trans. ASSP 29(6), equation 4."""

    def kernel(x: Array) -> Array:
        inner = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        outer = a * (((x - 5.0) * x + 8.0) * x - 4.0)
        return rnp.where(x >= 2.0, 0.0, rnp.where(x >= 1.0, outer, inner))

    return kernel


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The weight of an old pixel by its distance from the new centre [pixels]; None: by area."""

    weight: Callable[[Array], Array] | None
    border: int = 0  # number of pixels by which border pixels are repeated outwards


_KERNELS = {
    ResizeMethod.LINEAR: _Kernel(lambda x: rnp.maximum(0.0, 1.0 - x)),
    ResizeMethod.LANCZOS3: _Kernel(_lanczos(3.0)),
    ResizeMethod.LANCZOS5: _Kernel(_lanczos(5.0)),
    ResizeMethod.CUBIC: _Kernel(_cubic(-0.5)),
    ResizeMethod.CUBIC_PYTORCH: _Kernel(_cubic(-0.75), border=2),
    ResizeMethod.AREA: _Kernel(None),
}
_LEAST_SUM = 1000.0 * float(np.finfo(np.float32).eps)


def _weights(kernel: _Kernel, old: Size, new: int, scale: Array, shift: Array, antialias: bool) -> Array:
    """The weights [old, new] of old pixels in new ones."""
    # scale, shift: an old coordinate x becomes x * scale + shift
    step = 1.0 / scale
    dtype = rnp.result_type(scale, shift, rnp.float32)
    centres = (rnp.arange(new, dtype=dtype) + 0.5 - shift) * step - 0.5
    pixels = rnp.arange(-kernel.border, old + kernel.border, dtype=dtype)[:, None]
    if kernel.weight is None:
        starts = (rnp.arange(new, dtype=dtype) - shift) * step
        overlap = rnp.minimum(starts + step, pixels + 1.0) - rnp.maximum(starts, pixels)
        weights = rnp.maximum(0.0, overlap)
    else:
        stretch = rnp.maximum(step, 1.0) if antialias else 1.0
        weights = kernel.weight(rnp.abs(centres - pixels) / stretch)
    if kernel.border:
        nearest = rnp.clip(rnp.arange(-kernel.border, old + kernel.border), 0, rnp.asarray(old - 1))
        weights = (rnp.arange(old)[:, None] == nearest).astype(dtype) @ weights
    total = rnp.sum(weights, axis=0)
    # At borders a part of the kernel lies outside: normalise by the sum of the weights inside.
    is_known = rnp.abs(total) > _LEAST_SUM
    weights = rnp.where(is_known, weights / rnp.where(is_known, total, 1.0), 0.0)
    is_inside = (centres >= -0.5) & (centres <= old - 0.5)
    return weights if kernel.border else rnp.where(is_inside, weights, 0.0)


# --- images -------------------------------------------------------------------------------------


def resize(
    image: ArrayLike, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True, precision: object = None
) -> Array:
    """Resize an image along any of its axes.

    shape:      the shape of the result; axes of batches or channels keep their size
    antialias:  apply a low-pass filter if the image becomes smaller
    precision:  accepted for JAX; products are computed in the precision of their dtype

    Shapes: image [N1, …, ND] -> shape, of D sizes.
    Types:  of `image` for "nearest"; else its floating dtype, integers as float32.
    Errors: ShapeError if `shape` has another rank or an axis without pixels is enlarged;
            ArgumentError for an unknown method.
    Source: Keys 1981; Turkowski 1990, Filters for Common Resampling Tasks, in Graphics Gems.

    >>> import rune, rune.numpy as rnp
    >>> rune.image.resize(rnp.arange(4.0), (8,), "linear").round(2)
    Array([0.  , 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.  ], f32[8], cpu:0)
    """
    x, sizes = _image("resize", image, shape)
    how = _method("resize", method)
    axes = [k for k in range(x.ndim) if x.shape[k] != sizes[k]]
    if any(x.shape[k] == 0 for k in axes):
        raise ShapeError(f"resize: cannot enlarge {x.type} to {tuple(sizes)} (an axis has no pixels)")
    if how is ResizeMethod.NEAREST:
        for k in axes:
            x = rnp.take(x, _nearest(int(x.shape[k]), sizes[k]), axis=k)
        return distinct(x, image)
    scales = [sizes[k] / x.shape[k] if sizes[k] else 1.0 for k in axes]
    return distinct(_resampled(_inexact(x), sizes, axes, scales, [0.0] * len(axes), how, antialias), image)


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: object = None,
) -> Array:
    """Stretch and move an image: the value at x moves to x * scale + translation.

    shape:         the shape of the result
    spatial_dims:  K axes; the others keep their size
    scale, translation: [K], possibly traced; coordinates count pixels, with centres at 0.5,
                   1.5, …
    antialias:     apply a low-pass filter if the image becomes smaller
    precision:     accepted for JAX; products are computed in the precision of their dtype
    Pixels outside the moved image are 0.

    Shapes: image [N1, …, ND] -> shape, of D sizes.
    Types:  the floating dtype of `image`, integers as float32.
    Errors: ShapeError if `shape` has another rank, or there are not K scales and translations;
            ArgumentError for an unknown method, and for "nearest".
    Source: as for `resize`.

    >>> import rune, rune.numpy as rnp
    >>> resampled = rune.image.scale_and_translate
    >>> resampled(rnp.arange(4.0), (4,), (0,), rnp.ones(1), rnp.array([0.5]), "linear")
    Array([0. , 0.5, 1.5, 2.5], f32[4], cpu:0)
    """
    x, sizes = _image("scale_and_translate", image, shape)
    how = _method("scale_and_translate", method)
    if how is ResizeMethod.NEAREST:
        raise ArgumentError("scale_and_translate: cannot use method='nearest'", hint="use `resize`")
    axes = normalised_axes("scale_and_translate", tuple(spatial_dims), x.type)
    scales, shifts = (rnp.atleast_1d(_inexact(rnp.asarray(v))) for v in (scale, translation))
    if scales.shape != (len(axes),) or shifts.shape != scales.shape:
        raise ShapeError(
            f"scale_and_translate: cannot scale {len(axes)} axes by scale {scales.shape} "
            f"and translation {shifts.shape} (({len(axes)},) required)"
        )
    return _resampled(_inexact(x), sizes, axes, scales, shifts, how, antialias)


def _resampled(
    x: Array,
    sizes: Sequence[int],
    axes: Sequence[int],
    scales: Sequence[float] | Array,
    shifts: Sequence[float] | Array,
    how: ResizeMethod,
    antialias: bool,
) -> Array:
    """Multiply by the weights of each axis in turn."""
    kernel = _KERNELS[ResizeMethod.CUBIC if how is ResizeMethod.CUBIC_PYTORCH and antialias else how]
    dtype = rnp.float64 if x.dtype in (rnp.float64, rnp.complex128) else rnp.float32
    for n, k in enumerate(axes):
        scale, shift = (rnp.asarray(v[n]) for v in (scales, shifts))
        scale, shift = (v.astype(rnp.result_type(v, dtype)) for v in (scale, shift))
        weights = _weights(kernel, x.shape[k], sizes[k], scale, shift, antialias).astype(x.dtype)
        x = rnp.moveaxis(rnp.tensordot(x, weights, ((k,), (0,))), -1, k)
    return x


def _image(name: str, image: ArrayLike, shape: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    (value,) = value_leaves(name, [image], structure(0))
    x, sizes = rnp.asarray(value), tuple(shape)
    if len(sizes) != x.ndim:
        raise ShapeError(f"{name}: cannot make {sizes} of {x.type} ({x.ndim} sizes required)")
    if any(size < 0 for size in sizes):
        raise ShapeError(f"{name}: cannot make {sizes} of {x.type} (sizes of at least 0 required)")
    return x, sizes


def _method(name: str, method: str | ResizeMethod) -> ResizeMethod:
    if isinstance(method, str):
        return ResizeMethod.from_string(method)
    if not isinstance(method, ResizeMethod):
        raise ArgumentError(f"{name}: cannot resize by method={method!r} (a ResizeMethod or its name required)")
    return method


def _inexact(x: Array) -> Array:
    return rnp.asarray(inexact("resize", x))


def _nearest(old: int, new: int) -> np.ndarray:
    """The old pixel that contains each new centre: (i + 1/2) * old / new, rounded down."""
    return (2 * np.arange(new) + 1) * old // (2 * new)


__dir__ = _names(globals())
