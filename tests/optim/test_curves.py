"""The paths of optimisers, step by step: against stored ones of torch 2.13.0 where torch has the
same optimiser, else against the published formulas written in NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import optim
from rune.optim import deprecated
from rune.optim.schedules import Schedule
from tests.optim.paths import A, Y, curve
from tests.optim.problem import START, STEPS
from tests.support.arrays import array

STORED = json.loads((Path(__file__).parent / "torch_2_13_0.json").read_text())

SAME_AS_TORCH: dict[str, optim.GradientTransformation] = {
    "sgd": optim.sgd(0.1),
    "momentum": optim.momentum(0.1),
    "nesterov": optim.sgd(0.1, 0.9, nesterov=True),
    "adam": optim.adam(0.1),
    "adamw": optim.adamw(0.1, weight_decay=0.05),
    "adamax": deprecated.adamax(0.1),
    "rmsprop": optim.rmsprop(0.05, eps_in_sqrt=False),
    "centered rmsprop": optim.rmsprop(0.05, eps_in_sqrt=False, centered=True),
    "rmsprop with momentum": optim.rmsprop(0.02, eps_in_sqrt=False, momentum=0.8),
    "adagrad": optim.adagrad(0.5, 0.0, 1e-20),
    "adadelta": deprecated.adadelta(1.0),
}


@pytest.mark.parametrize("name", SAME_AS_TORCH)
def test_a_path_is_that_of_torch(name: str):
    points = curve(SAME_AS_TORCH[name])

    # f64, except that the correction of Adam's start is computed in f32.
    np.testing.assert_allclose(points, STORED[name], rtol=2e-5, atol=1e-6)


# --- by formulas ------------------------------------------------------------------------------

Step = Callable[[int, np.ndarray, np.ndarray, dict], np.ndarray]


def slope(w: np.ndarray) -> np.ndarray:
    margin = Y * (A @ w)
    return -(A.T @ (Y / (1 + np.exp(margin)))) / len(Y) + 0.1 * w


def formula(step: Step) -> np.ndarray:
    w, path, memory = np.array(START), [], {}
    for count in range(1, STEPS + 1):
        w = w + step(count, slope(w), w, memory)
        path.append(w)
    return np.stack(path)


def adam_parts(t: int, g: np.ndarray, memory: dict, b1: float = 0.9, b2: float = 0.999):
    m = memory["m"] = b1 * memory.get("m", 0) + (1 - b1) * g
    v = memory["v"] = b2 * memory.get("v", 0) + (1 - b2) * g * g
    return m / (1 - b1**t), v / (1 - b2**t)


def nadam(t: int, g: np.ndarray, w: np.ndarray, memory: dict) -> np.ndarray:
    _, v = adam_parts(t, g, memory)
    mean = 0.9 * memory["m"] / (1 - 0.9 ** (t + 1)) + 0.1 * g / (1 - 0.9**t)
    return -0.1 * mean / (np.sqrt(v) + 1e-8)


def yogi(t: int, g: np.ndarray, w: np.ndarray, memory: dict) -> np.ndarray:
    m = memory["m"] = 0.9 * memory.get("m", 1e-6) + 0.1 * g
    v = memory.get("v", 1e-6)
    v = memory["v"] = v - 0.001 * np.sign(v - g * g) * g * g
    return -0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-3)


def lion(t: int, g: np.ndarray, w: np.ndarray, memory: dict) -> np.ndarray:
    m = memory.get("m", 0)
    memory["m"] = 0.99 * m + 0.01 * g
    return -0.01 * (np.sign(0.9 * m + 0.1 * g) + 0.1 * w)


def lamb(t: int, g: np.ndarray, w: np.ndarray, memory: dict) -> np.ndarray:
    m, v = adam_parts(t, g, memory)
    update = m / (np.sqrt(v) + 1e-6) + 0.1 * w
    return -0.1 * update * np.linalg.norm(w) / np.linalg.norm(update)


def lars(t: int, g: np.ndarray, w: np.ndarray, memory: dict) -> np.ndarray:
    g = g + 0.1 * w
    step = -0.5 * g * 0.1 * np.linalg.norm(w) / np.linalg.norm(g)
    memory["m"] = step + 0.9 * memory.get("m", 0)
    return memory["m"]


def adafactor(t: int, g: np.ndarray, w: np.ndarray, memory: dict) -> np.ndarray:
    decay = 1 - t**-0.8
    v = memory["v"] = decay * memory.get("v", 0) + (1 - decay) * (g * g + 1e-30)
    update = g / np.sqrt(v)
    update = update / max(1, np.sqrt(np.mean(update**2)))
    return -0.1 * update * max(np.sqrt(np.mean(w**2)), 1e-3)


def rprop(t: int, g: np.ndarray, w: np.ndarray, memory: dict) -> np.ndarray:
    sizes, last = memory.get("sizes", np.full(3, 0.1)), memory.get("last", np.zeros(3))
    factor = np.where(g * last > 0, 1.2, np.where(g * last < 0, 0.5, 1.0))
    memory["sizes"] = np.clip(sizes * factor, 1e-6, 50.0)
    memory["last"] = np.where(g * last < 0, 0.0, np.sign(g))
    return -memory["sizes"] * memory["last"]


BY_FORMULA: dict[str, tuple[optim.GradientTransformation, Step]] = {
    "nadam": (deprecated.nadam(0.1), nadam),
    "yogi": (deprecated.yogi(0.1), yogi),
    "lion": (optim.lion(0.01, weight_decay=0.1), lion),
    "lamb": (deprecated.lamb(0.1, weight_decay=0.1), lamb),
    "lars": (deprecated.lars(0.5, weight_decay=0.1, trust_coefficient=0.1), lars),
    "adafactor": (deprecated.adafactor(0.1), adafactor),
    "rprop": (deprecated.rprop(0.1), rprop),
}


@pytest.mark.parametrize("name", BY_FORMULA)
def test_a_path_is_that_of_the_formula(name: str):
    optimizer, step = BY_FORMULA[name]

    np.testing.assert_allclose(curve(optimizer), formula(step), rtol=5e-5, atol=5e-6)


def test_adafactor_stores_only_rows_and_columns_for_a_matrix():
    part = deprecated.scale_by_factored_rms(min_dim_size_to_factor=2)
    g = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    state = part.init(array(g))
    updates, after = part.update(array(g), state)

    square = g * g
    estimate = np.outer(square.mean(1), square.mean(0)) / square.mean()
    assert sorted(x.shape for x in state[1:]) == [(1,), (2,), (3,)]
    np.testing.assert_allclose(np.asarray(updates), g / np.sqrt(estimate), rtol=1e-6)
    assert int(after.count) == 1


def test_centring_makes_the_mean_over_all_axes_but_the_first_zero():
    kernel, bias = np.arange(12.0).reshape(2, 3, 2) ** 2, np.arange(2.0)

    updates, _ = deprecated.centralize().update({"k": array(kernel), "b": array(bias)}, ())

    np.testing.assert_allclose(updates["k"], kernel - kernel.mean((1, 2), keepdims=True))
    np.testing.assert_array_equal(updates["b"], bias)


# --- schedules --------------------------------------------------------------------------------

SCHEDULES: dict[str, tuple[Schedule, Callable[[int], float]]] = {
    "polynomial": (
        deprecated.polynomial_schedule(1.0, 0.1, 2.0, 10, 5),
        lambda t: 0.1 + 0.9 * (1 - min(max(t - 5, 0), 10) / 10) ** 2,
    ),
    "piecewise": (
        deprecated.piecewise_constant_schedule(2.0, {3: 0.5, 9: 0.1}),
        lambda t: 2.0 * (0.5 if t >= 3 else 1) * (0.1 if t >= 9 else 1),
    ),
    "lines": (
        deprecated.piecewise_interpolate_schedule("linear", 1.0, {4: 3.0, 8: 0.5}),
        lambda t: float(np.interp(t, [0, 4, 8], [1, 3, 1.5])),
    ),
    "linear one-cycle": (
        deprecated.linear_onecycle_schedule(20, 1.0),
        lambda t: float(np.interp(t, [0, 6, 17, 20], [0.04, 1, 0.04, 4e-6])),
    ),
    "cosine one-cycle": (
        deprecated.cosine_onecycle_schedule(20, 1.0),
        lambda t: (
            0.04 + 0.96 * (1 - np.cos(np.pi * t / 6)) / 2
            if t < 6
            else 1 + (4e-6 - 1) * (1 - np.cos(np.pi * min(t - 6, 14) / 14)) / 2
        ),
    ),
    "joined": (
        optim.join_schedules([optim.constant_schedule(1.0), optim.exponential_decay(1.0, 1, 0.5)], [4]),
        lambda t: 1.0 if t < 4 else 0.5 ** (t - 4),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_its_formula_at_every_step_traced_or_not(name: str):
    schedule, expected = SCHEDULES[name]

    for wrap in (lambda f: f, rune.jit):
        rates = [float(wrap(schedule)(np.int32(t))) for t in range(25)]
        np.testing.assert_allclose(rates, [expected(t) for t in range(25)], rtol=2e-5, atol=1e-7)


# --- around optimisers ------------------------------------------------------------------------


def test_steps_of_k_gradients_are_one_step_of_their_mean():
    slow, grads = deprecated.multi_steps(optim.adam(0.1), 3), np.arange(18.0).reshape(6, 3)
    plain = optim.adam(0.1)
    state, plain_state = slow.init(array(np.array(START))), plain.init(array(np.array(START)))
    update = rune.jit(slow.update)

    every_update = []
    for g in grads:
        updates, state = update(array(g), state)
        every_update.append(np.asarray(updates))

    for number in range(2):
        mean = array(grads[3 * number : 3 * number + 3].mean(0))
        expected, plain_state = plain.update(mean, plain_state)
        np.testing.assert_allclose(every_update[3 * number + 2], np.asarray(expected), rtol=1e-5)
        assert not np.any(every_update[3 * number : 3 * number + 2])


def test_only_leaves_in_the_mask_decay():
    params = {"w": rnp.ones(2), "b": rnp.ones(2)}
    grads = {"w": rnp.zeros(2), "b": rnp.zeros(2)}
    optimizer = optim.adamw(1.0, weight_decay=0.5, mask={"w": True, "b": False})

    updates, _ = optimizer.update(grads, optimizer.init(params), params)

    assert np.asarray(updates["w"]).tolist() == [-0.5, -0.5]
    assert not np.any(np.asarray(updates["b"]))


def test_infinite_gradients_change_nothing_until_there_are_too_many_in_a_row():
    optimizer = deprecated.apply_if_finite(optim.momentum(1.0), 1)
    state = optimizer.init(rnp.zeros(1))

    first, state = optimizer.update(rnp.array([np.inf]), state)
    second, state = optimizer.update(rnp.array([2.0]), state)

    assert [float(x[0]) for x in (first, second)] == [0.0, -2.0]
    assert (int(state.in_all), int(state.in_a_row)) == (1, 0)


def test_clipping_keeps_directions_and_bounds():
    g, p = np.array([[3.0, 0.1], [4.0, 0.0]]), np.ones((2, 2))

    adaptive = deprecated.adaptive_grad_clip(0.5).update(array(g), (), array(p))[0]
    block = deprecated.clip_by_block_rms(1.0).update(array(g), ())[0]

    most = 0.5 * np.sqrt(2)
    expected = np.stack([g[:, 0] * most / 5, g[:, 1]], 1)
    np.testing.assert_allclose(np.asarray(adaptive), expected, rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.mean(np.asarray(block) ** 2)), 1.0, rtol=1e-6)
