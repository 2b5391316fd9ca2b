"""The path of an optimiser of rune's on the problem of the curves."""

from __future__ import annotations

import numpy as np

import rune
import rune.numpy as rnp
from rune import nn, optim
from rune.optim import deprecated
from tests.optim.problem import LABELS, POINTS, START, STEPS
from tests.support.arrays import array

A, Y = np.array(POINTS), np.array(LABELS)


def loss(weights: rnp.ndarray) -> rnp.ndarray:
    """The loss in f64."""
    return rnp.mean(nn.softplus(-Y * (A @ weights))) + 0.05 * rnp.sum(weights**2)


def curve(optimizer: optim.GradientTransformation) -> np.ndarray:
    """The parameters after every step, all of them computed by one program."""
    with_values = deprecated.with_extra_args_support(optimizer)

    @rune.jit
    def step(weights, state):
        value, grad = rune.value_and_grad(loss)(weights)
        updates, state = with_values.update(grad, state, weights, value=value, grad=grad, value_fn=loss)
        return optim.apply_updates(weights, updates), state

    weights, path = array(np.array(START)), []
    state = with_values.init(weights)
    for _ in range(STEPS):
        weights, state = step(weights, state)
        path.append(np.asarray(weights))
    assert step.cache_size() == 1
    return np.stack(path)
