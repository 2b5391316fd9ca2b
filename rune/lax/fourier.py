"""fft under the name of jax.lax: one transform of a given type, strict about dtypes and lengths."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from rune import dtypes, ops
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import static_sizes, value
from rune.ops.fourier import empty_transform
from rune.typing import ArrayLike


class FftType(enum.IntEnum):
    """The type of a transform: FFT, IFFT complex; RFFT real to complex; IRFFT complex to real.

    Its values are those of XLA's enumeration, as in JAX.

    >>> import rune, rune.numpy as rnp
    >>> rune.lax.fft(rnp.ones(4), rune.lax.FftType.RFFT, (4,)).dtype
    dtype('complex64')
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[Size]) -> Any:
    """The transform of the last axes of x, one for each length.

    fft_lengths: the sizes of these axes in the real array, or in both arrays if both are complex.
    Shapes: x [*B, *S] -> [*B, *S]; RFFT gives S[-1] // 2 + 1 along the last axis, IRFFT takes them.
    Types:  c64 or c128 for FFT, IFFT and IRFFT; f32 or f64 for RFFT, where bools and integers
            become f32. Inverses divide by the lengths.
    Errors: DtypeError; ShapeError where lengths are not those of x; ArgumentError.

    >>> import rune
    >>> import rune.numpy as rnp
    >>> rune.lax.fft(rnp.ones(4), rune.lax.FftType.RFFT, (4,)).real
    Array([4., 0., 0.], f32[3], cpu:0)
    """
    kind = _kind(fft_type)
    x, lengths = value("fft", x), static_sizes("fft", "a length", fft_lengths)
    shape, count = type_of(x).shape, len(lengths)
    if count > len(shape):
        raise ShapeError(f"fft: cannot transform {type_of(x)} along {count} axes")
    if count == 0:
        return x
    if kind == "rfft" and type_of(x).dtype not in dtypes.INEXACT:
        x = ops.cast(x, dtypes.f32)
    odd = kind == "irfft" and lengths[-1] % 2 == 1
    sizes = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == "irfft" else lengths
    if shape[len(shape) - count :] != sizes:
        raise ShapeError(f"fft: cannot transform {type_of(x)} (its last axes should be {sizes})")
    axes = tuple(range(len(shape) - count, len(shape)))
    if 0 in lengths and (kind != "rfft" or lengths[-1] != 0):
        return empty_transform(x, kind, axes, lengths)
    return ops.fft(x, kind=kind, axes=axes, odd=odd)


def _kind(fft_type: FftType | str) -> str:
    name = fft_type.name if isinstance(fft_type, FftType) else str(fft_type).upper()
    if name not in FftType.__members__:
        kinds = ", ".join(FftType.__members__)
        raise ArgumentError(f"fft: cannot use fft_type={fft_type!r} (one of {kinds})")
    return name.lower()
