"""What happened when: events of a profile, each on the row of a device or of a thread.

Times are seconds of `time.perf_counter`. What a device does stands on the device's row, what the
host does (tracing, compiling, loading, named blocks) on the row of its thread. Events of one row
are nested or apart, never across each other: a second thread on a device has a row of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

HOST = "host"  # the device of rows of threads


class Kind(StrEnum):
    """What an event is: its category in a trace file, its colour in the timeline."""

    PROGRAM = "program"  # a call of a compiled program
    STEP = "step"  # of a program: a kernel, a routine, copies
    COLLECTIVE = "collective"  # a step in which devices meet, waiting included
    EAGER = "eager"  # an operation that was not compiled
    TRACE = "trace"  # a Python function becomes a program
    COMPILE = "compile"  # a program becomes machine code
    COPY = "copy"  # between host and device
    DATA = "data"  # waiting for the next batch, and making it
    SPAN = "span"  # a block that the user named


class Row(NamedTuple):
    """Where events stand: a device, or HOST, and the thread."""

    device: str
    thread: str


class Event(NamedTuple):
    """One thing that took time.

    start, seconds:  of perf_counter [s]
    scope:           the names of rune.named_scope around it, "net/layer"
    line:            the user's, "demo.py:3"
    """

    kind: Kind
    name: str
    row: Row
    start: float
    seconds: float
    scope: str = ""
    line: str = ""
    details: Mapping[str, object] = {}

    @property
    def title(self) -> str:
        """The name, in its scopes.

        >>> Event(Kind.EAGER, "sin", Row("cpu:0", "MainThread"), 0.0, 1e-6, "net/layer").title
        'net/layer/sin'
        """
        return f"{self.scope}/{self.name}" if self.scope else self.name

    @property
    def end(self) -> float:
        """When it was over [s]."""
        return self.start + self.seconds


def here(device: str = HOST) -> Row:
    """The row of a device, or of the host, for the thread that asks."""
    return Row(device, threading.current_thread().name)
