"""line_fft: the transform of pairs along one axis.

Only the expansion writes it, while a program is lowered, so it has no derivative and no batch rule.
A device may have a routine for it; otherwise it runs the stages of stages.py, or a convolution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.lower import Routine
from rune.core.primitive import Direct
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size, product
from rune.ops.arithmetic import div
from rune.ops.family import size_value
from rune.ops.fourier.bluestein import transform_by_convolution
from rune.ops.fourier.lengths import longer_factor, radices
from rune.ops.fourier.stages import transform_by_stages
from rune.ops.pairs import Pair

if TYPE_CHECKING:
    from rune.array import Array

ROUTINE_ELEMENTS = 1 << 16  # largest array that the routine takes
ROWS_ELEMENTS = 1 << 20  # largest array that the routine takes, where the last axis is transformed
LINE_ELEMENTS = 1 << 10  # longest line, or factor of a row, that has scratch memory
FLOATS = frozenset({dtypes.f32, dtypes.f64})


def _type(real: ArrayType, imag: ArrayType, *, axis: int) -> tuple[ArrayType, ArrayType]:
    return real, imag


def is_routine(real: ArrayType, imag: ArrayType, *, axis: int) -> bool:
    """Whether a routine of the device takes the array: few elements, in short lines or rows."""
    n, size = real.shape[axis], product(real.shape)
    if not isinstance(n, int) or not isinstance(size, int) or real.dtype not in FLOATS:
        return False
    return 0 < size <= _most_elements(n, axis == real.ndim - 1)


def _most_elements(n: int, is_row: bool) -> int:
    """The largest array that the routine takes. A long row is split into two factors."""
    if n <= LINE_ELEMENTS:
        return ROWS_ELEMENTS if is_row else ROUTINE_ELEMENTS
    return ROWS_ELEMENTS if is_row and longer_factor(n) <= LINE_ELEMENTS and radices(n) is not None else 0


def _call(real: ArrayType, imag: ArrayType, *, axis: int) -> dict[str, Size]:
    """The array as [outer, n, inner]."""
    shape = real.shape
    return {"outer": product(shape[:axis]), "n": shape[axis], "inner": product(shape[axis + 1 :])}


def _expand(real: Value, imag: Value, *, axis: int) -> list[Array]:
    n = type_of(real).shape[axis]
    assert isinstance(n, int)
    stages = radices(n)
    if stages is None:
        return [*transform_by_convolution((real, imag), axis, n, transform_lines)]
    return [*transform_by_stages((real, imag), axis, stages)]


line_fft = Direct(
    "line_fft",
    "fourier",
    _type,
    multiple_results=True,
    run=_expand,
    lower=Routine("line_fft", _call, is_routine),
    expand=_expand,
)


def transform_lines(x: Pair, axis: int) -> Pair:
    """The transform along `axis`, of a known length."""
    if type_of(x[0]).shape[axis] == 1:
        return x
    real, imag = line_fft(*x, axis=axis)
    return real, imag


def reciprocal(x: Value, size: Size) -> Array:
    """1 / size in the dtype of x."""
    dtype = type_of(x).dtype
    return div(literal(1, dtype), size_value(size, dtype))
