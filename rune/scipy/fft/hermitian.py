"""Transforms of signals that are Hermitian along several axes, and their inverses."""

from __future__ import annotations

from collections.abc import Sequence

from rune.array import Array
from rune.numpy.complex_numbers import conj
from rune.numpy.fft import irfftn, rfftn
from rune.numpy.transform_norms import checked_norm, swapped_norm
from rune.typing import ArrayLike


def hfftn(
    x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The real spectrum of a signal that is Hermitian, given by half of its last axis.

    Arguments are those of `rune.numpy.fft.irfftn`.
    Shapes: as x, with s[-1], or 2 (N - 1) from N elements, along the last of the axes.
    Types:  f32, or f64 for f64 and c128.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for no
            elements; AxisError for an axis out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.hfftn(rnp.ones((2, 2))).round(3) + 0
    Array([[4., 0.],
           [0., 0.]], f32[2,2], cpu:0)
    """
    return irfftn(conj(x), s, axes, swapped_norm(checked_norm("hfftn", norm)))


def ihfftn(
    x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of `hfftn`: half of a Hermitian signal, from its real spectrum.

    Shapes: as x, with s[-1] // 2 + 1 along the last of the axes.
    Types:  c64, or c128 for f64.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; DtypeError for
            complex numbers; ShapeError for no elements; AxisError for an axis out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.ihfftn(rnp.ones((2, 2))).real
    Array([[1., 0.],
           [0., 0.]], f32[2,2], cpu:0)
    """
    return conj(rfftn(x, s, axes, swapped_norm(checked_norm("ihfftn", norm))))


def hfft2(
    x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """`hfftn` along two axes.

    Shapes: as x, with s[-1], or 2 (N - 1) from N elements, along the last of the axes.
    Types:  f32, or f64 for f64 and c128.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; ShapeError for no
            elements; AxisError for an axis out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.hfft2(rnp.ones((2, 2))).shape
    (2, 2)
    """
    return hfftn(x, s, axes, norm)


def ihfft2(
    x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """`ihfftn` along two axes.

    Shapes: as x, with s[-1] // 2 + 1 along the last of the axes.
    Types:  c64, or c128 for f64.
    Errors: ArgumentError if an argument is not an array or `norm` is unknown; DtypeError for
            complex numbers; ShapeError for no elements; AxisError for an axis out of range.
    Source: Stockham's mixed-radix algorithm, Van Loan 1992; Bluestein 1970 for large primes.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import fft
    >>> fft.ihfft2(rnp.ones((2, 4))).shape
    (2, 3)
    """
    return ihfftn(x, s, axes, norm)
