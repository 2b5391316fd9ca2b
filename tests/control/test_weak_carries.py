"""A Python number as the carry of a loop: how often the body is traced, and what it sees.

All expectations were read off JAX 0.10.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.arrays import array

ONE = array(1.0)
HALF = rnp.ones((), "bfloat16")

LOOPS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "scan": lambda body, init: rune.scan(lambda c, _: (body(c), None), init, None, length=3)[0],
    "fori_loop": lambda body, init: rune.fori_loop(0, 3, lambda i, c: body(c), init),
    "fori_loop of a traced length": lambda body, init: rune.fori_loop(0, array(3), lambda i, c: body(c), init),
    "while_loop": lambda body, init: rune.while_loop(lambda c: c < 4, body, init),
}
EACH_LOOP = pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)


def recorded(body: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], list[Any]]:
    """The body, and what it was called with."""
    calls: list[Any] = []

    def recording(c: Any) -> Any:
        calls.append(c)
        return body(c)

    return recording, calls


@EACH_LOOP
@pytest.mark.parametrize(
    ("init", "step", "traces", "weak"),
    [
        (1.0, lambda c: c + ONE, 1, False),
        (1.0, lambda c: c + 1.0, 1, True),
        (1, lambda c: c + ONE, 2, False),
        (1, lambda c: c + 1.0, 2, False),
        (1, lambda c: (c + 1.0) * 0 + 4.0, 2, False),
        (ONE, lambda c: 4.0, 1, True),
        (1, lambda c: 4.0, 2, True),
        (1.0, lambda c: c + HALF, 2, False),
        (ONE, lambda c: c + 1.0, 1, False),
    ],
    ids=[
        "strengthens",
        "stays",
        "int to f32",
        "int to weak float",
        "int to float",
        "number",
        "int to number",
        "bf16",
        "strong",
    ],
)
def test_a_body_is_traced_again_only_for_another_dtype(loop: Any, init: Any, step: Any, traces: int, weak: bool):
    body, calls = recorded(step)

    result = loop(body, init)

    assert (float(result), len(calls), result.type.weak) == (4.0, traces, weak)


@EACH_LOOP
def test_a_body_sees_the_number_as_weak(loop: Any):
    body, _ = recorded(lambda c: c + ONE)
    products: list[Any] = []

    loop(lambda c: (products.append(c * HALF), body(c))[1], 1.0)

    assert [p.dtype.name for p in products] == ["bfloat16"]


def test_a_condition_sees_the_number_as_weak():
    products: list[Any] = []

    rune.while_loop(lambda c: (products.append(c * HALF), c < 4)[1], lambda c: c + ONE, 1.0)

    assert [p.dtype.name for p in products] == ["bfloat16"]


def test_stacked_rows_are_as_weak_as_in_the_body():
    _, (products, carries) = rune.scan(lambda c, _: (c + ONE, (c * HALF, c)), 1.0, None, length=3)

    assert (products.dtype.name, carries.type.weak) == ("bfloat16", True)


@EACH_LOOP
def test_loops_within_loops_are_traced_once(loop: Any):
    body, calls = recorded(lambda c: c + ONE)

    loop(lambda c: loop(lambda d: loop(body, d), c), 1.0)

    assert len(calls) == 1


@EACH_LOOP
def test_derivatives_and_lanes_go_through_a_number_that_becomes_strong(loop: Any):
    function = lambda x: loop(lambda c: c * array(2.0), x)  # noqa: E731
    slope = float(function(1.0))

    assert float(rune.grad(function)(1.0)) == slope
    assert [float(v) for v in rune.jvp(function, (1.0,), (3.0,))] == [slope, 3 * slope]
    np.testing.assert_array_equal(np.asarray(rune.vmap(rune.grad(function))(rnp.ones(2))), [slope, slope])
    assert float(rune.jit(rune.grad(function))(1.0)) == slope


def test_a_state_that_a_step_keeps_or_replaces_is_traced_once():
    # As samplers do: propose by a loop, then keep the current state or take the proposed one.
    body, calls = recorded(lambda c: c + ONE)

    @rune.jit
    def step(state: Any) -> Any:
        proposal = rune.fori_loop(0, 3, lambda i, c: body(c), state)
        return rune.cond(proposal > 5, lambda: proposal, lambda: state)

    state: Any = 1.0
    for _ in range(3):
        state = step(state)
    assert (len(calls), state.type.weak) == (1, True)
