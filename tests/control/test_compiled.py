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
import rune.numpy as rnp
from tests.control.cases import CASES, Case, arguments, flat
from tests.support.arrays import array
from tests.support.close import near, same

ALL = (0, 1, 2)
F64 = "f64, sums in another order, other polynomials"
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def total(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: sum(y.sum() for y in flat(function)(*args))


@every_case
def test_value_and_gradient_are_one_program(case: Case):
    args = arguments()

    with rune.counting() as counts:
        result = rune.jit(rune.value_and_grad(total(case.function), argnums=ALL))(*args)

    assert (counts.compiles, counts.runs) == (1, 1)
    expected = rune.value_and_grad(total(case.twin), argnums=ALL)(*args)
    near(expected, result, relative=1e-10, absolute=1e-12, why=F64)


@every_case
def test_the_gradient_of_compiled_code_is_two_programs(case: Case):
    args = arguments()

    with rune.counting() as counts:
        result = rune.grad(rune.jit(total(case.function)), argnums=ALL)(*args)

    assert counts.compiles == 2
    expected = rune.grad(total(case.twin), argnums=ALL)(*args)
    near(expected, result, relative=1e-10, absolute=1e-12, why=F64)


@every_case
def test_gradients_on_lanes_compile(case: Case):
    rows = [arguments(seed) for seed in (0, 3)]
    batch = [array(np.stack([np.asarray(x) for x in column])) for column in zip(*rows)]

    gradients = rune.jit(rune.vmap(rune.grad(total(case.function), argnums=ALL)))(*batch)

    alone = [rune.grad(total(case.twin), argnums=ALL)(*row) for row in rows]
    expected = tuple(np.stack([np.asarray(g) for g in column]) for column in zip(*alone))
    near(expected, gradients, relative=1e-9, absolute=1e-11, why=F64)


def test_an_eager_loop_is_one_run_of_one_program():
    w, h, xs = arguments()
    CASES[0].function(w, h, xs)

    with rune.counting() as counts:
        CASES[0].function(w, h, xs)

    assert (counts.compiles, counts.runs) == (0, 1)


def test_a_carry_may_start_where_a_value_of_other_axes_was_made():
    def largest(x: Any) -> Any:
        def step(t: Any, _: Any) -> Any:
            best = rnp.argmax(t)
            return t.at[best].set(-rnp.inf), t[best]

        table = x[:, None] * rnp.where(x > 2, x, 1.0)  # one value, made with two axes
        return rune.scan(step, table.reshape(-1), None, length=4)[1]

    result = rune.jit(largest)(rnp.array([1.0, 2.0, 3.0]))
    same(np.array([9, 6, 3, 3], np.float32), result)


def test_a_carry_may_start_where_a_weak_value_was_made():
    @rune.jit
    def grow(y: Any, stop: Any) -> Any:
        def step(s: Any) -> Any:
            time, y = s
            h = rnp.minimum(0.5, stop - time)
            return time + h, y + h * rnp.stack([y[1], y[0]])

        return rune.while_loop(lambda s: s[0] < stop, step, (0.0, y))[1]

    # Four steps of (1 + J/2), where J swaps the two: 1 + J/2 is 3/2 and 1/2 on their sum and
    # difference.
    total, difference = 1.5**4, 0.5**4
    expected = np.array([[total + difference, total - difference]]) / 2
    expected = np.concatenate([expected, expected[:, ::-1]]).astype(np.float32)
    same(expected, rune.jacfwd(lambda y: grow(y, 2.0))(rnp.ones(2)))
