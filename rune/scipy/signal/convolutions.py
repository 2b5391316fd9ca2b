"""Convolutions and correlations in any number of dimensions, direct and by Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rune import dtypes
from rune.array import Array
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import inexact, rank, static_int, value
from rune.numpy.creation import arange
from rune.numpy.fft import fftn, ifftn, irfftn, rfftn
from rune.numpy.overlaps import check_mode, pads_of, slid
from rune.numpy.padding import pad
from rune.numpy.shapes import flip
from rune.ops import conventions as c
from rune.ops.movement import move_axis
from rune.scipy.fft.lengths import next_fast_len
from rune.typing import ArrayLike, Axis

_METHODS = ("auto", "direct", "fft")
_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}
FFT_STEP = 60  # multiplications per element of a transform, for each doubling of its length
FFT_FROM = 1 << 16  # with fewer direct multiplications, no transform pays


# --- what they share ----------------------------------------------------------------------------


def _pair(name: str, x: ArrayLike, y: ArrayLike) -> list[Array]:
    """Two arrays of one rank and dtype. Errors: ShapeError for other ranks or no elements."""
    pair = c.same_dtype(name, value(name, x), value(name, y))
    first, second = map(type_of, pair)
    if first.ndim != second.ndim or 0 in (*first.shape, *second.shape):
        why = "equal ranks and at least one element required"
        raise ShapeError(f"{name}: cannot combine {first} and {second} ({why})")
    return pair


def _shapes(x: Array, y: Array) -> tuple[tuple[Size, ...], tuple[Size, ...]]:
    return type_of(x).shape, type_of(y).shape


def _in_order(name: str, x: Array, y: Array, mode: str, axes: Sequence[int]) -> tuple[Array, Array]:
    """The larger array first, where only whole overlaps count."""
    if mode != "valid":
        return x, y
    p, q = _shapes(x, y)
    if all(q[k] <= p[k] for k in axes):
        return x, y
    if all(p[k] <= q[k] for k in axes):
        return y, x
    why = "one must be at least as large as the other along every axis"
    raise ShapeError(f"{name}: cannot lay {type_of(y)} within {type_of(x)} ({why})")


# --- any number of dimensions -------------------------------------------------------------------


def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: object = None
) -> Array:
    """The convolution of two arrays of one rank.

    mode:   "full": wherever they overlap;  "same": the middle, of in1's shape;  "valid": where one
            lies wholly within the other.
    method: "direct": products, exact for integers;  "fft": by Fourier transforms;  "auto": the
            choice of `choose_conv_method`.
    precision: accepted as in JAX, without effect.
    Shapes: of one rank; of N and K elements along an axis "full" N + K - 1, "same" N, "valid"
            |N - K| + 1.
    Types:  the common dtype, bools and integers too; halves by Fourier transforms give f32.
    Errors: ArgumentError, ShapeError for other ranks or no elements.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.convolve(rnp.array([1, 2, 3]), rnp.array([0, 1, 2]), mode="same")
    Array([1, 4, 7], i32[3], cpu:0)
    """
    check_mode("convolve", mode)
    x, y = _pair("convolve", in1, in2)
    if rank(x) == 0:
        return x * y
    x, y = _in_order("convolve", x, y, mode, range(rank(x)))
    if method not in _METHODS:
        raise ArgumentError(f"convolve: cannot use method={method!r} ({', '.join(_METHODS)})")
    fast_method = choose_conv_method(x, y, mode) if method == "auto" else method
    if fast_method == "direct":
        return slid(x, flip(y), *(pads_of(mode, size) for size in type_of(y).shape))
    convolution = fftconvolve(x, y, mode)
    dtype = type_of(x).dtype
    return convolution if dtype in dtypes.INEXACT else c.astype(c.round(convolution), dtype)


def choose_conv_method(in1: ArrayLike, in2: ArrayLike, mode: str = "full") -> str:
    """The faster method of `convolve`, "direct" or "fft", by the number of multiplications.

    Integers are convolved directly, which is exact; so are arrays of symbolic sizes.
    Shapes: of one rank. Types: any; only shapes and dtypes are read.
    Errors: ArgumentError if an argument is not an array or `mode` is unknown; ShapeError if the
            shapes do not match.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.choose_conv_method(rnp.ones(5000), rnp.ones(5000))
    'fft'
    """
    check_mode("choose_conv_method", mode)
    x, y = _pair("choose_conv_method", in1, in2)
    sizes = [d for shape in _shapes(x, y) for d in shape if isinstance(d, int)]
    if type_of(x).dtype not in dtypes.INEXACT or len(sizes) < 2 * rank(x):
        return "direct"
    p, q = sizes[: rank(x)], sizes[rank(x) :]
    direct = math.prod(sizes)
    elements = math.prod(a + b - 1 for a, b in zip(p, q, strict=True))
    transforms = FFT_STEP * elements * max(1, elements.bit_length())
    return "fft" if direct > max(transforms, FFT_FROM) else "direct"


def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: object = None
) -> Array:
    """The cross-correlation of two arrays: `convolve` with in2 reversed and conjugated.

    Shapes: as `convolve`. Types: as `convolve`.
    Errors: ArgumentError if an argument is not an array, `mode` is unknown or `method` is unknown;
            ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.correlate(rnp.array([1, 2, 3]), rnp.array([0, 1, 2]))
    Array([2, 5, 8, 3, 0], i32[5], cpu:0)
    """
    x, y = _pair("correlate", in1, in2)
    return convolve(x, flip(c.conj(y)), mode, method)


def correlation_lags(in1_len: int, in2_len: int, mode: str = "full") -> Array:
    """The displacement of in2 for each result of `correlate` of two vectors.

    For mode "same" and an odd total length, SciPy's lags are each one larger than the displacement.
    Shapes: [L], as many as `correlate` gives. Types: i32.
    Errors: ArgumentError if an argument is not an array or `mode` is unknown; DtypeError for bools
            as `in1_len`.

    >>> from rune.scipy import signal
    >>> signal.correlation_lags(3, 2)
    Array([-1,  0,  1,  2], i32[4], cpu:0)
    """
    check_mode("correlation_lags", mode)
    lags = arange(1 - in2_len, in1_len)
    if mode == "same":
        start = (in2_len - 1) // 2
        return lags[start : start + in1_len]
    if mode == "valid":
        least = min(in1_len, in2_len)
        return lags[least - 1 : in1_len + in2_len - least]
    return lags


# --- two dimensions -----------------------------------------------------------------------------


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: object = None,
) -> Array:
    """The convolution of two matrices.

    boundary: what surrounds in1: "fill": fillvalue;  "wrap": in1 again;  "symm": in1 mirrored.
    Shapes: of rank 2, as `convolve`. Types: as `convolve`.
    Errors: ArgumentError if an argument is not an array or `mode` is unknown; ShapeError if the
            shapes do not match.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.convolve2d(rnp.eye(2), rnp.ones((2, 2)), mode="same")
    Array([[1., 1.],
           [1., 2.]], f32[2,2], cpu:0)
    """
    x, y = _pair("convolve2d", in1, in2)
    x, y = _matrices("convolve2d", x, y, mode, boundary)
    pads = [pads_of(mode, size) for size in type_of(y).shape]
    return _slid_within(x, flip(y), pads, boundary, fillvalue)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: object = None,
) -> Array:
    """The cross-correlation of two matrices; arguments are those of `convolve2d`.

    Shapes: of rank 2, as `convolve`. Types: as `convolve`.
    Errors: ArgumentError if an argument is not an array or `mode` is unknown; ShapeError if the
            shapes do not match.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.correlate2d(rnp.eye(2), rnp.ones((2, 2)), mode="valid")
    Array([[2.]], f32[1,1], cpu:0)
    """
    x, y = _pair("correlate2d", in1, in2)
    p, q = _matrices("correlate2d", x, c.conj(y), mode, boundary)
    is_swapped = p is not x
    pads = [pads_of(mode, size)[::-1] for size in type_of(q).shape]
    correlation = _slid_within(p, q, pads, boundary, fillvalue)
    return flip(correlation) if is_swapped else correlation


def _matrices(name: str, x: Array, y: Array, mode: str, boundary: str) -> tuple[Array, Array]:
    check_mode(name, mode)
    if boundary not in _BOUNDARIES:
        names = ", ".join(_BOUNDARIES)
        raise ArgumentError(f"{name}: cannot use boundary={boundary!r} (one of {names})")
    if rank(x) != 2:
        raise ShapeError(f"{name}: cannot take {type_of(x)} as a matrix (rank 2 required)")
    return _in_order(name, x, y, mode, (0, 1))


def _slid_within(x: Array, kernel: Array, pads: list, boundary: str, fillvalue: ArrayLike) -> Array:
    if boundary == "fill" and isinstance(fillvalue, int | float) and fillvalue == 0:
        return slid(x, kernel, *pads)
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    around = pad(x, pads, mode=_BOUNDARIES[boundary], **options)
    return slid(around, kernel, *((0, 0) for _ in pads))


# --- by Fourier transforms ----------------------------------------------------------------------


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Axis = None) -> Array:
    """The convolution by a product of Fourier transforms: O(n log n), to rounding errors.

    axes:   by default all; along others the arrays broadcast.
    Shapes: as `convolve`, along `axes`.
    Types:  the common dtype, complex included; bools, integers and halves become f32.
    Source: Fourier transforms, Oppenheim & Schafer 3e, §8.7.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.fftconvolve(rnp.array([1.0, 2.0]), rnp.array([1.0, 1.0])).round(4)
    Array([1., 3., 2.], f32[3], cpu:0)
    """
    x, y, numbers = _prepared("fftconvolve", in1, in2, mode, axes)
    if not numbers:
        return x * y
    p, q = _shapes(x, y)
    wholes = [p[k] + q[k] - 1 for k in numbers]
    return _middle(_by_transforms(x, y, wholes, numbers), p, q, mode, numbers)


def _prepared(name: str, in1: ArrayLike, in2: ArrayLike, mode: str, axes: Axis) -> tuple[Array, Array, tuple[int, ...]]:
    """Arrays of one inexact dtype, the larger first where that matters, and the axes."""
    check_mode(name, mode)
    x, y = (inexact(name, v) for v in _pair(name, in1, in2))
    numbers = c.normalised_axes(name, axes, type_of(x))
    x, y = _in_order(name, x, y, mode, numbers)
    return x, y, numbers


def _by_transforms(x: Array, y: Array, wholes: list[Size], axes: tuple[int, ...]) -> Array:
    """The full convolution along `axes`, of these sizes, by transforms of fast lengths."""
    is_complex = type_of(x).dtype in dtypes.COMPLEX
    sizes = [next_fast_len(n, not is_complex) if isinstance(n, int) else 2 * n for n in wholes]
    forward, backward = (fftn, ifftn) if is_complex else (rfftn, irfftn)
    convolution = backward(forward(x, sizes, axes) * forward(y, sizes, axes), sizes, axes)
    return _cut(convolution, {k: (0, n) for k, n in zip(axes, wholes, strict=True)})


def _cut(x: Array, ranges: dict[int, tuple[Size, Size]]) -> Array:
    """x from a start, with a number of elements, along some axes."""
    index = [slice(None)] * rank(x)
    for axis, (start, count) in ranges.items():
        index[axis] = slice(start, start + count)
    return x[tuple(index)]


def _middle(full: Array, p: tuple, q: tuple, mode: str, axes: tuple[int, ...]) -> Array:
    """The part of a full convolution of shapes p and q that `mode` selects."""
    if mode == "full":
        return full
    counts = {k: p[k] if mode == "same" else p[k] - q[k] + 1 for k in axes}
    starts = {k: (p[k] + q[k] - 1 - counts[k]) // 2 for k in axes}
    return _cut(full, {k: (starts[k], counts[k]) for k in axes})


def oaconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Axis = None) -> Array:
    """`fftconvolve` in blocks of the longer array, whose results overlap and are added.

    Cost: O(n log m) for n elements and a kernel of m, along the axis where they differ most.
    Shapes: as `convolve`, along `axes`.
    Types:  the common dtype, complex included; bools, integers and halves become f32.
    Errors: ArgumentError if an argument is not an array or `mode` is unknown; ShapeError if the
            shapes do not match; AxisError for an axis out of range.
    Source: Fourier transforms, Oppenheim & Schafer 3e, §8.7.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.oaconvolve(rnp.ones(9), rnp.ones(2), mode="valid").round(4)
    Array([2., 2., 2., 2., 2., 2., 2., 2.], f32[8], cpu:0)
    """
    x, y, numbers = _prepared("oaconvolve", in1, in2, mode, axes)
    p, q = _shapes(x, y)
    static = [k for k in numbers if isinstance(p[k], int) and isinstance(q[k], int)]
    along = max(static, key=lambda k: max(p[k], q[k]) / min(p[k], q[k]), default=None)
    if along is None or max(p[along], q[along]) < 4 * min(p[along], q[along]):
        return fftconvolve(in1, in2, mode, axes)
    long, short = (x, y) if q[along] <= p[along] else (y, x)
    full = _overlap_added(long, short, along, numbers)
    return _middle(full, p, q, mode, numbers)


def _overlap_added(x: Array, kernel: Array, along: int, axes: tuple[int, ...]) -> Array:
    """The full convolution; the blocks of x along one axis become rows of a new leading axis."""
    (p, q), other_axes = _shapes(x, kernel), tuple(k for k in axes if k != along)
    n, m = (static_int("oaconvolve", "a size", shape[along]) for shape in (p, q))
    step = next_fast_len(8 * m) - m + 1
    count = -(-n // step)
    widths = [(0, count * step - n if k == along else 0) for k in range(rank(x))]
    split = (*p[:along], count, step, *p[along + 1 :])
    rows = move_axis(c.reshape(pad(x, widths), split), along, 0)
    sizes = [p[k] + q[k] - 1 for k in other_axes]
    places = tuple(k + 1 for k in (*other_axes, along))
    products = _by_transforms(rows, kernel[None], [*sizes, step + m - 1], places)
    blocks = move_axis(products, 0, along)  # [..., count, step + m - 1, ...], before the tails are shifted
    body = _cut(blocks, {along + 1: (0, step)})
    tail = _cut(blocks, {along + 1: (step, m - 1)})
    shape = type_of(body).shape
    merged_shape = (*shape[:along], (count + 1) * step, *shape[along + 2 :])
    no_padding: list[tuple[int, int]] = [(0, 0)] * rank(blocks)
    body_pads, tail_pads = list(no_padding), list(no_padding)
    body_pads[along], tail_pads[along], tail_pads[along + 1] = (0, 1), (1, 0), (0, step - m + 1)
    full = c.reshape(pad(body, body_pads) + pad(tail, tail_pads), merged_shape)
    return _cut(full, {along: (0, n + m - 1)})
