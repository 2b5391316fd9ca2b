"""Arrays in memory of other libraries, which is released only after the work that reads it.

The last buffer on such memory may die while kernels that read it are pending, and the lender might
then reuse it in a stream of its own. So a dead loan waits for a marker on our stream. A dying
buffer calls no driver, because the collector may run anywhere: it only puts its loan on a list,
which the device examines when it allocates.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import field

from rune import locks
from rune.backends.cuda.by_bindings import call
from rune.backends.cuda.driver import Allocation, Driver, Stream
from rune.backends.shared.executor import size_bytes, static_shape
from rune.backends.shared.pool import Block
from rune.backends.shared.queued import QueuedBackend
from rune.backends.shared.turns import DeviceBuffer
from rune.core.types import ArrayType
from rune.records import dataclass

NO_STREAM = -1  # DLPack's number for a consumer that needs no synchronisation


@dataclass(frozen=True, slots=True)
class Chunk:
    """The address of memory on the device. allocation: to be freed by the pool, if it is a
    pool's."""

    address: int
    allocation: Allocation | None = None


class Borrowed(Block):
    """Memory that belongs to no pool."""

    __slots__ = ("_dead", "_loan")

    def __init__(self, address: int, nbytes: int, loan: object, dead: deque[object]):
        self.handle, self.offset, self.bytes, self.number = Chunk(address), 0, nbytes, address
        self._loan, self._dead = loan, dead

    def __del__(self) -> None:
        self._dead.append(self._loan)


@dataclass(slots=True, eq=False)
class Loans:
    """The loans of a device. marker: gives a function that says whether all enqueued work has
    ended."""

    marker: Callable[[], Callable[[], bool]]
    dead: deque[object] = field(default_factory=deque)
    waiting: deque[tuple[Callable[[], bool], list[object]]] = field(default_factory=deque)
    lock: locks.Lock = field(default_factory=locks.lock)

    def sweep(self) -> None:
        """Release the loans that no work reads any more."""
        if not (self.dead or self.waiting):
            return
        released_loans: list[object] = []  # die after the lock is released: lenders run code then
        with self.lock:
            while self.waiting and self.waiting[0][0]():
                released_loans += self.waiting.popleft()[1]
            if self.dead:
                batch = [self.dead.popleft() for _ in range(len(self.dead))]
                self.waiting.append((self.marker(), batch))


def address_of(buffer: DeviceBuffer) -> int:
    """The address of an array on the device."""
    return buffer.memory.handle.address + buffer.memory.offset


ALIGNMENT = 16  # [B] that kernels assume of every address (codegen/c/cuda.py)


class Sharing(QueuedBackend):
    """The part of a device that shares arrays with other libraries."""

    driver: Driver
    stream: Stream
    loans: Loans
    in_context: AbstractContextManager[None]  # within, the context is current

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for the stream to drain."""

    @abstractmethod
    def settle(self) -> None:
        """Wait until all of its collectives have ended. Errors: DeviceError if one never will."""

    def alloc(self, type: ArrayType, maker: str = "alloc") -> DeviceBuffer:
        """Uninitialised device memory for one array, made by `maker`."""
        self.loans.sweep()
        return super().alloc(type, maker)

    def lend(self, buffer: DeviceBuffer, stream: int | None) -> int:
        """The address of an array, for a stream that is made to wait for it; None: for use at
        once."""
        # Borrowed memory belongs to its lender, who decides when it is used again.
        if not isinstance(buffer.memory, Borrowed):
            self.pool.share(buffer.memory)
        if stream is None:
            self.synchronize()
        elif stream != NO_STREAM:
            with self.in_context:
                self.settle()
                self._event_for(stream)
        return address_of(buffer)

    def reader(self) -> int:
        """The stream in which this device reads borrowed memory."""
        self.check()
        return self.stream.handle

    def borrow(self, address: int, type: ArrayType, loan: object) -> DeviceBuffer:
        """Another library's memory as an array; a copy, if its address is not aligned for
        kernels."""
        self.loans.sweep()
        memory = Borrowed(address, size_bytes(type), loan, self.loans.dead)
        buffer = DeviceBuffer(memory, type, static_shape(type))
        return self.copied(buffer) if address % ALIGNMENT else buffer

    def copied(self, buffer: DeviceBuffer) -> DeviceBuffer:
        """A copy on the device."""
        copy, nbytes = self.alloc(buffer.type, "copied"), size_bytes(buffer.type)
        if nbytes:
            with self.in_context:
                self.driver.memcpy_dtod_async(address_of(copy), address_of(buffer), nbytes, self.stream)
        return copy

    def _event_for(self, stream: int) -> None:
        """Make another library's stream wait for all work enqueued in ours."""
        # Through cuda-bindings in any case: pycuda accepts no streams but its own.
        event = call("cuEventCreate", self.driver.event_flags.DISABLE_TIMING)
        try:
            call("cuEventRecord", event, self.stream.handle)
            call("cuStreamWaitEvent", stream, event, 0)
        finally:
            call("cuEventDestroy", event)  # the driver frees it when it has occurred

    def settle_others(self) -> None:
        """Wait for all streams of the device, those of other libraries too."""
        with self.in_context:
            self.settle()
            self.driver.Context.synchronize()
