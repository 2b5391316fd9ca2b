"""Search: the fastest schedule of a kernel among many, by trying them.

beam     neighbours of the default and of the fastest few, as long as there are any
sample   then all others in random order, from a seed
halving  the fastest few against the default, in twice as many rounds each time, keeping the
         better half
verdict  the last one against the default, in separate rounds: clearly faster, or rejected

Whatever is compared runs in turns with the default, so that a machine that slows down meanwhile
slows both, and medians discard disturbed rounds. Running a schedule and reading the clock are
passed in: nothing here touches a device or a clock.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from statistics import median

import numpy as np

from rune.lowering.build.schedule import Schedule
from rune.lowering.build.space import difference
from rune.records import dataclass

Run = Callable[[], float]  # runs the kernel, and returns the seconds of one run
Prepare = Callable[[Schedule], Run]  # Errors: Dropped

BEAM, BATCH = 4, 6  # schedules whose neighbours are tried next, and how many of these
FINALISTS = 8
ROUNDS = (3, 5, 9, 15)  # of a first look, and of each halving
VERDICT_ROUNDS, FEWEST_ROUNDS = 25, 7
MARGIN = 0.05  # a winner takes at most 1 - MARGIN of the default's time, ...
MOST_LOST = 0.2  # ... and loses at most this share of the rounds
HOPELESS = 1.25  # of the default's time: no more rounds for it
EXPLORING = 0.7  # of the budget, before the halving


class Dropped(Exception):
    """Why a schedule was dropped."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a search may take, by which clock; infinite: until everything has been tried."""

    seconds: float
    clock: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Loser:
    """A schedule that was tried and rejected, and why."""

    schedule: Schedule
    why: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a search. `ratio`: the winner's time over the default's, 1 for the default.

    seconds, default_seconds: of one run
    is_complete: whether everything was tried, and the verdict had all its rounds
    """

    default: Schedule
    winner: Schedule
    ratio: float
    seconds: float
    default_seconds: float
    candidates: int
    tried: int
    losers: tuple[Loser, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Duel:
    """A schedule that runs, and its times and the default's, in pairs."""

    schedule: Schedule
    run: Run
    pairs: tuple[tuple[float, float], ...] = ()

    @property
    def ratio(self) -> float:
        """The median of the time over the default's."""
        return median(a / b for a, b in self.pairs)

    @property
    def estimate(self) -> float:
        """The least time over the default's: for few rounds, as disturbances only slow them."""
        times, defaults = zip(*self.pairs, strict=True)
        return min(times) / min(defaults)

    @property
    def lost(self) -> float:
        """The share of rounds in which the default was not slower."""
        return sum(a >= b for a, b in self.pairs) / len(self.pairs)


Tell = Callable[[int, float], None]  # schedules tried, the best ratio until now


def search(
    default: Schedule,
    space: Sequence[Schedule],
    prepare: Prepare,
    budget: Budget,
    seed: int,
    tell: Tell,
    first: Sequence[Schedule] = (),
) -> Outcome:
    """The fastest schedule of the space, or the default.

    first: schedules that are tried before all others, such as the winner of an earlier search
    Errors: Dropped where not even the default runs.
    """
    start = budget.clock()
    until = start + EXPLORING * budget.seconds
    baseline = prepare(default)
    duels: list[Duel] = []
    losers: list[Loser] = []
    candidates = [s for s in dict.fromkeys(space) if s != default]
    tried = 0
    for schedule in _in_turn(default, candidates, duels, seed, first):
        if budget.clock() >= until:
            break
        _try(schedule, prepare, baseline, duels, losers)
        tried += 1
        tell(tried, min([1.0, *(d.estimate for d in duels)]))
    until = start + budget.seconds
    last = _halved(duels, losers, baseline, budget.clock, until)
    is_complete = tried == len(candidates)
    if last is not None:
        last = _rounds(Duel(last.schedule, last.run), baseline, VERDICT_ROUNDS, budget.clock, until)
        is_complete &= len(last.pairs) == VERDICT_ROUNDS
        if not _wins(last):
            losers.append(Loser(last.schedule, f"not surely faster, {_times(last)}"))
            last = None
    counts = len(candidates), tried, tuple(losers), is_complete
    if last is None:
        seconds = median(baseline() for _ in range(ROUNDS[0]))
        return Outcome(default, default, 1.0, seconds, seconds, *counts)
    times, defaults = zip(*last.pairs, strict=True)
    return Outcome(default, last.schedule, last.ratio, median(times), median(defaults), *counts)


# --- which next -------------------------------------------------------------------------------


def _in_turn(
    default: Schedule, candidates: Sequence[Schedule], duels: Sequence[Duel], seed: int, first: Sequence[Schedule]
) -> Iterator[Schedule]:
    """The others: the first, neighbours of the best so far and the default, the rest at random."""
    untried = dict.fromkeys(candidates)
    for schedule in first:
        if schedule in untried:
            del untried[schedule]
            yield schedule
    while True:
        ranked = sorted([(1.0, 0, default), *((d.estimate, 1, d.schedule) for d in duels)], key=lambda r: r[:2])
        batch = _batch(untried, [schedule for *_, schedule in ranked[:BEAM]])
        if not batch:
            break
        for schedule in batch:
            del untried[schedule]
            yield schedule
    remaining = list(untried)
    for number in np.random.default_rng(seed).permutation(len(remaining)):
        yield remaining[number]


def _batch(untried: Iterable[Schedule], beam: Sequence[Schedule]) -> list[Schedule]:
    """Some neighbours of a beam: one that differs in each step in turn, the best's first."""
    groups: dict[tuple[int, str], list[Schedule]] = {}
    for schedule in untried:
        steps = ((rank, difference(schedule, member)) for rank, member in enumerate(beam))
        near = next(((rank, step) for rank, step in steps if step is not None), None)
        if near is not None:
            groups.setdefault(near, []).append(schedule)
    turns = zip_longest(*(groups[key] for key in sorted(groups)))
    return [s for turn in turns for s in turn if s is not None][:BATCH]


# --- trying -----------------------------------------------------------------------------------


def _try(schedule: Schedule, prepare: Prepare, baseline: Run, duels: list[Duel], losers: list[Loser]) -> None:
    """A first look at a schedule, which joins those that run, or the losers.

    Only the finalists stay in memory: beyond that the slowest is dropped.
    """
    try:
        run = prepare(schedule)
    except Dropped as why:
        losers.append(Loser(schedule, str(why)))
        return
    duel = _rounds(Duel(schedule, run), baseline, ROUNDS[0])
    if duel.estimate >= HOPELESS:
        losers.append(Loser(schedule, f"slower, {_times(duel)}"))
        return
    duels.append(duel)
    if len(duels) > FINALISTS:
        slowest = max(duels, key=lambda d: d.estimate)
        duels.remove(slowest)
        losers.append(Loser(slowest.schedule, f"slower than {FINALISTS} others, {_times(slowest)}"))


def _halved(
    duels: Sequence[Duel], losers: list[Loser], baseline: Run, clock: Callable[[], float], until: float
) -> Duel | None:
    """The fastest of some; none where all are slower than the default."""
    remaining = list(duels)
    for rounds in ROUNDS[1:]:
        remaining = [_rounds(d, baseline, rounds, clock, until) for d in remaining]
        ranked = sorted(remaining, key=lambda d: d.ratio)
        survivors = sum(d.ratio < 1 - MARGIN / 2 for d in ranked)
        remaining = ranked[: min(survivors, math.ceil(len(ranked) / 2))]
        losers += [Loser(d.schedule, f"slower, {_times(d)}") for d in ranked[len(remaining) :]]
    losers += [Loser(d.schedule, f"slower than the winner, {_times(d)}") for d in remaining[1:]]
    return remaining[0] if remaining else None


def _rounds(
    duel: Duel, baseline: Run, rounds: int, clock: Callable[[], float] = float, until: float = math.inf
) -> Duel:
    """The duel after some more rounds, alternating who is first; none begins when time is up."""
    pairs = list(duel.pairs)
    for number in range(rounds):
        if clock() >= until:
            break
        if number % 2:
            other = baseline()
            pairs.append((duel.run(), other))
        else:
            time = duel.run()
            pairs.append((time, baseline()))
    return Duel(duel.schedule, duel.run, tuple(pairs))


def _wins(duel: Duel) -> bool:
    return len(duel.pairs) >= FEWEST_ROUNDS and duel.ratio <= 1 - MARGIN and duel.lost <= MOST_LOST


def _times(duel: Duel) -> str:
    return f"{duel.ratio:.2f} of the default's time" if duel.pairs else "no time left to look"


# --- what became of them ----------------------------------------------------------------------


def reasons(losers: Sequence[Loser]) -> Counter[str]:
    """How many schedules were dropped for which reason; what follows a comma is left out."""
    return Counter(loser.why.partition(",")[0] for loser in losers)
