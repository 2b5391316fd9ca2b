"""How each thread spent its time: computing, waiting, and in Python between calls.

Each moment of a thread belongs to its innermost event, or to PYTHON outside all events; blocks that
the user named do not count. The thread's own clock says how long it was on a processor; the rest of
the time it waited.

Cost: linear in the number of events, after sorting them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from rune.profiling.events import HOST, Event, Kind, Moment, Row, row_names
from rune.profiling.texts import counted
from rune.records import dataclass

_INSIDE = Kind.STEP, Kind.COLLECTIVE  # within calls; devices seldom report their times


@dataclass(slots=True)
class ThreadTime:
    """The time that a thread spent in events of one kind, without the events nested in them.

    seconds:    wall-clock time [s]
    processor:  the part of it on a processor [s]; NaN if the system does not measure it
    """

    thread: str
    kind: Kind | str
    seconds: float = 0.0
    processor: float = 0.0

    @property
    def waiting(self) -> float:
        """The time that was not on a processor [s]."""
        return max(0.0, self.seconds - self.processor)


class Workers(Protocol):
    """Threads that compute for a device."""

    @property
    def ids(self) -> Sequence[int]:
        """One id for each thread."""
        ...

    def seconds(self) -> float:
        """The time that all of them together were on a processor [s]."""
        ...


class Work:
    """Measures from now on how long a device's workers compute, and how long they could have."""

    def __init__(self, device: str, workers: Workers):
        self.name, self.workers = f"{counted(len(workers.ids), 'worker')} of {device}", workers
        self.count, self.begin = len(workers.ids), Moment(time.perf_counter(), workers.seconds())

    def now(self) -> ThreadTime:
        """The times so far."""
        seconds = self.count * (time.perf_counter() - self.begin.time)
        return ThreadTime(self.name, "kernels", seconds, self.workers.seconds() - self.begin.clock)


Windows = Mapping[Row, Sequence[Moment]]  # by host thread: when its time begins, and ends


def by_thread(events: Iterable[Event]) -> dict[Row, list[Event]]:
    """The events that show what each thread did, by the thread's row on the host."""
    threads: dict[Row, list[Event]] = {}
    for event in events:
        if event.kind not in _INSIDE:
            threads.setdefault(event.row._replace(device=HOST), []).append(event)
    return threads


def pieces(events: Iterable[Event], windows: Windows) -> Iterator[Event]:
    """The time of each thread, cut into pieces of one kind; a window may extend it past events."""
    threads = {row: list[Event]() for row in windows} | by_thread(events)
    for row, members in threads.items():
        yield from _pieces(row, members, windows.get(row, ()))


def _pieces(row: Row, events: Sequence[Event], window: Sequence[Moment]) -> Iterator[Event]:
    marks = [(moment, event) for event in events for moment in _ends(event)]
    marks += [(moment, None) for moment in window]
    marks.sort(key=lambda mark: mark[0].time)
    around: dict[int, Event] = {}
    for (begin, event), (end, _) in itertools.pairwise(marks):
        if event is not None and event.kind is not Kind.SPAN and around.pop(id(event), None) is None:
            around[id(event)] = event
        if end.time > begin.time:
            kind = max(around.values(), key=_depth).kind if around else Kind.PYTHON
            interval = end.time - begin.time, end.clock - begin.clock
            yield Event(kind, kind.value, row, begin.time, interval[0], clock=begin.clock, processor=interval[1])


def _ends(event: Event) -> tuple[Moment, Moment]:
    return Moment(event.start, event.clock), Moment(event.end, event.clock + event.processor)


def _depth(event: Event) -> tuple[float, float]:
    """A sort key that is larger for an event nested deeper among those at the same moment."""
    return event.start, -event.seconds


def times(pieces: Iterable[Event]) -> list[ThreadTime]:
    """The time of each thread by kind of event, thread by thread, the longest kind first."""
    totals: dict[Row, dict[Kind, ThreadTime]] = {}
    for piece in pieces:
        total = totals.setdefault(piece.row, {}).setdefault(piece.kind, ThreadTime("", piece.kind))
        total.seconds += piece.seconds
        total.processor += piece.processor
    for row, name in row_names([*totals]).items():
        for total in totals[row].values():
            total.thread = name
    return [total for of_row in totals.values() for total in sorted(of_row.values(), key=lambda t: -t.seconds)]
