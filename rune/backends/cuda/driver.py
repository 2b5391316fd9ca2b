"""The driver's interface as the executor uses it, with pycuda's names: two bindings provide it.

pycuda has no wheel, so its installation needs a toolkit and a compiler. Where it is not installed,
cuda-bindings replace it (by_bindings.py); the compiler and graphs need those anyway. This is all
that the executor uses of either; modules, launches and graphs go through `call` (launch.py).
Invariant: a call that the driver refuses raises the `Error` or `MemoryError` of its binding.
"""

from __future__ import annotations

from typing import Any, Protocol, SupportsInt

import numpy as np
from numpy.typing import DTypeLike


class Stream(Protocol):
    """A queue of work in order."""

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

    Device:  constructed with a number; count() gives their number
    Context: synchronize() waits for the current one
    Event:   constructed with flags
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
        """The driver's version of CUDA: 12040 is 12.4."""
        ...

    def mem_alloc(self, nbytes: int, /) -> Allocation: ...

    def mem_get_info(self) -> tuple[int, int]:
        """Bytes of device memory: free, total."""
        ...

    def memcpy_htod_async(self, target: int, source: np.ndarray, stream: Stream, /) -> None: ...
    def memcpy_dtoh_async(self, target: np.ndarray, source: int, stream: Stream, /) -> None: ...
    def memcpy_dtod_async(self, target: int, source: int, nbytes: int, stream: Stream, /) -> None: ...
    def memset_d32_async(self, target: int, number: int, count: int, stream: Stream, /) -> None: ...
    def memset_d8_async(self, target: int, number: int, count: int, stream: Stream, /) -> None: ...

    def pagelocked_empty(self, shape: int, dtype: DTypeLike, /) -> np.ndarray:
        """Pinned host memory, which asynchronous copies need."""
        ...
