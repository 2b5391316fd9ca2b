"""Devices, memory, streams and events through cuda-bindings, with the interface of driver.py."""

from __future__ import annotations

import ctypes
import functools
from importlib import import_module
from types import SimpleNamespace
from typing import Any, SupportsInt

import numpy as np
from numpy.typing import DTypeLike

from rune.backends.cuda.driver import Stream

_OUT_OF_MEMORY, _NOT_READY = 2, 600  # CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_READY
_NAME_BYTES = 256  # of a device's name


class Refused(Exception):
    """The driver has refused a call; the backend raises DeviceError for it."""


@functools.cache
def bindings() -> Any:
    """cuda-bindings, imported on first use."""
    return import_module("cuda.bindings.driver")


def call(function: str, *arguments: object) -> Any:
    """The result of a driver function, a tuple if there are several.

    Errors: MemoryError, Refused.
    """
    code, *values = getattr(bindings(), function)(*arguments)
    # MemoryError makes the pool free its cache and try again.
    if int(code) == _OUT_OF_MEMORY:
        raise MemoryError(function)
    if int(code) != 0:
        raise Refused(f"{function}: {code.name}")
    return values[0] if len(values) == 1 else tuple(values) or None


class BindingsDriver:
    """The driver through cuda-bindings, with pycuda's names."""

    Error: type[Exception] = Refused
    MemoryError: type[Exception] = MemoryError
    event_flags = SimpleNamespace(DISABLE_TIMING=2)  # CU_EVENT_DISABLE_TIMING

    def __init__(self) -> None:
        self.Device, self.Stream, self.Event, self.Context = _Device, _Stream, _Event, _Context
        self.device_attribute = _Attributes(bindings().CUdevice_attribute)

    def get_driver_version(self) -> int:
        return call("cuDriverGetVersion")

    def mem_alloc(self, nbytes: int) -> _Allocation:
        return _Allocation(int(call("cuMemAlloc", nbytes)))

    def mem_get_info(self) -> tuple[int, int]:
        return call("cuMemGetInfo")

    def memcpy_htod_async(self, target: int, source: np.ndarray, stream: Stream) -> None:
        call("cuMemcpyHtoDAsync", target, source.ctypes.data, source.nbytes, stream.handle)

    def memcpy_dtoh_async(self, target: np.ndarray, source: int, stream: Stream) -> None:
        call("cuMemcpyDtoHAsync", target.ctypes.data, source, target.nbytes, stream.handle)

    def memcpy_dtod_async(self, target: int, source: int, nbytes: int, stream: Stream) -> None:
        call("cuMemcpyDtoDAsync", target, source, nbytes, stream.handle)

    def memset_d32_async(self, target: int, number: int, count: int, stream: Stream) -> None:
        # The binding refuses a negative number, since the driver's parameter is unsigned.
        call("cuMemsetD32Async", target, number % 2**32, count, stream.handle)

    def memset_d8_async(self, target: int, number: int, count: int, stream: Stream) -> None:
        call("cuMemsetD8Async", target, number, count, stream.handle)

    def pagelocked_empty(self, shape: int, dtype: DTypeLike) -> np.ndarray:
        """Pinned memory, which is never freed: its users keep it as long as the process lives."""
        nbytes = shape * np.dtype(dtype).itemsize
        try:
            address = call("cuMemHostAlloc", nbytes, 0)
        except MemoryError as error:
            # The host is short of memory, not the device: emptying the pool would not help.
            raise Refused("cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY") from error
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(int(address))).view(dtype)


class _Attributes:
    """Attributes by pycuda's names, which lack the driver's prefix."""

    def __init__(self, kinds: object):
        self._kinds = kinds

    def __getattr__(self, name: str) -> SupportsInt:
        return getattr(self._kinds, f"CU_DEVICE_ATTRIBUTE_{name}")


class _Allocation:
    """Device memory, freed by its user."""

    __slots__ = ("_address",)

    def __init__(self, address: int):
        self._address = address

    def __int__(self) -> int:
        return self._address

    def free(self) -> None:
        call("cuMemFree", self._address)


class _Device:
    """One device by number."""

    def __init__(self, number: int):
        self._handle = call("cuDeviceGet", number)

    @staticmethod
    def count() -> int:
        return call("cuDeviceGetCount")

    def name(self) -> str:
        return call("cuDeviceGetName", _NAME_BYTES, self._handle).partition(b"\0")[0].decode(errors="replace")

    def get_attribute(self, attribute: SupportsInt) -> int:
        return call("cuDeviceGetAttribute", attribute, self._handle)

    def compute_capability(self) -> tuple[int, int]:
        kinds = bindings().CUdevice_attribute
        major = self.get_attribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        return major, self.get_attribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)

    def total_memory(self) -> int:
        return call("cuDeviceTotalMem", self._handle)

    def retain_primary_context(self) -> _Context:
        return _Context(int(call("cuDevicePrimaryCtxRetain", self._handle)))


class _Context:
    """The primary context of a device, retained as long as the process lives."""

    # No finaliser: at exit the driver may be shut down before it would run.
    __slots__ = ("handle",)

    def __init__(self, handle: int):
        self.handle = handle

    def push(self) -> None:
        call("cuCtxPushCurrent", self.handle)

    def pop(self) -> None:
        call("cuCtxPopCurrent")

    @staticmethod
    def synchronize() -> None:
        call("cuCtxSynchronize")


class _Stream:
    """A queue of work in order, which lives as long as the process."""

    __slots__ = ("handle",)

    def __init__(self) -> None:
        self.handle = int(call("cuStreamCreate", 0))

    def synchronize(self) -> None:
        call("cuStreamSynchronize", self.handle)


class _Event:
    """A point in a stream's work."""

    __slots__ = ("_destroy", "_handle")

    def __init__(self, flags: int = 0):
        # Kept for `__del__`: at exit the bindings' module may be empty before the last event dies.
        self._destroy, self._handle = bindings().cuEventDestroy, None
        self._handle = call("cuEventCreate", flags)

    def record(self, stream: Stream) -> None:
        call("cuEventRecord", self._handle, stream.handle)

    def query(self) -> bool:
        (code,) = bindings().cuEventQuery(self._handle)
        if int(code) not in (0, _NOT_READY):
            raise Refused(f"cuEventQuery: {code.name}")
        return int(code) == 0

    def synchronize(self) -> None:
        call("cuEventSynchronize", self._handle)

    def time_till(self, other: _Event) -> float:
        return call("cuEventElapsedTime", self._handle, other._handle)

    def __del__(self) -> None:
        if self._handle is not None:
            # It fails where the context is lost, and the handle with it: nothing is left to do.
            self._destroy(self._handle)
