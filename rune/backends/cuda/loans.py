"""Memory of other libraries that arrays lie in, let go behind the work that reads it.

The last buffer on such memory may die while kernels that read it are pending, and the lender would
use it for something else in a stream of its own. So a dead loan waits for a marker on the stream.
A dying buffer calls no driver, since the collector may run anywhere: it only puts its loan on a
list, which the device looks through when it allocates.
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
from rune.backends.shared.queued import DeviceBuffer, QueuedBackend
from rune.core.types import ArrayType
from rune.records import dataclass

NO_STREAM = -1  # DLPack's word for memory that nobody has to wait for


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where memory begins on the device; allocation: to be given back, if it is a pool's."""

    address: int
    allocation: Allocation | None = None


class Borrowed(Block):
    """Memory that belongs to no pool."""

    __slots__ = ("_dead", "_loan")

    def __init__(self, address: int, nbytes: int, loan: object, dead: deque[object]):
        self.handle, self.offset, self.bytes = Chunk(address), 0, nbytes
        self._loan, self._dead = loan, dead

    def __del__(self) -> None:
        self._dead.append(self._loan)


@dataclass(slots=True, eq=False)
class Loans:
    """Those of a device. marker: the question whether all that was enqueued has ended."""

    marker: Callable[[], Callable[[], bool]]
    dead: deque[object] = field(default_factory=deque)
    waiting: deque[tuple[Callable[[], bool], list[object]]] = field(default_factory=deque)
    lock: locks.Lock = field(default_factory=locks.lock)

    def sweep(self) -> None:
        """Let go of what is not read any more."""
        if not (self.dead or self.waiting):
            return
        gone: list[object] = []  # dies outside of the lock: lenders run their own code
        with self.lock:
            while self.waiting and self.waiting[0][0]():
                gone += self.waiting.popleft()[1]
            if self.dead:
                batch = [self.dead.popleft() for _ in range(len(self.dead))]
                self.waiting.append((self.marker(), batch))


def address_of(buffer: DeviceBuffer) -> int:
    """Where an array lies on the device."""
    return buffer.memory.handle.address + buffer.memory.offset


ALIGNMENT = 16  # of every address that a kernel is given [B]: codegen/c/cuda.py


class Sharing(QueuedBackend):
    """The part of a device that others' arrays and ours have to do with."""

    driver: Driver
    stream: Stream
    loans: Loans
    entered: AbstractContextManager[None]  # within, the context is current

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for the stream to drain."""

    @abstractmethod
    def settle(self) -> None:
        """Wait until it is in no collective. Errors: DeviceError if one will never end."""

    def alloc(self, type: ArrayType, maker: str = "alloc") -> DeviceBuffer:
        """Uninitialised device memory for one array, made by `maker`."""
        self.loans.sweep()
        return super().alloc(type, maker)

    def lend(self, buffer: DeviceBuffer, stream: int | None) -> int:
        """The address of an array for a stream, which is told to wait for it; None: now."""
        if not isinstance(buffer.memory, Borrowed):
            self.pool.share(buffer.memory)
        if stream is None:
            self.synchronize()
        elif stream != NO_STREAM:
            with self.entered:
                self.settle()
                self._event_for(stream)
        return address_of(buffer)

    def reader(self) -> int:
        """The handle of the stream."""
        self.check()
        return self.stream.handle

    def borrow(self, address: int, type: ArrayType, loan: object) -> DeviceBuffer:
        """Memory of another library, which stays its own; a copy, if kernels cannot begin there."""
        self.loans.sweep()
        memory = Borrowed(address, size_bytes(type), loan, self.loans.dead)
        buffer = DeviceBuffer(memory, type, static_shape(type))
        return self.copied(buffer) if address % ALIGNMENT else buffer

    def copied(self, buffer: DeviceBuffer) -> DeviceBuffer:
        """A copy on the device."""
        copy, nbytes = self.alloc(buffer.type, "copied"), size_bytes(buffer.type)
        if nbytes:
            with self.entered:
                self.driver.memcpy_dtod_async(address_of(copy), address_of(buffer), nbytes, self.stream)
        return copy

    def _event_for(self, stream: int) -> None:
        """Let another's stream wait for all that was enqueued in ours."""
        # By cuda-bindings in any case: pycuda knows no streams but its own.
        event = call("cuEventCreate", self.driver.event_flags.DISABLE_TIMING)
        try:
            call("cuEventRecord", event, self.stream.handle)
            call("cuStreamWaitEvent", stream, event, 0)
        finally:
            call("cuEventDestroy", event)  # once it has come

    def settle_others(self) -> None:
        """Wait for all streams of the device, whoever's they are."""
        with self.entered:
            self.settle()
            self.driver.Context.synchronize()
