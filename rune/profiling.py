"""Profiles: where the time of compiled programs goes, step by step. Values and text, no running.

A profile gathers while `rune.debug.profile()` is open in a context, or for the whole process with
RUNE_PROFILE=1 or RUNE_DEBUG=profile. Executors tell it the time of each step as their device
measured it, and what the step moved and computed; it adds up. Steps that run one kernel are one
row.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields

from rune import locks
from rune.counts import Counters, counters

DEBUG = "RUNE_DEBUG"  # environment variable: "profile" profiles the process, printed at its end
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


@dataclass(slots=True)
class StepProfile:
    """A step of a compiled program: a kernel, a call of a library, copies.

    seconds:      on the device [s]
    flops:        scalar operations, a multiply-add as two
    bytes_moved:  read and written [B]
    lines:        the user's, "demo.py:3"
    """

    name: str
    lines: str
    calls: int = 0
    seconds: float = 0.0
    flops: int = 0
    bytes_moved: int = 0

    @property
    def flops_per_second(self) -> float:
        """Operations in a second."""
        return self.flops / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes in a second."""
        return self.bytes_moved / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class PlanProfile:
    """A compiled program on one device.

    seconds:      of its calls, from the call until all is done; profiled calls wait [s]
    arena_bytes:  memory for intermediate values, the most of any call [B]
    steps:        empty where the device's backend measures no steps
    """

    name: str
    device: str
    calls: int = 0
    seconds: float = 0.0
    arena_bytes: int = 0
    steps: list[StepProfile] = field(default_factory=list)


class Profile:
    """What was measured; printing it gives a table for each compiled program.

    >>> import rune, rune.numpy as rnp
    >>> with rune.debug.profile() as found:
    ...     _ = rune.jit(rnp.sin)(rnp.ones(2))
    >>> found.plans[0].name, found.plans[0].calls, found.counters.runs
    ('sin', 1, 1)
    """

    def __init__(self) -> None:
        self._lock = locks.lock()
        self._plans: dict[int, tuple[object, PlanProfile]] = {}
        self._steps: dict[tuple[int, str, str], StepProfile] = {}
        self._before, self._after = counters(), None

    @property
    def plans(self) -> tuple[PlanProfile, ...]:
        """The programs that ran, in the order of their first calls."""
        with self._lock:
            return tuple(plan for _, plan in self._plans.values())

    @property
    def counters(self) -> Counters:
        """Traces, compilations, runs, and binaries found on disk while it was gathering."""
        after = self._after or counters()
        names = [f.name for f in fields(Counters)]
        return Counters(**{n: getattr(after, n) - getattr(self._before, n) for n in names})

    def end(self) -> None:
        """Nothing is counted from here on."""
        self._after = self._after or counters()

    def add_call(self, key: object, name: str, device: str, seconds: float, arena_bytes: int) -> None:
        """A call of a program has ended; `key` is the program's own."""
        with self._lock:
            plan = self._plan(key, name, device)
            plan.calls += 1
            plan.seconds += seconds
            plan.arena_bytes = max(plan.arena_bytes, arena_bytes)

    def add_step(self, key: object, name: str, device: str, step: StepProfile) -> None:
        """Steps of a program have ended: their counts are added to those of the same name."""
        with self._lock:
            plan = self._plan(key, name, device)
            total = self._steps.get((id(key), step.name, step.lines))
            if total is None:
                total = self._steps[id(key), step.name, step.lines] = StepProfile(step.name, step.lines)
                plan.steps.append(total)
            total.calls += step.calls
            total.seconds += step.seconds
            total.flops += step.flops
            total.bytes_moved += step.bytes_moved

    def _plan(self, key: object, name: str, device: str) -> PlanProfile:
        # The key is kept alive here, so that its identity stays its own.
        return self._plans.setdefault(id(key), (key, PlanProfile(name, device)))[1]

    def __str__(self) -> str:
        counters = self.counters
        look_ups = counters.disk_hits + counters.disk_misses
        summary = (
            f"{counters.runs} runs, {counters.traces} traces, {counters.compiles} compilations; "
            f"on disk {counters.disk_hits} of {look_ups} binaries were found"
        )
        return "\n".join([summary, *map(plan_text, self.plans)])

    __repr__ = __str__


def plan_text(plan: PlanProfile) -> str:
    """`f on cpu:0: 3 calls, 1.20 ms, arena 4096 B`, and a line for each step, the longest first."""
    head = f"{plan.name} on {plan.device}: {_counted(plan.calls)}, {time_text(plan.seconds)}"
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
    lines = aligned(rows) if plan.steps else []
    return "\n".join([f"{head}, arena {plan.arena_bytes} B", *lines])


def _counted(calls: int) -> str:
    return f"{calls} call{'' if calls == 1 else 's'}"


def time_text(seconds: float) -> str:
    """`1.20 ms`."""
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.2f} {name}"
    return f"{seconds * 1e9:.0f} ns"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The lines of a table: its first and last column to the left, numbers between to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if k in (0, last) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


# --- the one in force -------------------------------------------------------------------------


_process: list[Profile] = []  # one, or none
_current: ContextVar[Profile | None] = ContextVar("rune_profile", default=None)


def profile_process() -> None:
    """Gather for the whole process from now on, and print what was gathered at its end."""
    if not _process:
        _process.append(Profile())
        atexit.register(lambda: print(_process[0], file=sys.stderr))


def is_asked_for(environment: Mapping[str, str]) -> bool:
    """Whether RUNE_DEBUG=profile is in the environment."""
    return "profile" in environment.get(DEBUG, "").split(",")


def current() -> Profile | None:
    """The profile that gathers in this context, or in the process."""
    return _current.get() or (_process[0] if _process else None)


class gathering:
    """Inside the block, this profile gathers."""

    __slots__ = ("profile", "token")

    def __init__(self, profile: Profile):
        self.profile = profile

    def __enter__(self) -> Profile:
        self.token = _current.set(self.profile)
        return self.profile

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        _current.reset(self.token)
        self.profile.end()
