"""Draws of one key on executors other than the CPU: the ulps by which they may differ.

Bits are the same everywhere, and so are numbers made from them by exact arithmetic; functions of
floats differ by the ulps in docs/accuracy.md. Numbers in closed form come from one
program for each executor; of those drawn by rejection, whose loops take seconds to compile, a
sample is tried (RUNE_TEST_WHOLE=1 tries all).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, random
from tests.random.distributions import CONTINUOUS, DISCRETE, Case
from tests.support.accuracy import bars
from tests.support.close import same, ulp_distance
from tests.support.sampling import one_in

MEASURED = ("opencl", "vulkan", "wgpu")
ELSEWHERE = [d.name for d in rune.devices() if d.target.backend in MEASURED]
on_every_executor = pytest.mark.parametrize("device", ELSEWHERE)
COUNT = 2_000
KEY = random.key(20_261_122)
DRAW, ONE_PLUS = "ulps of the draw", "ulps of 1 plus the draw"

# They are made of a decomposition: its signs are open, and it may be badly conditioned.
DECOMPOSED = ("multivariate_normal eigh", "multivariate_normal svd", "orthogonal")
LOOPS = {
    "gamma",
    "loggamma",
    "beta",
    "dirichlet",
    "chisquare",
    "f",
    "t",
    "generalized_normal",
    "ball",
    "noncentral_chisquare",
    "noncentral_f",
    "vonmises",
}


def sampler(case: Case) -> str:
    """The name without the parameters."""
    return case.name.split()[0]


FLOATS = [c for c in CONTINUOUS if c.name not in DECOMPOSED]
CLOSED = [c for c in FLOATS if sampler(c) not in LOOPS]
WHOLE = [c for c in DISCRETE if sampler(c) in ("bernoulli", "rademacher", "randint", "geometric")]
REJECTED = [f"{c.name} on {d}" for c in FLOATS if sampler(c) in LOOPS for d in ELSEWHERE]


def drawn(cases: list[Case], device: str) -> list[np.ndarray]:
    """Numbers of each case, from one program."""

    def everything(key: Any) -> list[Any]:
        return [case.draw(key, (COUNT,)) for case in cases]

    return list(map(np.asarray, rune.jit(everything, device=device)(KEY)))


@functools.cache
def in_closed_form(device: str) -> dict[str, np.ndarray]:
    """Numbers of each case that needs no loop."""
    cases = [*CLOSED, *WHOLE]
    return dict(zip([c.name for c in cases], drawn(cases, device), strict=True))


def assert_near(case: Case, expected: np.ndarray, actual: np.ndarray):
    """Within what the page says of the distribution."""
    assert expected.dtype == actual.dtype == dtypes.f32
    distance = np.abs(expected.astype(np.float64) - actual)
    apart = {DRAW: ulp_distance(expected, actual).max(), ONE_PLUS: (distance / np.spacing(1 + np.abs(expected))).max()}

    row = bars("Draws")[sampler(case)]
    assert not {kind: ulps for kind, ulps in apart.items() if ulps > row[kind]}


def test_the_page_has_a_row_for_every_distribution_of_floats():
    assert set(bars("Draws")) == {sampler(c) for c in FLOATS}


@on_every_executor
@pytest.mark.parametrize("case", CLOSED, ids=str)
def test_numbers_in_closed_form_are_as_near_those_of_the_cpu_as_documented(case: Case, device: str):
    assert_near(case, in_closed_form("cpu:0")[case.name], in_closed_form(device)[case.name])


@on_every_executor
@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_whole_numbers_are_those_of_the_cpu(case: Case, device: str):
    same(in_closed_form("cpu:0")[case.name], in_closed_form(device)[case.name])


@pytest.mark.parametrize("pair", one_in(32, REJECTED))
def test_numbers_drawn_by_rejection_are_as_near_those_of_the_cpu_as_documented(pair: str):
    name, device = pair.rsplit(" on ", 1)
    case = next(c for c in FLOATS if c.name == name)

    assert_near(case, *(drawn([case], d)[0] for d in ("cpu:0", device)))
