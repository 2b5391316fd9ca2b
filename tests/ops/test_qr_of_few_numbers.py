"""qr of small matrices calls NumPy's LAPACK without np.linalg, for the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from rune.ops.linalg import qr_numpy

# Square, wide, tall, a batch, no rows, no columns, no matrices; with as many numbers as are few.
SHAPES = [(3, 3), (2, 5), (5, 2), (2, 7, 4), (0, 3), (3, 0), (0, 4, 4), (32, 32), (33, 32), (41, 3)]


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_factors_are_those_of_numpy(shape: tuple[int, ...], dtype: str, full_matrices: bool):
    rng = np.random.default_rng(len(shape))
    a = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype("D")
    a = (a if dtype in "FD" else np.real(a)).astype(dtype)

    q, r = qr_numpy.qr(a, full_matrices)

    expected = np.linalg.qr(a, mode="complete" if full_matrices else "reduced")
    assert (q.dtype, r.dtype) == (a.dtype, a.dtype)
    assert np.array_equal(q, expected.Q.astype(dtype))
    assert np.array_equal(r, expected.R.astype(dtype))


def test_a_matrix_is_not_changed_by_its_factorisation():
    a = np.arange(6.0).reshape(3, 2)

    qr_numpy.qr(a, full_matrices=False)

    assert np.array_equal(a, np.arange(6.0).reshape(3, 2))


def test_a_nan_appears_only_in_the_triangle():
    r = qr_numpy.qr(np.array([[1.0, np.nan], [2.0, 3.0]]), full_matrices=False)[1]

    assert r[1, 0] == 0
    assert np.isnan(r[:, 1]).all()
