"""Arrays for tests, in the dtype of the NumPy data: 64 bits are not narrowed."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune.array import Array
from rune.core.types import ArrayType


def array(data: Any, dtype: Any = None) -> Array:
    """A concrete array on the CPU in exactly the dtype of the data; Python floats are f32."""
    if dtype is None and not hasattr(data, "dtype"):
        values = np.asarray(data)
        dtype = {"f": np.float32, "i": np.int32}.get(values.dtype.kind)
    host = np.array(data, dtype, order="C")
    return Array(host, ArrayType(host.shape, host.dtype))


def to_numpy(value: Any) -> np.ndarray:
    """The contents."""
    return np.asarray(value)
