"""Factors and solutions of matrices of several blocks, on every executor.

The oracle is NumPy in f64. Each executor that shares kernels takes every third size;
RUNE_TEST_WHOLE=1 gives them all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import rune
from rune import numpy as rnp
from tests.support.close import near
from tests.support.sampling import each_value, in_turn

DEVICES = [d.name for d in rune.devices() if d.target.backend not in ("null", "reference")]
on_every_executor = pytest.mark.parametrize("device", DEVICES)
# Blocks of 32: part of one, three, and five; in the order in which executors have them in turn.
sizes = pytest.mark.parametrize("n", [130, 31, 65])


def positive(n: int) -> np.ndarray:
    a = np.random.default_rng(n).normal(size=(n, n))
    return (a @ a.T / n + np.eye(n)).astype(np.float32)


def likelihood(a: Any, y: Any) -> Any:
    factor = rnp.linalg.cholesky(a)
    whitening = rune.scipy.linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * whitening @ whitening + rnp.sum(rnp.log(rnp.diagonal(factor)))


@each_value()
@in_turn("n")
@on_every_executor
@sizes
def test_a_likelihood_and_its_gradient_are_right(n: int, device: str):
    a, y = positive(n), np.random.default_rng(0).normal(size=n).astype(np.float32)

    value, (slope, by_y) = rune.jit(rune.value_and_grad(likelihood, (0, 1)), device=device)(a, y)

    wide, inverse = a.astype(np.float64), np.linalg.inv(a.astype(np.float64))
    solution = inverse @ y
    near(0.5 * y @ solution + 0.5 * np.linalg.slogdet(wide)[1], np.asarray(value), relative=1e-5, why="f32")
    near(solution, np.asarray(by_y), relative=1e-4, absolute=1e-4, why="f32")
    # Only the lower triangle is read, so it has the whole gradient: twice the symmetric one.
    symmetric = 0.5 * (inverse - np.outer(solution, solution))
    both = np.asarray(slope) + np.asarray(slope).T
    near(2 * symmetric, both.astype(np.float64), relative=1e-3, absolute=1e-3, why="f32")


@each_value()
@in_turn("n")
@on_every_executor
@sizes
def test_a_system_is_solved_and_its_determinant_known(n: int, device: str):
    a = np.random.default_rng(n).normal(size=(n, n)).astype(np.float32)
    b = np.random.default_rng(1).normal(size=(n, 3)).astype(np.float32)

    x, (sign, size) = rune.jit(lambda a, b: (rnp.linalg.solve(a, b), rnp.linalg.slogdet(a)), device=device)(a, b)

    residual = a.astype(np.float64) @ np.asarray(x) - b
    assert np.abs(residual).max() < 1e-5 * n * np.abs(np.asarray(x)).max()
    exact = np.linalg.slogdet(a.astype(np.float64))
    assert float(sign) == exact[0]
    near(exact[1], np.asarray(size).astype(np.float64), relative=1e-4, why="f32")


@in_turn()
@on_every_executor
def test_each_lane_is_factored_separately(device: str):
    a = np.stack([positive(40), -positive(40), positive(40)])

    factor = np.asarray(rune.jit(rnp.linalg.cholesky, device=device)(a))

    assert np.isnan(np.diagonal(factor[1])).all()
    for lane in (0, 2):
        near(
            scipy.linalg.cholesky(a[lane].astype(np.float64), lower=True),
            factor[lane],
            relative=1e-4,
            absolute=1e-5,
            why="f32",
        )
