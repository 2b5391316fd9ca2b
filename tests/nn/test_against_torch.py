"""rune.nn against stored answers of torch 2.13.0: convolutions, pooling, losses, cells, norms.

Each case is called directly and under jit; the gradients of the sum of its results, each times a
fixed weight, are compared as well, and both on other executors: a sample in every run, all with
RUNE_TEST_WHOLE=1. torch_cases.py spells the calls, make_vectors.py stored them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import nn
from tests.nn.torch_cases import CASES, Case
from tests.support.sampling import one_in
from tests.support.surface_laws import DEVICES

STORED = np.load(Path(__file__).parent / "torch_2_13_0.npz", allow_pickle=False)
each_case = pytest.mark.parametrize("case", CASES, ids=str)
PLACED = {f"{c} on {d.name}": (c, d.name) for c in CASES for d in DEVICES if d.target.backend != "reference"}


def outputs(case: Case, *arrays: Any) -> tuple:
    results = case.ours(nn, *arrays)
    return results if isinstance(results, tuple) else (results,)


def weighted(case: Case, *arrays: Any) -> Any:
    """The number whose gradients are stored."""
    total = 0.0
    for output in outputs(case, *arrays):
        weights = rnp.cos(rnp.arange(output.size, dtype="f32")).reshape(output.shape)
        total = total + rnp.sum(output * weights)
    return total


def equal(name: str, actual: Any) -> None:
    expected = STORED[name]
    assert np.shape(actual) == expected.shape, name
    # f32 on both sides, summed in another order: some ulps of the largest terms.
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-5, atol=2e-5, err_msg=name)


@each_case
@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_results_are_those_of_torch(case: Case, wrap: Any):
    results = wrap(lambda *xs: outputs(case, *xs))(*case.draw())

    for number, output in enumerate(results):
        equal(f"{case} / {number}", output)


def gradients(case: Case, device: str) -> None:
    """Compare the gradients of a compiled program."""
    arrays = case.draw()
    smooth = tuple(k for k in range(len(arrays)) if f"{case} / d{k}" in STORED)
    derivative = rune.grad(lambda *xs: weighted(case, *xs), argnums=smooth)

    gradients = rune.jit(derivative, device=device)(*arrays)

    for number, gradient in zip(smooth, gradients, strict=True):
        equal(f"{case} / d{number}", gradient)


@each_case
def test_gradients_are_those_of_torch(case: Case):
    gradients(case, "cpu")


@pytest.mark.parametrize("case_on_device", one_in(64, list(PLACED)))
def test_a_program_on_an_executor_gives_torchs_results_and_gradients(case_on_device: str):
    case, device = PLACED[case_on_device]

    results = rune.jit(lambda *xs: outputs(case, *xs), device=device)(*case.draw())

    for number, output in enumerate(results):
        equal(f"{case} / {number}", output)
    gradients(case, device)
