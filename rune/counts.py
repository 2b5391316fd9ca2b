"""Public counters of traces and compilations, so that caching can be asserted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

_lock = threading.Lock()


@dataclass(slots=True)
class Counters:
    """How often things happened in this process.

    traces: a Python function was traced by jit. compiles: a plan was compiled.
    runs: a compiled plan was run.
    """

    traces: int = 0
    compiles: int = 0
    runs: int = 0


_total = Counters()


def count(name: str) -> None:
    """Add one to a counter."""
    with _lock:
        setattr(_total, name, getattr(_total, name) + 1)


def counters() -> Counters:
    """A copy of the counters as they stand."""
    return Counters(*(getattr(_total, f.name) for f in fields(Counters)))


@contextmanager
def counting() -> Iterator[Counters]:
    """Counts made inside the block, filled in when it ends.

    >>> with counting() as seen:
    ...     count("traces")
    >>> seen.traces
    1
    """
    before, seen = counters(), Counters()
    try:
        yield seen
    finally:
        after = counters()
        for f in fields(Counters):
            setattr(seen, f.name, getattr(after, f.name) - getattr(before, f.name))
