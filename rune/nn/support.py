"""The floating arrays that functions of rune.nn compute on."""

from __future__ import annotations

from typing import Any

import rune.numpy as rnp


def real(x: Any) -> Any:
    """`x` as a floating array; integers as f32, Python scalars stay weak."""
    x = rnp.asarray(x)
    return x if rnp.issubdtype(x.dtype, rnp.floating) else rnp.true_divide(x, 1)


def widened(x: Any) -> tuple[Any, Any]:
    """`real(x)` with half types in f32, to compute in, and the dtype of the result."""
    x = real(x)
    half = rnp.finfo(x.dtype).bits < 32
    return (rnp.astype(x, rnp.float32) if half else x), x.dtype


def rounded(x: Any, dtype: Any) -> Any:
    """`x` in the dtype of the result, untouched where it has it."""
    return x if x.dtype == dtype else rnp.astype(x, dtype)
