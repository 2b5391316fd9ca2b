"""Loops and branches as compiled code: what the plan computes is what the Python loop computes.

Values, gradients and gradients on lanes, each compiled as one program; and compiled functions
inside a derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from tests.control.cases import CASES, Case, arguments, flat
from tests.support.arrays import array
from tests.support.close import near

ALL = (0, 1, 2)
F64 = "f64, sums in another order, other polynomials"
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def total(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: sum(y.sum() for y in flat(function)(*args))


@every_case
def test_value_and_gradient_are_one_program(case: Case):
    args = arguments()

    with rune.counting() as seen:
        found = rune.jit(rune.value_and_grad(total(case.function), argnums=ALL))(*args)

    assert (seen.compiles, seen.runs) == (1, 1)
    expected = rune.value_and_grad(total(case.twin), argnums=ALL)(*args)
    near(expected, found, relative=1e-10, absolute=1e-12, why=F64)


@every_case
def test_the_gradient_of_compiled_code_is_two_programs(case: Case):
    args = arguments()

    with rune.counting() as seen:
        found = rune.grad(rune.jit(total(case.function)), argnums=ALL)(*args)

    assert seen.compiles == 2
    expected = rune.grad(total(case.twin), argnums=ALL)(*args)
    near(expected, found, relative=1e-10, absolute=1e-12, why=F64)


@every_case
def test_gradients_on_lanes_compile(case: Case):
    rows = [arguments(seed) for seed in (0, 3)]
    batch = [array(np.stack([np.asarray(x) for x in column])) for column in zip(*rows)]

    found = rune.jit(rune.vmap(rune.grad(total(case.function), argnums=ALL)))(*batch)

    alone = [rune.grad(total(case.twin), argnums=ALL)(*row) for row in rows]
    expected = tuple(np.stack([np.asarray(g) for g in column]) for column in zip(*alone))
    near(expected, found, relative=1e-9, absolute=1e-11, why=F64)


def test_an_eager_loop_is_one_run_of_one_program():
    w, h, xs = arguments()
    CASES[0].function(w, h, xs)

    with rune.counting() as seen:
        CASES[0].function(w, h, xs)

    assert (seen.compiles, seen.runs) == (0, 1)
