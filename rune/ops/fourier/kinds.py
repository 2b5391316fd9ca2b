"""The kinds of transforms: what each takes, and the type of its result."""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.core.types import ArrayType
from rune.dims import Size
from rune.errors import ShapeError
from rune.ops.complex_numbers import PART, WHOLE
from rune.ops.family import require

Axes = tuple[int, ...]
_TAKES = {
    "fft": (dtypes.COMPLEX, "complex"),
    "ifft": (dtypes.COMPLEX, "complex"),
    "rfft": (frozenset(WHOLE), "f32 or f64"),
    "irfft": (dtypes.COMPLEX, "complex"),
}


def transform_type(x: ArrayType, *, kind: str, axes: Axes, odd: bool) -> ArrayType:
    """The type of a transform. Errors: DtypeError, ShapeError."""
    require(kind, *_TAKES[kind], x)
    if len(set(axes)) != len(axes) or any(not 0 <= axis < x.ndim for axis in axes):
        raise ShapeError(f"{kind}: cannot transform {x} (axes {axes})")
    shape = list(x.shape)
    if kind == "irfft":
        shape[axes[-1]] = real_length(shape[axes[-1]], odd)
    for axis in axes:
        if shape[axis] == 0 or x.shape[axis] == 0:
            raise ShapeError(f"{kind}: cannot transform {x} (axis {axis} has no elements)")
    if kind == "rfft":
        shape[axes[-1]] = shape[axes[-1]] // 2 + 1
    return ArrayType(tuple(shape), result_dtype(kind, x.dtype))


def result_dtype(kind: str, dtype: np.dtype) -> np.dtype:
    """The dtype of a transform of numbers of a dtype."""
    return {"rfft": WHOLE, "irfft": PART}.get(kind, {}).get(dtype, dtype)


def real_length(frequencies: Size, odd: bool) -> Size:
    """The number of real numbers whose transform has this many frequencies."""
    return 2 * (frequencies - 1) + int(odd)
