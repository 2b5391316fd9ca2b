"""Search: the fastest schedule of a kernel among many, by trying them.

beam     neighbours of the default and of the fastest few, as long as there are any
sample   then all others in random order, from a seed
halving  the fastest few against the default, in twice as many rounds each time, keeping the
         better half
verdict  the last one against the default, in separate rounds: clearly faster, or rejected

Every schedule runs in turns with the default, so that a machine that slows down in between slows
both, and medians discard disturbed rounds. The functions that run a schedule and read the clock are
arguments: this module uses neither a device nor a clock.
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

BEAM, BATCH = 4, 6  # schedules whose neighbours are tried next, and the most neighbours at a time
FINALISTS = 8
ROUNDS = (3, 5, 9, 15)  # of a first look, and of each halving
VERDICT_ROUNDS, FEWEST_ROUNDS = 25, 7
MARGIN = 0.05  # a winner takes at most 1 - MARGIN of the default's time, ...
MOST_LOST = 0.2  # ... and loses at most this share of the rounds
HOPELESS = 1.25  # a schedule with this multiple of the default's time gets no more rounds
EXPLORING = 0.7  # the share of the budget before the halving


class Dropped(Exception):
    """A schedule is dropped; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The time of a search, and its clock; infinite seconds: until everything has been tried."""

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
    """A schedule that runs, and pairs of its time and the default's."""

    schedule: Schedule
    run: Run
    pairs: tuple[tuple[float, float], ...] = ()

    @property
    def ratio(self) -> float:
        """The median of the time, divided by the default's."""
        return median(a / b for a, b in self.pairs)

    @property
    def estimate(self) -> float:
        """The least time, divided by the default's: as disturbances only slow runs."""
        times, defaults = zip(*self.pairs, strict=True)
        return min(times) / min(defaults)

    @property
    def share_lost(self) -> float:
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
    tried_count = 0
    for schedule in _in_turn(default, candidates, duels, seed, first):
        if budget.clock() >= until:
            break
        _try(schedule, prepare, baseline, duels, losers)
        tried_count += 1
        tell(tried_count, min([1.0, *(d.estimate for d in duels)]))
    until = start + budget.seconds
    last = _halved(duels, losers, baseline, budget.clock, until)
    is_complete = tried_count == len(candidates)
    # The finalist was chosen for its times, so these are too good: only new rounds are fair.
    if last is not None:
        last = _rounds(Duel(last.schedule, last.run), baseline, VERDICT_ROUNDS, budget.clock, until)
        is_complete &= len(last.pairs) == VERDICT_ROUNDS
        if not _wins(last):
            losers.append(Loser(last.schedule, f"not surely faster, {_times(last)}"))
            last = None
    winner = default if last is None else last.schedule
    times = _default_times(baseline) if last is None else _winner_times(last)
    return Outcome(default, winner, *times, len(candidates), tried_count, tuple(losers), is_complete)


def _default_times(baseline: Run) -> tuple[float, float, float]:
    """The ratio and the seconds of an outcome where the default wins."""
    seconds = median(baseline() for _ in range(ROUNDS[0]))
    return 1.0, seconds, seconds


def _winner_times(winner: Duel) -> tuple[float, float, float]:
    """The ratio and the seconds of an outcome: of the winner, and of the default beside it."""
    times, defaults = zip(*winner.pairs, strict=True)
    return winner.ratio, median(times), median(defaults)


# --- which next -------------------------------------------------------------------------------


def _in_turn(
    default: Schedule, candidates: Sequence[Schedule], duels: Sequence[Duel], seed: int, first: Sequence[Schedule]
) -> Iterator[Schedule]:
    """The schedules to try: `first`, neighbours of the best so far, then all others at random."""
    open_candidates = dict.fromkeys(candidates)
    for schedule in first:
        if schedule in open_candidates:
            del open_candidates[schedule]
            yield schedule
    while True:
        # The caller adds a duel for each schedule that it gets, so `duels` has grown since the last
        # batch. Schedules have no order, and are left out of the key.
        ranking = sorted([(1.0, 0, default), *((d.estimate, 1, d.schedule) for d in duels)], key=lambda r: r[:2])
        batch = _batch(open_candidates, [schedule for *_, schedule in ranking[:BEAM]])
        if not batch:
            break
        for schedule in batch:
            del open_candidates[schedule]
            yield schedule
    remaining = list(open_candidates)
    for number in np.random.default_rng(seed).permutation(len(remaining)):
        yield remaining[number]


def _batch(open_candidates: Iterable[Schedule], beam: Sequence[Schedule]) -> list[Schedule]:
    """Some neighbours of a beam: one that differs in each step in turn, those of the best first."""
    groups: dict[tuple[int, str], list[Schedule]] = {}
    for schedule in open_candidates:
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
    """The fastest of these schedules; None if all are slower than the default."""
    remaining = list(duels)
    for rounds in ROUNDS[1:]:
        remaining = [_rounds(d, baseline, rounds, clock, until) for d in remaining]
        ranking = sorted(remaining, key=lambda d: d.ratio)
        # Half of the margin is enough here; the verdict, in new rounds, asks for all of it.
        survivors = sum(d.ratio < 1 - MARGIN / 2 for d in ranking)
        remaining = ranking[: min(survivors, math.ceil(len(ranking) / 2))]
        losers += [Loser(d.schedule, f"slower, {_times(d)}") for d in ranking[len(remaining) :]]
    losers += [Loser(d.schedule, f"slower than the winner, {_times(d)}") for d in remaining[1:]]
    return remaining[0] if remaining else None


def _rounds(
    duel: Duel, baseline: Run, rounds: int, clock: Callable[[], float] = float, until: float = math.inf
) -> Duel:
    """The duel after some more rounds; none begins when time is up."""
    pairs = list(duel.pairs)
    # Each is first in every second round, so that neither always finds warmer caches.
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
    return len(duel.pairs) >= FEWEST_ROUNDS and duel.ratio <= 1 - MARGIN and duel.share_lost <= MOST_LOST


def _times(duel: Duel) -> str:
    return f"{duel.ratio:.2f} of the default's time" if duel.pairs else "no time left to look"


# --- what became of them ----------------------------------------------------------------------


def reasons(losers: Sequence[Loser]) -> Counter[str]:
    """The number of schedules dropped for each reason, without the details after a comma."""
    return Counter(loser.why.partition(",")[0] for loser in losers)
