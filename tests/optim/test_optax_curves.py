"""The paths of optimisers that Optax has, step by step, against stored ones of Optax 0.2.8."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import nn, optim
from tests.optim.make_optax_curves import optimizers, schedules
from tests.optim.problem import LABELS, POINTS, START, STEPS
from tests.support.arrays import array

STORED = json.loads((Path(__file__).parent / "optax_0_2_8.json").read_text())
OPTIMIZERS, SCHEDULES = optimizers(optim), schedules(optim)
A, Y = np.array(POINTS), np.array(LABELS)


def loss(weights: rnp.ndarray) -> rnp.ndarray:
    return rnp.mean(nn.softplus(-Y * (A @ weights))) + 0.05 * rnp.sum(weights**2)


@pytest.mark.parametrize("name", STORED["curves"])
def test_a_compiled_path_is_that_of_optax(name: str):
    optimizer = optim.with_extra_args_support(OPTIMIZERS[name])

    @rune.jit
    def step(weights, state):
        value, grad = rune.value_and_grad(loss)(weights)
        updates, state = optimizer.update(
            grad, state, weights, value=value, grad=grad, value_fn=loss
        )
        return optim.apply_updates(weights, updates), state

    weights, path = array(np.array(START)), []
    state = optimizer.init(weights)
    for _ in range(STEPS):
        weights, state = step(weights, state)
        path.append(np.asarray(weights))

    # f64 but for corrections of starts and rates of schedules, which are computed in f32.
    np.testing.assert_allclose(np.stack(path), STORED["curves"][name], rtol=5e-5, atol=2e-6)
    assert step.cache_size() == 1


@pytest.mark.parametrize("name", STORED["rates"])
def test_a_schedule_is_that_of_optax(name: str):
    for wrap in (lambda f: f, rune.jit):
        schedule = wrap(SCHEDULES[name])
        found = [float(schedule(np.int32(t))) for t in range(25)]
        np.testing.assert_allclose(found, STORED["rates"][name], rtol=2e-6, atol=1e-7)
