"""Factorisations and triangular solutions by the CPU's routines: every form, at every size.

The oracle is NumPy and SciPy in f64. Elements that a routine must not read are NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import rune
import rune.numpy as rnp
from rune import ops
from rune.lowering.plan import Call, all_steps
from tests.support.close import near
from tests.support.sampling import each_value

pytestmark = each_value()

ERRORS = {np.float32: 2e-6, np.float64: 4e-15}  # relative, of well-conditioned matrices; times √n
SIZES = [1, 4, 5, 6, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 47, 63, 64, 65, 97, 130]
# Fewer matrices than lanes, as many, and a number that lanes do not divide.
BATCHES = [(), (3,), (16,), (5, 7)]
dtypes_of_reals = pytest.mark.parametrize("dtype", ERRORS, ids=lambda d: d.__name__)


def drawn(shape: tuple[int, ...], dtype: type, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def definite(n: int, batch: tuple[int, ...], dtype: type) -> np.ndarray:
    a = drawn((*batch, n, n), np.float64)
    return (a @ a.swapaxes(-1, -2) / n + np.eye(n)).astype(dtype)


def triangular(n: int, batch: tuple[int, ...], dtype: type, lower: bool, unit: bool) -> np.ndarray:
    """A well-conditioned triangle; NaN elsewhere."""
    a = drawn((*batch, n, n), np.float64) / (2 * n**0.5) + (0 if unit else 2) * np.eye(n)
    inside = np.tril(np.ones((n, n)), -1 if unit else 0)
    return np.where(inside if lower else inside.T, a, np.nan).astype(dtype)


def exact(x: np.ndarray) -> rune.Array:
    """The array with all of its bits."""
    return rnp.asarray(x, x.dtype)


def compiled(function: Callable[..., Any], *operands: np.ndarray) -> Any:
    return rune.jit(function)(*map(exact, operands))


def routines(function: Callable[..., object], *operands: np.ndarray) -> list[str]:
    """The routines that the compiled program calls."""
    plan = rune.explain(function)(*operands).plan
    return [step.routine for step in all_steps(plan) if isinstance(step, Call)]


def solve(lower: bool, unit: bool) -> Callable[..., Any]:
    return lambda a, b: ops.linalg.triangular_solve(a, b, lower=lower, unit_diagonal=unit)


def distance(actual: object, expected: np.ndarray) -> float:
    """The greatest error, relative to the greatest number."""
    return float(np.max(np.abs(np.asarray(actual) - expected)) / np.max(np.abs(expected)))


def pieces(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and U of the result of an LU factorisation."""
    k = min(a.shape[-2:])
    lower = np.tril(a[..., :k], -1).astype(np.float64)
    lower[..., np.arange(k), np.arange(k)] = 1
    return lower, np.triu(a[..., :k, :]).astype(np.float64)


@dtypes_of_reals
@pytest.mark.parametrize("n", SIZES)
def test_a_cholesky_factor_is_that_of_numpy(n: int, dtype: type):
    matrices = [definite(n, batch, dtype) for batch in BATCHES]
    unread = [np.where(np.tril(np.ones((n, n))), a, np.nan).astype(dtype) for a in matrices]

    factors = compiled(lambda *xs: list(map(ops.linalg.cholesky, xs)), *unread)

    truth = [np.linalg.cholesky(a.astype(np.float64)) for a in matrices]
    assert max(map(distance, factors, truth)) < ERRORS[dtype] * n**0.5


@dtypes_of_reals
@pytest.mark.parametrize("n", SIZES)
def test_an_lu_factorisation_multiplies_to_the_permuted_matrix(n: int, dtype: type):
    heights = [*((batch, n) for batch in BATCHES), ((2,), n + 7), ((17,), n + 3), ((), 5), ((16,), 5)]
    matrices = [drawn((*batch, m, n), dtype) for batch, m in heights]

    results = compiled(lambda *xs: list(map(ops.linalg.lu, xs)), *matrices)

    for a, (factors, _, order) in zip(matrices, results, strict=True):
        lower, upper = pieces(np.asarray(factors))
        rows = np.take_along_axis(a, np.asarray(order)[..., None], -2)
        assert distance(lower @ upper, rows) < 3 * ERRORS[dtype] * n**0.5
        assert np.max(np.abs(lower)) <= 1


@dtypes_of_reals
@pytest.mark.parametrize("n", [5, 16, 33, 64, 100, 130])
def test_pivots_are_those_of_scipy(n: int, dtype: type):
    a = drawn((17, n, n), dtype)

    _, pivots, _ = compiled(ops.linalg.lu, a)

    assert np.array_equal(pivots, np.stack([scipy.linalg.lu_factor(x)[1] for x in a]))


@dtypes_of_reals
@pytest.mark.parametrize("unit", [False, True], ids=["diagonal", "unit"])
@pytest.mark.parametrize("lower", [False, True], ids=["upper", "lower"])
@pytest.mark.parametrize("n", SIZES)
def test_a_triangular_solution_is_that_of_scipy(n: int, lower: bool, unit: bool, dtype: type):
    shapes = [((), 1), ((), 3), ((), 16), ((), 65), ((3,), 2), ((17,), 1), ((2, 16), 5)]
    matrices = [triangular(n, batch, dtype, lower, unit) for batch, _ in shapes]
    sides = [drawn((*batch, n, k), dtype) for batch, k in shapes]

    solutions = compiled(lambda *xs: list(map(solve(lower, unit), xs[:7], xs[7:])), *matrices, *sides)

    finite = [np.where(np.isnan(a), 0, a).astype(np.float64) + (np.eye(n) if unit else 0) for a in matrices]
    assert max(map(distance, solutions, map(np.linalg.solve, finite, sides))) < ERRORS[dtype] * n**0.5


@dtypes_of_reals
@pytest.mark.parametrize("n", [257, 600])
def test_large_matrices_are_factored_and_solved_as_by_numpy(n: int, dtype: type):
    a, b = definite(n, (), dtype), drawn((n, 70), dtype)

    factor = compiled(ops.linalg.cholesky, a)
    x = compiled(solve(True, False), np.asarray(factor), b)

    truth = np.linalg.cholesky(a.astype(np.float64))
    assert distance(factor, truth) < ERRORS[dtype] * n**0.5
    assert distance(x, np.linalg.solve(truth, b)) < 4 * ERRORS[dtype] * n**0.5


@pytest.mark.parametrize("n", [5, 16, 33, 64, 100])
def test_a_matrix_that_is_not_definite_gives_nan_for_itself_only(n: int):
    a = definite(n, (19,), np.float32)
    a[4, n // 2, n // 2] = -1
    a[7, 0, 0] = 0

    factor = np.asarray(compiled(ops.linalg.cholesky, a))

    lower = np.tril(np.ones((n, n), bool))
    assert np.isnan(factor[[4, 7]][:, lower]).all()
    assert not factor[[4, 7]][:, ~lower].any()
    assert np.isfinite(np.delete(factor, [4, 7], 0)).all()


@pytest.mark.parametrize("n", [5, 16, 33, 64, 100])
def test_a_singular_matrix_has_a_zero_on_the_diagonal_of_u(n: int):
    require_zeros_of_singular_matrices(drawn((19, n, n), np.float64))


def require_zeros_of_singular_matrices(a: np.ndarray) -> None:
    """Factor a [B, N, N] in which a column of one matrix is made zero, and another matrix."""
    a[3, :, 2] = 0
    a[5] = 0

    factors, pivots, order = map(np.asarray, compiled(ops.linalg.lu, a))

    assert factors[3, 2, 2] == 0
    assert np.isfinite(factors).all()
    assert not factors[5].any()
    assert np.array_equal(pivots[5], np.arange(a.shape[-1]))
    assert np.array_equal(order[5], np.arange(a.shape[-1]))


@pytest.mark.parametrize("n", [5, 33])
@pytest.mark.parametrize("batch", [(), (19,)], ids=["one", "lanes"])
def test_nan_is_the_pivot_of_its_column(batch: tuple[int, ...], n: int):
    a = drawn((*batch, n, n), np.float32)
    a[..., 3, 0] = np.nan

    _, pivots, _ = compiled(ops.linalg.lu, a)

    assert (np.asarray(pivots)[..., 0] == 3).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128], ids=lambda d: d.__name__)
@pytest.mark.parametrize("n", [33, 64, 67, 130])
@pytest.mark.parametrize("size", [0.0, 1.0, np.inf])
def test_the_first_of_equal_sizes_is_the_pivot(size: float, n: int, dtype: type):
    a = np.zeros((n, n), dtype)
    rows = [n // 3, n // 3 + 1, n - 2, n - 1]
    a[rows, 0] = [size, -size, size, size]

    _, pivots, _ = compiled(ops.linalg.lu, a)

    assert np.asarray(pivots)[0] == (n // 3 if size else 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128], ids=lambda d: d.__name__)
@pytest.mark.parametrize("n", [35, 64, 67, 130])
@pytest.mark.parametrize("column", [0, 17, 32])
def test_the_first_nan_of_any_sign_and_bits_is_the_pivot_among_infinities(column: int, n: int, dtype: type):
    a = np.eye(n, dtype=dtype)
    real: np.ndarray = np.real(a)
    a[column:, column] = np.inf
    a[-3:, column] = [np.nan, -np.nan, np.nan]
    real[-2:, column] = largest_nan(real.dtype)

    _, pivots, _ = compiled(ops.linalg.lu, a)

    assert np.asarray(pivots)[column] == n - 3


def largest_nan(dtype: np.dtype) -> np.floating:
    """The NaN of the greatest bits."""
    return np.frombuffer(b"\xff" * (dtype.itemsize - 1) + b"\x7f", dtype)[0]


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("n", [5, 33, 70])
def test_a_zero_on_the_diagonal_is_divided_by(n: int, k: int):
    a = triangular(n, (), np.float32, lower=True, unit=False)
    a[2, 2] = 0

    x = np.asarray(compiled(solve(True, False), a, drawn((n, k), np.float32)))

    assert not np.isfinite(x[2]).any()


@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0), (0, 5, 5)], ids=str)
def test_empty_matrices_are_factored_to_empty_ones(shape: tuple[int, ...]):
    a = np.zeros(shape, np.float32)

    assert compiled(ops.linalg.cholesky, a).shape == shape
    assert compiled(ops.linalg.lu, a)[0].shape == shape
    assert compiled(solve(True, False), a, a).shape == shape


def test_operands_may_have_any_order_and_steps():
    a = definite(70, (), np.float64)
    wide = np.zeros((140, 210))
    wide[::2, ::-3] = a

    factor = compiled(lambda x: ops.linalg.cholesky(rnp.swapaxes(x[::2, ::-3], 0, 1)), wide)

    assert distance(factor, np.linalg.cholesky(a)) < 1e-13


def test_a_factor_is_the_same_in_every_run():
    a = definite(200, (), np.float32)
    function = rune.jit(ops.linalg.cholesky)

    first, *others = (np.asarray(function(exact(a))).tobytes() for _ in range(5))

    assert all(other == first for other in others)


def test_a_factor_in_a_batch_has_the_same_bits_as_alone():
    a = definite(20, (37,), np.float32)

    together = np.asarray(compiled(ops.linalg.cholesky, a))

    assert np.array_equal(np.asarray(compiled(ops.linalg.cholesky, a[:16])), together[:16])


def test_a_gaussian_process_calls_no_python():
    def likelihood(a: rune.Array, y: rune.Array) -> rune.Array:
        factor = rnp.linalg.cholesky(a)
        return y @ rune.scipy.linalg.cho_solve((factor, True), y) + rnp.sum(rnp.log(rnp.diag(factor)))

    calls = routines(rune.grad(likelihood), definite(50, (), np.float32), drawn((50,), np.float32))

    assert "callback" not in calls
    assert calls.count("cholesky") == 1


SHAPES_OF_QR = [(5, 5), (6, 5), (5, 9), (1, 7), (7, 1), (16, 17), (33, 32), (32, 33), (65, 65), (7, 100), (257, 100)]


@dtypes_of_reals
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [*SHAPES_OF_QR, (3, 31, 40), (2000, 5)], ids=str)
def test_a_qr_factorisation_is_that_of_numpy(shape: tuple[int, ...], mode: Any, dtype: type):
    a = drawn(shape, dtype)

    q, r = map(np.asarray, compiled(lambda x: rnp.linalg.qr(x, mode), a))

    error = ERRORS[dtype] * max(shape) ** 0.5
    assert distance(q @ r, a) < 2 * error
    assert np.max(np.abs(q.swapaxes(-1, -2) @ q - np.eye(q.shape[-1]))) < 2 * error
    assert distance(r, np.linalg.qr(a.astype(np.float64), mode)[1]) < 20 * error
    assert not np.tril(r, -1).any()


@dtypes_of_reals
def test_dependent_and_empty_columns_leave_q_orthonormal(dtype: type):
    a = drawn((70, 40), dtype)
    a[:, 3], a[:, 9], a[5:, 20] = 0, a[:, 2], 0

    q, r = map(np.asarray, compiled(rnp.linalg.qr, a))

    assert distance(q @ r, a) < 20 * ERRORS[dtype]
    assert np.max(np.abs(q.T @ q - np.eye(40))) < 20 * ERRORS[dtype]


@pytest.mark.parametrize("size", [1e-36, 1e-25, 1e25, 1e36])
def test_columns_far_from_one_are_reflected_without_overflow(size: float):
    a = drawn((20, 12), np.float32)
    a[:, 5] *= np.float32(size)

    q, r = (np.asarray(x, np.float64) for x in compiled(rnp.linalg.qr, a))

    assert np.max(np.abs(q @ r - a) / np.max(np.abs(a), 0)) < 1e-5


@dtypes_of_reals
@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (3, 50, 20), (130, 33), (600, 20)], ids=str)
def test_long_matrices_are_decomposed_to_numpys_singular_values(shape: tuple[int, ...], dtype: type):
    a = drawn(shape, dtype)

    u, s, vh = map(np.asarray, compiled(lambda x: rnp.linalg.svd(x, full_matrices=False), a))

    assert distance(s, np.linalg.svd(a.astype(np.float64), compute_uv=False)) < 10 * ERRORS[dtype]
    assert distance((u * s[..., None, :]) @ vh, a) < 20 * ERRORS[dtype]
    assert np.max(np.abs(u.swapaxes(-1, -2) @ u - np.eye(s.shape[-1]))) < 20 * ERRORS[dtype]


def test_a_matrix_that_is_not_finite_has_no_decomposition_and_the_others_have_theirs():
    a = drawn((3, 40, 6), np.float64)
    a[1, 20, 3] = np.inf

    u, s, vh = map(np.asarray, compiled(lambda x: rnp.linalg.svd(x, full_matrices=False), a))

    assert all(np.isnan(x[1]).all() and np.isfinite(x[[0, 2]]).all() for x in (u, s, vh))


@dtypes_of_reals
@pytest.mark.parametrize("rank", [7, 12])
def test_least_squares_are_those_of_numpy_also_where_columns_depend(rank: int, dtype: type):
    a, b = drawn((90, rank), dtype) @ drawn((rank, 12), dtype, 1), drawn((90, 3), dtype, 2)

    x, _, columns, _ = compiled(rnp.linalg.lstsq, a, b)

    truth = np.linalg.lstsq(a.astype(np.float64), b.astype(np.float64), rcond=1e-5)
    assert int(columns) == rank
    assert distance(x, truth[0]) < 300 * ERRORS[dtype]


def test_least_squares_decompose_their_matrix_once():
    calls = routines(lambda a, b: tuple(rnp.linalg.lstsq(a, b)), drawn((90, 12), np.float32), drawn((90,), np.float32))

    assert calls == ["geqrf", "callback", "reflections_product"]


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4)], ids=str)
def test_singular_values_of_least_squares_have_slopes_and_second_slopes(shape: tuple[int, ...]):
    a, direction, b = drawn(shape, np.float64), drawn(shape, np.float64, 1), drawn((shape[0],), np.float64)

    def sizes(t: rune.Array) -> rune.Array:
        return rnp.linalg.lstsq(exact(a) + t * exact(direction), exact(b))[3]

    def truth(t: float) -> np.ndarray:
        return np.linalg.svd(a + t * direction, compute_uv=False)

    first, second = rune.jacfwd(sizes), rune.jacfwd(rune.jacfwd(sizes))
    h, zero = 1e-4, exact(np.zeros(()))
    near((truth(h) - truth(-h)) / (2 * h), first(zero), relative=1e-6, why="central differences")
    near((truth(h) - 2 * truth(0) + truth(-h)) / h**2, second(zero), relative=1e-5, absolute=1e-6, why="the same")
