"""A gate in a stream: work enqueued behind it runs without gaps once the host opens it.

Events before and after a launch also time the host: an idle device passes the first event while the
host still enqueues the launch, which takes 20 µs where a kernel takes 5. If all of it is enqueued
before the device begins, the times are the device's alone. Source: CUDA driver API, "Stream Memory
Operations".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from rune.backends.cuda.by_bindings import call
from rune.backends.cuda.driver import Driver, Stream

# Launches behind a closed gate. A stream holds about a thousand before it makes the host wait,
# which would then wait for a gate that only the host opens.
MOST = 64
# The comparison is cyclic, (int32)(word - number) >= 0, so the count may wrap around.
_AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ


class Gated(Protocol):
    """The part of a device that a gate uses."""

    driver: Driver
    stream: Stream


class Gate:
    """The gate of one device. A word in pinned memory counts how often it was opened."""

    def __init__(self, device: Gated):
        self._stream = device.stream
        self._word = device.driver.pagelocked_empty(4, np.uint8).view(np.uint32)
        self._word[0] = 0

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Inside the block, the stream holds back all work enqueued in it."""
        number = int(self._word[0]) + 1 & 0xFFFFFFFF
        try:
            call("cuStreamWaitValue32", self._stream.handle, self._word.ctypes.data, number, _AT_LEAST)
            yield
        finally:
            # After an error too, or the stream would wait for ever.
            self._word[0] = number
