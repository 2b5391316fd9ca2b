"""Products of sparse arrays with sparse and dense ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import laid_out
from rune.sharding.shardings import Sharding
from rune.sparse.coordinates import Coordinates, Either, Operand, S, listed, require_sparse, spread
from rune.sparse.forms import bcoo_transpose, elements_at
from rune.sparse.movement import bcoo_squeeze
from rune.typing import ArrayLike, DTypeLike

Dims = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def bcoo_multiply_dense(sp_mat: Coordinates, v: ArrayLike) -> Array:
    """The numbers of the elementwise product with a dense array; `m * v` is the sparse product.

    Shapes: v broadcasts to the shape of `sp_mat`; the result is as its data. Types: promoted.
    Errors: ShapeError if v does not broadcast.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.bcoo_multiply_dense(rune.sparse.eye(2), rnp.array([3.0, 4.0]))
    Array([3., 4.], f32[2], cpu:0)
    """
    require_sparse("bcoo_multiply_dense", sp_mat)
    return times_dense(sp_mat, v).data


def times_dense(sp_mat: S, v: ArrayLike) -> S:
    """The elementwise product with a dense array, at the same positions."""
    m = spread(sp_mat)
    return m.with_data(m.data * elements_at(m, rnp.broadcast_to(rnp.asarray(v), sp_mat.shape)))


def bcoo_multiply_sparse(lhs: S, rhs: S) -> S:
    """The elementwise product of two sparse arrays.

    Shapes: both have one shape. Types: promoted.
    Errors: ShapeError if the shapes differ.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.bcoo_multiply_sparse(rune.sparse.eye(2), rune.sparse.eye(2)).data
    Array([1., 1.], f32[2], cpu:0)
    """
    require_sparse("bcoo_multiply_sparse", lhs, rhs)
    if lhs.shape != rhs.shape:
        raise ShapeError(f"bcoo_multiply_sparse: cannot multiply {lhs!r} and {rhs!r} (shapes differ)")
    is_alike = not lhs.n_batch and not rhs.n_batch and lhs.n_dense == rhs.n_dense
    a, b = (lhs, rhs) if is_alike else (listed(lhs), listed(rhs))
    meets = rnp.all(a.indices[:, None] == b.indices[None], -1)
    return a.with_data(a.data * rnp.tensordot(meets.astype(b.dtype), b.data, 1))


def bcoo_dot_general(
    lhs: Coordinates | ArrayLike,
    rhs: Coordinates | ArrayLike,
    *,
    dimension_numbers: Dims,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Either:
    """The product that contracts some axes and batches others, like lax.dot_general.

    dimension_numbers: ((contracted of lhs, of rhs), (batch of lhs, of rhs))
    precision: accepted as in JAX
    out_sharding: the sharding of a dense result; None leaves it unspecified
    A sparse and a dense array give a dense one, two sparse ones a sparse one, with room for every
    pair of elements.

    Shapes: result [*batch, *other axes of lhs, *other axes of rhs].
    Types:  promoted, or preferred_element_type.
    Errors: ShapeError if sizes differ.

    >>> import rune, rune.numpy as rnp
    >>> dims = (((1,), (0,)), ((), ()))
    >>> product = rune.sparse.bcoo_dot_general
    >>> product(rune.sparse.eye(2), rnp.array([3.0, 4.0]), dimension_numbers=dims)
    Array([3., 4.], f32[2], cpu:0)
    """
    (lhs_axes, rhs_axes), (left_batch, right_batch) = dimension_numbers
    a = lhs if isinstance(lhs, Coordinates) else rnp.asarray(lhs)
    b = rhs if isinstance(rhs, Coordinates) else rnp.asarray(rhs)
    for i, j in (*zip(lhs_axes, rhs_axes, strict=True), *zip(left_batch, right_batch, strict=True)):
        if a.shape[i] != b.shape[j]:
            raise ShapeError(f"bcoo_dot_general: cannot multiply {a.shape} and {b.shape} (axes {i} and {j})")
    if isinstance(a, Coordinates):
        axes = (lhs_axes, rhs_axes), (left_batch, right_batch)
        result = _sparse_product(a, b, *axes) if isinstance(b, Coordinates) else _product(a, b, *axes)
    elif not isinstance(b, Coordinates):
        raise ArgumentError(f"bcoo_dot_general: cannot multiply {a.shape} and {b.shape} (at least one BCOO required)")
    else:
        product = _product(b, a, (rhs_axes, lhs_axes), (right_batch, left_batch))
        first = len(left_batch)
        middle = b.ndim - first - len(rhs_axes)
        order = (*range(first), *range(first + middle, product.ndim), *range(first, first + middle))
        result = rnp.transpose(product, order)
    result = result if preferred_element_type is None else result.astype(preferred_element_type)
    return result if out_sharding is None else laid_out(result, out_sharding)


Pair = tuple[Sequence[int], Sequence[int]]


def _others(ndim: int, *axes: Sequence[int]) -> list[int]:
    return [k for k in range(ndim) if all(k not in a for a in axes)]


def _product(a: Coordinates, b: Array, contraction: Pair, batch: Pair) -> Array:
    """[*batch, *others of a, *others of b]: for each element of a, the rows of b that it is
    multiplied by, added up.
    """
    m = listed(a)
    free, rows = _others(m.ndim, contraction[0], batch[0]), _others(b.ndim, contraction[1], batch[1])
    b_first = rnp.transpose(b, (*batch[1], *contraction[1], *rows))
    index = tuple(m.indices[:, k] for k in (*batch[0], *contraction[0]))
    if index:
        others = b_first.at[index].get(mode="fill", fill_value=0)
    else:
        others = rnp.broadcast_to(b_first, (m.nse, *b_first.shape))
    products = m.data.reshape(-1, *(1,) * len(rows)) * others
    places = tuple(m.indices[:, k] for k in (*batch[0], *free))
    shape = (*(m.shape[k] for k in (*batch[0], *free)), *(b.shape[k] for k in rows))
    if not places:
        return products.sum(0)
    return rnp.zeros(shape, products.dtype).at[places].add(products, mode="drop")


def _sparse_product(a: S, b: Coordinates, contraction: Pair, batch: Pair) -> S:
    """One element for each pair; pairs of different contracted or batch indices are out of
    bounds.
    """
    m, n = listed(a), listed(b)
    free_of_a, free_of_b = _others(m.ndim, contraction[0], batch[0]), _others(n.ndim, contraction[1], batch[1])
    keys = [
        x.indices[:, np.array([*p, *q], int)]
        for x, p, q in ((m, contraction[0], batch[0]), (n, contraction[1], batch[1]))
    ]
    limits = rnp.asarray([m.shape[k] for k in (*contraction[0], *batch[0])], m.indices.dtype)
    is_inside = rnp.all(keys[0] < limits, -1)[:, None]
    meets = rnp.all(keys[0][:, None] == keys[1][None], -1) & is_inside
    data = rnp.where(meets, m.data[:, None] * n.data[None], 0).ravel()
    pairs = meets.shape
    columns = [rnp.broadcast_to(m.indices[:, k, None], pairs) for k in (*batch[0], *free_of_a)]
    columns += [rnp.broadcast_to(n.indices[None, :, k], pairs) for k in free_of_b]
    shape = [*(m.shape[k] for k in (*batch[0], *free_of_a)), *(n.shape[k] for k in free_of_b)]
    columns = [rnp.where(meets, c, size).ravel() for c, size in zip(columns, shape)]
    indices = rnp.stack(columns, -1) if columns else rnp.zeros((data.size, 0), m.indices.dtype)
    return m.remade((data, indices), shape=shape)


def matmul(a: Operand, b: Operand) -> Either:
    """numpy.matmul for at least one sparse array: stacks of matrices broadcast."""
    x, y = (_operand(v) for v in (a, b))
    if not x.ndim or not y.ndim:
        raise ShapeError(f"BCOO: cannot multiply {x.shape} and {y.shape} as matrices (at least one axis required)")
    try:
        heads = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise ShapeError(f"BCOO: cannot multiply {x.shape} and {y.shape} (batches do not broadcast)") from None
    (x, of_x), (y, of_y) = _unstretched(x, heads), _unstretched(y, heads)
    batch = [k for k in of_x if k in of_y]
    pairs = tuple(map(of_x.index, batch)), tuple(map(of_y.index, batch))
    product = bcoo_dot_general(x, y, dimension_numbers=(((x.ndim - 1,), (max(y.ndim - 2, 0),)), pairs))
    row, column = [len(heads)] * (x.ndim > 1), [len(heads) + 1] * (y.ndim > 1)
    axes = [*batch, *(k for k in of_x if k not in batch), *row, *(k for k in of_y if k not in batch), *column]
    order = np.argsort(axes).tolist()
    if isinstance(product, Array):
        return product.transpose(order)
    assert isinstance(product, Coordinates)
    return bcoo_transpose(product, permutation=order)


def _operand(x: Operand) -> Coordinates | Array:
    return x if isinstance(x, Coordinates) else rnp.asarray(x)


def _unstretched(x: Coordinates | Array, heads: Sequence[int]) -> tuple[Coordinates | Array, list[int]]:
    """A stack of matrices without the axes of size 1 that broadcasting stretches, and the positions
    of the others among `heads`.
    """
    sizes = x.shape[:-2]
    first = len(heads) - len(sizes)
    stretched_axes = tuple(k for k, size in enumerate(sizes) if size != heads[first + k])
    matrices = (
        bcoo_squeeze(x, dimensions=stretched_axes) if isinstance(x, Coordinates) else rnp.squeeze(x, stretched_axes)
    )
    return matrices, [first + k for k in range(len(sizes)) if k not in stretched_axes]


def bcoo_dot_general_sampled(A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: Dims) -> Array:
    """Elements of a product of dense arrays at some positions; the others are not computed.

    dimension_numbers: ((contracted of A, of B), (batch of A, of B))
    Shapes: indices [N, K], K axes of the product -> [N]; [*batch, N, K] -> [*batch, N].
    Types:  promoted. Errors: ShapeError for positions of another number of axes.

    >>> import rune, rune.numpy as rnp
    >>> dims = (((1,), (0,)), ((), ()))
    >>> sampled = rune.sparse.bcoo_dot_general_sampled
    >>> sampled(rnp.ones((2, 3)), rnp.ones((3, 4)), rnp.array([[1, 3]]), dimension_numbers=dims)
    Array([3.], f32[1], cpu:0)
    """
    (ca, cb), (ba, bb) = dimension_numbers
    a, b, places = rnp.asarray(A), rnp.asarray(B), rnp.asarray(indices)
    free_a, free_b = ([k for k in range(x.ndim) if k not in (*c, *batch)] for x, c, batch in ((a, ca, ba), (b, cb, bb)))
    shape = [*(a.shape[k] for k in (*ba, *free_a)), *(b.shape[k] for k in free_b)]
    n_batch = places.ndim - 2
    if n_batch + places.shape[-1] != len(shape):
        raise ShapeError(
            f"bcoo_dot_general_sampled: cannot sample a product {tuple(shape)} at positions "
            f"{type_of(places)} (a column for each of its {len(shape)} axes required)"
        )
    head = [rnp.arange(n).reshape(*(1,) * k, n, *(1,) * (n_batch - k)) for k, n in enumerate(shape[:n_batch])]
    columns = [*head, *(places[..., k] for k in range(places.shape[-1]))]
    n, m = len(ba), len(ba) + len(free_a)
    rows_a = rnp.transpose(a, (*ba, *free_a, *ca)).reshape(*shape[:m], -1)[tuple(columns[:m])]
    rows_b = rnp.transpose(b, (*bb, *free_b, *cb)).reshape(*shape[:n], *shape[m:], -1)[(*columns[:n], *columns[m:])]
    return rnp.sum(rows_a * rows_b, -1)
