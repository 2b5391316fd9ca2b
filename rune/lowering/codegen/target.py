"""Target: what a device can run, as pure data. Nothing else asks which vendor it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Target:
    """What a device can run. Comparing two targets never touches a driver."""

    name: str  # backend and device number, "cpu:0"
    backend: str  # the backend file that serves it
    language: str  # the renderer: "llvm", "opencl"
    description: str  # the device as its driver names it
    dtypes: frozenset[np.dtype]  # storable and computable element types
    vector_bytes: int  # natural width of one vector register [B]
    cores: int  # processors that run grid points side by side
    threads_per_workgroup: int  # upper limit, all axes multiplied [threads]
    shared_bytes: int  # on-chip memory of one workgroup [B]
    scratch_bytes: int  # private memory that one grid point may hold cheaply [B]
    routines: frozenset[str]  # library routines that a plan may call: {"dot"}
