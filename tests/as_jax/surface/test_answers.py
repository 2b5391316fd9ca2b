"""Names of JAX, called by JAX's conventions, answer as jax 0.10.2 did."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.as_jax.surface.calls import CALLS


@cache
def stored() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).with_name("jax_answers_0_10_2.npz")) as vectors:
        return dict(vectors)


@pytest.mark.parametrize("name", CALLS)
def test_an_answer_is_that_of_jax(name: str):
    expected = [x for key, x in stored().items() if key.rpartition(" / ")[0] == name]

    answers = [np.asarray(x) for x in jax.tree.leaves(CALLS[name](jax))]

    assert [(x.dtype, x.shape) for x in answers] == [(x.dtype, x.shape) for x in expected]
    for x, y in zip(answers, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=1e-7)  # libraries of their own compute sin and log
