"""Cosine and sine transforms of the types 1 to 4, each by Fourier transforms of real numbers.

    dct 1   x[0] + (-1)^k x[N-1] + 2 sum x[n] cos(πkn/(N-1)), n from 1 to N-2
    dct 2   2 sum x[n] cos(πk(2n+1)/2N)
    dct 3   x[0] + 2 sum x[n] cos(π(2k+1)n/2N), n from 1
    dct 4   2 sum x[n] cos(π(2k+1)(2n+1)/4N)
    dst 1   2 sum x[n] sin(π(k+1)(n+1)/(N+1))
    dst 2   2 sum x[n] sin(π(k+1)(2n+1)/2N)
    dst 3   (-1)^k x[N-1] + 2 sum x[n] sin(π(2k+1)(n+1)/2N), n to N-2
    dst 4   2 sum x[n] sin(π(2k+1)(2n+1)/4N)

A sine transform is the cosine transform of the sequence reversed or with every other sign
exchanged. Complex sequences are transformed by parts.

Source: types 2 and 3 by one transform of N reordered numbers, Makhoul 1980, "A fast cosine
transform in one and two dimensions", IEEE Trans. ASSP 28(1); type 1 by even or odd extension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from rune.array import Array
from rune.core.interpreter import literal, type_of
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import inexact, static_size, value
from rune.numpy.complex_numbers import imag, real
from rune.numpy.creation import arange
from rune.numpy.fft import fft, irfft, rfft
from rune.numpy.joining import concatenate
from rune.numpy.shapes import moveaxis
from rune.numpy.transform_norms import checked_norm, swapped_norm
from rune.ops import complex_numbers as parts
from rune.ops import conventions as c
from rune.ops.arithmetic import div, select
from rune.ops.family import size_value, wide
from rune.ops.fourier.roots import unit_roots
from rune.ops.movement import pad
from rune.ops.transcendental import sqrt
from rune.typing import ArrayLike, Axis

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_ROOT = math.sqrt(0.5)
Transform = Callable[[Array], Array]  # of real numbers along the last axis


def _size(x: Array) -> Size:
    return type_of(x).shape[-1]


def _turns(count: Size, n: Size, x: Array, step: int = 1, start: int = 0) -> Array:
    """exp(-2πi (start + step·k)/n) for k below `count`."""
    k = arange(count) * step + start
    total = size_value(n, type_of(k).dtype)
    return parts.complex(*unit_roots(k, total, type_of(x).dtype))


def _signs(x: Array) -> Array:
    """1, -1, 1, …"""
    return c.astype(1 - 2 * (arange(_size(x)) % 2), type_of(x).dtype)


# --- cosine transforms of real numbers ------------------------------------------------------------


def _dct1(x: Array) -> Array:
    return real(rfft(concatenate([x, x[..., 1:-1][..., ::-1]], axis=-1)))


def _dct2(x: Array) -> Array:
    """From z[k] = 2 V[k] exp(-πik/2N), V of the even places and then the odd ones backwards."""
    n = _size(x)
    half = n // 2 + 1
    v = concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], axis=-1)
    z = 2 * rfft(v) * _turns(half, 4 * n, x)
    # Frequency N-k is the conjugate of k, rotated back by a right angle.
    return concatenate([real(z), -imag(z)[..., 1 : n - half + 1][..., ::-1]], axis=-1)


def _dct3(x: Array) -> Array:
    """The steps of type 2 in reverse."""
    n = _size(x)
    half = n // 2 + 1
    other = concatenate([x[..., :1] * 0, x[..., ::-1]], axis=-1)[..., :half]
    z = parts.complex(x[..., :half], -other)
    v = irfft(z * c.conj(_turns(half, 4 * n, x)), n) * n
    return _interleaved(v[..., : (n + 1) // 2], v[..., (n + 1) // 2 :][..., ::-1])


def _interleaved(even: Array, odd: Array) -> Array:
    """The elements at even positions and those at odd ones, perhaps one fewer."""
    n = _size(even) + _size(odd)
    odd = _cut_or_padded(odd, _size(even))
    both = concatenate([even[..., None], odd[..., None]], axis=-1)
    return c.reshape(both, (*type_of(even).shape[:-1], 2 * _size(even)))[..., :n]


def _dct4(x: Array) -> Array:
    """From the first N of 2N frequencies of x times quarter turns."""
    n = _size(x)
    rotated_x = x * _turns(n, 4 * n, x)
    spectrum = fft(rotated_x, 2 * n)[..., :n] * _turns(n, 8 * n, x, 2, 1)
    return 2 * real(spectrum)


# --- sine transforms of real numbers --------------------------------------------------------------


def _dst1(x: Array) -> Array:
    zero = x[..., :1] * 0
    odd = concatenate([zero, x, zero, -x[..., ::-1]], axis=-1)
    return -imag(rfft(odd))[..., 1:-1]


def _dst2(x: Array) -> Array:
    return _dct2(x * _signs(x))[..., ::-1]


def _dst3(x: Array) -> Array:
    return _dct3(x[..., ::-1]) * _signs(x)


def _dst4(x: Array) -> Array:
    return _dct4(x[..., ::-1]) * _signs(x)


_COSINE: dict[int, Transform] = {1: _dct1, 2: _dct2, 3: _dct3, 4: _dct4}
_SINE: dict[int, Transform] = {1: _dst1, 2: _dst2, 3: _dst3, 4: _dst4}
# What makes the matrix orthogonal: elements of the argument that are scaled by sqrt(2), and of the
# result, by sqrt(1/2).
_ENDS: dict[str, dict[int, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "cosine": {1: ((0, -1), (0, -1)), 2: ((), (0,)), 3: ((0,), ()), 4: ((), ())},
    "sine": {1: ((), ()), 2: ((), (-1,)), 3: ((-1,), ()), 4: ((), ())},
}


# --- public names -------------------------------------------------------------------------------


def dct(
    x: ArrayLike,
    type: int = 2,
    n: Size | None = None,
    axis: int = -1,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """The discrete cosine transform of type 1 to 4, along one axis.

    n:      the length: x is cut or padded with zeros at its end.
    norm:   "backward" scales the inverse by 1/2N (1/2(N-1) for type 1), "forward" this transform;
            "ortho" scales both by its square root, and makes the matrix orthogonal.
    orthogonalize: whether the first (and last) terms are weighted to that end; by default with
            "ortho".
    Shapes: as x, with n elements along the axis.
    Types:  in the dtype of x, complex included; bools and integers become f32.
    Errors: ArgumentError for an unknown type; ShapeError for an n below 1, and for type 1 of fewer
            than two elements.
    Source: by Fourier transforms of reordered numbers, Makhoul 1980.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.dct(rnp.array([4.0, 3.0, 5.0, 10.0]), 1)
    Array([30., -8.,  6., -2.], f32[4], cpu:0)
    """
    return _one("dct", "cosine", x, type, n, axis, norm, orthogonalize, False)


def idct(
    x: ArrayLike,
    type: int = 2,
    n: Size | None = None,
    axis: int = -1,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """The inverse of `dct` of the same type and norm.

    Shapes: as x, with n elements along the axis.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for no
            elements; AxisError for an axis out of range.
    Source: by Fourier transforms of reordered numbers, Makhoul 1980.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.idct(fft.dct(rnp.array([1.0, 2.0, 3.0]))).round(5)
    Array([1., 2., 3.], f32[3], cpu:0)
    """
    return _one("idct", "cosine", x, type, n, axis, norm, orthogonalize, True)


def dst(
    x: ArrayLike,
    type: int = 2,
    n: Size | None = None,
    axis: int = -1,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """The discrete sine transform of a type from 1 to 4, along one axis. Arguments as `dct`.

    Shapes: as x, with n elements along the axis.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array, `norm` is unknown or `type` is not an
            integer; ShapeError for no elements; AxisError for an axis out of range.
    Source: by Fourier transforms of reordered numbers, Makhoul 1980.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.dst(rnp.array([1.0, 1.0]), 2).round(4)
    Array([2.8284, 0.    ], f32[2], cpu:0)
    """
    return _one("dst", "sine", x, type, n, axis, norm, orthogonalize, False)


def idst(
    x: ArrayLike,
    type: int = 2,
    n: Size | None = None,
    axis: int = -1,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """The inverse of `dst` of the same type and norm.

    Shapes: as x, with n elements along the axis.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for no
            elements; AxisError for an axis out of range.
    Source: by Fourier transforms of reordered numbers, Makhoul 1980.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.idst(fft.dst(rnp.array([1.0, 2.0, 3.0]))).round(5)
    Array([1., 2., 3.], f32[3], cpu:0)
    """
    return _one("idst", "sine", x, type, n, axis, norm, orthogonalize, True)


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Axis = None,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """`dct` along several axes: by default all, or the last len(s).

    s:      the length along each of the axes; -1 keeps what there is.
    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for no
            elements; AxisError for an axis out of range.
    Source: by Fourier transforms of reordered numbers, Makhoul 1980.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.dctn(rnp.ones((2, 2))).round(4) + 0
    Array([[16.,  0.],
           [ 0.,  0.]], f32[2,2], cpu:0)
    """
    return _several(dct, "dctn", x, type, s, axes, norm, orthogonalize)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Axis = None,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """The inverse of `dctn`.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for no
            elements; AxisError for an axis out of range.
    Source: by Fourier transforms of reordered numbers, Makhoul 1980.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.idctn(fft.dctn(rnp.eye(2))).round(4) + 0
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    return _several(idct, "idctn", x, type, s, axes, norm, orthogonalize)


def dstn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Axis = None,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """`dst` along several axes: by default all, or the last len(s).

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for no
            elements; AxisError for an axis out of range.
    Source: by Fourier transforms of reordered numbers, Makhoul 1980.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.dstn(rnp.ones((2, 2))).shape
    (2, 2)
    """
    return _several(dst, "dstn", x, type, s, axes, norm, orthogonalize)


def idstn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Axis = None,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """The inverse of `dstn`.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for no
            elements; AxisError for an axis out of range.
    Source: by Fourier transforms of reordered numbers, Makhoul 1980.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.idstn(fft.dstn(rnp.eye(2))).round(4) + 0
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    return _several(idst, "idstn", x, type, s, axes, norm, orthogonalize)


# --- what they share ----------------------------------------------------------------------------


def _several(
    transform: Callable[..., Array],
    name: str,
    x: ArrayLike,
    type: int,
    s: Sequence[int] | None,
    axes: Axis,
    norm: str | None,
    orthogonalize: bool | None,
) -> Array:
    out = value(name, x)
    if axes is None and s is not None:
        axes = tuple(range(-len(s), 0))
    numbers = c.normalised_axes(name, axes, type_of(out))
    sizes = (None,) * len(numbers) if s is None else tuple(None if n == -1 else n for n in s)
    if len(sizes) != len(numbers):
        raise ArgumentError(f"{name}: cannot use {len(sizes)} sizes for {len(numbers)} axes")
    for axis, n in zip(numbers, sizes, strict=True):
        out = transform(out, type, n, axis, norm, orthogonalize=orthogonalize)
    return c.distinct(out, x)


def _one(
    name: str,
    family: str,
    x: ArrayLike,
    type: int,
    n: Size | None,
    axis: int,
    norm: str | None,
    orthogonalize: bool | None,
    inverse: bool,
) -> Array:
    """One transform; an inverse is the transform of the inverse type, with the opposite norm."""
    if not isinstance(type, int) or type not in _INVERSE:
        raise ArgumentError(f"{name}: cannot use type={type!r} (1, 2, 3 or 4)")
    norm = checked_norm(name, norm)
    orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    kind, norm = (_INVERSE[type], swapped_norm(norm)) if inverse else (type, norm)
    x = _prepared(name, x, n, axis)
    if _size(x) < (2 if (family, kind) == ("cosine", 1) else 1):
        raise ShapeError(f"{name}: cannot transform {type_of(x)} (axis {axis} is too short)")
    weights = _ENDS[family][kind] if orthogonal else ((), ())
    run = (_COSINE if family == "cosine" else _SINE)[kind]
    coefficients = c.by_parts(run, _weighted(x, weights[0], 1 / _ROOT))
    coefficients = _weighted(_normed(coefficients, family, kind, norm), weights[1], _ROOT)
    return moveaxis(coefficients, -1, axis)


def _prepared(name: str, x: ArrayLike, n: Size | None, axis: int) -> Array:
    """x in a dtype that can be transformed, with the axis last and of length n."""
    x = inexact(name, value(name, x))
    x = c.astype(x, wide(type_of(x).dtype))
    x = moveaxis(x, axis, -1)
    if n is None:
        return x
    size = static_size(name, "a length", n)
    if size < 1:
        raise ShapeError(f"{name}: cannot transform to length {size} (1 or more)")
    return _cut_or_padded(x, size)


def _cut_or_padded(x: Array, size: Size) -> Array:
    x_type = type_of(x)
    high = (*(0,) * (x_type.ndim - 1), size - x_type.shape[-1])
    no_padding = (0,) * x_type.ndim
    zero = np.zeros((), x_type.dtype)
    return x if high == no_padding else pad(x, zero, low=no_padding, high=high, interior=no_padding)


def _weighted(x: Array, places: tuple[int, ...], factor: float) -> Array:
    """x with some of its elements scaled; if two positions are the same element, it is scaled
    once.
    """
    if not places:
        return x
    n, k = _size(x), arange(_size(x))
    is_end = sum(((k == place % n) for place in places[1:]), k == places[0] % n)
    dtype = parts.PART.get(type_of(x).dtype, type_of(x).dtype)
    weights = select(is_end, literal(factor, dtype), literal(1, dtype))
    return c.by_parts(lambda v: v * weights, x)


def _normed(x: Array, family: str, kind: int, norm: str) -> Array:
    """x scaled as `norm` requires, where "backward" scales nothing."""
    if norm == "backward":
        return x
    more = {("cosine", 1): -1, ("sine", 1): 1}.get((family, kind), 0)
    total = size_value(2 * (_size(x) + more), parts.PART.get(type_of(x).dtype, type_of(x).dtype))
    divisor = total if norm == "forward" else sqrt(total)
    return c.by_parts(lambda v: div(v, divisor), x)
