"""Many small complex matrices are factored and solved by routines of the CPU, at every size.

The truth is NumPy's and SciPy's, of doubles. What a routine must not read is NaN.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import rune
from rune import ops
from tests.backends.cpu.test_factors import (
    compiled,
    distance,
    exact,
    pieces,
    require_zeros_of_singular_matrices,
    routines,
    solve,
)

ERRORS = {np.complex64: 3e-6, np.complex128: 6e-15}  # relative, of well-conditioned matrices; times √n
# Written out, in lanes, and past the last size of those.
SIZES = [1, 3, 4, 5, 8, 17, 32, 33]
BATCHES = [(15,), (16,), (17,), (5, 7)]
dtypes_of_complex_numbers = pytest.mark.parametrize("dtype", ERRORS, ids=lambda d: d.__name__)


def drawn(shape: tuple[int, ...], dtype: type, seed: int = 0) -> np.ndarray:
    real, imag = np.random.default_rng([seed, *shape]).standard_normal((2, *shape))
    return (real + 1j * imag).astype(dtype)


def definite(n: int, batch: tuple[int, ...], dtype: type) -> np.ndarray:
    a = drawn((*batch, n, n), np.complex128)
    return (a @ a.conj().swapaxes(-1, -2) / n + np.eye(n)).astype(dtype)


@dtypes_of_complex_numbers
@pytest.mark.parametrize("n", SIZES)
def test_a_cholesky_factor_is_that_of_numpy(n: int, dtype: type):
    matrices = [definite(n, batch, dtype) for batch in BATCHES]
    unread = [np.where(np.tri(n, dtype=bool), a, np.nan).astype(dtype) for a in matrices]

    factors = compiled(lambda *xs: list(map(ops.linalg.cholesky, xs)), *unread)

    truth = [np.linalg.cholesky(a.astype(np.complex128)) for a in matrices]
    assert max(map(distance, factors, truth)) < ERRORS[dtype] * n**0.5
    assert not any(np.imag(np.diagonal(x, axis1=-2, axis2=-1)).any() for x in map(np.asarray, factors))


@dtypes_of_complex_numbers
@pytest.mark.parametrize("n", SIZES)
def test_an_lu_factorisation_multiplies_to_the_permuted_matrix(n: int, dtype: type):
    matrices = [drawn((*batch, m, n), dtype) for batch, m in [((16,), n), ((5, 7), n), ((17,), n + 3), ((16,), 5)]]

    results = compiled(lambda *xs: list(map(ops.linalg.lu, xs)), *matrices)

    for a, (factors, _, order) in zip(matrices, results, strict=True):
        lower, upper = complex_pieces(np.asarray(factors))
        permuted = np.take_along_axis(a, np.asarray(order)[..., None], -2)
        assert distance(lower @ upper, permuted) < 3 * ERRORS[dtype] * n**0.5


def complex_pieces(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    (real_lower, real_upper), (imag_lower, imag_upper) = pieces(np.real(factors)), pieces(np.imag(factors))
    return real_lower + 1j * np.tril(imag_lower, -1), real_upper + 1j * imag_upper


@dtypes_of_complex_numbers
@pytest.mark.parametrize("n", [4, 5, 16, 32])
def test_pivots_are_those_of_scipy(n: int, dtype: type):
    a = drawn((17, n, n), dtype)

    _, pivots, _ = compiled(ops.linalg.lu, a)

    assert np.array_equal(pivots, np.stack([scipy.linalg.lu_factor(x)[1] for x in a]))


FORMS = [(True, False), (True, True), (False, False), (False, True)]  # lower, unit


@dtypes_of_complex_numbers
@pytest.mark.parametrize(("batch", "k"), [((15,), 2), ((16,), 1), ((17,), 5), ((5, 7), 33)], ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_triangular_solutions_are_those_of_numpy(n: int, batch: tuple[int, ...], k: int, dtype: type):
    triangles = [triangle(n, batch, *form) for form in FORMS]
    matrices, b = [a.astype(dtype) for a, _ in triangles], drawn((*batch, n, k), dtype)

    solutions = compiled(lambda b, *xs: [solve(*form)(a, b) for form, a in zip(FORMS, xs, strict=True)], b, *matrices)

    truth = [np.linalg.solve(full, b) for _, full in triangles]
    assert max(map(distance, solutions, truth)) < ERRORS[dtype] * n**0.5


def triangle(n: int, batch: tuple[int, ...], lower: bool, unit: bool) -> tuple[np.ndarray, np.ndarray]:
    """Well-conditioned triangles, with NaN where nothing is read, and the matrices they mean."""
    inside = np.tri(n, k=-1 if unit else 0, dtype=bool)
    inside = inside if lower else inside.T
    full = drawn((*batch, n, n), np.complex128) / (2 * n**0.5) + (0 if unit else 2) * np.eye(n)
    return np.where(inside, full, np.nan), np.where(inside, full, 0) + (np.eye(n) if unit else 0)


@pytest.mark.parametrize("n", [5, 16, 32])
def test_a_matrix_that_is_not_definite_is_nan_and_leaves_the_others_alone(n: int):
    a = definite(n, (19,), np.complex64)
    a[4, n // 2, n // 2] = -1
    a[7, 0, 0] = 0

    factor = np.asarray(compiled(ops.linalg.cholesky, a))

    lower = np.tri(n, dtype=bool)
    assert (np.isnan(np.real(factor)) & np.isnan(np.imag(factor)))[[4, 7]][:, lower].all()
    assert not factor[[4, 7]][:, ~lower].any()
    assert np.isfinite(np.delete(factor, [4, 7], 0)).all()


@pytest.mark.parametrize("size", [1e-44, 1e-37, 1e-25, 1e25, 3e38])
@pytest.mark.parametrize("angle", [1, 1j, 0.6 - 0.8j])
def test_a_quotient_by_numbers_far_from_one_does_not_leave_the_range(size: float, angle: complex):
    a = np.broadcast_to(np.eye(5) * (size * angle), (16, 5, 5)).astype(np.complex64)
    b = a[..., :2] * np.complex64(2 if size < 1 else 0.5)

    x = np.asarray(compiled(solve(True, False), a, b))

    truth = np.broadcast_to(np.eye(5)[:, :2] * (2 if size < 1 else 0.5), x.shape)
    assert np.max(np.abs(x - truth)) < 1e-6


@pytest.mark.parametrize("n", [3, 5, 7, 32, 33])
def test_a_singular_matrix_has_a_zero_on_the_diagonal_of_u(n: int):
    require_zeros_of_singular_matrices(drawn((19, n, n), np.complex128))


@pytest.mark.parametrize("part", [np.nan, 1j * np.nan])
def test_nan_in_either_part_is_the_pivot_of_its_column(part: complex):
    a = drawn((19, 5, 5), np.complex64)
    a[..., 3, 0] = part

    _, pivots, _ = compiled(ops.linalg.lu, a)

    assert (np.asarray(pivots)[..., 0] == 3).all()


def test_many_small_systems_are_solved_without_python():
    called = routines(rune.numpy.linalg.solve, drawn((40, 8, 8), np.complex64), drawn((40, 8, 2), np.complex64))

    assert called == ["lu", "triangular_solve", "triangular_solve"]


@dtypes_of_complex_numbers
def test_factors_between_other_results_are_those_of_eager_evaluation(dtype: type):
    def function(a: rune.Array, b: rune.Array) -> list[rune.Array]:
        scaled = a * 2
        factor = ops.linalg.cholesky(scaled)
        solution = ops.linalg.triangular_solve(factor, b + scaled[..., :3], lower=True, unit_diagonal=False)
        return [scaled, factor, factor.imag, solution, solution.conj(), factor @ solution]

    operands = definite(7, (17,), dtype), drawn((17, 7, 3), dtype)

    eager = function(*map(exact, operands))

    assert max(map(distance, compiled(function, *operands), map(np.asarray, eager))) < 10 * ERRORS[dtype]


@dtypes_of_complex_numbers
def test_a_log_determinant_grows_by_the_trace_of_the_inverse_times_the_change(dtype: type):
    a = definite(6, (21,), dtype)

    def log_determinant(x: rune.Array) -> rune.Array:
        factor = ops.linalg.cholesky(x)
        return 2 * rune.numpy.log(rune.numpy.diagonal(factor, axis1=-2, axis2=-1).real).sum()

    slope = np.asarray(compiled(rune.grad(log_determinant), a), np.complex128)

    direction = definite(6, (21,), np.complex128)
    truth = np.trace(np.linalg.solve(a.astype(np.complex128), direction), axis1=-2, axis2=-1).real
    assert distance(np.sum(slope * direction, (-2, -1)).real, truth) < 100 * ERRORS[dtype]
