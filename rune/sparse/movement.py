"""Sparse arrays sliced, reversed, reshaped, broadcast and joined.

Elements that are cut off stay in the lists, out of bounds: the length of a list does not depend on
values, so all of these functions work under jit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from operator import mul
from types import EllipsisType

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.errors import ArgumentError, AxisError, ShapeError
from rune.lax import broadcast_in_dim, dynamic_slice
from rune.ops.conventions import normalised_axes
from rune.sparse.coordinates import (
    Coordinates,
    S,
    chosen,
    flat_positions,
    is_inside,
    layout,
    listed,
    require_sparse,
    spread,
)
from rune.typing import ArrayLike

Index = int | slice | EllipsisType | None | tuple[int | slice | EllipsisType | None, ...]


def bcoo_slice(
    mat: S, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> S:
    """The part of an array between two corners, with strides.

    Shapes: one start, limit and stride for each axis. Types: those of `mat`.
    Errors: ShapeError for limits out of bounds; ArgumentError if it is not a sparse array.

    >>> import rune
    >>> from rune.sparse import bcoo_slice, eye
    >>> bcoo_slice(eye(4), start_indices=(1, 0), limit_indices=(3, 2)).todense()
    Array([[0., 1.],
           [0., 0.]], f32[2,2], cpu:0)
    """
    require_sparse("bcoo_slice", mat)
    steps = tuple(strides) if strides is not None else (1,) * mat.ndim
    bounds = [*zip(start_indices, limit_indices, steps, strict=True)]
    if len(bounds) != mat.ndim or any(not 0 <= a <= b <= n or k < 1 for (a, b, k), n in zip(bounds, mat.shape)):
        raise ShapeError(f"bcoo_slice: cannot slice {mat!r} (from {start_indices} to {limit_indices} by {steps})")
    m = spread(mat)
    slices = [slice(*b) for b in bounds]
    first, end = m.n_batch, m.n_batch + m.n_sparse
    data = m.data[(*slices[:first], slice(None), *slices[end:])]
    indices = m.indices[tuple(slices[:first])]
    shape = [len(range(*b)) for b in bounds]
    columns, is_chosen = [], rnp.ones(indices.shape[:-1], bool)
    for k, (start, limit, step) in enumerate(bounds[first:end]):
        column = indices[..., k]
        is_chosen &= (column >= start) & (column < limit) & ((column - start) % step == 0)
        columns.append((column - start) // step)
    return chosen(mat, is_chosen, columns, shape[first:end], data, shape)


def bcoo_dynamic_slice(mat: S, start_indices: Sequence[ArrayLike], slice_sizes: Sequence[int]) -> S:
    """A window at a corner that may be traced; it is moved inside the array, as by
    lax.dynamic_slice.

    Shapes: slice_sizes. Types: those of `mat`.
    Errors: ShapeError for a window larger than the array.

    >>> import rune
    >>> rune.sparse.bcoo_dynamic_slice(rune.sparse.eye(4), (9, 2), (2, 2)).todense()
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    require_sparse("bcoo_dynamic_slice", mat)
    if len(slice_sizes) != mat.ndim or any(not 0 <= w <= n for w, n in zip(slice_sizes, mat.shape)):
        raise ShapeError(f"bcoo_dynamic_slice: cannot take {tuple(slice_sizes)} of {mat!r}")
    m = spread(mat)
    starts = [rnp.clip(rnp.asarray(s), 0, n - w) for s, n, w in zip(start_indices, m.shape, slice_sizes, strict=True)]
    first, end = m.n_batch, m.n_batch + m.n_sparse
    data = dynamic_slice(m.data, [*starts[:first], 0, *starts[end:]], [*slice_sizes[:first], m.nse, *slice_sizes[end:]])
    indices = dynamic_slice(m.indices, [*starts[:first], 0, 0], [*slice_sizes[:first], *m.indices.shape[first:]])
    columns = [indices[..., k] - starts[first + k].astype(indices.dtype) for k in range(m.n_sparse)]
    is_chosen = rnp.ones(indices.shape[:-1], bool)
    for column, width in zip(columns, slice_sizes[first:end], strict=True):
        is_chosen &= (column >= 0) & (column < width)
    return chosen(mat, is_chosen, columns, slice_sizes[first:end], data, slice_sizes)


def bcoo_rev(operand: S, dimensions: Sequence[int]) -> S:
    """The array with some axes reversed.

    Shapes: unchanged. Types: unchanged.
    Errors: AxisError for an axis out of range.

    >>> import rune
    >>> rune.sparse.bcoo_rev(rune.sparse.eye(2), (1,)).todense()
    Array([[0., 1.],
           [1., 0.]], f32[2,2], cpu:0)
    """
    require_sparse("bcoo_rev", operand)
    axes = normalised_axes("bcoo_rev", tuple(dimensions), operand.dense_type())
    m = spread(operand)
    first, end = m.n_batch, m.n_batch + m.n_sparse
    outer = [k for k in axes if k < first]
    data = rnp.flip(m.data, [*outer, *(k - m.n_sparse + 1 for k in axes if k >= end)])
    indices = rnp.flip(m.indices, outer)
    sizes = m.shape[first:end]
    columns = [sizes[k] - 1 - indices[..., k] if first + k in axes else indices[..., k] for k in range(m.n_sparse)]
    return chosen(operand, rnp.flip(is_inside(m), outer), columns, sizes, data, m.shape)


def bcoo_squeeze(arr: S, *, dimensions: Sequence[int]) -> S:
    """The array without these axes, which must have size 1.

    Shapes: the other axes. Types: those of `arr`.
    Errors: AxisError for axes of other sizes.

    >>> import rune
    >>> rune.sparse.bcoo_squeeze(rune.sparse.empty((3, 1)), dimensions=(1,))
    BCOO(f32[3], nse=0)
    """
    require_sparse("bcoo_squeeze", arr)
    axes = normalised_axes("bcoo_squeeze", tuple(dimensions), arr.dense_type())
    if any(arr.shape[k] != 1 for k in axes):
        raise AxisError(f"bcoo_squeeze: cannot drop axes {axes} of {arr!r} (one element required)")
    m = spread(arr)
    first, end = m.n_batch, m.n_batch + m.n_sparse
    outer = tuple(k for k in axes if k < first)
    data = rnp.squeeze(m.data, (*outer, *(k - m.n_sparse + 1 for k in axes if k >= end)))
    indices = rnp.squeeze(m.indices, outer)
    others = [k for k in range(m.n_sparse) if first + k not in axes]
    shape = [n for k, n in enumerate(m.shape) if k not in axes]
    sizes = [m.shape[first + k] for k in others]
    result = arr.remade((data, indices[..., np.array(others, int)]), shape=shape)
    return chosen(result, rnp.squeeze(is_inside(m), outer), [indices[..., k] for k in others], sizes, data, shape)


def bcoo_reshape(mat: S, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> S:
    """The same elements, in row-major order, in another shape.

    dimensions: an order of the axes to transpose to first
    Batch and dense axes stay such where the first and last new axes have their sizes; otherwise all
    axes become sparse.
    Shapes: new_sizes. Types: those of `mat`.
    Errors: ShapeError for another number of elements.

    >>> import rune
    >>> rune.sparse.bcoo_reshape(rune.sparse.eye(2), new_sizes=(4,)).todense()
    Array([1., 0., 0., 1.], f32[4], cpu:0)
    """
    require_sparse("bcoo_reshape", mat)
    sizes = tuple(new_sizes)
    if prod(sizes) != mat.size:
        raise ShapeError(f"bcoo_reshape: cannot make {sizes} of {mat!r} (sizes differ)")
    m = mat if dimensions is None else _permuted(mat, dimensions)
    n_batch = _count_that_makes(prod(m.shape[: m.n_batch]), sizes) if m.n_batch else 0
    n_dense = _count_that_makes(prod(m.shape[m.ndim - m.n_dense :]), sizes[::-1]) if m.n_dense else 0
    if n_batch is None or n_dense is None or n_batch + n_dense > len(sizes):
        m, n_batch, n_dense = listed(m), 0, 0
    m = spread(m)
    sparse, end = m.shape[m.n_batch : m.ndim - m.n_dense], len(sizes) - n_dense
    head = (*sizes[:n_batch], m.nse)
    number, is_element = flat_positions(m, sparse).reshape(head), is_inside(m).reshape(head)
    data = m.data.reshape(*head, *sizes[end:])
    columns = rnp.unravel_index(number, sizes[n_batch:end]) if end > n_batch else ()
    result = mat.remade((data, rnp.zeros((*head, end - n_batch), m.indices.dtype)), shape=sizes)
    return chosen(result, is_element, columns, sizes[n_batch:end], data, sizes)


def _permuted(mat: S, dimensions: Sequence[int]) -> S:
    """The axes in this order, all sparse."""
    m = listed(mat)
    order = normalised_axes("bcoo_reshape", tuple(dimensions), mat.dense_type())
    return mat.remade((m.data, m.indices[:, np.array(order, int)]), shape=[m.shape[k] for k in order])


def _count_that_makes(size: int, sizes: Sequence[int]) -> int | None:
    """How many of the first sizes have this product."""
    products = [*accumulate(sizes, mul)]
    return products.index(size) + 1 if size in products else None


def bcoo_broadcast_in_dim(
    mat: S, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> S:
    """New axes, and axes of size 1 repeated, as by lax.broadcast_in_dim.

    broadcast_dimensions: the axis of the result that each axis of `mat` becomes
    sharding: must be None: sparse elements have no layout
    Shapes: shape. Types: those of `mat`. Errors: ShapeError for sizes that do not fit.

    >>> import rune
    >>> from rune.sparse import bcoo_broadcast_in_dim, eye
    >>> bcoo_broadcast_in_dim(eye(2), shape=(2, 3, 2), broadcast_dimensions=(0, 2))
    BCOO(f32[2,3,2], nse=6)
    """
    require_sparse("bcoo_broadcast_in_dim", mat)
    if sharding is not None:
        raise ArgumentError(f"bcoo_broadcast_in_dim: cannot lay out sparse elements (sharding={sharding!r})")
    order, sizes = [*broadcast_dimensions], [*shape]
    fits = len(order) == mat.ndim and all(n in (1, sizes[k]) for n, k in zip(mat.shape, order, strict=True))
    if not fits or order != sorted(set(order)):
        raise ShapeError(f"bcoo_broadcast_in_dim: cannot make {tuple(shape)} of {mat!r} (axes {tuple(order)})")
    m = spread(mat)
    first, end = m.n_batch, m.n_batch + m.n_sparse
    # Axes in front of the first sparse one are of the batch, new ones, too.
    n_batch = order[first] if m.n_sparse else max(order[:first], default=-1) + 1
    n_dense = len(sizes) - order[end] if m.n_dense else 0
    last = len(sizes) - n_dense
    head, places = [*sizes[:n_batch], m.nse], [*order[:first], n_batch]
    inner = [k - last + n_batch + 1 for k in order[end:]]
    data = broadcast_in_dim(m.data, [*head, *sizes[last:]], [*places, *inner])
    indices = broadcast_in_dim(m.indices, [*head, m.n_sparse], [*places, n_batch + 1])
    is_element = broadcast_in_dim(is_inside(m), head, places)
    columns = {order[first + k]: indices[..., k] for k in range(m.n_sparse)}
    for axis in range(n_batch, last):
        is_repeated = axis not in columns or m.shape[order.index(axis)] != sizes[axis]
        if is_repeated:
            data, is_element = (rnp.repeat(x, sizes[axis], n_batch) for x in (data, is_element))
            columns = {k: rnp.repeat(c, sizes[axis], n_batch) for k, c in columns.items()}
            positions = rnp.arange(data.shape[n_batch], dtype=m.indices.dtype) % sizes[axis]
            columns[axis] = rnp.broadcast_to(positions, data.shape[: n_batch + 1])
    result = mat.remade((data, rnp.zeros((*data.shape[: n_batch + 1], last - n_batch), m.indices.dtype)), shape=sizes)
    return chosen(result, is_element, [columns[k] for k in sorted(columns)], sizes[n_batch:last], data, sizes)


def bcoo_concatenate(operands: Sequence[S], *, dimension: int) -> S:
    """The arrays joined along an axis.

    Shapes: equal but for that axis; the same batch and dense axes. Types: promoted.
    Errors: ShapeError for shapes, ArgumentError for layouts that differ.

    >>> import rune
    >>> rune.sparse.bcoo_concatenate([rune.sparse.eye(2), rune.sparse.eye(2)], dimension=1)
    BCOO(f32[2,4], nse=4)
    """
    require_sparse("bcoo_concatenate", *operands)
    mat = operands[0]
    (axis,) = normalised_axes("bcoo_concatenate", (dimension,), mat.dense_type())
    if any(layout(m) != layout(mat) or m.ndim != mat.ndim for m in operands):
        raise ArgumentError(f"bcoo_concatenate: cannot join {[*operands]!r} (one number of batch and dense axes)")
    if any(m.shape[:axis] + m.shape[axis + 1 :] != mat.shape[:axis] + mat.shape[axis + 1 :] for m in operands):
        raise ShapeError(f"bcoo_concatenate: cannot join {[*operands]!r} along axis {axis} (shapes differ)")
    shape = [*mat.shape]
    shape[axis] = sum(m.shape[axis] for m in operands)
    starts = [*accumulate((m.shape[axis] for m in operands), initial=0)]
    parts = [_joined_part(spread(m), axis, start, shape) for m, start in zip(operands, starts)]
    at = axis if axis < mat.n_batch else mat.n_batch
    if axis < mat.n_batch:
        longest = max(m.nse for m in operands)
        parts = [_lengthened(*part, longest, mat.n_batch, shape) for part in parts]
    data, indices = (rnp.concatenate(xs, at) for xs in zip(*parts, strict=True))
    return mat.remade((data, indices), shape=shape)


def _joined_part(m: Coordinates, axis: int, start: int, shape: Sequence[int]) -> tuple[Array, Array]:
    """Data and indices of the elements at their positions in the joined array of this shape."""
    first, end = m.n_batch, m.n_batch + m.n_sparse
    data, indices = m.data, m.indices
    if first <= axis < end:
        places = rnp.where(is_inside(m), indices[..., axis - first] + start, shape[axis])
        indices = indices.at[..., axis - first].set(places)
    elif axis >= end:
        widths = [(0, 0)] * data.ndim
        widths[axis - m.n_sparse + 1] = (start, shape[axis] - start - m.shape[axis])
        data = rnp.pad(data, widths)
    return data, indices


def _lengthened(data: Array, indices: Array, count: int, n_batch: int, shape: Sequence[int]) -> tuple[Array, Array]:
    """Lists of `count` elements; those added are out of bounds."""
    missing = count - data.shape[n_batch]
    before = [(0, 0)] * n_batch
    data = rnp.pad(data, [*before, (0, missing), *[(0, 0)] * (data.ndim - n_batch - 1)])
    indices = rnp.pad(indices, [*before, (0, missing), (0, 0)], constant_values=max(shape, default=0))
    return data, indices


def getitem(m: S, index: Index) -> S:
    """`m[index]` for integers, slices, None and an ellipsis.

    Errors: ArgumentError for arrays as indices.
    """
    parts = index if isinstance(index, tuple) else (index,)
    if any(not (p is None or p is Ellipsis or isinstance(p, int | slice)) for p in parts):
        raise ArgumentError(
            f"BCOO: cannot index {m!r} by {index!r} (whole numbers, slices, None and ...)",
            hint="bcoo_dynamic_slice takes traced numbers; `todense` has all ways of indexing",
        )
    count = sum(p is not None and p is not Ellipsis for p in parts)
    if count > m.ndim:
        raise ArgumentError(f"BCOO: cannot index {m!r} by {index!r} ({m.ndim} axes)")
    where = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts = (*parts[:where], *(slice(None),) * (m.ndim - count), *parts[where + 1 :])
    axes = [p for p in parts if isinstance(p, int | slice)]
    bounds = [p.indices(n) if isinstance(p, slice) else _one(m, p, n) for p, n in zip(axes, m.shape, strict=True)]
    backwards = [k for k, b in enumerate(bounds) if b[2] < 0]
    if backwards:
        m, bounds = bcoo_rev(m, backwards), [_mirrored(b, n) if b[2] < 0 else b for b, n in zip(bounds, m.shape)]
    starts, limits, steps = zip(*((a, max(a, b), k) for a, b, k in bounds)) if bounds else ((), (), ())
    part = bcoo_slice(m, start_indices=starts, limit_indices=limits, strides=steps)
    sizes = iter(part.shape)
    new = [(None, 1) if p is None else (p, next(sizes)) for p in parts]
    return bcoo_reshape(part, new_sizes=[size for p, size in new if not isinstance(p, int)])


def _one(m: Coordinates, number: int, size: int) -> tuple[int, int, int]:
    if not -size <= number < size:
        raise ShapeError(f"BCOO: cannot index {m!r} by {number} (axis of size {size})")
    return number % size, number % size + 1, 1


def _mirrored(bounds: tuple[int, int, int], size: int) -> tuple[int, int, int]:
    """A slice with a negative step, as a forward slice of the reversed axis."""
    start, limit, step = bounds
    return size - 1 - start, max(size - 1 - limit, size - 1 - start), -step
