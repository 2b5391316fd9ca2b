"""The inspection API of the array API standard: devices, dtypes, capabilities.

Source: Python array API standard 2025.12, "Inspection APIs".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import backends, dtypes
from rune.array import default_place
from rune.backends import Device, device_named
from rune.numpy.types import finfo, isdtype
from rune.ops.complex_numbers import real_dtype
from rune.records import dataclass
from rune.typing import DTypeLike

_STANDARD: dict[str, np.dtype] = {
    "bool": dtypes.bool_,
    "int8": dtypes.i8,
    "int16": dtypes.i16,
    "int32": dtypes.i32,
    "int64": dtypes.i64,
    "uint8": dtypes.u8,
    "uint16": dtypes.u16,
    "uint32": dtypes.u32,
    "uint64": dtypes.u64,
    "float32": dtypes.f32,
    "float64": dtypes.f64,
    "complex64": dtypes.c64,
    "complex128": dtypes.c128,
}


@dataclass(frozen=True)
class Limits:
    """The result of the standard's `finfo` for a floating dtype, in Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


def limits(dtype: DTypeLike) -> Limits:
    """The limits of a floating dtype, or of the parts of a complex one; an array stands for its
    dtype.

    Errors: DtypeError for other dtypes.
    """
    info = finfo(dtype)
    return Limits(
        int(info.bits),
        float(info.eps),
        float(info.max),
        float(info.min),
        float(info.smallest_normal),
        np.dtype(info.dtype),
    )


class ArrayNamespaceInfo:
    """The inspection functions of the standard; `__array_namespace_info__()` gives them.

    >>> import rune.numpy as rnp
    >>> info = rnp.__array_namespace_info__()
    >>> info.default_device().name, sorted(info.dtypes(kind="complex floating"))
    ('cpu:0', ['complex128', 'complex64'])
    """

    def capabilities(self) -> dict[str, Any]:
        """Capabilities outside transformations: boolean indexing, data-dependent shapes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of `rune.configure(device=...)`, else the CPU."""
        return default_place().device or device_named("cpu")

    def default_dtypes(self, *, device: str | Device | None = None) -> dict[str, np.dtype]:
        """The dtypes of arrays created without one; wider inside `rune.enable_x64()`."""
        return {
            "real floating": dtypes.canonical(dtypes.f64),
            "complex floating": dtypes.canonical(dtypes.c128),
            "integral": dtypes.canonical(dtypes.i64),
            "indexing": dtypes.canonical(dtypes.i64),
        }

    def dtypes(
        self, *, device: str | Device | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """The dtypes of the standard that a device supports, by name.

        kind: a kind of `isdtype`, or a tuple of them; None means all.
        """
        target_device = device_named(device) if isinstance(device, str) else device
        known = (target_device or self.default_device()).target.dtypes
        # A device computes with the parts of complex numbers.
        candidates = {n: d for n, d in _STANDARD.items() if kind is None or isdtype(d, kind)}
        return {n: d for n, d in candidates.items() if real_dtype(d) in known}

    def devices(self) -> tuple[Device, ...]:
        """All devices, the default executor first."""
        return tuple(backends.devices())


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The inspection functions of the array API standard.

    >>> import rune.numpy as rnp
    >>> rnp.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int32')
    """
    return ArrayNamespaceInfo()


__array_api_version__ = "2025.12"
__all__ = ["ArrayNamespaceInfo", "__array_api_version__", "__array_namespace_info__", "limits"]
