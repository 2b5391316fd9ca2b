"""What the executor asks of the driver, in pycuda's words: two ways to the same calls.

pycuda has no wheel, so installing it wants a toolkit and a compiler. Where it is not installed,
cuda-bindings do the same (by_bindings.py), which the compiler and graphs need anyway. Here is all
that the executor takes of either; modules, launches and graphs go by `call` (launch.py).
Invariant: whatever refuses a call raises `Error` or `MemoryError` of its driver.
"""

from __future__ import annotations

from typing import Any, Protocol, SupportsInt

import numpy as np
from numpy.typing import DTypeLike


class Stream(Protocol):
    """Work in order."""

    @property
    def handle(self) -> int: ...
    def synchronize(self) -> None: ...


class Event(Protocol):
    """A point in a stream's work."""

    def record(self, stream: Any) -> object: ...
    def query(self) -> bool: ...
    def synchronize(self) -> object: ...
    def time_till(self, other: Any) -> float:
        """Milliseconds."""
        ...


class Allocation(Protocol):
    """Device memory."""

    def __int__(self) -> int: ...
    def free(self) -> None: ...


class Context(Protocol):
    """The primary context of a device."""

    @property
    def handle(self) -> int: ...
    def push(self) -> None: ...
    def pop(self) -> None: ...


class Device(Protocol):
    """One device."""

    def name(self) -> str: ...
    def compute_capability(self) -> tuple[int, int]: ...
    def get_attribute(self, attribute: SupportsInt, /) -> int: ...
    def total_memory(self) -> int: ...
    def retain_primary_context(self) -> Context: ...


class Driver(Protocol):
    """pycuda.driver, or a BindingsDriver.

    Device:  by number, and count() of all
    Context: synchronize() of the one that is current
    Event:   by flags
    """

    Error: type[Exception]
    MemoryError: type[Exception]
    Device: Any
    Context: Any
    Stream: Any
    Event: Any
    device_attribute: Any
    event_flags: Any

    def get_driver_version(self) -> int:
        """The version of CUDA that it is of: 12040 is 12.4."""
        ...

    def mem_alloc(self, nbytes: int, /) -> Allocation: ...

    def mem_get_info(self) -> tuple[int, int]:
        """Bytes of the device: free, and in all."""
        ...

    def memcpy_htod_async(self, target: int, source: np.ndarray, stream: Stream, /) -> None: ...
    def memcpy_dtoh_async(self, target: np.ndarray, source: int, stream: Stream, /) -> None: ...
    def memcpy_dtod_async(self, target: int, source: int, nbytes: int, stream: Stream, /) -> None: ...
    def memset_d32_async(self, target: int, number: int, count: int, stream: Stream, /) -> None: ...
    def memset_d8_async(self, target: int, number: int, count: int, stream: Stream, /) -> None: ...

    def pagelocked_empty(self, shape: int, dtype: DTypeLike, /) -> np.ndarray:
        """Host memory that copies can read and write while the host goes on."""
        ...
