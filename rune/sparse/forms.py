"""Forms of sparse arrays: dense, transposed, sorted, without duplicates, summed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.core.types import Shape
from rune.errors import ArgumentError, ShapeError
from rune.ops.conventions import normalised_axes
from rune.sparse.coordinates import (
    Coordinates,
    S,
    columns_of,
    data_of_lists,
    flat_positions,
    listed,
    per_element,
    require_sparse,
    spread,
)
from rune.transforms.batching.vmap import vmap
from rune.typing import ArrayLike


def bcoo_todense(mat: Coordinates) -> Array:
    """The dense array.

    Shapes: those of `mat`. Types: those of its data.
    Errors: ArgumentError if it is not a sparse array.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.bcoo_todense(rune.sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    require_sparse("bcoo_todense", mat)
    m = spread(mat)
    columns = columns_of(m)
    zeros = rnp.zeros(m.shape, m.dtype)
    if not columns:
        return zeros + m.data.sum(0)
    return zeros.at[tuple(columns)].add(m.data, mode="drop")


def bcoo_extract(sparr: S, arr: ArrayLike, *, assume_unique: bool | None = None) -> S:
    """The elements of a dense array at the positions of a sparse one.

    assume_unique: whether positions are taken as distinct; otherwise a repeated position reads 0,
            so that elements still add up to the dense array. By default `sparr.unique_indices`.
    Shapes: both have one shape. Types: those of `arr`.
    Errors: ShapeError if the shapes differ.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.bcoo_extract(rune.sparse.eye(2), rnp.array([[1.0, 2.0], [3.0, 4.0]])).data
    Array([1., 4.], f32[2], cpu:0)
    """
    require_sparse("bcoo_extract", sparr)
    dense = rnp.asarray(arr)
    if dense.shape != sparr.shape:
        raise ShapeError(f"bcoo_extract: cannot take elements of {dense.type} (at positions of {sparr!r})")
    m = spread(sparr)
    data = elements_at(m, dense)
    if not (m.unique_indices if assume_unique is None else assume_unique):
        data = rnp.where(per_element(m, _is_first(m)), data, rnp.zeros((), data.dtype))
    return m.with_data(data)


def elements_at(m: Coordinates, dense: Array) -> Array:
    """The elements of a dense array at each position; 0 for positions out of bounds."""
    columns = columns_of(m)
    return dense.at[tuple(columns)].get(mode="fill", fill_value=0) if columns else dense[None]


def _is_first(m: Coordinates) -> Array:
    """Whether no earlier element has the same position: bool[*batch, N]."""
    order, indices = _in_order(m)
    is_new = rnp.any(indices[..., 1:, :] != indices[..., :-1, :], -1)
    is_new = rnp.pad(is_new, [(0, 0)] * m.n_batch + [(1, 0)], constant_values=True)
    return rnp.take_along_axis(is_new, rnp.argsort(order, axis=-1), axis=-1)


def _in_order(m: Coordinates) -> tuple[Array, Array]:
    """The permutation that sorts elements by position, and the positions sorted."""
    order = rnp.lexsort([m.indices[..., k] for k in reversed(range(m.n_sparse))], axis=-1)
    return order, rnp.take_along_axis(m.indices, order[..., None], axis=-2)


def bcoo_transpose(mat: S, *, permutation: Sequence[int]) -> S:
    """The axes permuted; batch, sparse and dense axes stay separate.

    Shapes: permuted. Types: those of `mat`.
    Errors: ArgumentError if batch, sparse and dense axes would mix.

    >>> import rune
    >>> rune.sparse.bcoo_transpose(rune.sparse.empty((2, 3)), permutation=(1, 0))
    BCOO(f32[3,2], nse=0)
    """
    require_sparse("bcoo_transpose", mat)
    order = normalised_axes("bcoo_transpose", tuple(permutation), mat.dense_type())
    first, end = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, sparse, dense = order[:first], order[first:end], order[end:]
    kinds = (sorted(batch), sorted(sparse), sorted(dense))
    if kinds != (list(range(first)), list(range(first, end)), list(range(end, mat.ndim))):
        raise ArgumentError(f"bcoo_transpose: cannot permute {mat!r} by {tuple(permutation)} (kinds of axes mix)")
    indices = rnp.transpose(mat.indices, (*batch, first, first + 1))[..., np.array([k - first for k in sparse], int)]
    data = rnp.transpose(mat.data, (*batch, first, *(k - mat.n_sparse + 1 for k in dense)))
    shape = tuple(mat.shape[k] for k in order)
    return mat.remade((data, indices), shape=shape, is_unique=mat.unique_indices)


def bcoo_sort_indices(mat: S) -> S:
    """The elements sorted by position.

    Shapes: those of `mat`. Types: those of `mat`.
    Errors: ArgumentError if it is not a sparse array.

    >>> import rune, rune.numpy as rnp
    >>> m = rune.sparse.BCOO((rnp.array([1.0, 2.0]), rnp.array([[1], [0]])), shape=(3,))
    >>> rune.sparse.bcoo_sort_indices(m).data
    Array([2., 1.], f32[2], cpu:0)
    """
    require_sparse("bcoo_sort_indices", mat)
    order, indices = _in_order(mat)
    data = data_of_lists(mat)
    order = rnp.broadcast_to(order, data.shape[: mat.n_batch + 1])
    data = rnp.take_along_axis(data, per_element(mat, order), axis=mat.n_batch)
    return mat.remade((data, indices), shape=mat.shape, is_sorted=True, is_unique=mat.unique_indices)


def without_zeros(mat: S) -> S:
    """The array with elements that are 0 out of bounds, where sums of duplicates drop them."""
    is_zero = rnp.all(mat.data == 0, tuple(range(mat.n_batch + 1, mat.data.ndim)))
    outside = rnp.asarray(mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse], mat.indices.dtype)
    return mat.remade((mat.data, rnp.where(is_zero[..., None], outside, mat.indices)), shape=mat.shape)


def bcoo_sum_duplicates(mat: S, nse: int | None = None) -> S:
    """The array with one element for each stored position, even if it is 0, sorted by position.

    nse: the number of elements to make room for in each list of a batch, by default their count;
         required under jit
    Shapes: those of `mat`. Types: those of `mat`.
    Errors: a TracerError where `mat` is traced and nse= is missing.

    >>> import rune, rune.numpy as rnp
    >>> m = rune.sparse.BCOO((rnp.ones(3), rnp.array([[1], [0], [1]])), shape=(3,))
    >>> rune.sparse.bcoo_sum_duplicates(m).data
    Array([1., 2.], f32[2], cpu:0)
    """
    require_sparse("bcoo_sum_duplicates", mat)
    batch, sparse = mat.indices.shape[: mat.n_batch], mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]
    count = prod(sparse)
    is_inside = rnp.all(mat.indices < rnp.asarray(sparse, mat.indices.dtype), -1)
    number = rnp.where(is_inside, flat_positions(mat, sparse), count)
    if nse is None:
        lanes = np.asarray(number).reshape(prod(batch), mat.nse).tolist()
        nse = max((len(set(lane) - {count}) for lane in lanes), default=0)
    join, add = partial(_joined, sparse=sparse, nse=nse), partial(_summed, nse=nse)
    for _ in batch:
        join, add = vmap(join), vmap(add)
    indices, places = join(number)
    data = data_of_lists(mat)
    data = add(rnp.broadcast_to(places, data.shape[: mat.n_batch + 1]), data)
    indices = indices.astype(mat.indices.dtype)
    return mat.remade((data, indices), shape=mat.shape, is_sorted=True, is_unique=True)


def _joined(number: Array, *, sparse: Shape, nse: int) -> tuple[Array, Array]:
    """The distinct positions in order, as indices, and which of them each element has."""
    count = prod(sparse)
    # One position more, for elements out of bounds.
    positions, places = rnp.unique(number, return_inverse=True, size=nse + 1, fill_value=count)
    is_element = positions[:nse] < count
    columns = [rnp.where(is_element, p, s) for p, s in zip(rnp.unravel_index(positions[:nse], sparse), sparse)]
    indices = rnp.stack(columns, -1) if sparse else rnp.zeros((nse, 0), number.dtype)
    return indices, rnp.where(number < count, places.ravel(), nse)


def _summed(places: Array, data: Array, *, nse: int) -> Array:
    """For each position the sum of the `data` at it."""
    return rnp.zeros((nse + 1, *data.shape[1:]), data.dtype).at[places].add(data)[:nse]


def bcoo_reduce_sum(mat: S, *, axes: Sequence[int]) -> S:
    """The sum along axes, as a sparse array.

    Shapes: without these axes. Types: those of `mat`.
    Errors: AxisError for an axis out of range.

    >>> import rune
    >>> rune.sparse.bcoo_reduce_sum(rune.sparse.eye(3), axes=(0,)).todense()
    Array([1., 1., 1.], f32[3], cpu:0)
    """
    require_sparse("bcoo_reduce_sum", mat)
    summed_axes = normalised_axes("bcoo_reduce_sum", tuple(axes), mat.dense_type())
    m = listed(mat)
    others = [k for k in range(m.ndim) if k not in summed_axes]
    is_inside = rnp.all(m.indices < rnp.asarray(m.shape, m.indices.dtype), -1)
    data = rnp.where(is_inside, m.data, 0)
    return mat.remade((data, m.indices[:, np.array(others, int)]), shape=[m.shape[k] for k in others])
