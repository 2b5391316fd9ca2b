"""The laws of draws without a key, over seeds and nests of transformations drawn at random.

A nest is a list of parts: "draw", or a kind of transformation and the nest inside it. Its keys must
have the same words as those of the nest without one of the transformations: compiled as a whole; in
lane or step i, under the seed folded with i; in any branch; under derivatives and checkpoints; with
other draws inserted between named ones. No two keys are ever equal, and no draw is ever a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import random
from rune.errors import UnhandledEffect
from tests.random.test_streams import SEEDS, drawn, rows
from tests.support.close import same
from tests.support.examples import COMPILING

Nest = list[Any]


def words() -> Any:
    """The words of one draw."""
    return random.key_data(random.draw())


def keys_of(nest: Nest) -> list[Any]:
    """The words of the keys that a nest draws, with leading axes of lanes and steps."""
    keys: list[Any] = []
    for part in nest:
        keys += [words()] if part == "draw" else KINDS[part[0]](part[1])
    return keys


def scanned(nest: Nest) -> Any:
    """Those of two steps of a scan."""
    return rune.scan(lambda c, _: (c, keys_of(nest)), 0, None, length=2)[1]


def looped(nest: Nest) -> Any:
    """Those of two rounds of a while loop."""
    shapes = rune.eval_shape(lambda: keys_of(nest))
    first = [rnp.zeros((2, *s.shape), s.dtype) for s in shapes]

    def step(state: Any) -> Any:
        i, keys = state
        return i + 1, [f.at[i].set(k) for f, k in zip(keys, keys_of(nest), strict=True)]

    return rune.while_loop(lambda state: state[0] < 2, step, (0, first))[1]


KINDS: dict[str, Callable[[Nest], list[Any]]] = {
    "jit": lambda nest: rune.jit(lambda: keys_of(nest))(),
    "vmap": lambda nest: rune.vmap(lambda x: keys_of(nest))(rnp.arange(2)),
    "pmap": lambda nest: rune.pmap(lambda x: keys_of(nest))(rnp.arange(2)),
    "scan": scanned,
    "while": looped,
    "cond": lambda nest: rune.cond(True, lambda: keys_of(nest), lambda: [k * 0 for k in keys_of(nest)]),
    "checkpoint": lambda nest: rune.checkpoint(lambda: keys_of(nest))(),
    "grad": lambda nest: rune.value_and_grad(lambda x: (x, keys_of(nest)), has_aux=True)(1.0)[0][1],
    "jvp": lambda nest: rune.jvp(lambda x: (x, keys_of(nest)), (1.0,), (1.0,), has_aux=True)[2],
    "linearize": lambda nest: rune.linearize(lambda x: (x, keys_of(nest)), 1.0, has_aux=True)[2],
}
FOLDING = ("vmap", "pmap", "scan", "while")
TRANSPARENT = ("jit", "cond", "checkpoint", "grad", "jvp", "linearize")

NESTS = st.recursive(
    st.lists(st.just("draw"), min_size=1, max_size=2),
    lambda inner: st.lists(st.just("draw") | st.tuples(st.sampled_from(list(KINDS)), inner), max_size=3),
    max_leaves=5,
)


@COMPILING
@given(seed=SEEDS, nest=NESTS, kind=st.sampled_from(TRANSPARENT))
def test_a_nest_that_runs_once_draws_the_same_as_alone(seed: int, nest: Nest, kind: str):
    with random.seed(seed):
        expected = rows(keys_of(nest)), drawn(1)
    with random.seed(seed):
        keys = rows(KINDS[kind](nest)), drawn(1)

    same(expected, keys)


@COMPILING
@given(seed=SEEDS, nest=NESTS, kind=st.sampled_from(FOLDING), before=st.integers(0, 2))
def test_a_lane_or_step_draws_as_under_the_seed_folded_with_its_number(seed, nest, kind, before):
    with random.seed(seed):
        drawn(before)
        keys = KINDS[kind](nest)

    for index in range(2):
        with random.seed(seed).fold(index):
            drawn(before)
            same(rows(keys_of(nest)), rows([k[index] for k in keys]))


@COMPILING
@given(seed=SEEDS, counts=st.lists(st.integers(0, 3), min_size=2, max_size=4), data=st.data())
def test_draws_after_a_switch_are_the_same_for_every_branch(seed, counts, data):
    branch_number = data.draw(st.integers(0, len(counts) - 1))

    def branch(count: int) -> Any:
        return lambda: sum((words() for _ in range(count)), rnp.zeros(2, "uint32"))

    with random.seed(seed):
        total = rune.switch(branch_number, [branch(n) for n in counts])
        after = drawn(1)

    with random.seed(seed):
        alone = drawn(max(counts) + 1)
    same(alone[: counts[branch_number]].sum(axis=0, dtype=np.uint32), np.asarray(total))
    same(alone[-1:], after)


@COMPILING
@given(seed=SEEDS, nest=NESTS)
def test_no_two_draws_have_the_same_key_through_any_nest_of_transformations(seed, nest):
    with random.seed(seed):
        keys = rows(keys_of(nest))

    assert np.unique(keys, axis=0).shape == keys.shape


# --- names ------------------------------------------------------------------------------------

NAMES = st.lists(st.text(max_size=4), unique=True, min_size=1, max_size=4)


@given(seed=SEEDS, names=NAMES, data=st.data())
def test_named_draws_survive_any_order_and_any_draws_between_them(seed, names, data):
    with random.seed(seed):
        expected = {n: np.asarray(random.key_data(random.draw(n))) for n in names}

    keys = {}
    with random.seed(seed):
        for name in data.draw(st.permutations(names)):
            drawn(data.draw(st.integers(0, 2)))
            keys[name] = np.asarray(random.key_data(random.draw(name)))

    same([expected[n] for n in names], [keys[n] for n in names])


@COMPILING
@given(seed=SEEDS, kind=st.sampled_from(TRANSPARENT), before=st.integers(0, 2))
def test_a_named_draw_survives_moving_into_a_function(seed: int, kind: str, before: int):
    with random.seed(seed):
        expected = np.asarray(random.uniform(name="a", shape=(3,)))

    callers: dict[str, Callable[[Any], Any]] = {
        "jit": lambda f: rune.jit(f)(),
        "checkpoint": lambda f: rune.checkpoint(f)(),
        "cond": lambda f: rune.cond(True, f, f),
        "grad": lambda f: rune.value_and_grad(lambda x: (x, f()), has_aux=True)(1.0)[0][1],
        "jvp": lambda f: rune.jvp(lambda x: (x, f()), (1.0,), (1.0,), has_aux=True)[2],
        "linearize": lambda f: rune.linearize(lambda x: (x, f()), 1.0, has_aux=True)[2],
    }
    with random.seed(seed):
        drawn(before)
        numbers = callers[kind](lambda: random.uniform(name="a", shape=(3,)))

    same(expected, np.asarray(numbers))


# --- nobody to answer -------------------------------------------------------------------------


def draws(nest: Nest) -> bool:
    """Whether there is any draw in a nest."""
    return any(part == "draw" or draws(part[1]) for part in nest)


@COMPILING
@given(nest=NESTS, staged=st.sampled_from(["jit", "scan", "while", "cond"]))
def test_outside_of_a_seed_a_nest_that_is_traced_is_an_error_if_it_draws(nest, staged):
    if not draws(nest):
        assert KINDS[staged](nest) == []
        return
    with pytest.raises(UnhandledEffect, match="draw: cannot draw without a key") as error:
        KINDS[staged](nest)
    assert "with rune.random.seed(0):" in str(error.value)
