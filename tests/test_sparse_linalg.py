"""rune.sparse.linalg: solutions are those of SciPy, eigenvalues those of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, ShapeError
from rune.sparse.linalg import lobpcg_standard, spsolve
from rune.test_util import check_grads

RNG = np.random.default_rng(5)


def system(n: int) -> tuple[Any, ...]:
    """A matrix by rows, some of its positions given twice, and a right side."""
    dense = np.where(RNG.random((n, n)) < 0.3, RNG.standard_normal((n, n)), 0.0) + 4.0 * np.eye(n)
    matrix = scipy.sparse.csr_matrix(dense.astype(np.float32))
    return matrix, RNG.standard_normal(n).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 17])
def test_a_solution_is_that_of_scipy(n: int):
    matrix, b = system(n)
    expected = np.linalg.solve(matrix.toarray().astype(np.float64), b)

    for solve in (spsolve, rune.jit(spsolve)):
        np.testing.assert_allclose(solve(matrix.data, matrix.indices, matrix.indptr, b), expected, rtol=2e-4, atol=1e-5)


def test_several_right_sides_are_solved_at_once_and_by_vmap():
    matrix, b = system(5)
    right = np.stack([b, 2 * b, b[::-1]], axis=1)
    parts = matrix.data, matrix.indices, matrix.indptr

    together = spsolve(*parts, right)

    np.testing.assert_allclose(together[:, 1], 2 * spsolve(*parts, b), rtol=1e-5)
    lanes = rune.vmap(lambda v: spsolve(*parts, v), in_axes=1, out_axes=1)(right)
    np.testing.assert_allclose(lanes, together, rtol=1e-5)


def test_numbers_and_right_side_have_derivatives():
    matrix, b = system(4)

    with rune.enable_x64():
        data, right = matrix.data.astype(np.float64), b.astype(np.float64)
        check_grads(lambda d, v: spsolve(d, matrix.indices, matrix.indptr, v), (data, right), order=2)


def hermitian(n: int, dtype: str) -> np.ndarray:
    m = RNG.standard_normal((n, n)) + (1j * RNG.standard_normal((n, n)) if dtype == "complex64" else 0)
    return (m + m.conj().T).astype(dtype)


@pytest.mark.parametrize(("n", "k", "dtype"), [(11, 2, "float32"), (16, 3, "complex64"), (6, 1, "float32")])
def test_the_greatest_eigenvalues_are_those_of_numpy(n: int, k: int, dtype: str):
    matrix, start = hermitian(n, dtype), RNG.standard_normal((n, k)).astype(dtype)
    expected = np.linalg.eigvalsh(matrix)[::-1][:k]

    for find in (lobpcg_standard, rune.jit(lobpcg_standard)):
        values, vectors, count = find(matrix, start)
        np.testing.assert_allclose(values, expected, rtol=1e-4)
        np.testing.assert_allclose(matrix @ np.asarray(vectors), vectors * values, atol=2e-3)
        np.testing.assert_allclose(np.conj(vectors).T @ vectors, np.eye(k), atol=1e-5)
        assert 0 < count < 100


def test_a_function_can_replace_its_matrix_and_lanes_of_it_are_matrices():
    matrices = np.stack([hermitian(11, "float32") for _ in range(3)])
    start = RNG.standard_normal((11, 1)).astype(np.float32)

    values = rune.vmap(lambda a: lobpcg_standard(lambda v: a @ v, start)[0])(matrices)

    np.testing.assert_allclose(values[:, 0], np.linalg.eigvalsh(matrices)[:, -1], rtol=1e-4)


def test_no_more_iterations_run_than_requested():
    matrix, start = hermitian(31, "float32"), RNG.standard_normal((31, 2)).astype(np.float32)

    assert int(lobpcg_standard(matrix, start, m=3)[2]) == 3
    assert int(lobpcg_standard(matrix, start, tol=1e3)[2]) == 0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: spsolve(rnp.ones(2), rnp.arange(2), rnp.arange(3), rnp.ones(3)), ShapeError, "a matrix of 2 rows"),
        (lambda: lobpcg_standard(rnp.eye(10), rnp.ones((10, 2))), ShapeError, "0 < 5 k < n"),
        (lambda: lobpcg_standard(rnp.eye(9), rnp.ones((11, 2))), ShapeError, "n, n"),
        (lambda: lobpcg_standard(rnp.eye(11, dtype="f64"), rnp.ones((11, 2))), ArgumentError, "dtypes differ"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call: Any, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        call()
