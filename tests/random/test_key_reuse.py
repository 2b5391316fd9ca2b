"""The check for keys used twice: it finds every reuse, and accepts correct programs.

First two uses in eager code; then keys in arrays, jit, vmap, loops and branches; then programs in
which every key is used once, all samplers among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import random
from rune.errors import KeyReuseError
from tests.random.distributions import SAMPLERS, Case
from tests.support.sampling import one_in


@pytest.fixture(autouse=True)
def _checked() -> Iterator[None]:
    with rune.configure(check_keys=True):
        yield


def reused(function: Callable[[], Any]) -> str:
    """The message of the error that the function raises."""
    with pytest.raises(KeyReuseError) as error:
        function()
    return str(error.value)


def test_the_message_names_the_key_and_both_lines():
    key = random.key(3)
    random.uniform(key)  # the first use

    message = reused(lambda: random.normal(key))  # the second use

    assert "cannot use a key twice (key<fry> [0, 3]" in message
    assert "# the first use" in message
    assert "# the second use" in message
    assert "random.split(key)" in message


def test_without_the_check_a_key_may_be_used_twice():
    with rune.configure(check_keys=False):
        key = random.key(0)
        assert float(random.uniform(key)) == float(random.uniform(key))


@pytest.mark.parametrize("second", [random.uniform, random.split, random.normal, random.bits])
def test_a_key_that_was_split_is_used(second: Callable[[Any], Any]):
    key = random.key(0)
    random.split(key)

    reused(lambda: second(key))


def test_raw_keys_are_looked_at_too():
    key = random.PRNGKey(0)
    random.uniform(key)

    reused(lambda: random.uniform(random.key(0)))


def test_keys_of_different_generators_differ():
    random.uniform(random.wrap_key_data(np.array([1, 2], np.uint32)))
    random.uniform(random.wrap_key_data(np.array([1, 2], np.uint32), impl="philox4x32"))


def test_an_element_of_an_array_is_the_key_that_it_is():
    keys = random.split(random.key(0), 3)
    random.uniform(keys[1])

    random.uniform(keys[0])
    reused(lambda: rune.vmap(random.uniform)(keys))


def test_folding_in_does_not_consume_the_key_and_gives_one_new_key():
    key = random.key(0)
    random.uniform(random.fold_in(key, 1))
    random.uniform(random.fold_in(key, 2))

    reused(lambda: random.uniform(random.fold_in(key, 1)))


def test_a_clone_counts_as_a_key_that_was_not_used():
    key = random.key(0)

    assert float(random.uniform(key)) == float(random.uniform(random.clone(key)))
    rune.jit(lambda k: random.uniform(k) + random.uniform(random.clone(k)))(random.key(1))


# --- compiled programs ------------------------------------------------------------------------


def test_both_lines_inside_a_jitted_function_are_named():
    def twice(key: Any) -> Any:
        first = random.uniform(key)  # first inside
        return first + random.normal(key)  # second inside

    message = reused(lambda: rune.jit(twice)(random.key(0)))

    assert "# first inside" in message
    assert "# second inside" in message


def test_two_calls_of_a_jitted_function_with_one_key_are_two_uses():
    draw = rune.jit(lambda k: random.uniform(k))
    draw(random.key(0))

    draw(random.key(1))
    reused(lambda: draw(random.key(0)))


def test_a_key_of_two_lanes_is_used_twice():
    keys = rune.tree.map(lambda w: rnp.broadcast_to(w, (2,)), random.key(0))

    reused(lambda: rune.vmap(random.uniform)(keys))


def test_a_key_that_every_step_of_a_loop_uses_is_used_twice():
    key = random.key(0)

    reused(lambda: rune.scan(lambda c, x: (c, random.uniform(key)), 0, None, length=2))


def test_the_branch_that_is_taken_uses_its_keys():
    def chosen(pred: Any, key: Any) -> Any:
        return rune.cond(pred, lambda: random.uniform(key), lambda: 0.0)

    key = random.key(0)
    rune.jit(chosen)(False, key)
    rune.jit(chosen)(True, key)
    reused(lambda: rune.jit(chosen)(True, key))


# --- programs that are right ------------------------------------------------------------------


def test_a_loop_that_splits_its_key_is_right():
    def step(key: Any, _: Any) -> Any:
        next_key, step_key = random.split(key)
        return next_key, random.uniform(step_key)

    rune.jit(lambda k: rune.scan(step, k, None, length=5))(random.key(0))


def test_draws_without_a_key_never_use_one_twice():
    def noisy(x: Any) -> Any:
        return x * random.uniform() + random.normal()

    with random.seed(0):
        rune.jit(noisy)(1.0)
        rune.vmap(noisy)(rnp.ones(3))
        rune.scan(lambda c, x: (noisy(c), None), 0.0, None, length=3)
        rune.grad(rune.checkpoint(noisy))(1.0)
        rune.jit(rune.grad(rune.checkpoint(noisy)))(1.0)


def test_lanes_of_a_while_loop_that_have_finished_use_no_key():
    def until(limit: Any, key: Any) -> Any:
        def step(state: Any) -> Any:
            next_key, key = random.split(state[1])
            return state[0] + random.uniform(key), next_key

        return rune.while_loop(lambda s: s[0] < limit, step, (0.0, key))[0]

    rune.vmap(until)(rnp.array([0.1, 5.0]), random.split(random.key(0), 2))


@pytest.mark.parametrize("case", one_in(4, SAMPLERS), ids=str)
def test_no_sampler_uses_its_key_twice(case: Case):
    case.draw(random.key(0), (3,))
