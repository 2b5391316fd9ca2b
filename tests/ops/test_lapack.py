"""NumPy's LAPACK is called by NumPy's private functions if they exist, else by public ones."""

from __future__ import annotations

import numpy as np
import pytest

from rune.ops.linalg import lapack
from tests.support.close import near, same

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_results_are_the_same_without_numpys_private_solve(dtype: str, monkeypatch: pytest.MonkeyPatch):
    a, b = RNG.normal(size=(3, 5, 5)).astype(dtype), RNG.normal(size=(3, 5, 2)).astype(dtype)
    a[1] = 0

    with np.errstate(all="ignore"):
        expected = lapack.solve_in_lapack(a, b)
    monkeypatch.setattr(lapack, "_SOLVE", None)
    solution = lapack.solve_in_lapack(a, b)

    assert solution.dtype == expected.dtype == np.dtype(dtype)
    assert np.isnan(solution[1]).all()
    assert np.isnan(expected[1]).all()
    near(expected[[0, 2]], solution[[0, 2]], relative=1e-5, why="np.linalg solves f32 in f64")


@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 5), (1, 1), (0, 0), (2, 0, 0), (0, 4, 4)], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_determinants_and_their_logarithms_have_numpys_bits(dtype: str, shape: tuple[int, ...]):
    a = RNG.normal(size=shape).astype(dtype)
    a[..., :1, 1:] = 0

    same(np.asarray(np.linalg.det(a)), lapack.determinants(a))
    for expected, part in zip(np.linalg.slogdet(a), lapack.signs_and_logarithms(a), strict=True):
        same(np.asarray(expected), np.asarray(part))


def test_a_matrix_with_a_nan_has_neither_a_sign_nor_a_logarithm():
    a = np.stack([np.eye(3), np.full((3, 3), np.nan), np.zeros((3, 3))]).astype(np.float32)

    with np.errstate(all="ignore"):
        signs, logs = lapack.signs_and_logarithms(a)

    same(np.array([1, np.nan, 0], np.float32), signs)
    same(np.array([0, np.nan, -np.inf], np.float32), logs)
