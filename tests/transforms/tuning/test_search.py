"""The search: what it tries, in which order, what wins and when it ends. Times are invented.

A race has a clock of its own that goes on by what is run, so nothing here waits for anything.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.lowering.build.schedule import PLAIN, Schedule, Share, Vectors, parse
from rune.lowering.build.space import difference
from rune.transforms.tuning.search import MARGIN, Budget, Dropped, Outcome, Run, reasons, search

SPACE = [PLAIN, *(Schedule(vectors=Vectors(n, lanes)) for n, lanes in itertools.product((2, 3, 4, 8), (1, 8, 16)))]
SHARED = [Schedule(vectors=s.vectors, share=Share(n)) for s in SPACE for n in (16, 32)]


@dataclass
class Race:
    """Seconds of each schedule, and what happens: `noise` multiplies each time."""

    seconds: Mapping[Schedule, float]
    noise: Callable[[], float] = lambda: 1.0
    broken: Mapping[Schedule, str] = field(default_factory=dict)
    compile_s: float = 0.5
    time: float = 0.0
    builds: list[Schedule] = field(default_factory=list)

    def prepare(self, schedule: Schedule) -> Run:
        self.time += self.compile_s
        self.builds.append(schedule)
        if schedule in self.broken:
            raise Dropped(self.broken[schedule])

        def run() -> float:
            seconds = self.seconds.get(schedule, 1.0) * self.noise()
            self.time += seconds
            return seconds

        return run

    def search(self, space: Sequence[Schedule] = SPACE, budget: float = math.inf, seed: int = 0) -> Outcome:
        return search(PLAIN, space, self.prepare, Budget(budget, lambda: self.time), seed, lambda *_: None)


FAST = SPACE[7]

# --- what wins ------------------------------------------------------------------------------------


def test_the_fastest_schedule_wins():
    outcome = Race({FAST: 0.5, SPACE[3]: 0.7}).search()

    assert (outcome.winner, outcome.ratio, outcome.is_complete) == (FAST, 0.5, True)


def test_a_schedule_that_is_hardly_faster_leaves_the_default():
    outcome = Race({FAST: 1 - MARGIN / 2}).search()

    assert (outcome.winner, outcome.ratio) == (PLAIN, 1.0)


@given(st.lists(st.floats(1.0, 4.0), min_size=12, max_size=12), st.integers(0, 99))
def test_no_slower_schedule_wins_under_any_noise(times: list[float], seed: int):
    rng = np.random.default_rng(seed)
    race = Race(dict(zip(SPACE[1:], times, strict=True)), noise=lambda: rng.lognormal(0, 0.05))

    assert race.search().winner == PLAIN


def test_a_machine_that_slows_down_meanwhile_changes_no_ratio():
    race = Race({FAST: 0.8})
    race.noise = lambda: 1 + race.time / 1000

    assert race.search().ratio == pytest.approx(0.8, rel=0.05)


def test_rounds_that_something_disturbs_are_outvoted():
    rng = np.random.default_rng(0)
    outcome = Race({FAST: 0.6}, noise=lambda: 30.0 if rng.random() < 0.1 else 1.0).search()

    assert outcome.winner == FAST


# --- what is dropped ------------------------------------------------------------------------------


def test_a_schedule_that_fails_is_reported_and_does_not_win():
    outcome = Race({FAST: 0.1}, broken={FAST: "disagrees, y0 by tile(i0=2) on arguments of seed 0"}).search()

    assert (outcome.winner, reasons(outcome.losers)["disagrees"]) == (PLAIN, 1)


def test_every_schedule_is_the_winner_or_has_a_reason():
    outcome = Race({FAST: 0.5, SPACE[2]: 0.9, SPACE[4]: 3.0}, broken={SPACE[5]: "fails, CompileError"}).search()

    assert {outcome.winner, *(x.schedule for x in outcome.losers)} == set(SPACE[1:])


def test_a_default_that_fails_ends_the_search():
    with pytest.raises(Dropped, match="out of memory"):
        Race({}, broken={PLAIN: "out of memory, 5 B"}).search()


# --- what is tried --------------------------------------------------------------------------------


def test_every_schedule_is_tried_once_without_a_time_limit():
    race = Race({})
    outcome = race.search(SPACE + SHARED)

    assert sorted(map(str, race.builds)) == sorted({str(s) for s in SPACE + SHARED})
    assert (outcome.tried, outcome.candidates) == (38, 38)


def test_neighbours_of_fast_schedules_are_tried_before_others():
    fast = Schedule(vectors=Vectors(4, 8))
    race = Race({fast: 0.5})
    race.search(SPACE + SHARED, budget=math.inf)
    place = {s: n for n, s in enumerate(race.builds)}

    assert (
        place[Schedule(vectors=Vectors(4, 8), share=Share(16))]
        < place[Schedule(vectors=Vectors(8, 1), share=Share(32))]
    )


@pytest.mark.parametrize(
    ("a", "b", "near"),
    [
        ("plain", "share(16)", "share"),
        ("share(16)", "share(512)", "share"),
        ("tile(i0=2, i1=4)", "tile(i0=2, i1=4, apart)", "tile"),
        ("tile(i0=2, i1=4)", "tile(i0=3, i1=8)", None),
        ("vectors(2, lanes=4)", "vectors(3, lanes=4) share(16)", None),
        ("plain", "plain", None),
    ],
)
def test_neighbours_differ_in_one_thing(a: str, b: str, near: str | None):
    assert difference(parse(a), parse(b)) == near


def test_the_winner_of_an_earlier_search_is_tried_first():
    race = Race({})
    search(PLAIN, SPACE, race.prepare, Budget(math.inf, lambda: race.time), 0, lambda *_: None, [FAST])

    assert race.builds[:2] == [PLAIN, FAST]


# --- when it ends ---------------------------------------------------------------------------------


@given(st.floats(0.1, 60.0))
def test_no_schedule_is_begun_when_the_time_is_over(budget: float):
    race = Race({FAST: 0.5}, compile_s=1.0)
    race.search(budget=budget)

    # One may be under way: its compilation, its rounds and the default's.
    assert race.time <= max(budget, 1.0) + 1.0 + 2 * 3 * 1.0 + 3.0


def test_a_search_that_runs_out_of_time_keeps_the_default_and_is_incomplete():
    outcome = Race({FAST: 0.5}).search(budget=2.0)

    assert (outcome.winner, outcome.is_complete) == (PLAIN, False)


def test_the_same_search_tries_the_same_schedules():
    first, second = Race({FAST: 0.5}), Race({FAST: 0.5})
    first.search(SHARED, seed=7)
    second.search(SHARED, seed=7)

    assert first.builds == second.builds
