"""What calls of a device share: its arrays, its arena, and the lock under which they take turns.

Native code reads the slots of these classes (native_player.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rune import locks
from rune.backends.shared.pool import Block, Pool
from rune.core.types import ArrayType
from rune.errors import DeviceError
from rune.records import dataclass


@dataclass(slots=True, eq=False)  # not frozen: every call makes some, and that costs four times as much
class DeviceBuffer:
    """An array in device memory; the memory returns to the pool with the last buffer on it."""

    memory: Block
    type: ArrayType
    shape: tuple[int, ...]


@dataclass(slots=True)
class Arena:
    """The memory that all plans of a device share for their intermediates; it only grows.

    Sharing is safe because the queue is in order: a plan's steps run after the last plan's.
    """

    pool: Pool
    block: Block | None = None

    def __call__(self, nbytes: int) -> Block:
        """At least `nbytes` bytes."""
        if self.block is None or self.block.bytes < nbytes:
            # Release the old block first: the pool may need its bytes for the larger one.
            self.block = None
            self.block = self.pool.take(nbytes, ("arena",))
        return self.block


class Turns:
    """The lock under which calls enqueue on a device, and what belongs to it.

    caller: the thread in which a callback runs, under the lock
    loss:   the reason, once the device is lost
    last:   the end of the last call, as the device knows ends; None: there was no call
    """

    __slots__ = ("_device", "caller", "last", "lock", "loss")

    def __init__(self, device: str, lock: locks.Lock | None = None):
        self.lock = lock or locks.lock()
        self._device = device
        self.caller: int | None = None
        self.loss: str | None = None
        self.last: Any = None

    def refuse_callback(self, name: str) -> None:
        """Errors: DeviceError where this thread's call waits for a callback, and so for this."""
        # Checked before taking the lock, which this thread holds: it would wait for itself.
        if self.caller == threading.get_ident():
            raise DeviceError(
                f"{name}: cannot run on {self._device} from a callback "
                "(the device waits for the program that calls back)",
                hint="compute with NumPy in callbacks, or on another device",
            )

    @contextmanager
    def calling_back(self) -> Iterator[None]:
        """While a callback runs, its thread holds the lock and must not ask for it again."""
        self.caller = threading.get_ident()
        try:
            yield
        finally:
            self.caller = None
