"""Edges of a graph: every order that they allow gives the results of the steps in sequence.

Steps access random bytes; a step writes a value that depends on what it has read, on its number and
on the old value. Then the edges of some small cases, and that there are few of them.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from rune.backends.cuda.edges import WINDOW, Memory, Touch, Touches, waits
from rune.backends.cuda.graph import Kernel
from rune.lowering.plan import Space
from tests.backends.cuda.fake import plan_for
from tests.backends.cuda.test_graph import recorded
from tests.support.lowering import f32

BYTES = 24
X, Y, Z = (Touch(("memory", k), 0, 8, False) for k in range(3))


def written(touch: Touch) -> Touch:
    return Touch(touch.memory, touch.start, touch.end, True)


def drawn(draw: random.Random, count: int) -> list[Touches]:
    """Steps that touch a few bytes of two memories; a few are unknown."""

    def touch() -> Touch:
        start = draw.randrange(BYTES)
        return Touch(("memory", draw.randrange(2)), start, start + draw.randint(0, 5), draw.random() < 0.3)

    return [None if draw.random() < 0.05 else tuple(touch() for _ in range(draw.randint(0, 3))) for _ in range(count)]


def computed(nodes: list[Touches], order: list[int]) -> dict[Memory, list[int]]:
    """The memory after the steps have run in this order."""
    memory: dict[Memory, list[int]] = {("memory", k): list(range(BYTES + 5)) for k in range(2)}
    for number in order:
        touches = nodes[number]
        if touches is None:  # it reads and writes all
            touches = tuple(Touch(name, 0, BYTES + 5, True) for name in memory)
        read = [tuple(memory[t.memory][t.start : t.end]) for t in touches]
        for t in touches:
            if t.is_written:
                for k in range(t.start, min(t.end, BYTES + 5)):
                    memory[t.memory][k] = hash((number, k, *read))
    return memory


def an_order(before: list[tuple[int, ...]], draw: random.Random) -> list[int]:
    """Any order that the edges allow."""
    order: list[int] = []
    while len(order) < len(before):
        order.append(draw.choice([k for k in range(len(before)) if k not in order and set(before[k]) <= set(order)]))
    return order


@pytest.mark.parametrize("seed", range(60))
def test_any_order_that_edges_allow_computes_the_same(seed: int):
    draw = random.Random(seed)
    nodes = drawn(draw, draw.choice([1, 5, 20, WINDOW, WINDOW + 1, 3 * WINDOW]))
    before = waits(nodes)
    expected = computed(nodes, list(range(len(nodes))))
    for _ in range(5):
        assert computed(nodes, an_order(before, draw)) == expected


@pytest.mark.parametrize("seed", range(20))
def test_no_edge_is_implied_by_others(seed: int):
    before = waits(drawn(random.Random(seed), 50))
    ancestors: list[set[int]] = []
    for edges in before:
        ancestors.append(set(edges).union(*(ancestors[k] for k in edges)))
        assert all(k not in ancestors[other] for k in edges for other in edges)


def test_steps_that_only_read_the_same_memory_wait_for_nothing():
    assert waits([(X, written(Y)), (X, written(Z))]) == [(), ()]


def test_a_reader_waits_for_the_writer_and_a_writer_for_the_readers():
    assert waits([(X, written(Y)), (Y, written(Z)), (written(X),), (written(Y),)]) == [(), (0,), (0,), (1,)]


def test_neighbouring_bytes_are_not_the_same():
    lower, upper = Touch(X.memory, 0, 4, True), Touch(X.memory, 4, 8, True)
    assert waits([(lower,), (upper,), (X,)]) == [(), (), (0, 1)]


def test_a_chain_is_a_chain_however_long():
    assert waits([(written(X),)] * (2 * WINDOW)) == [(), *((k,) for k in range(2 * WINDOW - 1))]


def test_a_step_of_unknown_memory_waits_for_all_before_and_all_after_wait_for_it():
    assert waits([(X,), (Y,), None, (X,), (Y,)]) == [(), (), (0, 1), (2,), (2,)]


def test_a_kernel_touches_its_arguments_and_results():
    plan = plan_for(lambda x: x + 1.0, f32(8))
    _, (kernel,) = recorded(plan, (8,))
    assert isinstance(kernel, Kernel)
    assert kernel.touches is not None
    places = {(t.memory, t.is_written) for t in kernel.touches}
    assert places == {((Space.ARGUMENT, 0), False), ((Space.RESULT, 0), True)}
    assert np.ptp([t.end - t.start for t in kernel.touches]) == 0
