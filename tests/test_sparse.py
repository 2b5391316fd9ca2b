"""rune.sparse: every operation agrees with the dense arrays, by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import rune
import rune.numpy as rnp
from rune import dims, sparse
from rune.errors import ArgumentError, ShapeError, TracerError, TransformError
from rune.scipy.sparse.linalg import cg
from rune.sparse import BCOO, bcoo_dot_general
from rune.test_util import check_grads
from tests.support.close import near, same

RANDOM = np.random.default_rng(5)


def dense_array(x: Any) -> Any:
    """A sum of axes, dense."""
    return x.todense()


def dense(*shape: int) -> np.ndarray:
    """About a third of the elements are not 0, and are small whole numbers."""
    numbers = RANDOM.integers(1, 9, shape) * (RANDOM.random(shape) < 0.35)
    return numbers.astype(np.float32)


A, B, V, W = dense(5, 7), dense(7, 3), dense(7), dense(5)
BATCH, OTHER = dense(3, 5, 7), dense(3, 7, 2)
a, b = BCOO.fromdense(A), BCOO.fromdense(B)
batch = BCOO.fromdense(BATCH, n_batch=1)
twice = BCOO((rnp.array([1.0, 2.0, 4.0]), rnp.array([[0, 1], [2, 2], [0, 1]])), shape=(3, 4))
TWICE = np.array([[0, 5, 0, 0], [0, 0, 0, 0], [0, 0, 2, 0]], np.float32)

LAYOUTS = [(n, d) for n in range(4) for d in range(4 - n)]
SUMS = (((1,), (1,)), ((0,), (0,)))


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_a_dense_array_is_recovered_from_every_layout(n_batch: int, n_dense: int):
    m = BCOO.fromdense(BATCH, n_batch=n_batch, n_dense=n_dense)

    assert (m.n_batch, m.n_dense, m.n_sparse, m.shape) == (n_batch, n_dense, 3 - n_batch - n_dense, (3, 5, 7))
    same(BATCH, m.todense())
    same(BATCH, rune.jit(lambda m: m.todense())(m))


CALLS: dict[str, tuple[Callable[[], Any], Any]] = {
    "matrix and vector": (lambda: a @ V, A @ V),
    "vector and matrix": (lambda: rnp.asarray(W) @ a, W @ A),
    "matrix and matrix": (lambda: a @ B, A @ B),
    "dense and sparse": (lambda: rnp.asarray(A) @ b, A @ B),
    "sparse and sparse": (lambda: (a @ b).todense(), A @ B),
    "batched": (lambda: batch @ OTHER, BATCH @ OTHER),
    "batched, sparse": (
        lambda: dense_array(
            bcoo_dot_general(batch, BCOO.fromdense(OTHER), dimension_numbers=(((2,), (1,)), ((0,), (0,))))
        ),
        BATCH @ OTHER,
    ),
    "dense, batched": (
        lambda: bcoo_dot_general(OTHER, batch, dimension_numbers=(((1,), (2,)), ((0,), (0,)))),
        np.einsum("bkj,bik->bji", OTHER, BATCH),
    ),
    "all axes": (
        lambda: bcoo_dot_general(a, A + 1, dimension_numbers=(((0, 1), (0, 1)), ((), ()))),
        np.sum(A * (A + 1)),
    ),
    "no axes": (lambda: bcoo_dot_general(a, V, dimension_numbers=(((), ()), ((), ()))), np.multiply.outer(A, V)),
    "dense axes": (
        lambda: bcoo_dot_general(BCOO.fromdense(A, n_dense=1), B, dimension_numbers=(((1,), (0,)), ((), ()))),
        A @ B,
    ),
    "preferred": (
        lambda: bcoo_dot_general(a, V, dimension_numbers=(((1,), (0,)), ((), ())), preferred_element_type="float64"),
        (A @ V).astype("f8"),
    ),
    "transposed": (lambda: a.T.todense(), A.T),
    "batch transposed": (lambda: batch.transpose((0, 2, 1)).todense(), BATCH.transpose(0, 2, 1)),
    "times a number": (lambda: (2.0 * a * 3.0).todense(), 6 * A),
    "times a vector": (lambda: (a * V).todense(), A * V),
    "times a matrix": (lambda: dense_array(rnp.asarray(A + 1) * a), A * (A + 1)),
    "times itself": (lambda: (a * a).todense(), A * A),
    "divided": (lambda: (a / 2.0).todense(), A / 2),
    "negative": (lambda: (-a).todense(), 0 - A),
    "absolute": (lambda: dense_array(abs(-twice)), TWICE),
    "plus itself": (lambda: (a + a).todense(), 2 * A),
    "minus": (lambda: (a - BCOO.fromdense(A, n_dense=1)).todense(), 0 * A),
    "plus dense": (lambda: a + A, 2 * A),
    "dense minus": (lambda: rnp.asarray(A) - a, 0 * A),
    "sum": (lambda: a.sum(), A.sum()),
    "sum of an axis": (lambda: dense_array(a.sum(1)), A.sum(1)),
    "sum of a batch": (lambda: dense_array(batch.sum((0, 2))), BATCH.sum((0, 2))),
    "duplicates": (lambda: twice.todense(), TWICE),
    "duplicates joined": (lambda: twice.sum_duplicates().data, np.array([5, 2], "f4")),
    "duplicates joined, with room": (lambda: rune.jit(lambda m: m.sum_duplicates(4).todense())(twice), TWICE),
    "sorted": (lambda: twice.sort_indices().indices, np.array([[0, 1], [0, 1], [2, 2]], "i4")),
    "astype": (lambda: a.astype("int32").todense(), A.astype("i4")),
    "from SciPy": (lambda: BCOO.from_scipy_sparse(scipy.sparse.csr_matrix(A)).todense(), A),
    "eye": (lambda: sparse.eye(3, 5, -1).todense(), np.eye(3, 5, -1, dtype="f4")),
    "eye beside": (lambda: sparse.eye(3, 3, 7).todense(), np.zeros((3, 3), "f4")),
    "empty": (lambda: sparse.empty((2, 3), "int32").todense(), np.zeros((2, 3), "i4")),
    "extracted": (lambda: sparse.bcoo_extract(a, A + (A != 0)).todense(), A + (A != 0).astype("f4")),
    "room for more": (lambda: BCOO.fromdense(A, nse=50).todense(), A),
    "no elements": (lambda: BCOO.fromdense(np.zeros((3, 2), "f4")) @ np.ones(2, "f4"), np.zeros(3, "f4")),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_operation_is_that_of_dense_arrays(name: str):
    call, expected = CALLS[name]

    same(np.asarray(expected), call())


STACKS = [
    ((4, 4), (3, 2, 4, 1)),
    ((3, 2, 4), (4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (3, 4, 5)),
    ((3, 1, 2, 4), (1, 5, 4, 2)),
    ((3, 1, 2, 4), (5, 4, 2)),
    ((1, 2, 4), (1, 4, 5)),
    ((0, 2, 4), (1, 4, 3)),
]


@pytest.mark.parametrize(("many", "others"), STACKS)
def test_stacks_of_matrices_broadcast_in_a_product(many: tuple[int, ...], others: tuple[int, ...]):
    x, y = dense(*many), dense(*others)
    m, n = BCOO.fromdense(x), BCOO.fromdense(y)

    for product in (m @ y, rnp.asarray(x) @ n, (m @ n).todense(), rune.jit(lambda m: m @ y)(m)):
        same(x @ y, product)


def test_a_sparse_array_is_a_tree():
    leaves, treedef = rune.tree.flatten(a)

    assert len(leaves) == 2
    same(A, rune.tree.unflatten(treedef, leaves).todense())
    same(2 * A, rune.tree.map(lambda x: x * 2 if x.dtype == rnp.float32 else x, a).todense())


def test_jit_takes_and_gives_it():
    same(A @ B, rune.jit(lambda m: m @ B)(a))
    same(A.T, rune.jit(lambda m: m.T)(a).todense())
    same(A, rune.jit(lambda x: BCOO.fromdense(x, nse=35))(A).todense())


def test_vmap_maps_its_data():
    many = rune.vmap(lambda d: BCOO((d, a.indices), shape=a.shape) @ V)(rnp.stack([a.data, 2 * a.data]))

    same(np.stack([A @ V, 2 * (A @ V)]), many)


def test_derivatives_are_those_of_the_data():
    def product(data: Any, v: Any) -> Any:
        return BCOO((data, a.indices), shape=a.shape) @ v

    check_grads(product, (a.data, rnp.asarray(V)), order=2, eps=1e-2, rtol=1e-2, atol=1e-2)
    check_grads(lambda x: BCOO.fromdense(x, nse=35) @ V, (rnp.asarray(A + 10),), order=1, eps=1e-1)


def test_the_gradient_of_a_product_has_the_sparsity_of_its_elements():
    gradient = rune.grad(lambda m: rnp.sum(m @ V), allow_int=True)(a)

    same(np.where(A != 0, V, 0).astype("f4"), BCOO((gradient.data, a.indices), shape=a.shape).todense())


def test_cg_takes_a_sparse_matrix():
    m = BCOO.fromdense(A @ A.T + 50 * np.eye(5, dtype="f4"))

    near(np.linalg.solve(m.todense(), W), cg(m, W, tol=1e-6)[0], relative=1e-4, why="it stops at 1e-6")


def test_random_elements_have_their_number():
    m = sparse.random_bcoo(rune.random.key(3), (6, 7), nse=0.5)

    assert (m.nse, int((np.asarray(m.todense()) != 0).sum())) == (21, 21)


def test_its_repr_describes_it():
    assert repr(batch).startswith("BCOO(f32[3,5,7], nse=")
    assert repr(batch).endswith(", n_batch=1)")
    assert (a.size, a.ndim, a.dtype) == (35, 2, rnp.float32)


REFUSALS: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "shapes that do not fit": (ShapeError, lambda: BCOO((rnp.ones(2), rnp.zeros((3, 1), int)), shape=(3,))),
    "sizes that differ": (ShapeError, lambda: a @ rnp.ones(5)),
    "batches that differ": (ShapeError, lambda: batch @ rnp.ones((2, 7, 2))),
    "a number as a matrix": (ShapeError, lambda: a @ 2.0),
    "a sum of other shapes": (ShapeError, lambda: a + b),
    "a product of other shapes": (ShapeError, lambda: a * b),
    "elements of another shape": (ShapeError, lambda: sparse.bcoo_extract(a, B)),
    "a division by it": (TransformError, lambda: a / a),
    "kinds that mix": (ArgumentError, lambda: batch.T),
    "too many axes": (ArgumentError, lambda: BCOO.fromdense(A, n_batch=2, n_dense=1)),
    "a batch of SciPy's": (ArgumentError, lambda: BCOO.from_scipy_sparse(scipy.sparse.eye(2), n_batch=1)),
    "a count under jit": (TracerError, lambda: rune.jit(BCOO.fromdense)(A)),
    "a text": (ArgumentError, lambda: BCOO.fromdense("text")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_is_refused(case: str):
    error, call = REFUSALS[case]

    with pytest.raises(error):
        call()


def test_new_and_stretched_axes_of_a_sparse_array_repeat_its_elements():
    wide = sparse.bcoo_broadcast_in_dim(a, shape=(5, 2, 7), broadcast_dimensions=(0, 2))

    same(np.broadcast_to(A[:, None], (5, 2, 7)), np.asarray(wide.todense()))


def test_a_reshape_that_mixes_batch_and_sparse_axes_is_one_list():
    m = batch.reshape(7, -1)

    assert m.n_batch == 0
    same(BATCH.reshape(7, 15), np.asarray(m.todense()))


@pytest.mark.parametrize("index", [1, (slice(None), -1), (slice(4, None, -2), slice(1, 5)), (None, ..., 3)], ids=str)
def test_an_index_selects_the_same_elements_as_in_the_dense_array(index: Any):
    same(A[index], np.asarray(a[index].todense()))


def test_an_array_cannot_index_a_sparse_array():
    with pytest.raises(ArgumentError, match=r"BCOO: cannot index .* \(whole numbers, slices, None and \.\.\.\)"):
        _ = a[np.array([0, 1])]  # type: ignore[index]


def test_longer_lists_must_be_requested():
    with pytest.raises(sparse.SparseEfficiencyError, match="without longer lists"):
        a.update_layout(n_batch=1)


@pytest.mark.parametrize(
    "make", [sparse.BCSR.fromdense, sparse.COO.fromdense, sparse.CSR.fromdense, sparse.CSC.fromdense]
)
def test_a_matrix_of_every_format_multiplies_as_the_dense_one(make: Callable[..., Any]):
    same(A @ V, np.asarray(make(A) @ V))
    same(W @ A, np.asarray(W @ make(A)))


def test_the_total_of_a_sparsified_function_is_a_number():
    total = sparse.sparsify(lambda x: rnp.sum(x * 2.0))(a)

    assert isinstance(total, rune.Array)
    same(2.0 * np.sum(A), np.asarray(total))


def test_an_operation_without_a_sparse_meaning_is_refused_by_its_name():
    with pytest.raises(TransformError, match=r"sparsify: cannot compute cos of sparse arrays \(BCOO"):
        sparse.sparsify(rnp.cos)(a)


def test_a_product_of_dense_arrays_alone_is_refused():
    with pytest.raises(ArgumentError, match=r"bcoo_dot_general: .* \(at least one BCOO required\)"):
        bcoo_dot_general(A, B, dimension_numbers=(((1,), (0,)), ((), ())))


@pytest.mark.parametrize("name", ["coo_matvec", "coo_matmat", "csr_matvec", "csr_matmat"])
def test_a_product_of_another_format_is_refused_under_its_own_name(name: str):
    with pytest.raises(ArgumentError, match=f"{name}: cannot take BCOO"):
        getattr(sparse, name)(a, B)


def test_the_product_of_sparse_arrays_has_the_requested_dtype():
    dims = (((1,), (0,)), ((), ()))
    for product in (
        bcoo_dot_general,
        rune.jit(bcoo_dot_general, static_argnames=("dimension_numbers", "preferred_element_type")),
    ):
        result: Any = product(a, b, dimension_numbers=dims, preferred_element_type=rnp.float16)
        assert result.dtype == np.float16
        same(result.todense(), (A @ B).astype(np.float16))


def test_a_matrix_is_a_sequence_of_its_rows():
    assert len(a) == len(A)
    near([*A], [row.todense() for row in a], relative=0, why="the elements themselves")


def test_a_number_has_no_length():
    with pytest.raises(TypeError, match="rank 0"):
        len(a[0, 1])


@pytest.mark.parametrize("remove_zeros", [True, False])
@pytest.mark.parametrize("nse", [None, 4])
def test_duplicates_of_a_batch_are_joined_in_each_of_it(nse: int | None, remove_zeros: bool):
    data = np.array([[1, 2, 3], [4, 5, 0]], np.float32)
    places = np.array([[[1], [1], [0]], [[2], [0], [2]]])
    m = sparse.BCOO((rnp.asarray(data), rnp.asarray(places)), shape=(2, 3))

    result = m.sum_duplicates(nse, remove_zeros)

    # The answer of jax 0.10.2; places without an element are at the end.
    assert result.nse == (2 if nse is None else nse)
    np.testing.assert_array_equal(result.data[:, :2], [[3, 3], [5, 4]])
    np.testing.assert_array_equal(result.indices[:, :2, 0], [[0, 1], [0, 2]])
    np.testing.assert_array_equal(result.indices[:, 2:], 3)
    np.testing.assert_array_equal(result.todense(), [[3, 3, 0], [5, 0, 4]])


@pytest.mark.parametrize("dense", [(), (3,)], ids=str)
@pytest.mark.parametrize("nse", [None, 5])
def test_elements_that_are_zero_stay_where_duplicates_are_summed_by_the_function(nse: int | None, dense: tuple):
    data = rnp.asarray(np.multiply.outer(np.array([1, 0, 2, 0], np.float32), np.ones(dense, np.float32)))
    m = BCOO((data, rnp.array([[4], [1], [4], [0]])), shape=(6, *dense))

    def both(m: BCOO) -> tuple[BCOO, BCOO]:
        return sparse.bcoo_sum_duplicates(m, nse), m.sum_duplicates(nse)

    # Compiled, where the number of elements is known.
    summed, removed = (both if nse is None else rune.jit(both))(m)

    # What jax 0.10.2 answers: the method removes zeros, the function does not.
    assert (summed.nse, removed.nse) == ((3, 1) if nse is None else (nse, nse))
    np.testing.assert_array_equal(summed.indices[:3, 0], [0, 1, 4])
    np.testing.assert_array_equal(removed.indices[:1, 0], [4])
    np.testing.assert_array_equal(summed.indices[3:], 6)
    np.testing.assert_array_equal(removed.indices[1:], 6)
    np.testing.assert_array_equal(summed.todense(), removed.todense())


@pytest.mark.parametrize("kind", [BCOO, rune.sparse.BCSR, rune.sparse.COO, rune.sparse.CSR, rune.sparse.CSC])
def test_a_size_may_be_an_array(kind):
    m = kind.fromdense(rnp.eye(3))
    parts = [getattr(m, name) for name in ("data", "indices", "row", "col", "indptr") if hasattr(m, name)]

    result = kind(tuple(parts), shape=(rnp.max(rnp.array([1, 2])) + 1, 3))

    assert result.shape == (3, 3)
    assert [type(n) for n in result.shape] == [int, int]
    np.testing.assert_array_equal(result.todense(), np.eye(3))


@pytest.mark.parametrize(
    ("layout", "shape", "axes", "expected"),
    [
        ((0, 1, 0), (1, 16), (1,), (1, 0)),
        ((0, 1, 0), (3, 16), (1,), (1, 0)),
        ((0, 1, 1), (16, 1, 4), (0, 2), (0, 1)),
        ((0, 1, 1), (1, 16, 4), (1, 2), (1, 1)),
        ((0, 1, 1), (16, 4, 1), (0, 1), (0, 2)),
        ((1, 1, 0), (2, 1, 16), (0, 2), (2, 0)),
        ((1, 1, 0), (1, 2, 16), (1, 2), (2, 0)),
        ((1, 1, 0), (2, 16, 1), (0, 1), (1, 0)),
    ],
)
def test_new_axes_in_front_of_sparse_axes_are_batch_axes_as_in_jax(layout, shape, axes, expected):
    n_batch, _, n_dense = layout
    sizes = {(0, 1, 0): (16,), (0, 1, 1): (16, 4), (1, 1, 0): (2, 16)}[layout]
    dense = np.zeros(sizes, np.float32)
    dense[..., 1::5] = 1 + np.arange(dense[..., 1::5].size).reshape(dense[..., 1::5].shape)
    m = BCOO.fromdense(dense, n_batch=n_batch, n_dense=n_dense)

    result = sparse.bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=axes)

    assert (result.n_batch, result.n_dense) == expected
    np.testing.assert_array_equal(result.todense(), rune.lax.broadcast_in_dim(dense, shape, axes))


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(("data_lists", "index_lists"), [(1, 1), (3, 1), (1, 3), (3, 3)])
def test_lists_that_a_batch_shares_stay_shared_when_sorted_and_summed(wrap: Any, data_lists: int, index_lists: int):
    data = np.arange(1.0, 1.0 + 5 * data_lists, dtype=np.float32).reshape(data_lists, 5)
    indices = np.array([[4, 1, 4, 9, 0], [2, 2, 2, 0, 6], [3, 1, 0, 1, 9]])[:index_lists, :, None]  # 9 is out of bounds
    m = sparse.BCOO((rnp.asarray(data), rnp.asarray(indices)), shape=(3, 7))

    for result in wrap(lambda m: (sparse.bcoo_sort_indices(m), sparse.bcoo_sum_duplicates(m, nse=4)))(m):
        assert (len(result.data), len(result.indices)) == (max(data_lists, index_lists), index_lists)
        assert bool((rnp.diff(result.indices[..., 0]) >= 0).all())
        same(np.asarray(m.todense()), result.todense())


def test_a_product_of_two_sparse_arrays_keeps_their_dense_axes():
    rng = np.random.default_rng(2)
    x, y = (rng.integers(0, 3, (7, 3)).astype(np.float32) for _ in range(2))
    a, b = (BCOO.fromdense(v, n_dense=1) for v in (x, y))

    result = sparse.bcoo_multiply_sparse(a, b)

    assert result.n_dense == 1
    np.testing.assert_array_equal(result.todense(), x * y)


def test_rows_keep_zeros_where_the_function_sums_duplicates():
    m = sparse.BCSR((rnp.array([1.0, 2.0, 0.0]), rnp.array([0, 0, 1]), rnp.array([0, 2, 3])), shape=(2, 2))

    assert (sparse.bcsr_sum_duplicates(m).nse, m.sum_duplicates().nse) == (2, 1)


def test_elements_outside_do_not_move_others_to_another_row():
    places = np.array([[0, 0], [0, 2], [0, 3], [1, 3], [1, 1], [2, 0], [5, 1]])
    m = BCOO((rnp.arange(1.0, 8.0), rnp.asarray(places)), shape=(3, 3))
    expected = np.array([[1, 0, 2], [0, 5, 0], [6, 0, 0]], np.float32)

    rows = sparse.BCSR.from_bcoo(m)

    same(np.asarray(rows.todense()), expected)
    near(rows @ rnp.arange(3.0), expected @ np.arange(3.0, dtype=np.float32), relative=1e-6, why="sums of three")


@pytest.mark.parametrize("kind", [BCOO, rune.sparse.BCSR, rune.sparse.COO, rune.sparse.CSR, rune.sparse.CSC])
def test_a_matrix_of_structs_is_shown_as_one_of_arrays(kind):
    structs = rune.eval_shape(lambda x: kind.fromdense(x, nse=5), A)

    assert (
        f"{structs!r}" == f"{kind.fromdense(A, nse=5)!r}" == f"{kind.__name__}(f32[{A.shape[0]},{A.shape[1]}], nse=5)"
    )
    assert "None" in f"{rune.tree.map(lambda x: None, structs)!r}"


def test_a_matrix_of_an_open_size_is_made_from_a_dense_one():
    n = dims.symbol("n", 1)
    dense = rune.ShapeDtypeStruct((n, 3), "float32")

    assert f"{rune.eval_shape(lambda x: BCOO.fromdense(x, nse=2), dense)!r}" == "BCOO(f32[n,3], nse=2)"
    assert rune.eval_shape(lambda x: BCOO.fromdense(x, nse=2).todense(), dense).shape == (n, 3)
