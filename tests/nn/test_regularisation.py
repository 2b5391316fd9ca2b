"""Dropout: which elements live, what the others become, and the same mask in the derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, random
from rune.errors import ArgumentError, AxisError, UnhandledEffect
from rune.nn import dropout
from tests.support.close import same

KEY = random.key(0)
X = rnp.arange(1.0, 4097.0).reshape(64, 64)


def living(y: Any) -> np.ndarray:
    """Which elements are not zero."""
    return np.asarray(y) != 0


def test_elements_are_zero_or_scaled_up():
    output = np.asarray(dropout(X, 0.25, KEY))

    living_elements = living(output)
    same(np.asarray(X / 0.75)[living_elements], output[living_elements])
    assert abs((~living_elements).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / X.size)


def test_the_mask_is_that_of_the_key():
    same(living(dropout(X, 0.5, KEY)), np.asarray(random.bernoulli(KEY, 0.5, X.shape)))
    same(dropout(X, 0.5, KEY), dropout(X, 0.5, KEY))
    assert (living(dropout(X, 0.5, KEY)) != living(dropout(X, 0.5, random.key(1)))).any()


def test_the_derivative_uses_the_same_mask():
    gradient = rune.grad(lambda x: rnp.sum(dropout(x, 0.5, KEY)))(X)

    same(np.where(living(dropout(X, 0.5, KEY)), np.float32(2), np.float32(0)), np.asarray(gradient))


def test_lanes_of_keys_have_their_own_masks():
    keys = random.split(KEY, 3)

    lanes = rune.vmap(lambda k: dropout(X, 0.5, k))(keys)

    same(np.stack([np.asarray(dropout(X, 0.5, k)) for k in keys]), np.asarray(lanes))


def test_without_a_key_every_call_lane_and_layer_has_a_different_mask():
    def layers(x: Any) -> Any:
        return dropout(x, 0.5), dropout(x, 0.5, name="second")

    with random.seed(0):
        first, second = rune.jit(rune.vmap(layers))(rnp.ones((2, 100)))

    masks = [living(m).tobytes() for layer in (first, second) for m in np.asarray(layer)]
    assert len(set(masks)) == 4


def test_a_named_dropout_keeps_its_mask_when_another_is_inserted_before_it():
    with random.seed(0):
        alone = dropout(X, 0.5, name="head")
    with random.seed(0):
        dropout(X, 0.5)
        same(alone, dropout(X, 0.5, name="head"))


def test_axes_may_share_one_fate():
    mask = living(dropout(X, 0.5, KEY, broadcast_dims=(-1,)))

    assert (mask == mask[:, :1]).all()
    assert 0 < mask[:, 0].sum() < 64


def test_an_evaluation_draws_nothing():
    assert dropout(X, 0.5, deterministic=True).buffer is X.buffer
    assert dropout(X, 0.0).buffer is X.buffer


def test_a_rate_of_one_leaves_nothing():
    same(np.zeros((64, 64), np.float32), np.asarray(dropout(X, 1.0, KEY)))


def test_the_rate_may_be_traced():
    output = rune.jit(lambda r: dropout(X, r, KEY))(0.25)

    same(living(dropout(X, 0.25, KEY)), living(output))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_dtype_stays(dtype: str):
    assert dropout(X.astype(dtype), 0.5, KEY).dtype == dtypes.as_dtype(dtype)


def test_dropout_is_part_of_the_kernel_around_it():
    explanation = rune.explain(lambda x, k: rnp.tanh(dropout(x, 0.5, k)) + 1.0)(X, KEY)

    assert explanation.costs.launches == 1


def test_what_cannot_be_is_refused():
    with pytest.raises(ArgumentError, match=r"cannot use rate=1\.5"):
        dropout(X, 1.5, KEY)
    with pytest.raises(AxisError, match="cannot find axis 2"):
        dropout(X, 0.5, KEY, broadcast_dims=(2,))
    with pytest.raises(UnhandledEffect, match="dropout: cannot draw without a key"):
        rune.jit(lambda x: dropout(x, 0.5))(X)
