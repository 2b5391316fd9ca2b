"""Reports of a search for schedules: its progress, and its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rune.lowering.build.schedule import Schedule
from rune.records import dataclass
from rune.transforms.tuning.search import Loser, Outcome, reasons
from rune.transforms.tuning.winners import Winner

KNOWN = "known from an earlier search"
LATE = "out of time"


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a search: `tried` of `candidates` for the kernel `number` of `kernels`.

    ratio: of the time of the fastest so far to that of the default, from a first look
    """

    kernel: str
    number: int
    kernels: int
    tried: int
    candidates: int
    ratio: float

    def __str__(self) -> str:
        where = f"tune {self.number + 1}/{self.kernels} {self.kernel}"
        return f"{where}: {self.tried}/{self.candidates} schedules, the best takes {self.ratio:.2f} of the default"


@dataclass(frozen=True, slots=True)
class TunedKernel:
    """One kernel, its default and its winner, which may be the default.

    ratio:   of the winner's time to the default's, the median of rounds that ran both
    seconds, default_seconds: of one run; 0 where nothing ran
    losers:  the rejected schedules, each with the reason
    note:    why it was not searched, or not completely; or nothing
    """

    name: str
    default: str
    winner: str
    ratio: float
    seconds: float = 0.0
    default_seconds: float = 0.0
    candidates: int = 0
    tried: int = 0
    losers: tuple[Loser, ...] = ()
    note: str = ""

    @classmethod
    def of(cls, name: str, o: Outcome) -> TunedKernel:
        """The result of a search."""
        # An incomplete search may have missed the fastest schedule, so the report mentions it.
        note = "" if o.is_complete else LATE
        names = str(o.default), str(o.winner)
        return cls(name, *names, o.ratio, o.seconds, o.default_seconds, o.candidates, o.tried, o.losers, note)

    @classmethod
    def known(cls, name: str, default: Schedule, winner: Winner) -> TunedKernel:
        """The result of an earlier search."""
        # A stored winner that is not faster is the record that the default won.
        schedule = str(default) if winner.ratio >= 1 else winner.schedule
        return cls(name, str(default), schedule, winner.ratio, note=KNOWN)

    @classmethod
    def untried(cls, name: str, default: Schedule, why: str) -> TunedKernel:
        """A kernel that could not be searched."""
        return cls(name, str(default), str(default), 1.0, note=why)

    @property
    def dropped(self) -> Counter[str]:
        """The number of rejected schedules for each reason."""
        return reasons(self.losers)

    def _lines(self) -> Iterator[str]:
        is_default = self.winner == self.default
        yield f"{self.name}: {self.default} (default)" + ("" if is_default else f" -> {self.winner}")
        times = f"{_time(self.default_seconds)} -> {_time(self.seconds)}, " if self.default_seconds else ""
        change = "the default stays" if is_default else f"{times}{self.ratio:.2f} of the time"
        yield f"  {change}{f' ({self.note})' if self.note else ''}"
        if self.tried:
            drop_counts = ", ".join(f"{count} {why}" for why, count in self.dropped.most_common())
            yield f"  {self.tried} of {self.candidates} schedules tried: {drop_counts}"
        # Other values may show an error of the compiler, so such a schedule is named.
        yield from (f"  disagrees: {x.schedule} ({x.why})" for x in self.losers if x.why.startswith("disagrees"))

    def __str__(self) -> str:
        return "\n".join(self._lines())


@dataclass(frozen=True, slots=True)
class Tuned:
    """The winner for each kernel of a function."""

    name: str
    device: str
    kernels: tuple[TunedKernel, ...]

    def __getitem__(self, kernel: str) -> TunedKernel:
        """A kernel by its name."""
        return {k.name: k for k in self.kernels}[kernel]

    def __str__(self) -> str:
        return "\n".join([f"tuned {self.name} on {self.device}", *map(str, self.kernels)])

    __repr__ = __str__


def _time(seconds: float) -> str:
    """The time as people read it.

    >>> _time(0.00312), _time(4.2e-6)
    ('3.12 ms', '4.2 µs')
    """
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} µs"
