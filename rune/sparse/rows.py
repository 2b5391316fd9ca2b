"""BCSR: matrices, and batches of them, whose elements are stored row by row.

An array of shape [*batch, R, C, *dense] has data [*batch, N, *dense], the columns of its elements,
indices [*batch, N], and where each row begins and ends in these lists, indptr [*batch, R + 1].
Elements after the end of the last row do not count. Operations convert it to a BCOO.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError, ShapeError, TransformError
from rune.sharding.shardings import Sharding
from rune.sparse.array import BCOO, bcoo_fromdense
from rune.sparse.coordinates import Coordinates, Either, Operand, Parts, Sparse, sizes_of, spread
from rune.sparse.forms import bcoo_sort_indices, bcoo_todense, elements_at
from rune.sparse.movement import bcoo_broadcast_in_dim, bcoo_concatenate
from rune.sparse.products import Dims, bcoo_dot_general
from rune.sparse.products import matmul as product
from rune.typing import ArrayLike, DTypeLike


class BCSR(Sparse):
    """A sparse array by rows: row r has the numbers indptr[r] to indptr[r + 1].

    args:            (data, indices, indptr), indices being columns
    indices_sorted, unique_indices: known properties of each row's columns

    Shapes: shape [*batch, R, C, *dense], data [*batch, N, *dense], indices [*batch, N],
            indptr [*batch, R + 1].
    Types:  data any, indices and indptr int.
    Errors: ShapeError if the shapes do not fit together.

    >>> import rune, rune.numpy as rnp
    >>> m = rune.sparse.BCSR.fromdense(rnp.array([[0.0, 2.0], [3.0, 4.0]]))
    >>> m, m.indptr.tolist()
    (BCSR(f32[2,2], nse=3), [0, 1, 3])
    >>> m @ rnp.ones(2)
    Array([2., 7.], f32[2], cpu:0)
    """

    __slots__ = ("indices", "indices_sorted", "indptr", "unique_indices")

    def __init__(
        self, args: Parts, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ):
        self.data, self.indices, self.indptr = map(rnp.asarray, args)
        self.shape = sizes_of("BCSR", shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        if self.indices.ndim < 1 or self.n_dense < 0 or not self._fits():
            raise ShapeError(
                f"BCSR: cannot make {self.shape} of data {self.data.shape}, indices {self.indices.shape} and indptr "
                f"{self.indptr.shape} ([*batch, N, *dense], [*batch, N] and [*batch, rows + 1] required)"
            )

    def _fits(self) -> bool:
        batch, rows, dense = self.shape[: self.n_batch], self.shape[self.n_batch], self.shape[self.n_batch + 2 :]
        heads = [x.shape[: self.n_batch] for x in (self.data, self.indices, self.indptr)]
        are_batched = all(a in (1, b) for head in heads for a, b in zip(head, batch, strict=True))
        tails = [x.shape[self.n_batch :] for x in (self.data, self.indptr)]
        return are_batched and tails == [(self.nse, *dense), (rows + 1,)]

    @property
    def nse(self) -> int:
        """The number of elements of a list."""
        return int(self.indices.shape[-1])

    @property
    def n_batch(self) -> int:
        """The number of leading axes whose indices have a list of elements each."""
        return self.indices.ndim - 1

    @property
    def n_sparse(self) -> int:
        """Rows and columns: 2."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of last axes, which each element holds in full."""
        return self.ndim - self.n_batch - 2

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], tuple[tuple[int, ...], bool, bool]]:
        """Data, indices and indptr; the shape and known properties of the indices."""
        return (self.data, self.indices, self.indptr), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux: tuple[tuple[int, ...], bool, bool], leaves: Sequence[Array]) -> Self:
        """The array with these leaves, without checks."""
        new = object.__new__(cls)
        new.data, new.indices, new.indptr = leaves
        new.shape, new.indices_sorted, new.unique_indices = aux
        return new

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
    ) -> BCSR:
        """The same as `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The same array by rows. Errors: ShapeError unless it has two sparse axes."""
        if not isinstance(arr, BCOO) or arr.n_sparse != 2:
            raise ShapeError(f"BCSR.from_bcoo: cannot make rows of {arr!r} (two sparse axes required)")
        m = bcoo_sort_indices(spread(arr))
        rows = m.shape[m.n_batch]
        # An element whose column is out of bounds stays among those of its row, and is counted
        # there.
        is_counted = m.indices[..., :1] <= rnp.arange(rows, dtype=m.indices.dtype)
        ends = rnp.sum(is_counted, -2).astype(m.indices.dtype)
        indptr = rnp.pad(ends, [(0, 0)] * m.n_batch + [(1, 0)])
        args = (m.data, m.indices[..., 1], indptr)
        return BCSR(args, shape=m.shape, indices_sorted=True, unique_indices=arr.unique_indices)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """From a SciPy matrix. Errors: ArgumentError for batch or dense axes."""
        if n_dense or n_batch:
            raise ArgumentError("BCSR.from_scipy_sparse: cannot make batches or dense axes of a matrix of SciPy's")
        csr, kind = mat.tocsr(), index_dtype or np.int32
        return cls((csr.data, rnp.asarray(csr.indices, kind), rnp.asarray(csr.indptr, kind)), shape=csr.shape)

    def to_bcoo(self) -> BCOO:
        """The same array, with the row of each element; elements that do not count are after the
        last row.
        """
        numbers = rnp.arange(self.nse, dtype=self.indptr.dtype)[:, None]
        rows = rnp.sum(self.indptr[..., None, 1:] <= numbers, -1).astype(self.indices.dtype)
        head = np.broadcast_shapes(rows.shape, self.indices.shape)
        indices = rnp.stack([rnp.broadcast_to(x, head) for x in (rows, self.indices)], -1)
        return BCOO(
            (self.data, indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def todense(self) -> Array:
        """The dense array."""
        return bcoo_todense(self.to_bcoo())

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The same as `bcsr_sum_duplicates`. remove_zeros: without elements that were 0."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def sum(self, axis: int | Sequence[int] | None = None) -> BCOO | Array:
        """The same as `bcoo_reduce_sum`; a number if all axes are summed."""
        return self.to_bcoo().sum(axis)

    def transpose(self, axes: Sequence[int] | None = None) -> BCSR:
        """The axes permuted. Errors: ArgumentError if batch, sparse and dense axes mix."""
        return BCSR.from_bcoo(self.to_bcoo().transpose(axes))

    @property
    def T(self) -> BCSR:
        """The axes in reverse order."""
        return self.transpose()

    # --- arithmetic ---------------------------------------------------------------------------

    def _with_data(self, data: Array) -> BCSR:
        args = (data, self.indices, self.indptr)
        return BCSR(args, shape=self.shape, indices_sorted=self.indices_sorted, unique_indices=self.unique_indices)

    def __matmul__(self, other: Operand) -> Either:
        return product(self.to_bcoo(), _coordinates(other))

    def __rmatmul__(self, other: Operand) -> Either:
        return product(_coordinates(other), self.to_bcoo())

    def __mul__(self, other: Operand) -> BCSR:
        if not isinstance(other, Sparse) and np.ndim(cast(Array, other)) == 0:
            return self._with_data(self.data * other)
        return BCSR.from_bcoo(self.to_bcoo() * _coordinates(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> BCSR:
        if isinstance(other, Sparse):
            raise TransformError("BCSR: cannot divide by a sparse array (most of it is 0)")
        return self * (1.0 / rnp.asarray(other))

    def __neg__(self) -> BCSR:
        return self._with_data(-self.data)

    def __add__(self, other: Operand) -> Either:
        total: Either = self.to_bcoo() + cast(ArrayLike, _coordinates(other))
        return BCSR.from_bcoo(total) if isinstance(total, BCOO) else total

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Either:
        return self + -cast(Array, other)

    def __rsub__(self, other: Operand) -> Either:
        return (-self) + other


tree.register_node_class(BCSR)


def _coordinates(x: Operand) -> Coordinates | ArrayLike:
    """A BCSR as a BCOO; anything else unchanged, for the operation to accept or refuse."""
    return x.to_bcoo() if isinstance(x, BCSR) else cast(ArrayLike, x)


def _require_rows(name: str, value: object) -> None:
    if not isinstance(value, BCSR):
        raise ArgumentError(
            f"{name}: cannot take {type(value).__name__} for a BCSR", hint="BCSR.fromdense and BCSR.from_bcoo make one"
        )


def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCSR:
    """The sparse array, by rows, of the nonzero elements of `mat`.

    nse:      the number of elements to make room for, by default their count; required under jit
    n_batch: leading axes; each of their indices has a list of elements of its own
    n_dense: last axes, which each element holds in full

    Shapes: [*batch, R, C, *dense], kept. Types: those of `mat`.
    Errors: ShapeError if it has other than two sparse axes; a TracerError if nse= is missing where
            nothing can be counted.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.bcsr_fromdense(rnp.eye(3)).indices
    Array([0, 1, 2], i32[3], cpu:0)
    """
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array.

    Shapes: those of `mat`. Types: those of its data. Errors: ArgumentError if it is not a BCSR.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.bcsr_todense(rune.sparse.bcsr_fromdense(rnp.eye(1)))
    Array([[1.]], f32[1,1], cpu:0)
    """
    _require_rows("bcsr_todense", mat)
    return mat.todense()


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The array with one element for each position that has one, even a 0, sorted by position.

    nse: the number of elements to make room for, by default their count; required under jit
    Shapes: those of `mat`. Types: those of `mat`.
    Errors: ArgumentError for an array with a batch; a TracerError where `mat` is traced without it.

    >>> import rune
    >>> args = ([1.0, 2.0, 4.0], [0, 0, 1], [0, 2, 3])
    >>> rune.sparse.bcsr_sum_duplicates(rune.sparse.BCSR(args, shape=(2, 2))).data
    Array([3., 4.], f32[2], cpu:0)
    """
    _require_rows("bcsr_sum_duplicates", mat)
    return mat.sum_duplicates(nse, remove_zeros=False)


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """The elements of a dense array in the columns `indices` of the rows that `indptr` says.

    Shapes: indices [*batch, N], indptr [*batch, R + 1], mat [*batch, R, C, *dense]
            -> [*batch, N, *dense].
    Types:  those of `mat`. Errors: ShapeError if the shapes do not fit together.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.bcsr_extract([1, 0], [0, 1, 2], rnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([2., 3.], f32[2], cpu:0)
    """
    columns, dense = rnp.asarray(indices), rnp.asarray(mat)
    zeros = rnp.zeros((*columns.shape, *dense.shape[columns.ndim + 1 :]), dense.dtype)
    m = BCSR((zeros, columns, indptr), shape=[*map(int, dense.shape)]).to_bcoo()
    return elements_at(m, dense)


def bcsr_dot_general(
    lhs: BCSR | ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: Dims,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Either:
    """The product that contracts some axes and batches others, like lax.dot_general.

    dimension_numbers: ((contracted of lhs, of rhs), (batch of lhs, of rhs))
    precision: accepted as in JAX
    out_sharding: the sharding of the result; None leaves it unspecified

    Shapes: result [*batch, *other axes of lhs, *other axes of rhs].
    Types:  promoted, or preferred_element_type.
    Errors: ShapeError if sizes differ.

    >>> import rune, rune.numpy as rnp
    >>> m, dims = rune.sparse.bcsr_fromdense(rnp.eye(2)), (((1,), (0,)), ((), ()))
    >>> rune.sparse.bcsr_dot_general(m, rnp.array([3.0, 4.0]), dimension_numbers=dims)
    Array([3., 4.], f32[2], cpu:0)
    """
    return bcoo_dot_general(
        _coordinates(lhs),
        _coordinates(rhs),
        dimension_numbers=dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCSR:
    """New axes, and axes of one element repeated, as by `bcoo_broadcast_in_dim`.

    broadcast_dimensions: the axis of the result that each axis of `mat` becomes
    sharding: must be None: sparse elements have no layout

    Shapes: shape; two sparse axes. Types: those of `mat`.
    Errors: ShapeError for sizes that do not fit.

    >>> import rune, rune.numpy as rnp
    >>> row = rune.sparse.bcsr_fromdense(rnp.array([[1.0, 0.0]]))
    >>> rune.sparse.bcsr_broadcast_in_dim(row, shape=(2, 2), broadcast_dimensions=(0, 1)).todense()
    Array([[1., 0.],
           [1., 0.]], f32[2,2], cpu:0)
    """
    _require_rows("bcsr_broadcast_in_dim", mat)
    m, count = mat.to_bcoo(), min(broadcast_dimensions, default=0)
    leading_shape = (1,) * count  # new axes in front are batch axes
    m = BCOO(
        (m.data.reshape(*leading_shape, *m.data.shape), m.indices.reshape(*leading_shape, *m.indices.shape)),
        shape=leading_shape + m.shape,
    )
    axes = (*range(count), *broadcast_dimensions)
    return BCSR.from_bcoo(bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=axes, sharding=sharding))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """The arrays joined along an axis.

    Shapes: equal but for that axis. Types: promoted.
    Errors: ShapeError for shapes, ArgumentError for layouts that differ.

    >>> import rune, rune.numpy as rnp
    >>> m = rune.sparse.bcsr_fromdense(rnp.eye(2))
    >>> rune.sparse.bcsr_concatenate([m, m], dimension=0).indptr.tolist()
    [0, 1, 2, 3, 4]
    """
    for m in operands:
        _require_rows("bcsr_concatenate", m)
    return BCSR.from_bcoo(bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension))
