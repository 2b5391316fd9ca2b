"""Which atomic updates of an element each language has, in global and in shared memory."""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.lowering.codegen.target import Target, every
from rune.lowering.kernel.nodes import ATOMICS

_WORDS = (dtypes.i32, dtypes.u32)
_LONG = (dtypes.i64, dtypes.u64)
_SPELLED: dict[str, frozenset[tuple[str, np.dtype]]] = {
    # 64-bit atomics are an extension of OpenCL, and a feature of Vulkan that rune does not request.
    "opencl": every(ATOMICS, _WORDS) | every(("add",), (dtypes.i64,)),
    "spirv": every(ATOMICS, _WORDS),
    # Memory consists of u32 in WGSL.
    "wgsl": every(("add",), _WORDS) | every(("max", "min"), (dtypes.u32,)),
    "cuda": every(ATOMICS, (*_WORDS, *_LONG)) | every(("add",), (dtypes.f32, dtypes.f64)),
}


def has_atomic(target: Target, combine: str | None, dtype: np.dtype) -> bool:
    """Whether the target updates an element of the dtype in this way as one atomic operation."""
    if (combine, dtype) not in _SPELLED.get(target.language, ()):
        return False
    # "atomic_min" covers both: a device with atomic minima of a dtype also has the maxima.
    return dtype in _WORDS or target.has("atomic_add" if combine == "add" else "atomic_min", dtype)
