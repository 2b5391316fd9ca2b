"""rune.numpy.linalg on difficult matrices, and at sizes that take other algorithms: NaN and
infinity lane by lane, singular matrices, half types, large matrices by blocks, and errors that name
the sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.lax import linalg as lax_linalg
from tests.support.arrays import array
from tests.support.close import near

WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    "compiled": rune.jit,
    "expanded": lambda f: rune.jit(f, device="reference:0"),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).uniform(-1, 1, shape)


def definite(*shape: int) -> np.ndarray:
    a = drawn(*shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


@each_way
@pytest.mark.parametrize("n", [3, 9])
def test_a_matrix_that_is_not_definite_gives_nan_in_its_own_lane_only(way: Any, n: int):
    a = definite(3, n, n)
    a[1, 0, 0] = -1.0

    factor = np.asarray(way(rnp.linalg.cholesky)(array(a)))

    assert np.isnan(factor[1][np.tril_indices(n)]).all()
    assert (factor[:, *np.triu_indices(n, 1)] == 0).all()
    near(np.linalg.cholesky(a[::2]), factor[::2], relative=1e-12, why="another order of sums")


@each_way
def test_a_matrix_that_fails_late_is_nan_from_its_first_column_on(way: Any):
    a = definite(9, 9)
    a[8, 8] = -1.0

    factor = np.asarray(way(rnp.linalg.cholesky)(array(a)))

    assert np.isnan(factor[np.tril_indices(9)]).all()


@each_way
@pytest.mark.parametrize("n", [3, 9])
def test_a_singular_matrix_raises_nothing_and_affects_no_other_lane(way: Any, n: int):
    a = drawn(3, n, n) + 3 * np.eye(n)
    a[1] = 0.0

    inverse = np.asarray(way(rnp.linalg.inv)(array(a)))

    assert not np.isfinite(inverse[1]).any()
    near(np.linalg.inv(a[::2]), inverse[::2], relative=1e-11, why="another order of sums")


@each_way
def test_the_determinant_of_a_singular_matrix_is_zero_and_its_logarithm_infinite(way: Any):
    a = array(np.ones((3, 3)))

    sign, log = way(rnp.linalg.slogdet)(a)

    assert float(way(rnp.linalg.det)(a)) == 0.0
    assert (float(sign), float(log)) == (0.0, -np.inf)


@pytest.mark.parametrize("rank", [3, 2, 1, 0])
def test_the_gradient_of_the_determinant_is_the_matrix_of_cofactors_at_every_rank(rank: int):
    a = drawn(3, rank) @ drawn(rank, 3) if rank else np.zeros((3, 3))

    gradient = rune.grad(rnp.linalg.det)(array(a))

    minors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(3)] for i in range(3)
    ]
    near(np.array(minors), gradient, relative=1e-12, absolute=1e-12, why="rounding of zeros")


def test_a_leading_zero_column_has_cofactors_too():
    a = array(np.array([[0.0, 1.0], [0.0, 0.0]]))

    assert np.asarray(rune.grad(rnp.linalg.det)(a)).tolist() == [[0.0, 0.0], [-1.0, 0.0]]


@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f16], ids=dtypes.short)
def test_half_types_are_computed_in_f32_and_rounded(dtype: np.dtype):
    a = rnp.asarray(drawn(3, 3) + 3 * np.eye(3)).astype(dtype)

    inverse = rnp.linalg.inv(a)

    assert inverse.dtype == dtype
    near(np.linalg.inv(np.asarray(a, np.float64)), np.asarray(inverse, np.float64), relative=1e-2, why="half types")


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "qr", "pinv", "matrix_rank"])
def test_integers_become_floats(name: str):
    results = getattr(rnp.linalg, name)(rnp.asarray([[2, 1], [1, 3]]))

    first = results[0] if isinstance(results, tuple) else results
    assert first.dtype == (dtypes.i32 if name == "matrix_rank" else dtypes.f32)


# --- large matrices -----------------------------------------------------------------------------


def test_a_large_cholesky_is_computed_by_panels():
    a = definite(300, 300)

    near(np.linalg.cholesky(a), rnp.linalg.cholesky(array(a)), relative=1e-12, why="order of sums")


def test_a_large_lu_rebuilds_its_matrix_with_multipliers_up_to_one():
    a = drawn(2, 180, 150)

    factors, pivots, order = map(np.asarray, lax_linalg.lu(array(a)))

    lower = np.tril(factors, -1) + np.eye(180, 150)
    rows = np.take_along_axis(a, order[..., None], -2)
    near(rows, lower @ np.triu(factors[:, :150]), relative=1e-12, why="cancellation")
    assert np.abs(np.tril(factors, -1)).max() <= 1.0
    assert (np.asarray(lax_linalg.lu_pivots_to_permutation(array(pivots), 180)) == order).all()


@pytest.mark.parametrize("shape", [(150, 130), (130, 150)], ids=str)
def test_a_large_qr_is_that_of_lapack(shape: tuple[int, int]):
    a = drawn(*shape)

    q, r = rnp.linalg.qr(array(a))

    expected = np.linalg.qr(a)
    near(expected.Q, q, relative=1e-11, why="panels")
    near(expected.R, r, relative=1e-11, why="panels")


def test_dependent_columns_leave_q_orthogonal():
    a = drawn(150, 140)
    a[:, 70], a[:, 3] = 0.0, a[:, 2]

    q, r = map(np.asarray, rnp.linalg.qr(array(a)))

    near(a, q @ r, relative=1e-12, why="panels")
    near(np.eye(140), q.T @ q, relative=1e-12, absolute=1e-13, why="zeros")


def test_the_solution_of_a_large_system_has_a_small_residual():
    a, b = drawn(200, 200), drawn(200, 3)

    x = np.asarray(rnp.linalg.solve(array(a), array(b)))

    near(b, a @ x, relative=1e-9, why="condition of a random matrix")


@each_way
def test_a_tridiagonal_system_with_zeros_on_its_diagonal_is_solved_by_pivoting(way: Any):
    lower, main, upper = np.ones((3, 6))
    main = main * 0

    solution = way(lax_linalg.tridiagonal_solve)(*map(array, (lower, main, upper, drawn(6, 1))))

    matrix = np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
    near(drawn(6, 1), matrix @ np.asarray(solution), relative=1e-14, why="one subtraction")


# --- derivatives --------------------------------------------------------------------------------


def test_a_solution_is_differentiated_without_its_factors():
    program = str(
        rune.make_jaxpr(rune.grad(lambda a, b: rnp.linalg.solve(a, b).sum()))(array(drawn(3, 3)), array(drawn(3)))
    )

    assert program.count(" lu ") == 1
    assert program.count(" linear_solve ") == 2


def test_a_real_block_that_no_basis_is_right_for_has_no_derivative_but_its_complex_form_has():
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])

    for dtype, is_finite in ((np.float64, False), (np.complex128, True)):
        form, _ = rune.jvp(lax_linalg.schur, (array(turn.astype(dtype)),), (array(drawn(2, 2).astype(dtype)),))[1]
        assert bool(np.isfinite(np.asarray(form)).all()) is is_finite


# --- JAX's spelling -----------------------------------------------------------------------------


@pytest.mark.parametrize("left_side", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("turn", [(False, False), (True, False), (False, True), (True, True)])
def test_a_triangle_is_solved_from_either_side_and_transposed(left_side: bool, lower: bool, turn: tuple[bool, bool]):
    a = drawn(2, 3, 3) + 1j * drawn(2, 3, 3) + 3 * np.eye(3)
    b = drawn(2, 3, 4) if left_side else drawn(2, 4, 3)

    solution = np.asarray(
        lax_linalg.triangular_solve(
            array(a),
            array(b.astype(a.dtype)),
            left_side=left_side,
            lower=lower,
            transpose_a=turn[0],
            conjugate_a=turn[1],
        )
    )

    read = np.tril(a) if lower else np.triu(a)
    read = np.swapaxes(read, -1, -2) if turn[0] else read
    read = read.conj() if turn[1] else read
    near(b.astype(a.dtype), read @ solution if left_side else solution @ read, relative=1e-12, why="sums")


def test_a_cholesky_factor_is_updated_by_a_vector():
    r, w = np.triu(definite(4, 4)), drawn(4)

    factor = np.asarray(lax_linalg.cholesky_update(array(r), array(w)))

    near(r.T @ r + np.outer(w, w), factor.T @ factor, relative=1e-12, why="rotations")
    assert (np.tril(factor, -1) == 0).all()


def test_a_factor_is_updated_where_integers_have_64_bits():
    a, w = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])

    with rune.enable_x64():
        factor = np.asarray(lax_linalg.cholesky_update(rnp.asarray(np.linalg.cholesky(a).T), w))

    np.testing.assert_allclose(factor.T @ factor, a + np.outer(w, w), rtol=1e-13)


@pytest.mark.parametrize("from_left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_reflections_are_multiplied_by_without_writing_their_product(from_left: bool, transpose: bool):
    a = array(drawn(2, 4, 3) + 1j * drawn(2, 4, 3))
    c = drawn(2, 4, 5) + 1j * drawn(2, 4, 5)
    c = c if from_left else np.swapaxes(c, -1, -2)
    reflectors, taus = lax_linalg.geqrf(a)

    product = lax_linalg.ormqr(reflectors, taus, array(c), left=from_left, transpose=transpose)

    q = np.asarray(rnp.linalg.qr(a, mode="complete").Q)
    q = np.swapaxes(q.conj(), -1, -2) if transpose else q
    near(q @ c if from_left else c @ q, np.asarray(product), relative=1e-13, why="order of sums")
    assert " householder_product " not in str(
        rune.make_jaxpr(lax_linalg.ormqr)(reflectors, taus, array(c if from_left else np.swapaxes(c, -1, -2)))
    )


def test_a_symmetric_product_is_mirrored_on_demand():
    a, c = drawn(3, 2), drawn(3, 3)

    product = np.asarray(lax_linalg.symmetric_product(array(a), array(c), alpha=2.0, beta=0.5, symmetrize_output=True))

    expected = np.tril(2 * a @ a.T + 0.5 * c)
    near(expected + np.tril(expected, -1).T, product, relative=1e-13, why="order of sums")


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: rnp.linalg.inv(x), r"inv: cannot take f64\[2,3\] \(square .* 2 rows, 3 col"),
        (lambda x: rnp.linalg.cholesky(x[0]), r"cholesky: cannot take f64\[3\] \(matrices"),
        (lambda x: rnp.linalg.solve(x[:, :2], x[0]), r"solve: cannot solve f64\[2,2\] for f64\[3\]"),
        (lambda x: rnp.linalg.tensorinv(x, 1), r"tensorinv: cannot invert f64\[2,3\]"),
        (
            lambda x: lax_linalg.ormqr(x, x[0], x),
            r"ormqr: cannot multiply f64\[2,3\] by the reflections f64\[2,3\], f64\[3\]",
        ),
        (lambda x: lax_linalg.cholesky_update(x, x[0]), r"cholesky_update: cannot update"),
    ],
)
def test_sizes_that_do_not_fit_are_named(call: Any, message: str):
    with pytest.raises(ShapeError, match=message):
        call(array(drawn(2, 3)))


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(ArgumentError, match="qr: cannot use mode 'full'"):
        rnp.linalg.qr(array(drawn(2, 2)), "full")


def test_primitives_take_only_the_dtypes_of_lapack():
    with pytest.raises(DtypeError, match=r"lu: cannot take bf16\[2,2\] .*required"):
        lax_linalg.lu(rnp.ones((2, 2), "bf16"))


def test_a_product_of_several_matrices_takes_the_cheapest_order():
    from_the_right = [(20, 30), (30, 18), (18, 24), (24,)]
    in_pairs = [(2, 30), (30, 3), (3, 40), (40, 2)]

    for shapes, expected in ((from_the_right, [(18, 1), (30, 1), (20, 1)]), (in_pairs, [(3, 2), (2, 3), (2, 2)])):
        program = rune.make_program(lambda *xs: rnp.linalg.multi_dot(xs))(*map(rnp.ones, shapes))
        dots = [e for e in program.equations if e.primitive.name == "dot_general"]
        assert [e.results[0].type.shape for e in dots] == expected


@each_way
def test_singular_vectors_of_hermitian_matrices_are_their_eigenvectors(way: Any):
    a = drawn(5, 5)
    w, v = (np.asarray(x) for x in rnp.linalg.eigh(array(a)))

    u, s, vh = (np.asarray(x) for x in way(lambda x: rnp.linalg.svd(x, hermitian=True))(array(a)))

    order = np.argsort(-abs(w))
    for expected, actual in zip((v, abs(w), (v * np.sign(w)).T), (u, s, vh), strict=True):
        expected = expected[:, order] if actual is u else expected[order]
        near(abs(expected), abs(actual), relative=1e-12, why="rotations in another order")
    near(u * np.sign(w)[order], vh.T, relative=1e-12, why="the same vectors")


def test_the_results_of_lstsq_are_a_tuple_without_names_as_in_jax():
    results = rnp.linalg.lstsq(rnp.eye(3), rnp.ones(3))

    paths = [rune.tree_util.keystr(path) for path, _ in rune.tree_util.tree_flatten_with_path(results)[0]]
    assert (type(results), paths) == (tuple, ["[0]", "[1]", "[2]", "[3]"])


@pytest.mark.parametrize("rows", [(), (1,), (7,)], ids=str)
@pytest.mark.parametrize("batch", [(3,), (1,), (2, 3), (0,)], ids=str)
@pytest.mark.parametrize("columns", [1, 3, 8, 9])
def test_one_matrix_multiplies_a_batch_of_narrow_ones(rows, batch, columns):
    rng = np.random.default_rng(columns)
    a, b = rng.normal(size=(*rows, 5)), rng.normal(size=(*batch, 5, columns))

    for matmul in (rnp.matmul, rune.jit(rnp.matmul)):
        near(np.matmul(a, b).astype(np.float32), matmul(a, b), relative=1e-5, why="sums of five products")


@pytest.mark.parametrize("columns", [1, 3, 9])
def test_the_gradient_by_a_matrix_stores_no_product_for_each_of_a_batch(columns):
    a, b = np.ones((64, 65), np.float32), np.ones((50, 65, columns), np.float32)

    explained = rune.explain(rune.grad(lambda a: rnp.sum(rnp.tanh(a @ b))))(a)

    assert explained.plan.arena_bytes < 50 * 64 * 65 * 4


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3, 2)])
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "c64"])
def test_a_fit_has_the_dtype_of_its_matrix_even_of_no_elements(shape, dtype):
    solution, residuals, _, sizes = rnp.linalg.lstsq(rnp.ones(shape, dtype), rnp.ones(shape[0], dtype))

    assert solution.dtype == rnp.dtype(dtype)
    assert residuals.dtype == sizes.dtype == rnp.real(solution).dtype
