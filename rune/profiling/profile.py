"""A profile: where the time and the memory of a program go. This module runs no programs.

Executors report the time of each step as measured by the device, and how much it moved and
computed; the profile adds this up and keeps the events. Steps that run the same kernel share a row.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields
from typing import TYPE_CHECKING

from rune import locks
from rune.counts import Counters, counters
from rune.profiling import late_modules, threads
from rune.profiling.events import Event, Kind, Moment, Row, current_row, moment
from rune.profiling.memory import Allocation, Level, Memory
from rune.profiling.texts import aligned, bytes_text, counted, time_text
from rune.profiling.threads import ThreadTime, Work, Workers
from rune.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from rune.drawing.svg import Picture

MOST_EVENTS = 1_000_000  # further events are added to the totals, but not kept one by one
SHOWN = 20  # the most rows of a table of totals
THREADS = "Time of threads"


@dataclass(slots=True)
class StepProfile:
    """A step of a compiled program: a kernel, a library call, copies.

    seconds:      time on the device [s]
    flops:        scalar operations; a multiply-add counts as two
    bytes_moved:  bytes read and written [B]
    lines:        the user's lines, "demo.py:3"
    scope:        the names of the enclosing rune.named_scope, "net/layer"
    """

    name: str
    lines: str
    calls: int = 0
    seconds: float = 0.0
    flops: int = 0
    bytes_moved: int = 0
    scope: str = ""
    kind: Kind = Kind.STEP

    @property
    def flops_per_second(self) -> float:
        """Operations per second."""
        return self.flops / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes per second."""
        return self.bytes_moved / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class PlanProfile:
    """A compiled program on one device.

    seconds:      time of its calls until all work is done, as profiled calls wait for it [s]
    arena_bytes:  memory for intermediate values, the maximum over all calls [B]
    steps:        empty if the device's backend does not measure steps
    processor:    how long the calling threads were on a processor during the calls [s]
    """

    name: str
    device: str
    calls: int = 0
    seconds: float = 0.0
    arena_bytes: int = 0
    steps: list[StepProfile] = field(default_factory=list)
    processor: float = 0.0


@dataclass(slots=True)
class Total:
    """All events of one kind, name and line, added up.

    seconds:    their total time [s]
    processor:  how long their threads were on a processor during them [s]; NaN if unknown
    """

    kind: Kind
    name: str
    line: str
    calls: int = 0
    seconds: float = 0.0
    processor: float = 0.0


class Profile:
    """The measurements of a profile. It prints as tables; a notebook also draws its timeline.

    >>> import rune, rune.numpy as rnp
    >>> with rune.debug.profile() as p:
    ...     _ = rune.jit(rnp.sin)(rnp.ones(2))
    >>> p.plans[0].name, p.plans[0].calls, p.counters.runs
    ('sin', 1, 1)
    """

    def __init__(self) -> None:
        self._lock = locks.lock()
        self._plans: dict[int, tuple[object, PlanProfile]] = {}
        self._steps: dict[tuple[int, str, str], StepProfile] = {}
        self._open: dict[tuple[Row, int], list[StepProfile]] = {}  # steps of running calls
        self._totals: dict[tuple[Kind, str, str], Total] = {}
        self._before, self._after = counters(), None
        self.events: list[Event] = []
        self.memory = Memory()
        self._thread, self._begin, self._last = current_row(), moment(), None
        self._workers: dict[str, Work] = {}
        self._worker_times: list[ThreadTime] = []
        self.start, self._end = self._begin.time, 0.0

    @property
    def plans(self) -> tuple[PlanProfile, ...]:
        """The programs that ran, in the order of their first calls."""
        with self._lock:
            return tuple(plan for _, plan in self._plans.values())

    @property
    def totals(self) -> tuple[Total, ...]:
        """Everything except programs and steps, by kind, name and line; the longest first."""
        with self._lock:
            return tuple(sorted(self._totals.values(), key=lambda t: -t.seconds))

    @property
    def counters(self) -> Counters:
        """Traces, compilations, runs, and binaries found on disk while the profile recorded."""
        after = self._after or counters()
        names = [f.name for f in fields(Counters)]
        return Counters(**{n: getattr(after, n) - getattr(self._before, n) for n in names})

    @property
    def seconds(self) -> float:
        """How long the profile recorded, or has recorded so far [s]."""
        return (self._end or time.perf_counter()) - self.start

    @property
    def levels(self) -> list[Level]:
        """Memory over time: the bytes in use on a device after each change."""
        return list(self.memory.levels(self.start + self.seconds))

    def live_arrays(self) -> list[Allocation]:
        """Allocations during the profile that are still alive, the largest first."""
        return sorted(self.memory.live(), key=lambda a: -a.nbytes)

    def end(self) -> None:
        """Stop recording."""
        if self._end:
            return
        self._after, self._last, self._worker_times = counters(), self._now(), self._work()
        self._end = self._last.time

    def _now(self) -> Moment:
        """The current moment; its clock is NaN in any thread but the one that began the profile."""
        current = moment()
        return current if current_row() == self._thread else current._replace(clock=math.nan)

    @property
    def between(self) -> list[Event]:
        """The gaps between recorded events: Python code, the user's own and that around calls."""
        return [piece for piece in self._pieces() if piece.kind is Kind.PYTHON]

    @property
    def threads(self) -> list[ThreadTime]:
        """How long each thread computed and waited, by kind of event; device workers come last."""
        return [*threads.times(self._pieces()), *(self._worker_times or self._work())]

    def _pieces(self) -> Iterable[Event]:
        is_complete = len(self.events) < MOST_EVENTS
        end = [self._last or self._now()] if is_complete else []
        return threads.pieces(self.events, {self._thread: [self._begin, *end]})

    def add_workers(self, device: str, workers: Workers) -> None:
        """Start counting the computing time of a device's threads; later calls do nothing."""
        if device not in self._workers:
            self._workers[device] = Work(device, workers)

    def _work(self) -> list[ThreadTime]:
        return [work.now() for work in self._workers.values()]

    def add(self, event: Event) -> None:
        """Record an event that has ended."""
        if len(self.events) < MOST_EVENTS and not self._end:
            self.events.append(event)

    def add_total(self, event: Event) -> None:
        """Record an event outside compiled programs, and add it to the totals."""
        self.add(event)
        key = event.kind, event.title, event.line
        with self._lock:
            total = self._totals.setdefault(key, Total(*key))
            total.calls += 1
            total.seconds += event.seconds
            total.processor += event.processor

    def add_call(self, key: object, call: Event, arena_bytes: int) -> None:
        """Record a call of a program that has ended; `key` identifies the program."""
        with self._lock:
            plan = self._plan(key, call.name, call.row.device)
            plan.calls += 1
            plan.seconds += call.seconds
            plan.processor += call.processor
            plan.arena_bytes = max(plan.arena_bytes, arena_bytes)
            steps = self._open.pop((call.row, id(key)), [])
        self.add(call._replace(details={"arena_bytes": arena_bytes}))
        self._add_steps(call.row, steps, call.start, call.seconds)

    def _add_steps(self, row: Row, steps: list[StepProfile], start: float, seconds: float) -> None:
        # Devices report how long steps took, not when, so they are placed end to end in the call.
        total = sum(s.seconds for s in steps)
        scale = min(1.0, seconds / total) if total else 1.0  # host and device clocks drift
        for step in steps:
            length = step.seconds * scale
            details = {"calls": step.calls, "operations": step.flops, "bytes": step.bytes_moved}
            self.add(Event(step.kind, step.name, row, start, length, step.scope, step.lines, details))
            start += length

    def add_step(self, key: object, name: str, device: str, step: StepProfile) -> None:
        """Record steps of a program that have ended, and add them to those of the same name."""
        with self._lock:
            plan = self._plan(key, name, device)
            self._open.setdefault((current_row(device), id(key)), []).append(step)
            total = self._steps.get((id(key), step.name, step.lines))
            if total is None:
                total = StepProfile(step.name, step.lines, scope=step.scope, kind=step.kind)
                self._steps[id(key), step.name, step.lines] = total
                plan.steps.append(total)
            total.calls += step.calls
            total.seconds += step.seconds
            total.flops += step.flops
            total.bytes_moved += step.bytes_moved

    def _plan(self, key: object, name: str, device: str) -> PlanProfile:
        # Keeps the key alive, so that no other object can get its id().
        return self._plans.setdefault(id(key), (key, PlanProfile(name, device)))[1]

    def trace(self) -> Mapping[str, object]:
        """The events in the Trace Event Format, as `save` writes them."""
        return late_modules.trace_file().trace([*self.events, *self.between], self.levels, self.start)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the timeline for Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing).

        path:   "trace.json", or "trace.json.gz" for a compressed file
        Source: Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
        Errors: OSError if the file cannot be written.
        """
        return late_modules.trace_file().write(path, self.trace())

    def picture(self) -> Picture:
        """The timeline: a band for each device and thread, with the memory of each device below."""
        return late_modules.view().picture(self)

    def __str__(self) -> str:
        tables = totals_text(self.totals), threads_text(self.threads), memory_text(self)
        parts = [summary(self), *map(plan_text, self.plans), *tables]
        return "\n".join(filter(None, parts))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = [(plan_head(plan), plan_rows(plan)) for plan in self.plans]
        tables.append(("Beside compiled programs", totals_rows(self.totals)))
        tables.append((THREADS, threads_rows(self.threads)))
        tables.append(("Arrays made here and alive", live_rows(self.live_arrays())))
        return late_modules.view().html_of(self, summary(self), tables)


def summary(profile: Profile) -> str:
    """One line: how many times programs ran, were traced and compiled."""
    counters = profile.counters
    look_ups = counters.disk_hits + counters.disk_misses
    return (
        f"{counted(counters.runs, 'run')}, {counted(counters.traces, 'trace')}, "
        f"{counted(counters.compiles, 'compilation')}; on disk {counters.disk_hits} of {look_ups} binaries were found"
    )


def plan_rows(plan: PlanProfile) -> list[tuple[str, ...]]:
    """The table of a program's steps, with a header row, the longest step first."""
    rows = [("step", "calls", "time", "share", "GFLOP/s", "GB/s", "line")]
    total = sum(s.seconds for s in plan.steps) or 1.0
    rows += [
        (
            s.name,
            str(s.calls),
            time_text(s.seconds),
            f"{s.seconds / total:.0%}",
            f"{s.flops_per_second / 1e9:.2f}",
            f"{s.bytes_per_second / 1e9:.2f}",
            s.lines,
        )
        for s in sorted(plan.steps, key=lambda s: -s.seconds)
    ]
    return rows


def plan_head(plan: PlanProfile) -> str:
    """`f on cpu:0: 3 calls, 1.20 ms (1.10 ms on a processor), arena 4096 B`."""
    calls, processor = counted(plan.calls, "call"), time_text(plan.processor)
    took = f"{time_text(plan.seconds)} ({processor} on a processor)"
    return f"{plan.name} on {plan.device}: {calls}, {took}, arena {plan.arena_bytes} B"


def plan_text(plan: PlanProfile) -> str:
    """The head, and a line for each step, the longest first."""
    return "\n".join([plan_head(plan), *(aligned(plan_rows(plan)) if plan.steps else [])])


def totals_rows(totals: Sequence[Total]) -> list[tuple[str, ...]]:
    """The table of events outside compiled programs, with a header row; empty without events."""
    rows = [(t.name, t.kind.value, *_spent(t), t.line) for t in totals[:SHOWN]]
    more = totals[SHOWN:]
    if more:
        calls, seconds = sum(t.calls for t in more), sum(t.seconds for t in more)
        others = Total(Kind.SPAN, f"{len(more)} others", "", calls, seconds, sum(t.processor for t in more))
        rows.append((others.name, "", *_spent(others), ""))
    return [("name", "kind", "calls", "time", "on processor", "line"), *rows] if rows else []


def _spent(total: Total) -> tuple[str, str, str]:
    return str(total.calls), time_text(total.seconds), time_text(total.processor)


def totals_text(totals: Sequence[Total]) -> str:
    """The table as text."""
    rows = totals_rows(totals)
    return "\n".join(["outside compiled programs:", *aligned(rows)]) if rows else ""


def threads_rows(times: Sequence[ThreadTime]) -> list[tuple[str, ...]]:
    """The table of how long threads computed and waited, with a header row."""
    rows = [(t.thread, str(t.kind), time_text(t.seconds), time_text(t.processor), time_text(t.waiting)) for t in times]
    return [("thread", "in", "time", "on processor", "waiting"), *rows] if rows else []


def threads_text(times: Sequence[ThreadTime]) -> str:
    """The table as text."""
    return "\n".join([f"{THREADS.lower()}:", *aligned(threads_rows(times))]) if times else ""


def live_rows(allocations: Sequence[Allocation]) -> list[tuple[str, ...]]:
    """The table of the first few allocations, with a header row; empty without allocations."""
    rows = [(a.text, bytes_text(a.nbytes), a.device, a.line) for a in allocations[:SHOWN]]
    return [("array", "size", "device", "line"), *rows] if rows else []


def memory_text(profile: Profile) -> str:
    """`memory of arrays made here: cpu:0 40 KiB at most, 20 KiB at the end`; empty without any."""
    most: dict[str, int] = {}
    latest: dict[str, int] = {}
    for _, device, nbytes in profile.levels:
        most[device], latest[device] = max(most.get(device, 0), nbytes), nbytes
    parts = (f"{d} {bytes_text(most[d])} at most, {bytes_text(latest[d])} at the end" for d in most)
    return f"memory of arrays made here: {'; '.join(parts)}" if most else ""
