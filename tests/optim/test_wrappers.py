"""Optimisers around optimisers, second copies of the parameters, and hyperparameters in states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import optim
from rune.errors import ArgumentError
from rune.optim import deprecated
from tests.support.close import near

GRADS = np.linspace(-1.0, 2.0, 21).reshape(7, 3).astype("f4")


def test_slow_parameters_follow_each_round_of_fast_parameters():
    optimizer = deprecated.lookahead(optim.sgd(0.1), 3, 0.5)
    params = deprecated.LookaheadParams.init_synced(rnp.ones(3))
    step, state = rune.jit(optimizer.update), optimizer.init(params)
    fast = slow = np.ones(3)

    for count, g in enumerate(GRADS, 1):
        updates, state = step(rnp.array(g), state, params)
        params = optim.apply_updates(params, updates)
        fast = fast - 0.1 * g
        if count % 3 == 0:
            fast = slow = slow + 0.5 * (fast - slow)
        near((fast, slow), tuple(params), relative=1e-6, why="f32")


def test_a_round_can_end_with_a_new_state():
    optimizer = deprecated.lookahead(optim.momentum(0.1), 2, 0.5, reset_state=True)
    params = deprecated.LookaheadParams.init_synced(rnp.ones(3))
    state = optimizer.init(params)

    for g in GRADS[:2]:
        _, state = optimizer.update(rnp.array(g), state, params)

    assert not any(np.any(np.asarray(x)) for x in rune.tree.leaves(state))


def test_the_fast_optimizer_of_a_round_receives_its_keyword_arguments():
    optimizer = deprecated.lookahead(deprecated.polyak_sgd(), 2, 0.5)
    params = deprecated.LookaheadParams.init_synced(rnp.ones(2))

    updates, _ = optimizer.update(rnp.array([3.0, -4.0]), optimizer.init(params), params, value=5.0)

    near((np.array([-0.6, 0.8]), np.zeros(2)), tuple(updates), relative=1e-6, why="f32")


def test_an_average_of_parameters_follows_at_its_own_rate():
    params, average = ({"w": rnp.array([4.0]), "h": rnp.ones(1, "bf16")}, {"w": rnp.zeros(1), "h": None})
    average["h"] = rnp.zeros(1, "bf16")

    averages = rune.jit(deprecated.incremental_update)(params, average, 0.25)

    assert (averages["w"].tolist(), averages["h"].dtype) == ([1.0], rnp.bfloat16)


def test_a_copy_is_updated_every_few_steps():
    renew = rune.jit(lambda steps: deprecated.periodic_update(rnp.ones(1), rnp.zeros(1), steps, 3))

    assert [float(renew(n)[0]) for n in range(5)] == [1, 0, 0, 1, 0]


def test_hyperparameters_are_set_in_the_state_without_another_trace():
    optimizer = deprecated.inject_hyperparams(optim.adam)(learning_rate=0.1, b1=0.5)
    state, update = optimizer.init(rnp.zeros(2)), rune.jit(optimizer.update)
    g = rnp.array([1.0, -2.0])

    _, state = update(g, state)
    # As a Python number would be: weak, so that bf16 leaves stay what they are.
    state.hyperparams["learning_rate"] = rnp.asarray(0.3)
    updates, _ = update(g, state)

    plain = optim.adam(0.3, b1=0.5)
    _, before = plain.update(g, plain.init(g))
    near(plain.update(g, before)[0], updates, relative=2e-6, why="b1 is f32 there, Python's here")
    assert update.cache_size() == 1


def test_hyperparameters_of_a_schedule_are_those_of_the_step():
    optimizer = deprecated.inject_hyperparams(optim.sgd)(optim.linear_schedule(1.0, 0.0, 4), momentum=0.5)
    state = optimizer.init(rnp.zeros(1))

    rates = []
    for _ in range(3):
        _, state = optimizer.update(rnp.ones(1), state)
        rates.append((float(state.hyperparams["learning_rate"]), float(state.hyperparams["momentum"])))

    assert rates == [(1.0, 0.5), (0.75, 0.5), (0.5, 0.5)]
    assert sorted(state.hyperparams) == ["learning_rate", "momentum"]


def test_an_unknown_static_argument_is_refused():
    with pytest.raises(ValueError, match="cannot keep speed static"):
        deprecated.inject_hyperparams(optim.sgd, static_args="speed")


def test_labels_may_be_a_function_and_a_frozen_leaf_stays():
    params = {"w": rnp.ones(2), "b": rnp.ones(2)}
    optimizer = deprecated.partition(
        {"train": optim.adam(0.1), "keep": deprecated.set_to_zero()},
        lambda tree: {name: "train" if name == "w" else "keep" for name in tree},
    )

    updates, _ = rune.jit(optimizer.update)(params, optimizer.init(params), params)

    assert not np.any(np.asarray(updates["b"]))
    near(np.full(2, -0.1), updates["w"], relative=2e-5, why="Adam's first step")


def test_a_label_without_an_optimizer_is_refused():
    optimizer = deprecated.multi_transform({"x": optim.sgd(1.0)}, ["x", "y"])

    with pytest.raises(ValueError, match="cannot find an optimizer for label 'y'"):
        optimizer.init([rnp.ones(1), rnp.ones(1)])


def test_a_wrapper_passes_on_the_keyword_arguments_of_its_inner_optimizer():
    inner, p = deprecated.polyak_sgd(10.0), {"a": rnp.array([3.0]), "b": rnp.array([1.0])}
    wrappers = {
        "masked": deprecated.masked(inner, {"a": True, "b": False}),
        "partition": deprecated.partition({1: inner, 2: optim.sgd(0.0)}, {"a": 1, "b": 2}),
        "steps": deprecated.multi_steps(deprecated.masked(inner, {"a": True, "b": False}), 1),
        "finite": deprecated.apply_if_finite(deprecated.masked(inner, {"a": True, "b": False}), 3),
        "sometimes": deprecated.conditionally_transform(
            deprecated.masked(inner, {"a": True, "b": False}), lambda n: n == 0
        ),
    }

    for optimizer in wrappers.values():
        update = rune.jit(lambda value, o=optimizer: o.update(p, o.init(p), p, value=value)[0])
        updates = update(18.0)
        near(np.array([-6.0]), updates["a"], relative=1e-6, why="18 / 9 times 3")


def test_noise_has_the_requested_variance_and_follows_the_key():
    part, g = deprecated.add_noise(4.0, 1.0, 7), [rnp.zeros(20_000), rnp.zeros(3)]
    state = part.init(g)

    first, later = part.update(g, state)
    repetition, _ = part.update(g, state)
    second, _ = part.update(g, later)

    assert abs(float(rnp.std(first[0])) - 2.0) < 0.05
    assert abs(float(rnp.std(second[0])) - 2.0 / np.sqrt(2)) < 0.05
    near(first, repetition, relative=0, why="one state, one draw")
    assert first[0][:3].tolist() != first[1].tolist()


def test_a_name_cannot_occur_twice_in_a_chain():
    with pytest.raises(ValueError, match="cannot use a name twice"):
        deprecated.named_chain(("a", optim.sgd(1.0)), ("a", optim.sgd(1.0)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: deprecated.lookahead(optim.sgd(1.0), 0, 0.5), "lookahead: cannot update every 0"),
        (lambda: deprecated.apply_every(1.5), "apply_every: cannot update every 1.5"),  # type: ignore[arg-type]
        (lambda: deprecated.radam(0.1, b2=1.0), r"scale_by_radam: cannot use b2=1\.0"),
        (lambda: deprecated.radam(0.1, b2=0.0), r"scale_by_radam: cannot use b2=0\.0"),
        (lambda: deprecated.radam(0.1, threshold=3.0), "scale_by_radam: cannot use threshold=3"),
        (lambda: deprecated.lookahead(optim.sgd(1.0), 2, 0.5).init(rnp.ones(1)), "LookaheadParams"),
        (lambda: deprecated.periodic_update(1.0, 2.0, 1, 0), "cannot update every 0 steps"),
        (lambda: deprecated.apply_every(0), "cannot update every 0 steps"),
    ],
)
def test_a_period_of_no_steps_and_a_single_copy_are_refused(call: Any, message: str):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_optimizer_is_the_pair_of_its_functions_as_in_optax():
    init, update = optimizer = optim.sgd(0.5)

    assert (init, update) == (optimizer.init, optimizer.update)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: deprecated.scale_by_schedule(0.1), "scale_by_schedule: cannot call 0.1"),  # type: ignore[arg-type]
        (
            lambda: deprecated.piecewise_interpolate_schedule("cubic", 1.0),
            "piecewise_interpolate_schedule: cannot use 'cubic'",
        ),
        (lambda: deprecated.lookahead(0.1, 5, 0.5), "optim: cannot take float as an optimizer"),  # type: ignore[arg-type]
        (lambda: deprecated.multi_transform([optim.sgd(0.1)], "a"), "multi_transform: cannot read list"),  # type: ignore[arg-type]
    ],
)
def test_the_error_of_a_wrapper_names_what_it_cannot_wrap(call: Callable[[], Any], words: str):
    with pytest.raises(ArgumentError, match=words):
        call().init(rnp.ones(3))
