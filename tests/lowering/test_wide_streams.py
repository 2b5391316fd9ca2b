"""Scores of many arrays: recomputed while one kernel can read all of them, otherwise stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import nn
from rune import numpy as rnp
from tests.lowering.test_streams import run
from tests.support.close import near


@pytest.mark.parametrize("biases", [20, 21, 24, 49])
@pytest.mark.parametrize("is_gradient", [False, True])
def test_scores_of_any_number_of_arrays_are_right_and_stored_beyond_what_a_kernel_may_read(
    biases: int, is_gradient: bool
):
    def function(*xs: Any) -> Any:
        q, k, v, *bs = xs
        return nn.softmax(sum(bs, q @ k.T), -1) @ v

    def gradients(*xs: Any) -> Any:
        return rune.grad(lambda *xs: rnp.sum(function(*xs) * xs[0]), argnums=(0, 1, 2))(*xs)

    rng = np.random.default_rng(biases)
    q, k, v = (rng.normal(size=(n, 5)).astype(np.float32) for n in (7, 33, 33))
    bs = [rng.normal(size=(7, 33)).astype(np.float32) for _ in range(biases)]
    results = run(gradients if is_gradient else function, q, k, v, *bs)

    scores = np.sum([q.astype(np.float64) @ k.T, *bs], 0)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    if not is_gradient:
        near(weights @ v, results[0], relative=1e-5, why="f32 against f64")
        return
    slopes = weights * (q @ v.T - np.sum(q * (weights @ v), -1, keepdims=True))
    for reference, actual in zip((slopes @ k + weights @ v, slopes.T @ q, weights.T @ q), results, strict=True):
        near(reference, actual, relative=1e-4, why="f32 against f64")
