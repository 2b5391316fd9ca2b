"""Public counters of traces, compilations and runs, so that caching can be asserted."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from rune.records import dataclass


@dataclass(slots=True)
class Counters:
    """How many times each of these events happened in this process.

    traces: jit traced a Python function. compiles: a program was lowered and compiled. runs: a
    compiled program was run. disk_hits, disk_misses: a look-up in the cache on disk did or did not
    find compiled code. evictions: a trace was dropped with its compiled code, because the cache
    exceeded `rune.configure(compiled_bytes=...)`. searches: a search for the fastest loops of a
    kernel was made.
    """

    traces: int = 0
    compiles: int = 0
    runs: int = 0
    disk_hits: int = 0
    disk_misses: int = 0
    evictions: int = 0
    searches: int = 0


# `next` on itertools.count is atomic, so threads can count without a lock.
traces, compiles, runs = itertools.count(), itertools.count(), itertools.count()
disk_hits, disk_misses = itertools.count(), itertools.count()
evictions, searches = itertools.count(), itertools.count()
_native = array("q", [0])  # runs by native code, which counts them itself


def value(counter: itertools.count) -> int:
    """How many times `next` was called on the counter."""
    # Only the repr, "count(7)", shows the value without counting: Python 3.14 cannot pickle it.
    return int(repr(counter)[len("count(") : -1])


def native_runs() -> array[int]:
    """The cell in which native code counts its runs, while it holds the interpreter's lock."""
    return _native


def counters() -> Counters:
    """The current counters.

    Errors: none.

    >>> import rune
    >>> before = rune.counters().traces
    >>> _ = rune.jit(lambda x: x + 1)(2.0)
    >>> rune.counters().traces - before
    1
    """
    counters = Counters(*map(value, (traces, compiles, runs, disk_hits, disk_misses, evictions, searches)))
    counters.runs += _native[0]
    return counters


@contextmanager
def counting() -> Iterator[Counters]:
    """Counts of what happens inside the block, filled in when it ends.

    Errors: none.

    >>> with counting() as counts:
    ...     _ = next(traces)
    >>> counts.traces
    1
    """
    before, counts = counters(), Counters()
    try:
        yield counts
    finally:
        after = counters()
        for f in fields(Counters):
            setattr(counts, f.name, getattr(after, f.name) - getattr(before, f.name))
