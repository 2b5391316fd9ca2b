"""Transforms of numbers as they lie in memory: which arrays a device's routine takes, and its call.

Complex numbers need not be separated into parts before the call and joined after it.
"""

from __future__ import annotations

from rune.core.types import ArrayType, Shape
from rune.dims import Size, product
from rune.ops.complex_numbers import PART, WHOLE
from rune.ops.fourier.kinds import Axes, real_length, transform_type
from rune.ops.fourier.lengths import prime_factors
from rune.ops.fourier.lines import FLOATS

MOST_LANES = 16  # lanes of a vector: as many columns or numbers are needed
LONGEST_ROW = 1 << 16  # beyond it cores share the halves of one row
LONGEST_COLUMN = 1 << 12  # whose work memory a nearer cache holds
LONGEST_PRIME = 1 << 10  # factor of a column


def first_radix(n: int) -> int | None:
    """The largest small odd factor of n, with which real rows of odd length begin."""
    return next((radix for radix in (31, 29, 23, 19, 17, 13, 11, 7, 5, 3) if n % radix == 0), None)


def is_odd_routine(rows: Size, n: Size) -> bool:
    """Whether there is a routine for so many real rows of odd length."""
    if not isinstance(rows, int) or not isinstance(n, int) or rows < MOST_LANES:
        return False
    radix, is_short = first_radix(n), MOST_LANES < n <= LONGEST_COLUMN
    return radix is not None and radix < n and is_short and prime_factors(n)[-1] <= LONGEST_PRIME


def is_in_memory(x: ArrayType, *, kind: str, axes: Axes, odd: bool) -> bool:
    """Whether there are routines for all axes of the array, on any machine."""
    if x.is_symbolic or 0 in x.shape or PART.get(x.dtype, x.dtype) not in FLOATS:
        return False
    *others, last = axes
    n = transform_type(x, kind=kind, axes=axes, odd=odd).shape[last] if kind == "irfft" else x.shape[last]
    is_halved = kind in ("rfft", "irfft") and n % 2 == 0
    frequencies = n // 2 + 1 if kind in ("rfft", "irfft") else n
    shape = tuple(frequencies if axis == last else d for axis, d in enumerate(x.shape))
    rows = _is_line(x.shape, last, n // 2 if is_halved else n)
    return rows and all(_is_line(shape, axis, shape[axis]) for axis in others)


def _is_line(shape: Shape, axis: int, n: Size) -> bool:
    """Whether the routine takes complex lines of n numbers along an axis of an array."""
    assert isinstance(n, int)
    inner = product(shape[axis + 1 :])
    if inner == 1:
        # A single row of just as many numbers as lanes is too short to split or to convolve.
        return MOST_LANES + int(product(shape[:axis]) < MOST_LANES) <= n <= LONGEST_ROW  # type: ignore[operator]
    return inner >= MOST_LANES and 1 < n <= LONGEST_COLUMN and prime_factors(n)[-1] <= LONGEST_PRIME  # type: ignore[operator]


def _numbers(x: ArrayType, parts: int, kind: str) -> ArrayType:
    """The type of the numbers, whose parts may be a last axis. parts: as in dense.py"""
    return x if parts == 1 or kind == "rfft" else ArrayType(x.shape[:-1], WHOLE[x.dtype])


def type_in_memory(x: ArrayType, *, kind: str, axis: int, odd: bool, parts: int) -> ArrayType:
    """The type of the transform along an axis."""
    result = transform_type(_numbers(x, parts, kind), kind=kind, axes=(axis,), odd=odd)
    return result if parts == 1 or kind == "irfft" else ArrayType((*result.shape, 2), PART[result.dtype])


def call_in_memory(x: ArrayType, *, kind: str, axis: int, odd: bool, parts: int) -> dict[str, Size]:
    """The array as [outer, n, inner]."""
    shape = _numbers(x, parts, kind).shape
    n = real_length(shape[axis], odd) if kind == "irfft" else shape[axis]
    is_inverse, is_real = kind in ("ifft", "irfft"), kind in ("rfft", "irfft")
    sizes = {"outer": product(shape[:axis]), "n": n, "inner": product(shape[axis + 1 :])}
    return {**sizes, "inverse": int(is_inverse), "real": int(is_real)}
