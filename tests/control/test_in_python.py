"""While jit is disabled, branches and loops with known conditions run in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax

X = rnp.arange(1.0, 6.0)


def cumulative(total: Any, x: Any) -> Any:
    return total + x, {"before": total}


CALLS = {
    "cond": lambda x: lax.cond(x[0] > 0, lambda v: v + 1, lambda v: v - 1, x),
    "switch": lambda x: lax.switch(9, [lambda v: v, lambda v: -v], x),
    "while_loop": lambda x: lax.while_loop(lambda v: v[0] < 50, lambda v: v * 3, x),
    "fori_loop": lambda x: lax.fori_loop(2, 7, lambda i, v: v * 2 + i, x),
    "fori_loop of arrays": lambda x: lax.fori_loop(rnp.array(2), rnp.array(7), lambda i, v: v + i, x),
    "scan": lambda x: lax.scan(cumulative, 0.0, x),
    "scan backwards": lambda x: lax.scan(cumulative, 0.0, x, reverse=True),
    "scan of nothing": lambda x: lax.scan(cumulative, 0.0, x[:0]),
    "scan of a length": lambda x: lax.scan(lambda c, _: (c * 2, None), x, length=3),
    "map": lambda x: lax.map(rnp.sin, x),
    "vmapped while_loop": rune.vmap(lambda v: lax.while_loop(lambda u: u < 50, lambda u: u * 3, v)),
    "gradient of a while_loop": rune.grad(lambda x: lax.while_loop(lambda v: v[0] < 50, lambda v: v * v[0] * 3, x)[1]),
    "gradient of a scan": rune.grad(lambda x: lax.scan(lambda c, v: (c * v, c), 2.0, x)[0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_result_is_that_of_the_compiled_program(name: str):
    expected = rune.tree.leaves(rune.jit(CALLS[name])(X))

    with rune.disable_jit():
        results = rune.tree.leaves(CALLS[name](X))

    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-6)


def test_functions_see_values():
    values: list[float] = []

    def step(i: int, total: Any) -> Any:
        values.append(float(total))
        return total + i

    with rune.disable_jit():
        lax.fori_loop(0, 4, step, 0.0)
        lax.cond(True, values.append, values.append, 9.0)

    assert values == [0, 0, 1, 3, 9]


def test_a_branch_that_depends_on_lanes_stays_a_branch():
    with rune.disable_jit():
        lanes = rune.vmap(lambda x: lax.cond(x > 2, lambda v: v, lambda v: -v, x))(X)

    np.testing.assert_array_equal(lanes, [-1, -2, 3, 4, 5])
