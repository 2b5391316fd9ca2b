"""BCOO, a sparse array with operators, and its constructors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, cast, overload

import numpy as np

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError, ShapeError, TransformError
from rune.ops.conventions import normalised_axes
from rune.sparse.coordinates import Coordinates, Either, Operand, layout, listed, spread
from rune.sparse.forms import (
    bcoo_reduce_sum,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
    without_zeros,
)
from rune.sparse.layouts import bcoo_update_layout
from rune.sparse.movement import Index, bcoo_reshape, getitem
from rune.sparse.products import bcoo_multiply_sparse, matmul, times_dense
from rune.transforms.arguments import value_leaves
from rune.typing import ArrayLike, DTypeLike


class BCOO(Coordinates):
    """A sparse array: the numbers `data` at the positions `indices` (batched coordinates).

    args:            (data, indices)
    indices_sorted, unique_indices: promises about the indices
    Shapes: shape [*batch, *sparse, *dense], data [*batch, N, *dense], indices [*batch, N, K].
    Types:  data any, indices int.
    Errors: ShapeError if the shapes do not fit together.

    >>> import rune, rune.numpy as rnp
    >>> m = rune.sparse.BCOO.fromdense(rnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m
    BCOO(f32[2,2], nse=2)
    >>> m @ rnp.ones(2), m.T.todense()
    (Array([2., 3.], f32[2], cpu:0), Array([[0., 3.],
           [2., 0.]], f32[2,2], cpu:0))
    """

    __slots__ = ()

    # --- from and to other forms --------------------------------------------------------------

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """The same as `bcoo_fromdense`."""
        return bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """From a SciPy matrix. Errors: ArgumentError for batch or dense axes."""
        if n_dense or n_batch:
            raise ArgumentError("BCOO.from_scipy_sparse: cannot make batches or dense axes of a matrix of SciPy's")
        coo = mat.tocoo()
        indices = rnp.asarray(np.column_stack((coo.row, coo.col)), index_dtype or np.int32)
        return cls((rnp.asarray(coo.data), indices), shape=coo.shape)

    def todense(self) -> Array:
        """The same as `bcoo_todense`."""
        return bcoo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The same as `bcoo_transpose`."""
        return bcoo_transpose(self, permutation=tuple(axes) if axes is not None else tuple(range(self.ndim))[::-1])

    def sum(self, axis: int | Sequence[int] | None = None) -> BCOO | Array:
        """The same as `bcoo_reduce_sum`; a number if all axes are summed."""
        axes = normalised_axes("BCOO.sum", axis, self.dense_type())  # type: ignore[arg-type]
        total = bcoo_reduce_sum(self, axes=axes)
        return total.todense() if total.ndim == 0 else total

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The same as `bcoo_sum_duplicates`. remove_zeros: without elements that were 0."""
        return bcoo_sum_duplicates(without_zeros(self) if remove_zeros else self, nse=nse)

    def reshape(self, *args: int | Sequence[int], dimensions: Sequence[int] | None = None) -> BCOO:
        """The same as `bcoo_reshape`: a shape, or its sizes one by one; one may be -1."""
        sizes = [n for a in args for n in (a if isinstance(a, Sequence) else (a,))]
        known = prod(n for n in sizes if n != -1)
        sizes = [self.size // max(known, 1) if n == -1 else n for n in sizes]
        return bcoo_reshape(self, new_sizes=sizes, dimensions=dimensions)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """The same as `bcoo_update_layout`."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def __getitem__(self, index: Index) -> BCOO:
        """`m[1, :, ::2]`: integers, slices, None and `...`."""
        return getitem(self, index)

    def __len__(self) -> int:
        """The size of the first axis. Errors: TypeError for rank 0."""
        if not self.ndim:
            raise TypeError("len: cannot take the length of a BCOO of rank 0")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[BCOO]:
        """The parts along the first axis, one after another."""
        return (self[i] for i in range(len(self)))

    def sort_indices(self) -> BCOO:
        """The same as `bcoo_sort_indices`."""
        return bcoo_sort_indices(self)

    @property
    def T(self) -> BCOO:
        """The axes in reverse order."""
        return self.transpose()

    # --- arithmetic ---------------------------------------------------------------------------

    @overload
    def __matmul__(self, other: BCOO) -> BCOO: ...

    @overload
    def __matmul__(self, other: ArrayLike) -> Array: ...

    def __matmul__(self, other: Operand) -> Either:
        return matmul(self, other)

    def __rmatmul__(self, other: ArrayLike) -> Array:
        return cast(Array, matmul(other, self))

    def __mul__(self, other: Operand) -> BCOO:
        if isinstance(other, BCOO):
            return bcoo_multiply_sparse(self, other)
        dense = cast(Array, other)
        return self.with_data(self.data * dense) if np.ndim(dense) == 0 else times_dense(self, dense)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> BCOO:
        if isinstance(other, BCOO):
            raise TransformError("BCOO: cannot divide by a sparse array (most of it is 0)")
        return self * (1.0 / rnp.asarray(other))

    def __neg__(self) -> BCOO:
        return self.with_data(-self.data)

    def __pos__(self) -> BCOO:
        return self

    def __abs__(self) -> BCOO:
        joined = bcoo_sum_duplicates(self, nse=self.nse)
        return joined.with_data(abs(joined.data))

    @overload
    def __add__(self, other: BCOO) -> BCOO: ...

    @overload
    def __add__(self, other: ArrayLike) -> Array: ...

    def __add__(self, other: Operand) -> Either:
        if not isinstance(other, BCOO):
            return self.todense() + other
        if self.shape != other.shape:
            raise ShapeError(f"BCOO: cannot add {self!r} and {other!r} (shapes differ)")
        a, b = (self, other) if layout(self) == layout(other) else (listed(self), listed(other))
        a, b = spread(a), spread(b)
        parts = [rnp.concatenate(pair, a.n_batch) for pair in ((a.data, b.data), (a.indices, b.indices))]
        return BCOO((parts[0], parts[1]), shape=self.shape)

    __radd__ = __add__

    @overload
    def __sub__(self, other: BCOO) -> BCOO: ...

    @overload
    def __sub__(self, other: ArrayLike) -> Array: ...

    def __sub__(self, other: Operand) -> Either:
        return self + -cast(Array, other)

    def __rsub__(self, other: Operand) -> Either:
        return (-self) + cast(ArrayLike, other)


tree.register_node_class(BCOO)


# --- new arrays ---------------------------------------------------------------------------------


def bcoo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCOO:
    """The sparse array of the nonzero elements of `mat`.

    nse:      the number of elements to make room for, by default their count; required under jit
    n_batch: leading axes; each of their indices has a list of elements of its own
    n_dense: last axes, which each element holds in full

    Shapes: those of `mat`. Types: those of `mat`.
    Errors: a TracerError if `mat` is traced and nse= is missing; ArgumentError for other
            axes.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.bcoo_fromdense(rnp.array([0.0, 5.0, 6.0])).indices.ravel()
    Array([1, 2], i32[2], cpu:0)
    """
    (value,) = value_leaves("bcoo_fromdense", [mat], tree.structure(0))
    x = rnp.asarray(value)
    n_sparse = x.ndim - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ArgumentError(f"bcoo_fromdense: cannot make {n_batch} batch and {n_dense} dense axes of {x.type}")
    batch, sparse, dense = x.shape[:n_batch], x.shape[n_batch : n_batch + n_sparse], x.shape[n_batch + n_sparse :]
    rows = x.reshape(*batch, prod(sparse), *dense)
    is_there = rnp.any(rows != 0, axis=tuple(range(n_batch + 1, rows.ndim)))
    if nse is None:
        nse = int(rnp.max(rnp.sum(is_there, -1), initial=0))
    # Elements inside come first, in order; lists are padded with positions out of bounds.
    order = rnp.argsort(~is_there, axis=-1, stable=True)[..., :nse]
    order = rnp.pad(order, [*((0, 0),) * n_batch, (0, nse - order.shape[-1])])
    counts = rnp.sum(is_there, -1, keepdims=True)
    is_element = rnp.arange(nse) < counts
    data = rnp.take_along_axis(rows, order.reshape(*order.shape, *(1,) * n_dense), axis=n_batch)
    data = rnp.where(is_element.reshape(*is_element.shape, *(1,) * n_dense), data, 0)
    places = rnp.unravel_index(order, sparse) if sparse else ()
    columns = [rnp.where(is_element, p, size) for p, size in zip(places, sparse)]
    indices = rnp.stack(columns, -1) if columns else rnp.zeros((*order.shape, 0), int)
    return BCOO((data, indices.astype(index_dtype)), shape=x.shape, indices_sorted=True, unique_indices=True)
