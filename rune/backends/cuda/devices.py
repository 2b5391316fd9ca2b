"""The installed driver, and targets that describe its devices."""

from __future__ import annotations

import ctypes
import functools
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import cast

import numpy as np

from rune import dtypes
from rune.backends.cuda import by_bindings
from rune.backends.cuda.by_bindings import BindingsDriver, call
from rune.backends.cuda.driver import Driver
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.target import DISCRETE_WORK, INTEGRATED_WORK, Target, natively

INSTALL = "pip install 'rune-ml[cuda]'"


def _library() -> str | None:
    """The name of the driver's library on this platform."""
    return {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}.get(sys.platform)


def missing() -> str | None:
    """Why there can be no device, without importing anything; None where there may be one."""
    library = _library()
    if library is None:
        return f"there is no CUDA for {sys.platform}"
    try:
        # RTLD_GLOBAL: a pycuda that was built without a driver does not link to the library, and
        # looks for its symbols in the process.
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    except OSError:
        return f"no NVIDIA driver ({library} cannot be loaded); with one: {INSTALL}"
    # find_spec imports the parent of a dotted name, so the parent is looked for first.
    for module in ("cuda", "cuda.bindings"):
        if find_spec(module) is None:
            return f"{module} is not installed; {INSTALL}"
    return None


def mismatch(compiler: tuple[int, int], driver: tuple[int, int]) -> str | None:
    """Why the driver cannot load code of this version of NVRTC; None where it can.

    A driver loads code of its own major version of CUDA and of older ones.
    """
    if driver[0] >= compiler[0]:
        return None
    return (
        f"the driver is of CUDA {driver[0]} and loads no code of NVRTC {compiler[0]}; "
        f"update it, or pip install nvidia-cuda-nvrtc-cu{driver[0]} 'cuda-bindings<{compiler[0]}'"
    )


@functools.cache
def load() -> Driver:
    """The driver, initialised on first use: pycuda's where that is installed."""
    if find_spec("pycuda") is None:
        call("cuInit", 0)
        return BindingsDriver()
    # pycuda warns on import about matters that users of rune cannot change.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pycuda = import_module("pycuda.driver")
        pycuda.init()
        return cast("Driver", pycuda)


def target_of(number: int, driver: Driver) -> Target:
    """The target that describes the device of this number."""
    device, attributes = driver.Device(number), driver.device_attribute
    major, minor = device.compute_capability()
    return Target(
        name=f"cuda:{number}",
        backend="cuda",
        language="cuda",
        description=f"{device.name()}, compute capability {major}.{minor}",
        dtypes=frozenset(CUDA_C.scalars),
        vector_bytes=16,
        cores=device.get_attribute(attributes.MULTIPROCESSOR_COUNT),
        threads_per_workgroup=device.get_attribute(attributes.MAX_THREADS_PER_BLOCK),
        shared_bytes=_shared_bytes(number),
        scratch_bytes=1 << 12,
        routines=frozenset({"cuda_source"}),
        subgroup_threads=device.get_attribute(attributes.WARP_SIZE),
        native=native(10 * major + minor),
        submission_work=_submission_work(number),
        driver=".".join(map(str, release(driver.get_driver_version()))),
    )


def _shared_bytes(number: int) -> int:
    """The most shared memory that a block can have. Above 48 KiB a kernel must ask for it."""
    return _attribute(number, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")


def _submission_work(number: int) -> int | None:
    """The most work of one launch where a watchdog stops kernels that run for long; else None."""
    if not _attribute(number, "KERNEL_EXEC_TIMEOUT"):
        return None
    return INTEGRATED_WORK if _attribute(number, "INTEGRATED") else DISCRETE_WORK


def _attribute(number: int, name: str) -> int:
    """An attribute through cuda-bindings: an older pycuda may not know it."""
    kind = getattr(by_bindings.bindings().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return call("cuDeviceGetAttribute", kind, call("cuDeviceGet", number))


def release(number: int) -> tuple[int, int]:
    """The version of CUDA that a driver's number means: 12040 is 12.4.

    >>> release(12040)
    (12, 4)
    """
    return number // 1000, number % 1000 // 10


def native(capability: int) -> frozenset[tuple[str, np.dtype]]:
    """Native operations at this compute capability (CUDA C++ Programming Guide, appendix)."""
    words, floats = [dtypes.i32, dtypes.u32], [dtypes.f32, dtypes.f64]
    # Compute capability 7.0 is Volta, 8.0 Ampere, 8.9 Ada.
    of_ampere = capability >= 80
    half = [dtypes.f16] * (capability >= 70) + [dtypes.bf16] * of_ampere
    return natively(
        fma=floats + half,
        arithmetic=floats + half,
        atomic_add=[*words, dtypes.i64, dtypes.u64, *floats, *half],
        atomic_min=[*words, dtypes.i64, dtypes.u64],
        multiply=[dtypes.f16, dtypes.bf16] * of_ampere,
        # Warp-group products, on Hopper alone: later devices have other instructions instead.
        multiply_together=[dtypes.f16, dtypes.bf16] * (capability == 90),
        fetch=[d for d in CUDA_C.scalars if d.itemsize > 1] * of_ampere,
        matrix=half + [dtypes.f64] * of_ampere + [dtypes.f8_e4m3] * (capability >= 89),
    )
