"""A gate in a stream: what is enqueued behind it runs without gaps once the host opens it.

An event behind a launch is reached when the launch is done, yet an idle device waits for the host
between the one before and the launch itself: 20 µs where a kernel takes 5. Times are those of the
device alone if it has all of it before it begins. Source: CUDA driver API, "Stream Memory
Operations".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from rune.backends.cuda.by_bindings import call
from rune.backends.cuda.driver import Driver, Stream

MOST = 64  # launches behind a closed gate: a stream takes about a thousand before it lets the host wait
_AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ


class Gated(Protocol):
    """The part of a device that a gate uses."""

    driver: Driver
    stream: Stream


class Gate:
    """The gate of one device; the word in pinned memory is how often it was opened."""

    def __init__(self, device: Gated):
        self._stream = device.stream
        self._word = device.driver.pagelocked_empty(4, np.uint8).view(np.uint32)
        self._word[0] = 0

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Within, the stream holds back what is enqueued."""
        number = int(self._word[0]) + 1 & 0xFFFFFFFF
        try:
            call("cuStreamWaitValue32", self._stream.handle, self._word.ctypes.data, number, _AT_LEAST)
            yield
        finally:
            # Whatever was raised within: the stream must not wait for ever.
            self._word[0] = number
