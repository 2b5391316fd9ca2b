"""Draws without a key in loops, branches and checkpoints: the laws of streams, continued.

A step draws as the body does under the seed folded with the step's number; every branch uses as
many draws as the branch with most; a checkpoint repeats its draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import random
from rune.errors import UnhandledEffect
from tests.random.test_streams import drawn, rows
from tests.support.close import same
from tests.support.examples import COMPILING

STEPS = 4
SEEDS = st.integers(0, 2**64 - 1)


def words() -> Any:
    """The words of one draw."""
    return random.key_data(random.draw())


def scanned() -> Any:
    """The keys of two draws in each step of a scan."""
    return rune.scan(lambda carry, x: (carry, (words(), words())), 0, None, length=STEPS)[1]


def counted() -> Any:
    """The same in a loop whose bounds are unknown while tracing."""

    def step(i: Any, keys: Any) -> Any:
        return keys.at[i].set(rnp.stack([words(), words()]))

    zeros = rnp.zeros((STEPS, 2, 2), "uint32")
    return rune.fori_loop(rnp.asarray(0), rnp.asarray(STEPS), step, zeros)


def looped() -> Any:
    """The same in a while loop, without a counter of its own."""

    def step(state: Any) -> Any:
        i, keys = state
        return i + 1, keys.at[i].set(rnp.stack([words(), words()]))

    first = 0, rnp.zeros((STEPS, 2, 2), "uint32")
    return rune.while_loop(lambda state: state[0] < STEPS, step, first)[1]


each_loop = pytest.mark.parametrize("loop", [scanned, counted, looped])


def as_rows(keys: Any) -> np.ndarray:
    """The keys as [step, draw, word]."""
    if isinstance(keys, tuple):
        return np.stack([np.asarray(f) for f in keys], axis=1)
    return np.asarray(keys)


@each_loop
@COMPILING
@given(seed=SEEDS)
def test_a_step_draws_as_its_body_does_under_the_seed_folded_with_its_number(loop, seed):
    with random.seed(seed):
        keys = as_rows(loop())

    for step in range(STEPS):
        with random.seed(seed).fold(step):
            same(drawn(2), keys[step])


@each_loop
def test_a_loop_takes_from_the_stream_what_one_step_takes(loop):
    with random.seed(0):
        loop()
        keys = drawn(1)
    with random.seed(0):
        same(drawn(3)[2:], keys)


@each_loop
def test_a_jitted_loop_draws_as_the_loop_and_is_traced_once(loop):
    program = rune.jit(loop)
    for seed in range(3):
        with random.seed(seed):
            drawn(1)
            expected = as_rows(loop()), drawn(1)
        with random.seed(seed):
            drawn(1)
            same(expected, (as_rows(program()), drawn(1)))
    assert program.cache_size() == 1


def unrolled(unroll: Any) -> Any:
    """A jitted scan of a noisy body, each draw used by the next step."""

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        new_carry = carry + x * random.uniform(shape=(2,))
        return new_carry, new_carry * random.uniform()

    return rune.jit(lambda: rune.scan(step, rnp.zeros(2), rnp.arange(5.0), unroll=unroll))


ROLLED, *UNROLLED = (unrolled(u) for u in (1, 2, True))


@COMPILING
@given(seed=SEEDS)
def test_an_unrolled_scan_draws_as_the_rolled_one(seed: int):
    with random.seed(seed):
        expected = ROLLED(), drawn(1)
    for scan in UNROLLED:
        with random.seed(seed):
            same(expected, (scan(), drawn(1)))


def test_loops_and_lanes_fold_from_the_outermost_inwards():
    with random.seed(5):
        keys = as_rows(tuple(rune.vmap(lambda x: scanned(), axis_size=3, in_axes=None)(0)))
        other = rune.scan(lambda c, x: (c, rune.vmap(lambda y: words())(rnp.arange(3))), 0, None, length=2)[1]

    for lane in range(3):
        with random.seed(5).fold(lane).fold(2):
            same(drawn(2), np.moveaxis(keys, 1, -2)[lane, 2])
        with random.seed(5).fold(1).fold(lane):
            same(drawn(3)[2], np.asarray(other)[1, lane])


def test_a_name_means_another_key_in_every_step():
    with random.seed(0):
        numbers = rune.scan(lambda c, x: (c, random.uniform(name="a")), 0, None, length=5)[1]

    assert np.unique(np.asarray(numbers)).size == 5


def test_the_compiled_loop_covers_every_seed():
    with rune.counting() as counters:
        with random.seed(0):
            scanned()
        first = counters.compiles
        for seed in range(1, 4):
            with random.seed(seed):
                scanned()

    assert counters.compiles == first


# --- branches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("pred", [True, False])
@pytest.mark.parametrize("transform", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_draws_after_a_branch_do_not_depend_on_the_branch_taken(pred: bool, transform: Any):
    function = transform(
        lambda p: (rune.cond(p, lambda: rnp.sum(rnp.stack([words(), words()])), lambda: words()[0]), words())
    )
    with random.seed(0):
        result, after = function(pred)

    with random.seed(0):
        first = drawn(3)
    same(first[2], np.asarray(after))
    expected = first[:2].sum(dtype=np.uint32) if pred else first[0, 0]
    assert int(np.asarray(result)) == int(expected)


def test_lanes_with_different_branches_draw_their_own():
    with random.seed(0):
        lanes = rune.vmap(lambda p: rune.cond(p, words, lambda: words() * 0))(rnp.array([True, False, True]))
    for lane, pred in enumerate((1, 0, 1)):
        with random.seed(0).fold(lane):
            same(drawn(1)[0] * np.uint32(pred), np.asarray(lanes)[lane])


# --- checkpoints and derivatives of loops -----------------------------------------------------


def test_a_checkpoint_draws_again_what_it_drew():
    def loss(x: Any) -> Any:
        mask = random.bernoulli(p=0.5, shape=x.shape)
        return rnp.sum(rnp.sin(rnp.where(mask, x, 0.0) * random.uniform(shape=x.shape)))

    xs = rnp.arange(1.0, 9.0)
    with random.seed(3):
        expected = [*rune.value_and_grad(loss)(xs), drawn(1)]
    for transform in (rune.checkpoint, lambda f: rune.jit(rune.checkpoint(f))):
        with random.seed(3):
            same(expected, [*rune.value_and_grad(transform(loss))(xs), drawn(1)])


def test_the_derivative_of_a_loop_sees_the_draws_of_its_steps():
    def loss(x: Any) -> Any:
        return rune.scan(lambda c, _: (c * random.uniform(), None), x, None, length=STEPS)[0]

    with random.seed(1):
        steps = rune.scan(lambda c, _: (c, random.uniform()), 0, None, length=STEPS)[1]
    for function in (rune.grad(loss), rune.jit(rune.grad(loss)), rune.grad(rune.jit(loss))):
        with random.seed(1):
            derivative = float(function(2.0))
        assert derivative == pytest.approx(float(np.prod(np.asarray(steps))), rel=1e-6)


def test_no_two_steps_of_two_loops_have_the_same_key():
    with random.seed(0):
        keys = rows([as_rows(scanned()), as_rows(looped()), drawn(3)])

    assert np.unique(keys, axis=0).shape == keys.shape


# --- what is refused --------------------------------------------------------------------------


@each_loop
def test_a_draw_in_a_loop_outside_of_a_seed_is_an_error(loop):
    with pytest.raises(UnhandledEffect, match="draw: cannot draw without a key"):
        loop()
