"""Optimisers against their published formulas in NumPy, in f64, over fifty steps of one problem.

Then what is promised of every optimiser: trees in, trees of the same dtypes out, a whole step that
compiles once whatever the step count and the learning rate, and schedules that are traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import optim
from rune.optim import deprecated
from tests.support.arrays import array
from tests.support.close import near

STEPS = 50
START = np.array([1.0, -2.0, 3.0])
SCALES = np.array([1.0, 10.0, 0.1])


def slope(x: np.ndarray) -> np.ndarray:
    """The gradient of sum(scale cosh(x))."""
    return SCALES * np.sinh(np.clip(x, -5, 5))


def rune_curve(optimizer: optim.GradientTransformation) -> np.ndarray:
    """The path of one array under the optimiser."""
    params, path = array(START), []
    state = optimizer.init(params)
    for _ in range(STEPS):
        grads = array(slope(np.asarray(params)))
        updates, state = optimizer.update(grads, state, params)
        params = optim.apply_updates(params, updates)
        path.append(np.asarray(params))
    return np.stack(path)


def reference_curve(step: Callable[[int, np.ndarray, np.ndarray, dict], np.ndarray]) -> np.ndarray:
    """The path under step(count from 1, gradient, parameters, memory) -> update."""
    x, path, memory = START.copy(), [], {"m": np.zeros(3), "v": np.zeros(3)}
    for count in range(1, STEPS + 1):
        x = x + step(count, slope(x), x, memory)
        path.append(x)
    return np.stack(path)


def sgd(count: int, g: np.ndarray, x: np.ndarray, memory: dict) -> np.ndarray:
    return -0.01 * g


def momentum(count: int, g: np.ndarray, x: np.ndarray, memory: dict) -> np.ndarray:
    memory["m"] = g + 0.9 * memory["m"]
    return -0.01 * memory["m"]


def nesterov(count: int, g: np.ndarray, x: np.ndarray, memory: dict) -> np.ndarray:
    memory["m"] = g + 0.9 * memory["m"]
    return -0.01 * (g + 0.9 * memory["m"])


def adam(count: int, g: np.ndarray, x: np.ndarray, memory: dict) -> np.ndarray:
    memory["m"] = 0.9 * memory["m"] + 0.1 * g
    memory["v"] = 0.999 * memory["v"] + 0.001 * g * g
    m, v = memory["m"] / (1 - 0.9**count), memory["v"] / (1 - 0.999**count)
    return -0.1 * m / (np.sqrt(v) + 1e-8)


def adamw(count: int, g: np.ndarray, x: np.ndarray, memory: dict) -> np.ndarray:
    return adam(count, g, x, memory) - 0.1 * 0.05 * x


def clipped(count: int, g: np.ndarray, x: np.ndarray, memory: dict) -> np.ndarray:
    return -0.1 * g * min(1.0, 2.0 / np.linalg.norm(g))


def scheduled(count: int, g: np.ndarray, x: np.ndarray, memory: dict) -> np.ndarray:
    return -0.02 * (1 - min((count - 1) / 20, 1.0)) * g


CURVES: dict[str, tuple[optim.GradientTransformation, Callable]] = {
    "sgd": (optim.sgd(0.01), sgd),
    "momentum": (optim.momentum(0.01), momentum),
    "nesterov": (optim.sgd(0.01, momentum=0.9, nesterov=True), nesterov),
    "adam": (optim.adam(0.1), adam),
    "adamw": (optim.adamw(0.1, weight_decay=0.05), adamw),
    "clip": (optim.chain(optim.clip_by_global_norm(2.0), optim.sgd(0.1)), clipped),
    "schedule": (optim.sgd(optim.linear_schedule(0.02, 0.0, 20)), scheduled),
}


@pytest.mark.parametrize("name", CURVES)
def test_fifty_steps_follow_the_published_formula(name: str):
    optimizer, formula = CURVES[name]

    near(reference_curve(formula), rune_curve(optimizer), relative=1e-5, why="corrections in f32")


# --- what holds for every optimiser -----------------------------------------------------------

ALL = {
    "sgd": optim.sgd(0.1),
    "momentum": optim.momentum(0.1, nesterov=True),
    "adam": optim.adam(0.1),
    "adamw": optim.adamw(optim.cosine_decay_schedule(0.1, 10)),
    "chain": optim.chain(optim.clip_by_global_norm(1.0), optim.adam(0.1)),
    "adabelief": deprecated.adabelief(0.1),
    "adan": deprecated.adan(0.1),
    "amsgrad": deprecated.amsgrad(0.1),
    "novograd": deprecated.novograd(0.1),
    "radam": deprecated.radam(0.1),
    "rprop": deprecated.rprop(0.1),
    "signum": deprecated.signum(0.1),
    "optimistic": deprecated.optimistic_gradient_descent(0.05),
    "noisy": deprecated.noisy_sgd(0.1, eta=1e-4, key=3),
    "lbfgs": deprecated.lbfgs(0.1, linesearch=None),
    "yogi": deprecated.yogi(0.1),
    "lamb": deprecated.lamb(0.1),
    "lion": optim.lion(0.1),
    "rmsprop": optim.rmsprop(0.1, centered=True, momentum=0.9),
    "adafactor": deprecated.adafactor(0.1),
    "injected": deprecated.inject_hyperparams(optim.adamw)(0.1),
    "partitioned": deprecated.partition(
        {"a": optim.adam(0.1), "b": optim.sgd(0.1)}, {"w": "a", "layers": "b", "no": None}
    ),
    "every second": optim.chain(optim.sgd(0.1), deprecated.apply_every(1)),
}


def parameters() -> dict[str, Any]:
    """A tree with two dtypes, a scalar and nothing."""
    return {"w": rnp.ones((2, 3)), "layers": [rnp.ones(2, "bf16"), rnp.float32(2.0)], "no": None}


def loss(params: dict[str, Any]) -> Any:
    half, scalar = params["layers"]
    return rnp.sum(params["w"] ** 2) + rnp.sum(half.astype("f32") ** 2) + scalar**2


def step_of(optimizer: optim.GradientTransformation) -> Callable:
    def step(params: Any, state: Any) -> tuple[Any, Any]:
        updates, state = optimizer.update(rune.grad(loss)(params), state, params)
        return optim.apply_updates(params, updates), state

    return step


def types(tree: Any) -> list[Any]:
    return [(x.shape, x.dtype) for x in rune.tree.leaves(tree)]


@pytest.mark.parametrize("name", ALL)
def test_a_step_keeps_every_leafs_shape_and_dtype_and_lowers_the_loss(name: str):
    params, state = parameters(), ALL[name].init(parameters())

    new_params, later = step_of(ALL[name])(params, state)

    assert types(new_params) == types(params)
    assert types(later) == types(state)
    assert float(loss(new_params)) < float(loss(params))


@pytest.mark.parametrize("name", ALL)
def test_a_jitted_step_is_the_eager_step_and_is_traced_once(name: str):
    step, program = step_of(ALL[name]), rune.jit(step_of(ALL[name]))
    state = state_of_program = (parameters(), ALL[name].init(parameters()))

    for _ in range(3):
        state, state_of_program = step(*state), program(*state_of_program)

    near(state, state_of_program, relative=1e-2, absolute=1e-3, why="bf16 leaves, other order of sums")
    assert program.cache_size() == 1


def test_a_learning_rate_may_be_a_traced_array():
    def update(rate: Any, grads: Any) -> Any:
        optimizer = optim.sgd(rate)
        return optimizer.update(grads, optimizer.init(grads))[0]

    assert rune.jit(update)(rnp.float32(0.5), rnp.array([2.0])).tolist() == [-1.0]
    assert rune.grad(lambda r: update(r, rnp.array([2.0])).sum())(rnp.float32(0.5)).tolist() == -2.0


def test_the_first_step_of_adam_is_the_learning_rate_for_any_gradient():
    optimizer = optim.adam(0.1)
    grads = rnp.array([1e-3, -5.0, 1e3])

    updates, _ = optimizer.update(grads, optimizer.init(grads))

    near(np.array([-0.1, 0.1, -0.1]), updates, relative=2e-5, why="epsilon next to 1e-3")


def test_decay_without_parameters_is_refused():
    optimizer = optim.adamw(0.1)

    with pytest.raises(ValueError, match="add_decayed_weights: cannot decay without parameters"):
        optimizer.update(rnp.ones(2), optimizer.init(rnp.ones(2)))


@pytest.mark.parametrize("name", ["adam", "rms", "yogi", "adadelta", "belief"])
def test_gradients_of_another_shape_are_refused_with_the_operations_name(name: str):
    optimizer = getattr(deprecated, f"scale_by_{name}")()

    with pytest.raises(ValueError, match=rf"scale_by_{name}: cannot update \(2,\) with \(3,\)"):
        optimizer.update(rnp.ones(3), optimizer.init(rnp.ones(2)))


def test_an_invalid_decay_is_refused_with_the_operations_name():
    with pytest.raises(ValueError, match=r"ema: .*decay"):
        deprecated.ema(1.5).update(rnp.ones(2), deprecated.ema(1.5).init(rnp.ones(2)))


def test_a_state_of_another_chain_is_refused():
    with pytest.raises(ValueError, match="chain: cannot use a state of 1 for 2 parts"):
        optim.adam(0.1).update(rnp.ones(2), optim.sgd(0.1).init(rnp.ones(2)))


# --- schedules --------------------------------------------------------------------------------

SCHEDULES: dict[str, tuple[Any, Callable[[int], float]]] = {
    "constant": (optim.constant_schedule(0.3), lambda n: 0.3),
    "linear": (optim.linear_schedule(1.0, 0.2, 8), lambda n: 1.0 - 0.8 * min(n / 8, 1)),
    "exponential": (optim.exponential_decay(1.0, 4, 0.5), lambda n: 0.5 ** (n / 4)),
    "staircase": (optim.exponential_decay(1.0, 4, 0.5, staircase=True), lambda n: 0.5 ** (n // 4)),
    "cosine": (
        optim.cosine_decay_schedule(2.0, 10, alpha=0.1),
        lambda n: 2.0 * (0.9 * 0.5 * (1 + math.cos(math.pi * min(n, 10) / 10)) + 0.1),
    ),
    "warmup": (
        optim.warmup_cosine_decay_schedule(0.0, 1.0, 4, 12),
        lambda n: n / 4 if n < 4 else 0.5 * (1 + math.cos(math.pi * min(n - 4, 8) / 8)),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_its_formula_eager_and_traced(name: str):
    schedule, formula = SCHEDULES[name]
    program = rune.jit(lambda n: rnp.asarray(schedule(n)) + 0.0)

    for count in (0, 1, 3, 4, 7, 8, 12, 30):
        assert float(schedule(rnp.array(count))) == pytest.approx(formula(count), abs=1e-6)
        assert float(program(count)) == pytest.approx(formula(count), abs=1e-6)


def test_a_schedule_of_no_steps_is_refused():
    with pytest.raises(ValueError, match="decay_steps=0 "):
        optim.cosine_decay_schedule(1.0, 0)


@pytest.mark.parametrize("decay", [0.5, 0.7, 0.9])
def test_centred_squares_of_gradients_that_stay_the_same_are_not_negative(decay: float):
    grads = rnp.asarray(np.random.default_rng(0).lognormal(0, 3, 4000).astype(np.float32))
    optimizer = optim.rmsprop(0.1, decay=decay, centered=True)
    step = rune.jit(lambda state: optimizer.update(grads, state, grads))
    updates, state = grads, optimizer.init(grads)

    for _ in range(140):
        updates, state = step(state)

    assert np.isfinite(np.asarray(updates)).all()
