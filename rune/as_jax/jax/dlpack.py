"""`jax.dlpack`."""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.array import Array
from rune.backends import Device
from rune.errors import DtypeError
from rune.numpy import from_dlpack as _from_dlpack
from rune.typing import DTypeLike

_NARROW = (dtypes.bf16, *map(np.dtype, "?bhiqBHIQefdFD"))


def from_dlpack(external_array: object, device: str | Device | None = None, copy: bool | None = None) -> Array:
    """The array that `external_array` exports by its methods __dlpack__ and __dlpack_device__."""
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: DTypeLike | None) -> bool:
    """Whether DLPack can exchange arrays of this dtype."""
    if dtype is None:
        raise DtypeError("is_supported_dtype: cannot take None for a dtype")
    return dtypes.named(dtype) in _NARROW
