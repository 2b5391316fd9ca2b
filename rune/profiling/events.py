"""What happened when: events of a profile, each on the row of a device or of a thread.

Times are seconds of `time.perf_counter`. What a device does stands on the device's row, what the
host does (tracing, compiling, loading, named blocks) on the row of its thread. Events of one row
are nested or apart, never across each other: a second thread on a device has a row of its own.

A thread has a clock of its own, which goes on while it is on a processor. What an event took of
that it computed; all else of its time it waited: for the interpreter, a lock, a file, or a core.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
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
    CALLBACK = "callback"  # a Python function that a program calls
    WAIT = "wait"  # for the interpreter, or for room in a queue
    PYTHON = "python"  # between all of these: the user's own code, and Python around calls


class Row(NamedTuple):
    """Where events stand: a device, or HOST, and the thread, by its name and number."""

    device: str
    thread: str
    ident: int = 0


class Moment(NamedTuple):
    """A time, and the clock of the thread that asked: NaN where the system has none. Units: s."""

    time: float
    clock: float


class Event(NamedTuple):
    """One thing that took time.

    start, seconds:  of perf_counter [s]
    clock:           of its thread at the start [s]
    processor:       for how long its thread was on a processor meanwhile [s]; NaN if unknown
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
    clock: float = math.nan
    processor: float = math.nan

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
    thread = threading.current_thread()
    return Row(device, thread.name, thread.ident or 0)


def row_names(rows: Sequence[Row]) -> dict[Row, str]:
    """`cpu:0`, and where several threads ran programs there, `cpu:0 (Thread-1)`; no two alike."""
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
    """Now, in the thread that asks."""
    return Moment(time.perf_counter(), _thread_time())


def ended(
    kind: Kind, name: str, begin: Moment, row: Row, scope: str = "", line: str = "", details: Mapping[str, object] = {}
) -> Event:
    """What this thread began then and has ended now."""
    end = moment()
    took = end.time - begin.time, end.clock - begin.clock
    return Event(kind, name, row, begin.time, took[0], scope, line, details, begin.clock, took[1])


# Some systems (WASI) count no time of threads.
_thread_time = getattr(time, "thread_time", lambda: math.nan)
