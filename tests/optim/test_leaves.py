"""Leaves of unusual dtypes: gradients wider or narrower than parameters, and complex ones.

A rotation by one phase of all complex numbers rotates every update, so that real leaves are the
oracle of complex ones: squares are those of magnitudes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import optim
from rune.control import scan
from rune.optim import deprecated
from tests.optim.test_optim import ALL
from tests.support.close import near

PARTS = {
    "adadelta": deprecated.adadelta(0.1),
    "adagrad": optim.adagrad(0.1),
    "adamax": deprecated.adamax(0.1),
    "nadamw": deprecated.nadamw(0.1),
    "lars": deprecated.lars(0.1),
    "sign": deprecated.sign_sgd(0.1),
    "mean": deprecated.ema(0.9),
    "norm": optim.clip_by_global_norm(1.0),
    "block": deprecated.clip_by_block_rms(0.5),
    "units": deprecated.adaptive_grad_clip(0.1),
    "size": deprecated.scale_by_param_block_rms(),
    "rows": deprecated.scale_by_factored_rms(min_dim_size_to_factor=2),
    "rounds": deprecated.multi_steps(optim.adam(0.1), 2),
    "sums": deprecated.apply_every(2),
    "odd steps": deprecated.conditionally_transform(optim.adam(0.1), lambda step: step % 2 == 1),
    "finite": deprecated.apply_if_finite(optim.adam(0.1), 2),
}
EVERY = {**{k: v for k, v in ALL.items() if k != "partitioned"}, **PARTS}
PHASE = np.exp(0.7j)


def leaf(scale: float, dtype: str = "f32") -> Any:
    return rnp.asarray(scale * np.array([[1.0, -2.0, 0.5], [0.25, 1.5, -1.0]]), dtype)


def two_steps(optimizer: optim.GradientTransformation, grads: Any, params: Any) -> tuple[Any, Any]:
    def step(state: Any, _: Any) -> tuple[Any, Any]:
        updates, after = optimizer.update(grads, state, params)
        return after, updates

    return scan(step, optimizer.init(params), None, length=2)


@pytest.mark.parametrize("dtypes", [("bf16", "f32"), ("f32", "bf16")], ids=" of ".join)
@pytest.mark.parametrize("name", EVERY)
def test_a_state_keeps_its_dtypes_for_gradients_of_any_dtype(name: str, dtypes: tuple[str, str]):
    params, grads = leaf(1.0, dtypes[0]), leaf(0.3, dtypes[1])
    before = EVERY[name].init(params)

    after, updates = two_steps(EVERY[name], grads, params)

    assert [x.dtype for x in rune.tree.leaves(after)] == [x.dtype for x in rune.tree.leaves(before)]
    assert optim.apply_updates(params, updates[1]).dtype == params.dtype


@pytest.mark.parametrize("name", [k for k in EVERY if k not in ("rprop", "noisy")])
def test_a_complex_leaf_moves_like_a_rotated_real_leaf(name: str):
    params, grads = leaf(1.0), leaf(0.3)
    rotations = [rnp.asarray(np.asarray(x) * PHASE, "c64") for x in (grads, params)]

    after, updates = two_steps(EVERY[name], *rotations)

    near(
        np.asarray(two_steps(EVERY[name], grads, params)[1]) * PHASE,
        updates,
        relative=2e-4,
        absolute=1e-6,
        why="yogi adds and takes away squares",
    )
    assert not any(rnp.iscomplexobj(x) for x in rune.tree.leaves(getattr(after, "nu", ())))


def test_noise_of_complex_leaves_has_two_parts():
    noise = deprecated.add_noise(1.0, 0.0, 3)
    zeros = rnp.zeros(1000, "c64")

    updates, _ = noise.update(zeros, noise.init(zeros))

    assert 0.4 < float(rnp.var(updates.real)) < 0.6
    assert 0.4 < float(rnp.var(updates.imag)) < 0.6


@pytest.mark.parametrize(
    ("optimizer", "name"),
    [
        (deprecated.rprop(0.1), "scale_by_rprop"),
        (optim.clip(1.0), "clip"),
        (deprecated.keep_params_nonnegative(), "keep_params_nonnegative"),
        (deprecated.lbfgs(), "scale_by_zoom_linesearch"),
    ],
)
def test_a_part_that_compares_numbers_refuses_complex_leaves_by_name_and_place(optimizer: Any, name: str):
    params = {"w": leaf(1.0, "c64")}

    with pytest.raises(rune.errors.DtypeError, match=rf"{name}: cannot take c64\[2,3\] at \['w'\]"):
        optimizer.update(params, optimizer.init(params), params)


def test_a_complex_gradient_of_a_real_parameter_is_refused_by_name():
    adam, params = optim.adam(0.1), leaf(1.0)

    with pytest.raises(rune.errors.DtypeError, match=r"scale_by_adam: cannot take c64\[2,3\] \(a r"):
        adam.update(leaf(0.3, "c64"), adam.init(params), params)
