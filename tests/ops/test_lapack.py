"""NumPy's LAPACK is called by NumPy's private functions if they exist, else by public ones."""

from __future__ import annotations

import numpy as np
import pytest

from rune.ops.linalg import lapack
from tests.support.close import near

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
