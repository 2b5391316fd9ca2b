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
    """How often things happened in this process.

    traces: a Python function was traced by jit. compiles: a program was lowered and compiled.
    runs: a compiled program was run. disk_hits, disk_misses: compiled code was looked for in the
    cache on disk, and found or not. evictions: a trace was forgotten, with its compiled code,
    because more was kept than `rune.configure(compiled_bytes=...)` allows. searches: the fastest
    loops of a kernel were searched for.
    """

    traces: int = 0
    compiles: int = 0
    runs: int = 0
    disk_hits: int = 0
    disk_misses: int = 0
    evictions: int = 0
    searches: int = 0


# `next` on itertools.count is atomic, so threads count without a lock.
traces, compiles, runs = itertools.count(), itertools.count(), itertools.count()
disk_hits, disk_misses = itertools.count(), itertools.count()
evictions, searches = itertools.count(), itertools.count()
_native = array("q", [0])  # runs that native code made and counted


def value(counter: itertools.count) -> int:
    """How often `next` was called on the counter."""
    # "count(7)" is the one way to look at it without counting: Python 3.14 does not pickle it.
    return int(repr(counter)[len("count(") : -1])


def native_runs() -> array[int]:
    """Where native code counts the runs that it makes, holding the interpreter's lock."""
    return _native


def counters() -> Counters:
    """The counters as they stand.

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
