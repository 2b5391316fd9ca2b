"""Draws without a key: what they mean under every transformation.

First a single stream; then names; then each boundary, jit, vmap, grad; last what is refused.
test_laws_of_draws.py has the laws over nests of all transformations.
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
from rune.errors import ArgumentError, UnhandledEffect
from tests.support.close import same
from tests.support.examples import COMPILING

SEEDS = st.integers(0, 2**64 - 1)


def drawn(count: int) -> np.ndarray:
    """The words of some draws."""
    words = [np.asarray(random.key_data(random.draw())) for _ in range(count)]
    return np.array(words, np.uint32).reshape(count, 2)


def rows(keys: list[Any]) -> np.ndarray:
    """One row for every key."""
    return np.concatenate([np.zeros((0, 2), np.uint32), *(np.reshape(k, (-1, 2)) for k in keys)])


def noise(x: Any) -> Any:
    """Two draws; the second depends on the number of the first."""
    return x * random.uniform(shape=(3,)) + random.normal(shape=(3,))


# --- a stream ---------------------------------------------------------------------------------


@given(seed=SEEDS, count=st.integers(1, 5))
def test_the_nth_draw_is_the_nth_key_of_the_seed(seed: int, count: int):
    with random.seed(seed):
        keys = drawn(count)

    same(np.asarray(random.key_data(random.split(random.key(seed), count))), keys)


def test_a_sampler_without_a_key_draws_one():
    with random.seed(3):
        numbers = random.normal(shape=(4,)), random.uniform(), random.bernoulli(p=0.5, shape=(9,))

    keys = random.split(random.key(3), 3)
    expected = (random.normal(keys[0], (4,)), random.uniform(keys[1]), random.bernoulli(keys[2], 0.5, (9,)))
    same(expected, numbers)


def test_a_key_seeds_as_the_number_it_was_made_of():
    for seed in (5, random.key(5), random.PRNGKey(5), np.int32(5), rnp.asarray(5)):
        with random.seed(seed):
            same(np.asarray(random.key_data(random.fold_in(random.key(5), 0))), drawn(1)[0])


def test_an_explicit_key_takes_nothing_from_the_stream():
    with random.seed(0):
        first = drawn(1)
        random.uniform(random.key(9))
        second = drawn(1)
    with random.seed(0):
        same(np.concatenate([first, second]), drawn(2))


def test_the_innermost_seed_answers():
    with random.seed(1):
        with random.seed(2):
            inner = drawn(2)
        outer = drawn(1)

    with random.seed(2):
        same(drawn(2), inner)
    with random.seed(1):
        same(drawn(1), outer)


def test_a_second_block_of_one_stream_continues_where_the_first_stopped():
    stream = random.seed(0)
    with stream:
        first = drawn(2)
    with stream:
        second = drawn(1)

    with random.seed(0):
        same(drawn(3), np.concatenate([first, second]))


def test_without_a_seed_eager_draws_are_all_different():
    assert np.unique(drawn(5), axis=0).shape == (5, 2)
    assert float(random.uniform()) != float(random.uniform())


# --- names ------------------------------------------------------------------------------------


def test_a_named_draw_does_not_depend_on_the_draws_around_it():
    with random.seed(0):
        alone = random.uniform(name="dropout", shape=(3,))
    with random.seed(0):
        drawn(2)
        random.uniform(name="other")
        among = random.uniform(name="dropout", shape=(3,))

    same(alone, among)


def test_a_named_draw_takes_no_number():
    with random.seed(0):
        random.uniform(name="a")
        numbers = drawn(2)
    with random.seed(0):
        same(drawn(2), numbers)


def test_names_and_seeds_make_different_keys():
    keys = set()
    for seed in (0, 1):
        with random.seed(seed):
            words = [random.key_data(random.draw(name)) for name in ("a", "b", "ab", "")]
            keys |= {tuple(np.asarray(w).tolist()) for w in words}

    assert len(keys) == 8


def test_a_name_given_twice_is_an_error_with_both_lines():
    with random.seed(0):
        random.uniform(name="a")  # here
        with pytest.raises(ArgumentError, match=r"cannot name two draws 'a'.*# here"):
            random.uniform(name="a")


def test_a_name_in_a_jitted_function_counts_at_every_call():
    draw = rune.jit(lambda x: x + random.uniform(name="a"))
    with random.seed(0):
        draw(0.0)
        with pytest.raises(ArgumentError, match="cannot name two draws 'a'"):
            draw(0.0)
    for step in range(2):
        with random.seed(0).fold(step):
            draw(0.0)


def test_a_name_and_a_key_are_refused_together():
    with pytest.raises(ArgumentError, match="cannot use a key and a name"):
        random.uniform(random.key(0), name="a")


# --- jit --------------------------------------------------------------------------------------


@COMPILING
@given(seed=SEEDS, before=st.integers(0, 3))
def test_a_jitted_function_draws_as_the_function_itself(seed: int, before: int):
    with random.seed(seed):
        drawn(before)
        expected = [np.asarray(noise(2.0)), np.asarray(noise(3.0)), drawn(1)]

    program = rune.jit(noise)
    with random.seed(seed):
        drawn(before)
        numbers = [np.asarray(program(2.0)), np.asarray(program(3.0)), drawn(1)]

    same(expected, numbers)


def test_a_jitted_function_is_traced_once_for_all_seeds_and_numbers_of_draws():
    traces: list[int] = []
    function = rune.jit(lambda x: traces.append(1) or noise(x))
    for seed in (0, 1, random.key(2), 2**40):
        with random.seed(seed):
            function(1.0)
            function(1.0)

    assert len(traces) == 1


def test_no_key_is_a_constant_of_the_jitted_program():
    function = rune.jit(lambda x: x + random.uniform())
    with random.seed(123456789):
        program = function.program(0.0)
        first = drawn(1)

    assert len(program.inputs) == 1 + 2, "the argument; the key, and the number of the next draw"
    assert "123456789" not in str(program)
    assert hex(123456789) not in str(program)
    with random.seed(123456789):
        same(drawn(1), first)  # looking at the program took nothing


def test_nested_jitted_functions_draw_as_if_they_were_not_jitted():
    def outer(inner: Callable[[Any], Any], x: Any) -> Any:
        a = random.uniform(shape=(3,))
        return inner(x) + a * inner(random.uniform(shape=(3,)))

    with random.seed(0):
        expected = [np.asarray(outer(noise, 1.0)), drawn(1)]
    with random.seed(0):
        numbers = [np.asarray(rune.jit(lambda x: outer(rune.jit(noise), x))(1.0)), drawn(1)]

    same(expected, numbers)


def test_a_stream_inside_a_jitted_function_may_start_from_an_argument():
    @rune.jit
    def inside(key: Any) -> Any:
        with random.seed(key):
            return noise(1.0)

    with random.seed(7):
        expected = noise(1.0)

    same(expected, inside(random.key(7)))


# --- vmap -------------------------------------------------------------------------------------


@COMPILING
@given(seed=SEEDS, lanes=st.integers(1, 4))
def test_a_lane_draws_as_the_function_does_under_the_seed_folded_with_its_number(seed, lanes):
    xs = rnp.arange(1.0, lanes + 1)
    with random.seed(seed):
        draws = np.asarray(rune.vmap(noise)(xs))

    for lane in range(lanes):
        with random.seed(seed).fold(lane):
            same(np.asarray(noise(xs[lane])), draws[lane])


def test_lanes_take_from_the_stream_what_one_of_them_takes():
    with random.seed(0):
        rune.vmap(noise)(rnp.ones(5))
        keys = drawn(1)
    with random.seed(0):
        same(drawn(3)[2:], keys)


def test_all_lanes_draw_the_same_on_request():
    with random.seed(0):
        lanes = np.asarray(rune.vmap(noise, randomness="same")(rnp.ones(3)))
    with random.seed(0):
        same(np.stack([np.asarray(noise(1.0))] * 3), lanes)


def test_lanes_of_lanes_are_two_folds():
    with random.seed(1):
        lanes = np.asarray(rune.vmap(rune.vmap(noise))(rnp.ones((2, 3))))

    for i in range(2):
        for j in range(3):
            with random.seed(1).fold(i).fold(j):
                same(np.asarray(noise(1.0)), lanes[i, j])


@pytest.mark.parametrize(
    "transformation",
    [lambda f: rune.jit(rune.vmap(f)), lambda f: rune.vmap(rune.jit(f))],
    ids=["jit of vmap", "vmap of jit"],
)
def test_jit_inside_or_outside_of_vmap_changes_nothing(transformation: Callable[..., Any]):
    xs = rnp.arange(3.0)
    with random.seed(4):
        drawn(1)
        expected = [np.asarray(rune.vmap(noise)(xs)), drawn(1)]
    lanes = transformation(noise)
    for _ in range(2):
        with random.seed(4):
            drawn(1)
            same(expected, [np.asarray(lanes(xs)), drawn(1)])


def test_a_name_means_another_key_in_every_lane():
    with random.seed(0):
        lanes = np.asarray(rune.vmap(lambda x: x + random.uniform(name="a"))(rnp.zeros(4)))

    assert np.unique(lanes).size == 4


def test_lanes_without_a_seed_differ_in_eager_code():
    lanes = np.asarray(rune.vmap(lambda x: x + random.uniform())(rnp.zeros(4)))

    assert np.unique(lanes).size == 4


# --- derivatives ------------------------------------------------------------------------------


def test_derivatives_see_the_draws_of_the_function():
    def loss(x: Any) -> Any:
        return rnp.sum(x * random.uniform(shape=(3,)))

    with random.seed(0):
        mask = np.asarray(random.uniform(shape=(3,)))
    derivatives = (rune.grad(loss), rune.jit(rune.grad(loss)), rune.grad(rune.jit(loss)))
    for function in derivatives:
        with random.seed(0):
            same(mask, np.asarray(function(rnp.ones(3))))
    with random.seed(0):
        same(mask, np.asarray(rune.jacfwd(loss)(rnp.ones(3))))


def test_derivatives_use_as_many_draws_as_the_function():
    with random.seed(0):
        rune.value_and_grad(lambda x: x * random.uniform())(1.0)
        keys = drawn(1)
    with random.seed(0):
        same(drawn(2)[1:], keys)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "transformation",
    [rune.jit, rune.make_program, lambda f: rune.jit(rune.vmap(f, axis_size=2, in_axes=None))],
    ids=["jit", "make_program", "jit of vmap"],
)
def test_a_draw_while_tracing_outside_of_a_seed_is_an_error_with_a_hint(transformation):
    with pytest.raises(UnhandledEffect, match="uniform: cannot draw without a key") as error:
        transformation(lambda x: x + random.uniform())(1.0)

    assert "with rune.random.seed(0):" in str(error.value)
    assert "lambda x: x + random.uniform()" in str(error.value)


def test_a_cached_trace_does_not_hide_the_error():
    program = rune.jit(lambda x: x + random.uniform())
    with random.seed(0):
        program(1.0)

    with pytest.raises(UnhandledEffect, match="uniform: cannot draw without a key"):
        program(1.0)


def test_asking_for_shapes_or_stages_takes_nothing_from_the_stream():
    with random.seed(0):
        rune.eval_shape(noise, 1.0)
        rune.explain(noise)(1.0)
        keys = drawn(1)
    with random.seed(0):
        same(drawn(1), keys)


def test_an_error_inside_a_jitted_function_takes_nothing_from_the_stream():
    def failing(x: Any) -> Any:
        random.uniform()
        raise ValueError("inside")

    with random.seed(0):
        with pytest.raises(ValueError, match="inside"):
            rune.jit(failing)(1.0)
        keys = drawn(1)
    with random.seed(0):
        same(drawn(1), keys)


def test_lanes_are_different_or_the_same():
    with pytest.raises(ArgumentError, match="randomness='other'"):
        rune.vmap(noise, randomness="other")  # pyright: ignore[reportArgumentType]
