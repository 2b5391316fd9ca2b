"""Matrices and right-hand sides that are not finite: which results they affect.

The oracle is NumPy on the finite parts, and elimination column by column. A matrix that holds a NaN
has no solution, and does not affect the other matrices of its batch; a column of right-hand sides
that is not finite has no solution, and does not affect other columns. RUNE_TEST_WHOLE=1 tries every
executor with all functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.numpy import linalg
from rune.ops.linalg import lapack
from rune.scipy import linalg as scipy_linalg
from tests.support.close import near
from tests.support.sampling import IS_WHOLE, in_turn, without

DEVICES = [d.name for d in rune.devices() if d.target.backend not in ("null", "reference")]
WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    **{name: lambda f, name=name: rune.jit(f, device=name) for name in DEVICES},
}


def is_cheap(way: str) -> bool:
    """Whether no compiler of a driver takes part."""
    return way in ("eager", "cpu:0")


in_every_way = pytest.mark.parametrize("way", WAYS)
on_the_processor = pytest.mark.parametrize("way", [w for w in WAYS if IS_WHOLE or is_cheap(w)])
kinds = pytest.mark.parametrize("kind", ["float32", "complex64"])
every_kind = pytest.mark.parametrize("kind", ["float32", "float64", "complex64"])
but_f64_in_wgsl = without(lambda way, kind, **_: way.startswith("wgpu") and kind == "float64")
but_reals_on_devices = without(lambda way, kind, **_: kind == "complex64" and not IS_WHOLE and not is_cheap(way))
SOLUTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "solve": linalg.solve,
    "lu_solve": lambda a, b: scipy_linalg.lu_solve(scipy_linalg.lu_factor(a), b),
    "cho_solve": lambda a, b: scipy_linalg.cho_solve(scipy_linalg.cho_factor(a, lower=True), b),
    "lstsq": lambda a, b: linalg.lstsq(a, b)[0],
}
NUMBERS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "inv": (linalg.inv, np.linalg.inv),
    "pinv": (linalg.pinv, np.linalg.pinv),
    "det": (linalg.det, np.linalg.det),
    "logarithm of det": (lambda a: linalg.slogdet(a)[1], lambda a: np.linalg.slogdet(a)[1]),
    "eigenvalues": (linalg.eigvalsh, np.linalg.eigvalsh),
    "singular values": (linalg.svdvals, np.linalg.svdvals),
    "third power": (lambda a: linalg.matrix_power(a, 3), lambda a: np.linalg.matrix_power(a, 3)),
}


def matrix(n: int, kind: str, seed: int = 0) -> np.ndarray:
    """A well-conditioned Hermitian matrix, positive definite."""
    rng = np.random.default_rng([n, seed])
    a = rng.normal(size=(n, n)) / (4 * n**0.5)
    a = a + 1j * rng.normal(size=(n, n)) / (8 * n**0.5) if kind == "complex64" else a
    return ((a + a.conj().T) / 2 + 2 * np.eye(n)).astype(kind)


def sides(n: int, kind: str) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, 3)).astype(kind)


def batch(n: int, kind: str) -> np.ndarray:
    """Three matrices; the second one has a NaN at two places off the diagonal."""
    matrices = np.stack([matrix(n, kind, seed) for seed in range(3)])
    matrices[1, n // 2, n // 3] = matrices[1, n // 3, n // 2] = np.nan
    return matrices


def require_spoilt_alone(expected: list[np.ndarray], actual: object) -> None:
    """The first and the last result are as expected, and the middle one has no numbers."""
    first, spoilt, last = np.asarray(actual)
    for e, x in zip(expected, (first, last), strict=True):
        near(e, x.astype(e.dtype), relative=1e-4, absolute=1e-4, why="well-conditioned in f32")
    assert np.isnan(spoilt).all()


@kinds
@on_the_processor
@pytest.mark.parametrize("n", [1, 3, 17, 33])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_matrix_with_a_nan_affects_only_its_own_results(name: str, n: int, way: str, kind: str):
    ours, numpys = NUMBERS[name]
    a = batch(n, kind)

    results = WAYS[way](ours)(rnp.asarray(a))

    require_spoilt_alone(
        [numpys(a[k].astype(np.complex128 if kind == "complex64" else float)) for k in (0, 2)], results
    )


@in_turn("n")
@but_reals_on_devices
@kinds
@in_every_way
@pytest.mark.parametrize("n", [3, 33] if not IS_WHOLE else [1, 2, 3, 5, 17, 31, 32, 33, 65, 70])
def test_a_system_with_a_nan_affects_only_its_own_solution(n: int, way: str, kind: str):
    a, b = batch(n, kind), np.stack([sides(n, kind)] * 3)

    x = WAYS[way](linalg.solve)(rnp.asarray(a), rnp.asarray(b))

    require_spoilt_alone([np.linalg.solve(*(v[k].astype(np.complex128) for v in (a, b))) for k in (0, 2)], x)


@pytest.mark.parametrize("n", [1, 2, 17])
def test_a_system_with_a_nan_has_no_solution_even_if_lapack_skips_zeros(n: int, monkeypatch: pytest.MonkeyPatch):
    """Simulates a LAPACK that skips zeros, so that a NaN leaves no trace."""
    monkeypatch.setattr(lapack, "_SOLVE", lambda a, b: np.zeros_like(b))
    a, b = batch(n, "float32"), np.zeros((3, n, 3), np.float32)

    x = np.asarray(linalg.solve(rnp.asarray(a), rnp.asarray(b)))

    assert np.isnan(x[1]).all()
    np.testing.assert_array_equal(x[[0, 2]], 0.0)


@on_the_processor
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("n", [1, 5, 33, 65])
@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_column_that_is_not_finite_affects_only_its_own_solution_and_tangent(name: str, n: int, way: str, bad: float):
    a, b, solve = matrix(n, "float32"), sides(n, "float32"), SOLUTIONS[name]
    expected = np.linalg.solve(a.astype(float), b.astype(float))
    spoilt = b.copy()
    spoilt[n // 2, 1] = bad

    def along(a: Any, b: Any, tangent: Any) -> Any:
        return solve(a, tangent), rune.jvp(lambda b: solve(a, b), (b,), (tangent,))[1]

    for x in WAYS[way](along)(*map(rnp.asarray, (a, b, spoilt))):
        columns = np.asarray(x)
        assert not np.isfinite(columns[:, 1]).all()
        near(expected[:, ::2], columns[:, ::2].astype(float), relative=1e-4, absolute=1e-4, why="f32")


@on_the_processor
@pytest.mark.parametrize("n", [3, 33])
@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_cotangent_that_is_not_finite_affects_only_its_own_column(name: str, n: int, way: str):
    a, ct = matrix(n, "float32"), sides(n, "float32")
    ct[n // 2, 1] = np.nan

    def pull(a: Any, ct: Any) -> Any:
        return rune.vjp(lambda b: SOLUTIONS[name](a, b), ct)[1](ct)[0]

    columns = np.asarray(WAYS[way](pull)(rnp.asarray(a), rnp.asarray(ct)))

    assert np.isnan(columns[:, 1]).any()
    expected = np.linalg.solve(a.T.astype(float), ct[:, ::2].astype(float))
    near(expected, columns[:, ::2].astype(float), relative=1e-4, absolute=1e-4, why="f32")


def eliminated(a: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """L, U and the pivots, column after column; a NaN is greatest."""
    work, pivots = a.astype(np.complex128 if np.iscomplexobj(a) else float), []
    with np.errstate(all="ignore"):
        for k in range(len(a)):
            sizes = np.abs(np.real(work[k:, k])) + np.abs(np.imag(work[k:, k]))
            pivots.append(k + int(np.argmax(sizes)))
            work[[k, pivots[k]]] = work[[pivots[k], k]]
            work[k + 1 :, k] /= work[k, k]
            for j in range(k + 1, len(a)):
                work[k + 1 :, j] -= work[k + 1 :, k] * work[k, j]
    return work, pivots


@in_turn("n")
@but_reals_on_devices
@kinds
@in_every_way
@pytest.mark.parametrize("n", [5, 17] if not IS_WHOLE else [1, 2, 3, 5, 16, 17, 31, 32])
def test_factors_are_finite_where_elimination_is(n: int, way: str, kind: str):
    """For matrices of one block."""
    factors = WAYS[way](scipy_linalg.lu_factor)
    for place in {(0, 0), (n - 1, n - 1), (n // 2, n // 3), (n // 3, n // 2), (n - 1, 0), (0, n - 1)}:
        for bad in (np.nan, np.inf):
            a = matrix(n, kind)
            a[place] = bad
            expected, pivots = eliminated(a)

            lu, swaps = map(np.asarray, factors(rnp.asarray(a)))

            usual = np.isfinite(expected)
            np.testing.assert_array_equal(np.isfinite(lu), usual)
            np.testing.assert_array_equal(swaps, pivots)
            near(expected[usual], lu[usual].astype(expected.dtype), relative=1e-4, absolute=1e-4, why="f32")


@in_turn("n")
@in_every_way
@pytest.mark.parametrize("n", [3, 33])
def test_the_factor_of_a_matrix_that_is_not_positive_definite_is_nan_in_its_triangle(n: int, way: str):
    """Not only from the row of the NaN on, as LAPACK leaves it."""
    factor = np.asarray(WAYS[way](linalg.cholesky)(rnp.asarray(batch(n, "float32"))))

    assert np.isfinite(factor[[0, 2]]).all()
    np.testing.assert_array_equal(np.isnan(factor[1]), np.tril(np.ones((n, n), bool)))


@every_kind
@on_the_processor
@but_f64_in_wgsl
@pytest.mark.parametrize("n", [65, 97] if not IS_WHOLE else [33, 63, 65, 97, 129])
def test_factors_of_several_blocks_are_finite_where_elimination_is(n: int, way: str, kind: str):
    """Rows of U above a NaN once were products with the inverse of a triangle, and its zeros."""
    factors = WAYS[way](scipy_linalg.lu_factor)
    for place in ((21, 32), (3, n - 1), (n - 1, 3), (n // 2, n - 2)):
        a = matrix(n, kind)
        a[place] = np.nan
        expected, pivots = eliminated(a)

        lu, swaps = map(np.asarray, factors(rnp.asarray(a, kind)))

        usual = np.isfinite(expected)
        np.testing.assert_array_equal(np.isfinite(lu), usual)
        np.testing.assert_array_equal(swaps, pivots)
        near(expected[usual], lu[usual].astype(expected.dtype), relative=1e-4, absolute=1e-4, why="f32")


@every_kind
@on_the_processor
@but_f64_in_wgsl
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("n", [3, 17, 40] if not IS_WHOLE else [2, 3, 5, 16, 17, 31, 33, 40, 65])
def test_a_column_of_q_does_not_depend_on_later_columns(n: int, mode: str, way: str, kind: str):
    """As in LAPACK; the product of reflections once multiplied a NaN by zeros in every column."""
    factors = WAYS[way](lambda a: linalg.qr(a, mode=mode))
    for k in (0, n // 2, n - 2):
        a = np.stack([matrix(n + 2, kind)[:, :n]] * 2)
        expected = np.linalg.qr(a[0], mode=mode)[0]  # type: ignore[call-overload]
        a[1, n // 3, k] = np.nan

        usual, spoilt = np.asarray(factors(rnp.asarray(a, kind))[0])

        near(expected, usual, relative=1e-4, absolute=1e-4, why="f32")
        assert np.isnan(spoilt[:, k:]).any(0).all()
        near(expected[:, :k], spoilt[:, :k], relative=1e-4, absolute=1e-4, why="f32")


def require_rows_in_front(n: int, kind: str, factors: Callable[[Any], Any]) -> None:
    """R and Q are finite wherever column-by-column reflections are."""
    a = np.stack([matrix(n + 2, kind, seed)[:, :n] for seed in range(2)])
    upper, (row, column) = np.triu(np.ones((n, n), bool)), np.indices((n, n))
    for k in (3, n // 2, n - 2):
        q, r = np.linalg.qr(a)
        spoilt = a.copy()
        spoilt[1, n // 3, k] = np.nan

        columns, rows = (np.asarray(x) for x in factors(rnp.asarray(spoilt, kind)))

        usual = upper & (row < k) & (column != k)
        np.testing.assert_array_equal(np.isfinite(rows[1])[upper], usual[upper])
        near(r[1][usual], rows[1][usual], relative=1e-4, absolute=1e-4, why="f32")
        near(q[1][:, :k], columns[1][:, :k], relative=1e-4, absolute=1e-4, why="f32")
        near(r[0], rows[0], relative=1e-4, absolute=1e-4, why="f32")


@every_kind
@on_the_processor
@but_f64_in_wgsl
@pytest.mark.parametrize("n", [65, 131] if not IS_WHOLE else [33, 63, 65, 97, 129, 131, 263])
def test_a_row_of_r_does_not_depend_on_later_reflections(n: int, way: str, kind: str):
    """Rows of a block above a NaN once were products with the zeros of its reflection.

    LAPACK itself loses them from 129 columns on.
    """
    require_rows_in_front(n, kind, WAYS[way](linalg.qr))


@in_turn()
@in_every_way
def test_a_row_of_r_that_loops_compute_does_not_depend_on_later_reflections(way: str):
    """Matrices of two and a half blocks, as devices without a routine reflect them."""
    require_rows_in_front(40, "float32", WAYS[way](linalg.qr))


@in_turn("n")
@but_reals_on_devices
@kinds
@in_every_way
@pytest.mark.parametrize("n", [3, 33] if not IS_WHOLE else [2, 3, 5, 17, 32, 33, 65])
def test_qr_of_a_matrix_with_an_infinity_is_nan_where_lapack_gives_nan(n: int, way: str, kind: str):
    """Numbers below an infinite head once vanished when the column was scaled."""
    factors = WAYS[way](linalg.qr)
    for place in ((0, 0), (n - 1, 0), (n // 2, n // 2)):
        a = matrix(n, kind)
        a[place] = -np.inf

        for expected, factor in zip(np.linalg.qr(a), factors(rnp.asarray(a)), strict=True):
            assert not np.isfinite(np.asarray(factor)[np.isnan(expected)]).any()


@on_the_processor
def test_a_column_with_nothing_but_an_infinity_needs_no_reflection(way: str):
    a = np.array([[np.inf, 1.0, 2.0], [0.0, 3.0, 4.0], [0.0, 4.0, 3.0]], np.float32)

    for expected, factor in zip(np.linalg.qr(a), WAYS[way](linalg.qr)(rnp.asarray(a)), strict=True):
        near(expected, np.asarray(factor), relative=1e-5, absolute=1e-5, why="f32")


@pytest.mark.filterwarnings("ignore:invalid value")
@on_the_processor
@pytest.mark.parametrize("n", [2, 3])
def test_a_cofactor_does_not_depend_on_its_own_row_and_column(n: int, way: str):
    a = np.random.default_rng(n).normal(size=(n, n)).astype(np.float32)
    a[1, 1] = np.nan
    minors = [[np.delete(np.delete(a, i, 0), j, 1) for j in range(n)] for i in range(n)]
    expected = np.array([[(-1) ** (i + j) * np.linalg.det(minors[i][j]) for j in range(n)] for i in range(n)])

    slope = np.asarray(WAYS[way](rune.grad(linalg.det))(rnp.asarray(a)))

    usual = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(slope), usual)
    near(expected[usual], slope[usual].astype(float), relative=1e-5, absolute=1e-5, why="f32")


@on_the_processor
def test_the_sign_of_a_real_determinant_has_no_slope(way: str):
    tangent = np.full((3, 3), np.nan, np.float32)

    def slopes(a: Any, t: Any) -> Any:
        return rune.jvp(lambda a: tuple(linalg.slogdet(a)), (a,), (t,))[1]

    sign, size = WAYS[way](slopes)(rnp.eye(3), rnp.asarray(tangent))

    assert float(sign) == 0.0
    assert np.isnan(float(size))
