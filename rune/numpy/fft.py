"""rune.numpy.fft: discrete Fourier transforms, by NumPy's names.

    fft ifft  fft2 ifft2  fftn ifftn      complex
    rfft irfft  rfft2 irfft2  rfftn irfftn      of real numbers: half of the frequencies
    hfft ihfft      of Hermitian signals, whose spectrum is real
    fftfreq rfftfreq  fftshift ifftshift      the frequencies, and zero in the middle

Dtypes keep their width: f32 and c64 give f32 or c64, f64 and c128 give f64 or c128; narrower floats
count as f32, integers as their default float. Any length is transformed in O(n log n). `norm`
selects the divisor for n numbers: "backward" divides only the inverse, by n; "forward" divides
only the forward transform; "ortho" both, by sqrt(n).

Every transform is one primitive: it is linear, hence its own derivative, and is batched by its
axes.
"""

from __future__ import annotations

import typing as _typing
from collections.abc import Callable, Sequence
from typing import Any

from rune import dtypes, ops
from rune.absent import of as _absent
from rune.array import Array
from rune.backends import Device
from rune.core.interpreter import literal, type_of
from rune.dims import Size, product
from rune.errors import ArgumentError, ShapeError
from rune.listing import names as _names
from rune.numpy.arguments import floating, inexact, static_size, value
from rune.numpy.creation import arange
from rune.numpy.large_transforms import plain_transform, transformed
from rune.numpy.shapes import roll
from rune.numpy.transform_norms import checked_norm, swapped_norm
from rune.ops import conventions as c
from rune.ops.complex_numbers import WHOLE
from rune.ops.family import size_value, wide
from rune.ops.fourier import empty_transform, weighted
from rune.ops.nested import joined
from rune.transforms.compile.placement import device_put
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, Axis, DTypeLike, Nested

_INVERSE = ("ifft", "irfft")


def fft(a: ArrayLike, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along one axis.

    Shapes: a [*A, N, *B] -> [*A, n, *B].
    Types:  c128 for c128, f64 and 64-bit integers, c64 for all others.
    Result: y[k] = sum_j a[j] exp(-2πi jk/n), for k from 0 to n-1.
    n:      the length: `a` is cut or zero-padded at its end; by default its own length.
    Errors: ShapeError for n < 1, AxisError, ArgumentError for another `norm`.
    Source: Stockham's mixed-radix and Bluestein's algorithms (rune.ops.fourier).

    >>> import rune.numpy as rnp
    >>> rnp.fft.fft(rnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], c64[4], cpu:0)
    """
    return _along_one("fft", "fft", a, n, axis, norm)


def ifft(a: ArrayLike, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `fft`: y[j] = 1/n sum_k a[k] exp(2πi jk/n).

    Shapes: a [*A, N, *B] -> [*A, n, *B], n by default N. Types: as `fft`.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for
            n < 1; AxisError for an axis out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.ifft(rnp.array([4.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], c64[4], cpu:0)
    """
    return _along_one("ifft", "ifft", a, n, axis, norm)


def rfft(a: ArrayLike, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The transform of real numbers: frequencies 0 to n//2; the others are their conjugates.

    Shapes: a [*A, N, *B] -> [*A, n//2 + 1, *B], n by default N. Types: as `fft`.
    Errors: DtypeError for complex numbers; else as `fft`.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.rfft(rnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], c64[3], cpu:0)
    """
    return _along_one("rfft", "rfft", a, n, axis, norm)


def irfft(a: ArrayLike, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft`: n real numbers, by default 2(m - 1) from m frequencies.

    Imaginary parts at 0 and n/2, which a spectrum of real numbers cannot have, are ignored.
    Shapes: a [*A, m, *B] -> [*A, n, *B], n by default 2(m - 1).
    Types:  f64 for f64, c128 and 64-bit integers, f32 for all others.
    Errors: ArgumentError if an argument is not an array, `norm` is unknown or `n` is not an
            integer; AxisError for an axis out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.irfft(rnp.fft.rfft(rnp.array([1.0, 2.0, 3.0])), n=3)
    Array([1., 2., 3.], f32[3], cpu:0)
    """
    return _along_one("irfft", "irfft", a, n, axis, norm)


def hfft(a: ArrayLike, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real spectrum of a signal that is Hermitian in time, given by its first half.

    Shapes: m numbers along the axis -> n frequencies, by default 2(m - 1).
    Types:  f64 for f64, c128 and 64-bit integers, f32 for all others.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for
            n < 1; AxisError for an axis out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.hfft(rnp.array([1.0, 1.0, 1.0]))
    Array([4., 0., 0., 0.], f32[4], cpu:0)
    """
    x = _as_complex("hfft", a)
    return _along_one("hfft", "irfft", c.conj(x), n, axis, swapped_norm(checked_norm("hfft", norm)))


def ihfft(a: Nested, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: the first n//2 + 1 numbers of a Hermitian signal.

    Shapes: a [*A, N, *B] -> [*A, n//2 + 1, *B], n by default N. Types: as `fft`.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; DtypeError for
            complex numbers; ShapeError for n < 1 and no elements; AxisError for a wrong axis.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.ihfft(rnp.array([4.0, 0.0, 0.0, 0.0])).real
    Array([1., 1., 1.], f32[3], cpu:0)
    """
    norm = swapped_norm(checked_norm("ihfft", norm))
    return c.conj(_along_one("ihfft", "rfft", value("ihfft", joined("ihfft", a)), n, axis, norm))


# --- several axes -------------------------------------------------------------------------------


def fftn(a: ArrayLike, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """The transform along several axes.

    Shapes: any, unchanged except for the lengths that `s` gives. Types: as `fft`.
    s:      the length along each of `axes`; -1 keeps the current one.
    axes:   by default all axes, or the last len(s) if `s` is given.
    Errors: as `fft`; ArgumentError where `s` and `axes` differ in number.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.fftn(rnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], c64[2,2], cpu:0)
    """
    return _along("fftn", "fft", a, s, axes, norm)


def ifftn(a: ArrayLike, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """The inverse of `fftn`.

    Shapes: any, unchanged except for the lengths that `s` gives. Types: as `fft`.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for a
            length below 1; AxisError for an axis out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.ifftn(rnp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], c64[2,2], cpu:0)
    """
    return _along("ifftn", "ifft", a, s, axes, norm)


def rfftn(a: ArrayLike, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """The transform of real numbers along several axes; the last one is halved.

    Shapes: any, unchanged except for the lengths that `s` gives; the last one m becomes m//2 + 1.
    Types:  as `fft`.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; DtypeError for
            complex numbers; ShapeError for a length below 1; AxisError for an axis out of
            range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.rfftn(rnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], c64[2,2], cpu:0)
    """
    return _along("rfftn", "rfft", a, s, axes, norm)


def irfftn(a: ArrayLike, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """The inverse of `rfftn`.

    Shapes: any, unchanged except for the lengths that `s` gives, or 2(m - 1) for the last.
    Types:  f64 for f64, c128 and 64-bit integers, f32 for all others.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; AxisError for an axis
            out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.irfftn(rnp.fft.rfftn(rnp.ones((2, 3))), s=(2, 3))
    Array([[1., 1., 1.],
           [1., 1., 1.]], f32[2,3], cpu:0)
    """
    return _along("irfftn", "irfft", a, s, axes, norm)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """`fftn` along two axes.

    Shapes: a [*A, M, N] -> [*A, *s], s by default (M, N). Types: as `fft`.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for a
            length below 1; AxisError for an axis out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.fft2(rnp.eye(2)).real
    Array([[2., 0.],
           [0., 2.]], f32[2,2], cpu:0)
    """
    return _along("fft2", "fft", a, s, _two("fft2", axes), norm)


def ifft2(a: ArrayLike, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """`ifftn` along two axes.

    Shapes: a [*A, M, N] -> [*A, *s], s by default (M, N). Types: as `fft`.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for a
            length below 1; AxisError for an axis out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.ifft2(2.0 * rnp.eye(2)).real
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    return _along("ifft2", "ifft", a, s, _two("ifft2", axes), norm)


def rfft2(a: ArrayLike, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """`rfftn` along two axes.

    Shapes: a [*A, M, N] -> [*A, s[0], s[1]//2 + 1], s by default (M, N). Types: as `fft`.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; DtypeError for
            complex numbers; ShapeError for a length below 1; AxisError for an axis out of
            range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.rfft2(rnp.eye(2)).real
    Array([[2., 0.],
           [0., 2.]], f32[2,2], cpu:0)
    """
    return _along("rfft2", "rfft", a, s, _two("rfft2", axes), norm)


def irfft2(a: ArrayLike, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """`irfftn` along two axes.

    Shapes: a [*A, M, m] -> [*A, *s], s by default (M, 2(m - 1)).
    Types:  f64 for f64, c128 and 64-bit integers, f32 for all others.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for a
            length below 1; AxisError for an axis out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> rnp.fft.irfft2(rnp.ones((1, 3)))
    Array([[1., 0., 0., 0.]], f32[1,4], cpu:0)
    """
    return _along("irfft2", "irfft", a, s, _two("irfft2", axes), norm)


def _two(name: str, axes: Any) -> Any:
    if not isinstance(axes, tuple | list) or len(axes) != 2:
        raise ArgumentError(f"{name}: cannot use axes={axes!r} (two axes required)")
    return axes


# --- shared helpers -----------------------------------------------------------------------------


def _along_one(name: str, kind: str, a: ArrayLike, n: Any, axis: int, norm: str | None) -> Array:
    if n is None:
        return _along(name, kind, a, None, (axis,), norm)
    if n == -1:  # with several axes, -1 keeps the current length
        raise ShapeError(f"{name}: cannot transform {type_of(value(name, a))} (length -1)")
    return _along(name, kind, a, (n,), (axis,), norm)


def _along(name: str, kind: str, a: ArrayLike, s: object, axes: object, norm: str | None) -> Array:
    """The transform `kind` of `a`, resized to `s`, along `axes`, scaled as `norm` says."""
    plain = plain_transform(name, kind, a, axes) if s is None and norm is None else None
    return _adapted(name, kind, a, s, axes, norm) if plain is None else plain


@tiered
def _adapted(name: str, kind: str, a: ArrayLike, s: object, axes: Any, norm: str | None) -> Any:
    """The same for all arguments, which are checked."""
    norm = checked_norm(name, norm)
    x = _as_real(name, a) if kind == "rfft" else _as_complex(name, a)
    numbers = _axes(name, x, s, axes)
    if not numbers:
        return c.distinct(x, a) if kind != "irfft" else c.real(x)
    sizes = _lengths(name, kind, x, s, numbers)
    if 0 in sizes:
        return empty_transform(x, kind, numbers, sizes)
    input_sizes = (*sizes[:-1], sizes[-1] // 2 + 1) if kind == "irfft" else sizes
    x = _resized(x, dict(zip(numbers, input_sizes, strict=True)))
    parity = sizes[-1] % 2 if kind == "irfft" else 0
    is_known = isinstance(parity, int)
    spectrum = transformed(x, kind, numbers, parity == 1) if is_known else _to_real(x, numbers, sizes[-1])
    return _normed(spectrum, kind, product(sizes), norm)


def _to_real(x: ArrayLike, axes: tuple[int, ...], n: Size) -> Array:
    """irfft to a length of unknown parity: half the spectrum, doubled, zero-padded, transformed."""
    full = _resized(weighted(x, axes[-1], n, 2), {axes[-1]: n})
    return c.real(ops.fft(full, kind="ifft", axes=axes, odd=False))


def _as_real(name: str, a: ArrayLike) -> Array:
    x = floating(name, value(name, a))
    return c.astype(x, wide(type_of(x).dtype))


def _as_complex(name: str, a: ArrayLike) -> Array:
    x = inexact(name, value(name, a))
    dtype = type_of(x).dtype
    return c.astype(x, dtype if dtype in dtypes.COMPLEX else WHOLE[wide(dtype)])


def _axes(name: str, x: ArrayLike, s: object, axes: Any) -> tuple[int, ...]:
    """Axes counted from the front; by default all, or the last ones, one for each size."""
    x_type = type_of(x)
    if s is None:
        return c.normalised_axes(name, axes, x_type)
    if not isinstance(s, Sequence):
        raise ArgumentError(f"{name}: cannot use s={s!r} (a sequence of lengths required)")
    transform_axes = tuple(range(-len(s), 0)) if axes is None else tuple(axes)
    if len(s) != len(transform_axes):
        raise ArgumentError(f"{name}: cannot use {len(s)} sizes for {len(transform_axes)} axes")
    return c.normalised_axes(name, transform_axes, x_type)


def _lengths(name: str, kind: str, x: ArrayLike, s: Any, axes: Sequence[int]) -> list[Size]:
    """The length of the transform along each axis."""
    shape = type_of(x).shape
    defaults = [shape[axis] for axis in axes]
    if kind == "irfft":
        defaults[-1] = 0 if defaults[-1] == 0 else 2 * (defaults[-1] - 1)
    lengths = [-1] * len(axes) if s is None else [static_size(name, "a length", size) for size in s]
    sizes = [default if size == -1 else size for size, default in zip(lengths, defaults, strict=True)]
    for axis, size, length in zip(axes, sizes, lengths, strict=True):
        # As in JAX, an axis without elements has the empty transform, unless its length is given.
        is_empty = length == -1 and isinstance(size, int) and size == 0 and (kind != "rfft" or axis != axes[-1])
        if size < 1 and not is_empty:
            raise ShapeError(f"{name}: cannot transform {type_of(x)} (axis {axis}: length {size})")
    return sizes


def _resized(x: ArrayLike, sizes: dict[int, Size]) -> ArrayLike:
    """x cut, or padded with zeros, at the end of its axes."""
    x_type = type_of(x)
    high = tuple(sizes.get(axis, d) - d for axis, d in enumerate(x_type.shape))
    if all(isinstance(by, int) and by == 0 for by in high):
        return x
    no_padding = (0,) * x_type.ndim
    return ops.pad(x, literal(0, x_type.dtype), low=no_padding, high=high, interior=no_padding)


def _normed(y: ArrayLike, kind: str, total: Size, norm: str) -> ArrayLike:
    """Scale the result y of the primitive, which divides only the inverse, to `norm`."""
    if norm == "backward":
        return y
    backwards = kind in _INVERSE

    def scaled(part: ArrayLike) -> Array:
        dtype = type_of(part).dtype
        n = size_value(total, dtype)
        if norm == "ortho":
            n = ops.sqrt(n)
        return (ops.mul if backwards else ops.div)(part, n)

    return c.by_parts(scaled, y)


# --- frequencies --------------------------------------------------------------------------------


def fftfreq(
    n: Size, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: str | Device | None = None
) -> Array:
    """The frequency of each result of `fft`: 0, 1, … -2, -1, over n times the sample spacing d.

    Shapes: n numbers -> [n]. Types: that of f32 and `d` together, unless dtype is given.
    Errors: ArgumentError for a length below 1.

    >>> import rune.numpy as rnp
    >>> rnp.fft.fftfreq(5, 0.2)
    Array([ 0.,  1.,  2., -2., -1.], f32[5], cpu:0)
    """
    n = _positive("fftfreq", n)
    k = arange(n)
    return _frequencies((k + n // 2) % n - n // 2, n, d, dtype, device)


def rfftfreq(
    n: Size, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: str | Device | None = None
) -> Array:
    """The frequency of each result of `rfft`: 0, 1, … n//2, over n times the sample spacing d.

    Shapes: n numbers -> [n//2 + 1]. Types: as `fftfreq`.
    Errors: ArgumentError if `n` is not an integer; DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.fft.rfftfreq(5, 0.2)
    Array([0., 1., 2.], f32[3], cpu:0)
    """
    n = _positive("rfftfreq", n)
    return _frequencies(arange(n // 2 + 1), n, d, dtype, device)


def _positive(name: str, n: Any) -> Size:
    size = static_size(name, "a length", n)
    if size < 1:
        raise ArgumentError(f"{name}: cannot list the frequencies of length {size} (1 or more)")
    return size


def _frequencies(k: ArrayLike, n: Size, d: Any, dtype: DTypeLike | None, device: str | Device | None) -> Array:
    kind = dtypes.as_dtype(float if dtype is None else dtype)
    frequencies = c.astype(k, kind) / ((n if isinstance(n, int) else size_value(n, kind)) * d)
    return frequencies if device is None else device_put(frequencies, device)


def fftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """Frequency 0 moved from the beginning of the axes to their middle, n//2.

    axes: an axis or several; by default all.
    Shapes: any, unchanged. Types: that of `x`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.fft.fftshift(rnp.arange(5))
    Array([3, 4, 0, 1, 2], i32[5], cpu:0)
    """
    return _shifted("fftshift", x, axes, lambda size: size // 2)


def ifftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """The inverse of `fftshift`.

    Shapes: any, unchanged. Types: that of `x`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.fft.ifftshift(rnp.arange(5))
    Array([2, 3, 4, 0, 1], i32[5], cpu:0)
    """
    return _shifted("ifftshift", x, axes, lambda size: -(size // 2))


def _shifted(name: str, x: ArrayLike, axes: Axis, by: Callable[..., Array]) -> Array:
    x = value(name, x)
    numbers = c.normalised_axes(name, axes, type_of(x))
    return roll(x, tuple(by(type_of(x).shape[axis]) for axis in numbers), numbers)


__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft"]
__all__ += ["irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
