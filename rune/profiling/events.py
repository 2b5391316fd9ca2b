"""The events of a profile, each on the row of a device or of a thread.

Times are in seconds of `time.perf_counter`. A device's work is on the device's row; the host's work
(tracing, compiling, loading, named blocks) is on the row of its thread. Two events of one row are
nested or disjoint, never partly overlapping: a second thread on a device has its own row.

Each thread also has a clock that only runs while the thread is on a processor. By that clock an
event computed; the rest of its time it waited: for the interpreter, a lock, a file, or a core.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

HOST = "host"  # the device name in rows of host threads


class Kind(StrEnum):
    """The kind of an event: its category in a trace file, and its colour in the timeline."""

    PROGRAM = "program"  # a call of a compiled program
    STEP = "step"  # a part of a program: a kernel, a library routine, copies
    COLLECTIVE = "collective"  # a step in which devices communicate, including the wait
    EAGER = "eager"  # an operation that was not compiled
    TRACE = "trace"  # tracing a Python function into a program
    COMPILE = "compile"  # compiling a program to machine code
    COPY = "copy"  # between host and device
    DATA = "data"  # waiting for the next batch, or producing it
    SPAN = "span"  # a block that the user named
    CALLBACK = "callback"  # a Python function that a program calls
    WAIT = "wait"  # for the interpreter, or for room in a queue
    PYTHON = "python"  # between all of these: the user's code, and Python around calls


class Row(NamedTuple):
    """A row of events: a device, or HOST, and the thread, by its name and number."""

    device: str
    thread: str
    ident: int = 0


class Moment(NamedTuple):
    """A time, and the current thread's clock, NaN if the system has none. Units: s."""

    time: float
    clock: float


class Event(NamedTuple):
    """Something that took time.

    start, seconds:  by perf_counter [s]
    clock:           its thread's clock at the start [s]
    processor:       how long its thread was on a processor during the event [s]; NaN if unknown
    scope:           the names of the enclosing rune.named_scope, "net/layer"
    line:            the user's line, "demo.py:3"
    """

    kind: Kind
    name: str
    row: Row
    start: float
    seconds: float
    scope: str = ""
    line: str = ""
    details: Mapping[str, object] = {}
    clock: float = math.nan
    processor: float = math.nan

    @property
    def title(self) -> str:
        """The name, preceded by its scopes.

        >>> Event(Kind.EAGER, "sin", Row("cpu:0", "MainThread"), 0.0, 1e-6, "net/layer").title
        'net/layer/sin'
        """
        return f"{self.scope}/{self.name}" if self.scope else self.name

    @property
    def end(self) -> float:
        """The time at which it ended [s]."""
        return self.start + self.seconds


def current_row(device: str = HOST) -> Row:
    """The row of the current thread on a device, or on the host."""
    thread = threading.current_thread()
    return Row(device, thread.name, thread.ident or 0)


def row_names(rows: Sequence[Row]) -> dict[Row, str]:
    """Unique names: `cpu:0`, or `cpu:0 (Thread-1)` if several threads ran programs there."""
    threads = Counter(row.device for row in rows)
    names = {row: _row_name(row, threads[row.device]) for row in rows}
    uses: Counter[str] = Counter()
    for row, name in names.items():
        uses[name] += 1
        names[row] = name if uses[name] == 1 else f"{name} ({uses[name]})"
    return names


def _row_name(row: Row, threads: int) -> str:
    if row.device == HOST:
        return row.thread
    return row.device if threads == 1 else f"{row.device} ({row.thread})"


def moment() -> Moment:
    """The current time, and the clock of the current thread."""
    return Moment(time.perf_counter(), _thread_time())


def ended(
    kind: Kind, name: str, begin: Moment, row: Row, scope: str = "", line: str = "", details: Mapping[str, object] = {}
) -> Event:
    """The event that this thread began at that moment and ends now."""
    end = moment()
    took = end.time - begin.time, end.clock - begin.clock
    return Event(kind, name, row, begin.time, took[0], scope, line, details, begin.clock, took[1])


# Some systems (WASI) do not measure the time of threads.
_thread_time = getattr(time, "thread_time", lambda: math.nan)
