"""Complex matrices are factored and solved by routines of the CPU, one or many, at every size.

The oracle is NumPy and SciPy in f64. Elements that a routine must not read are NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import rune
from rune import ops
from tests.backends.cpu.test_factors import (
    SHAPES_OF_QR,
    compiled,
    distance,
    exact,
    pieces,
    require_zeros_of_singular_matrices,
    routines,
    solve,
)
from tests.support.sampling import each_value

pytestmark = each_value()

ERRORS = {np.complex64: 3e-6, np.complex128: 6e-15}  # relative, of well-conditioned matrices; times √n
# Written out, in lanes, past the last size of those; in blocks of 32, at their ends and past them.
SIZES = [1, 3, 4, 5, 8, 17, 32, 33, 47, 63, 64, 65, 97, 130]
FEW = [(), (2,)]
BATCHES = [*FEW, (15,), (16,), (17,), (5, 7)]
dtypes_of_complex_numbers = pytest.mark.parametrize("dtype", ERRORS, ids=lambda d: d.__name__)


def drawn(shape: tuple[int, ...], dtype: type, seed: int = 0) -> np.ndarray:
    real, imag = np.random.default_rng([seed, *shape]).standard_normal((2, *shape))
    return (real + 1j * imag).astype(dtype)


def batches(n: int) -> list[tuple[int, ...]]:
    """Numbers of matrices: a few of those that are large."""
    return BATCHES if n <= 33 else FEW


def definite(n: int, batch: tuple[int, ...], dtype: type) -> np.ndarray:
    a = drawn((*batch, n, n), np.complex128)
    return (a @ a.conj().swapaxes(-1, -2) / n + np.eye(n)).astype(dtype)


@dtypes_of_complex_numbers
@pytest.mark.parametrize("n", SIZES)
def test_a_cholesky_factor_is_that_of_numpy(n: int, dtype: type):
    matrices = [definite(n, batch, dtype) for batch in batches(n)]
    unread = [np.where(np.tri(n, dtype=bool), a, np.nan).astype(dtype) for a in matrices]

    factors = compiled(lambda *xs: list(map(ops.linalg.cholesky, xs)), *unread)

    truth = [np.linalg.cholesky(a.astype(np.complex128)) for a in matrices]
    assert max(map(distance, factors, truth)) < ERRORS[dtype] * n**0.5
    assert not any(np.imag(np.diagonal(x, axis1=-2, axis2=-1)).any() for x in map(np.asarray, factors))


@dtypes_of_complex_numbers
@pytest.mark.parametrize("n", SIZES)
def test_an_lu_factorisation_multiplies_to_the_permuted_matrix(n: int, dtype: type):
    shapes = [*((batch, n) for batch in batches(n)), ((17,), n + 3), ((16,), 5), ((), n + 7), ((), 5)]
    matrices = [drawn((*batch, m, n), dtype) for batch, m in shapes]

    results = compiled(lambda *xs: list(map(ops.linalg.lu, xs)), *matrices)

    for a, (factors, _, order) in zip(matrices, results, strict=True):
        lower, upper = complex_pieces(np.asarray(factors))
        rows = np.take_along_axis(a, np.asarray(order)[..., None], -2)
        assert distance(lower @ upper, rows) < 3 * ERRORS[dtype] * n**0.5


def complex_pieces(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    (real_lower, real_upper), (imag_lower, imag_upper) = pieces(np.real(factors)), pieces(np.imag(factors))
    return real_lower + 1j * np.tril(imag_lower, -1), real_upper + 1j * imag_upper


@dtypes_of_complex_numbers
@pytest.mark.parametrize("n", [4, 5, 16, 32, 33, 64, 100])
def test_pivots_are_those_of_scipy(n: int, dtype: type):
    a = drawn((17, n, n), dtype)

    _, pivots, _ = compiled(ops.linalg.lu, a)

    assert np.array_equal(pivots, np.stack([scipy.linalg.lu_factor(x)[1] for x in a]))


FORMS = [(True, False), (True, True), (False, False), (False, True)]  # lower, unit


@dtypes_of_complex_numbers
@pytest.mark.parametrize(
    ("batch", "k"), [((), 1), ((), 70), ((2,), 33), ((15,), 2), ((16,), 1), ((17,), 5), ((5, 7), 33)], ids=str
)
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


@pytest.mark.parametrize("n", [5, 16, 32, 33, 70])
def test_a_matrix_that_is_not_definite_gives_nan_for_itself_only(n: int):
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
    require_quotients((16, 5, 5), size * angle)


# One matrix is solved by inverses of its blocks, which 1e44 would not fit.
@pytest.mark.parametrize("size", [1e-37, 1e-25, 1e25, 3e38])
@pytest.mark.parametrize("angle", [1, 1j, 0.6 - 0.8j])
@pytest.mark.parametrize("n", [5, 40])
def test_an_inverse_of_numbers_far_from_one_does_not_leave_the_range(n: int, size: float, angle: complex):
    require_quotients((n, n), size * angle)


def require_quotients(shape: tuple[int, ...], number: complex) -> None:
    """Require right quotients of twice the number, or half of it, by a diagonal of the number."""
    n, factor = shape[-1], 2 if abs(number) < 1 else 0.5
    a = np.broadcast_to(np.eye(n) * number, shape).astype(np.complex64)

    x = np.asarray(compiled(solve(True, False), a, a[..., :2] * np.complex64(factor)))

    assert np.max(np.abs(x - np.eye(n)[:, :2] * factor)) < 1e-6


@pytest.mark.parametrize("n", [3, 5, 7, 32, 33, 70])
def test_a_singular_matrix_has_a_zero_on_the_diagonal_of_u(n: int):
    require_zeros_of_singular_matrices(drawn((19, n, n), np.complex128))


@pytest.mark.parametrize("part", [np.nan, 1j * np.nan])
@pytest.mark.parametrize("shape", [(19, 5, 5), (5, 5), (40, 40)], ids=str)
def test_nan_in_either_part_is_the_pivot_of_its_column(shape: tuple[int, ...], part: complex):
    a = drawn(shape, np.complex64)
    a[..., 3, 0] = part

    _, pivots, _ = compiled(ops.linalg.lu, a)

    assert (np.asarray(pivots)[..., 0] == 3).all()


def test_many_small_systems_are_solved_without_python():
    calls = routines(rune.numpy.linalg.solve, drawn((40, 8, 8), np.complex64), drawn((40, 8, 2), np.complex64))

    assert calls == ["lu", "triangular_solve", "triangular_solve"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (rune.numpy.linalg.inv, ["lu", "triangular_solve", "triangular_solve"]),
        (rune.numpy.linalg.det, ["lu"]),
        (rune.numpy.linalg.cholesky, ["cholesky"]),
        (rune.numpy.linalg.qr, ["geqrf", "reflections_product"]),
    ],
    ids=["inv", "det", "cholesky", "qr"],
)
@pytest.mark.parametrize("n", [20, 80])
def test_one_matrix_is_factored_without_python(n: int, function: Callable[..., Any], expected: list[str]):
    assert routines(function, drawn((n, n), np.complex64)) == expected


@dtypes_of_complex_numbers
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [*SHAPES_OF_QR, (3, 31, 40), (600, 5)], ids=str)
def test_a_qr_factorisation_is_that_of_numpy(shape: tuple[int, ...], mode: Any, dtype: type):
    a = drawn(shape, dtype)

    q, r = map(np.asarray, compiled(lambda x: rune.numpy.linalg.qr(x, mode), a))

    error = ERRORS[dtype] * max(shape) ** 0.5
    assert distance(q @ r, a) < 2 * error
    assert np.max(np.abs(q.conj().swapaxes(-1, -2) @ q - np.eye(q.shape[-1]))) < 2 * error
    assert distance(r, np.linalg.qr(a.astype(np.complex128), mode)[1]) < 20 * error
    assert not np.tril(r, -1).any()
    assert not np.imag(np.diagonal(r, axis1=-2, axis2=-1))[..., : shape[-2] - 1].any()


@dtypes_of_complex_numbers
def test_dependent_empty_and_real_columns_leave_q_orthonormal(dtype: type):
    a = drawn((70, 40), dtype)
    a[:, 3], a[:, 9], a[5:, 20] = 0, a[:, 2], 0
    a[:, 30] = np.real(a[:, 30])
    a[1:, 0] = 0

    q, r = map(np.asarray, compiled(rune.numpy.linalg.qr, a))

    assert distance(q @ r, a) < 20 * ERRORS[dtype]
    assert np.max(np.abs(q.conj().T @ q - np.eye(40))) < 20 * ERRORS[dtype]


@pytest.mark.parametrize("size", [1e-36, 1e-25, 1e25, 1e36])
def test_columns_far_from_one_are_reflected_without_overflow(size: float):
    a = drawn((20, 12), np.complex64)
    a[:, 5] *= np.float32(size)

    q, r = (np.asarray(x, np.complex128) for x in compiled(rune.numpy.linalg.qr, a))

    assert np.max(np.abs(q @ r - a) / np.max(np.abs(a), 0)) < 1e-5


@dtypes_of_complex_numbers
@pytest.mark.parametrize("n", [257, 400])
def test_large_matrices_are_factored_and_solved_as_by_numpy(n: int, dtype: type):
    a, b = definite(n, (), dtype), drawn((n, 70), dtype)

    factor = compiled(ops.linalg.cholesky, a)
    x = compiled(rune.numpy.linalg.solve, a, b)

    wide = a.astype(np.complex128)
    assert distance(factor, np.linalg.cholesky(wide)) < ERRORS[dtype] * n**0.5
    assert distance(x, np.linalg.solve(wide, b)) < 20 * ERRORS[dtype] * n**0.5


@pytest.mark.parametrize("name", ["inv", "det"])
def test_a_singular_matrix_has_determinant_zero_and_no_finite_inverse(name: str):
    a = drawn((50, 50), np.complex64)
    a[:, 7] = 0

    value = np.asarray(compiled(getattr(rune.numpy.linalg, name), a))

    assert (value == 0).all() if name == "det" else not np.isfinite(value).all()


@dtypes_of_complex_numbers
def test_factors_between_other_results_are_those_of_eager_evaluation(dtype: type):
    def function(a: rune.Array, b: rune.Array) -> list[rune.Array]:
        double = a * 2
        factor = ops.linalg.cholesky(double)
        solution = ops.linalg.triangular_solve(factor, b + double[..., :3], lower=True, unit_diagonal=False)
        return [double, factor, factor.imag, solution, solution.conj(), factor @ solution]

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
