"""COO, CSR and CSC: matrices by positions, by rows, and by columns, under SciPy's names.

They store the same numbers as a BCOO or BCSR of two axes, and have the same operations. Elements
after the end do not count: lists may be longer than their contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.core.types import Shape
from rune.errors import ArgumentError, ShapeError
from rune.sparse.array import BCOO, bcoo_fromdense
from rune.sparse.coordinates import Either, Operand, Parts, Sparse, sizes_of
from rune.sparse.forms import bcoo_sort_indices
from rune.sparse.products import matmul as product
from rune.sparse.rows import BCSR
from rune.typing import ArrayLike, DTypeLike


class Matrix(Sparse):
    """What matrices of the three formats share: products and sums, through `to_bcoo`."""

    __slots__ = ()

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO."""
        raise NotImplementedError

    def todense(self) -> Array:
        """The dense matrix."""
        return self.to_bcoo().todense()

    def sum(self, axis: int | Sequence[int] | None = None) -> BCOO | Array:
        """The same as `bcoo_reduce_sum`; a number if all axes are summed."""
        return self.to_bcoo().sum(axis)

    @property
    def nse(self) -> int:
        """The number of elements that the lists have room for."""
        return int(self.data.shape[0])

    def __matmul__(self, other: Operand) -> Either:
        return product(self.to_bcoo(), _coordinates(other))

    def __rmatmul__(self, other: Operand) -> Either:
        return product(_coordinates(other), self.to_bcoo())

    def __neg__(self) -> Self:
        return self * -1

    def __mul__(self, number: Operand) -> Self:
        """The product with a number. Errors: ArgumentError for anything else."""
        if isinstance(number, Sparse) or np.ndim(cast(Array, number)):
            raise ArgumentError(
                f"{type(self).__name__}: cannot multiply by {type(number).__name__} (a number required)",
                hint="m.to_bcoo() * x multiplies element by element; @ is the product of matrices",
            )
        leaves, structure = tree.flatten(self)
        return tree.unflatten(structure, [leaves[0] * number, *leaves[1:]])

    __rmul__ = __mul__


class COO(Matrix):
    """A sparse matrix: the numbers `data` in the rows `row` and columns `col`.

    args:  (data, row, col)
    rows_sorted, cols_sorted: known properties of the positions

    Shapes: three lists of one length, and shape [R, C]. Types: data any, row and col int.
    Errors: ShapeError if the shapes do not fit together.

    >>> import rune, rune.numpy as rnp
    >>> m = rune.sparse.COO(([2.0, 3.0], [0, 1], [1, 0]), shape=(2, 2))
    >>> m @ rnp.ones(2), m.T.todense()
    (Array([2., 3.], f32[2], cpu:0), Array([[0., 3.],
           [2., 0.]], f32[2,2], cpu:0))
    """

    __slots__ = ("col", "cols_sorted", "row", "rows_sorted")

    def __init__(self, args: Parts, *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False):
        self.data, self.row, self.col = map(rnp.asarray, args)
        self.shape = sizes_of("COO", shape)
        self.rows_sorted, self.cols_sorted = rows_sorted, cols_sorted
        _require_lists("COO", self.shape, self.data.shape, {"row": (self.row, self.nse), "col": (self.col, self.nse)})

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
        """The same as `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO."""
        return BCOO((self.data, rnp.stack([self.row, self.col], -1)), shape=self.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """Rows and columns exchanged. Errors: ArgumentError for another order."""
        _require_exchange("COO", axes)
        args = (self.data, self.col, self.row)
        return COO(args, shape=self.shape[::-1], rows_sorted=self.cols_sorted, cols_sorted=self.rows_sorted)

    @property
    def T(self) -> COO:
        """Rows and columns exchanged."""
        return self.transpose()

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], dict[str, Any]]:
        """Data, rows and columns; the shape and known properties of the positions."""
        names = ("shape", "rows_sorted", "cols_sorted")
        return (self.data, self.row, self.col), {n: getattr(self, n) for n in names}

    @classmethod
    def tree_unflatten(cls, aux: dict[str, Any], leaves: Sequence[Array]) -> Self:
        """The matrix with these leaves, without checks."""
        new = object.__new__(cls)
        new.data, new.row, new.col = leaves
        new.shape, new.rows_sorted, new.cols_sorted = aux["shape"], aux["rows_sorted"], aux["cols_sorted"]
        return new


class _Compressed(Matrix):
    """Numbers at `indices` of one axis, and where each index of the other axis begins and ends."""

    __slots__ = ("indices", "indptr")
    _other: ClassVar[int]  # the axis that `indptr` describes

    def __init__(self, args: Parts, *, shape: Sequence[int]):
        self.data, self.indices, self.indptr = map(rnp.asarray, args)
        self.shape = sizes_of(type(self).__name__, shape)
        lists = {"indices": (self.indices, self.nse), "indptr": (self.indptr, self.shape[self._other] + 1)}
        _require_lists(type(self).__name__, self.shape, self.data.shape, lists)

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], tuple[int, ...]]:
        """Data, indices and indptr; the shape."""
        return (self.data, self.indices, self.indptr), self.shape

    @classmethod
    def tree_unflatten(cls, aux: tuple[int, ...], leaves: Sequence[Array]) -> Self:
        """The matrix with these leaves, without checks."""
        new = object.__new__(cls)
        new.data, new.indices, new.indptr = leaves
        new.shape = aux
        return new


class CSR(_Compressed):
    """A sparse matrix by rows: row r has the numbers indptr[r] to indptr[r + 1].

    args:  (data, indices, indptr), indices being columns

    Shapes: data [N], indices [N], indptr [R + 1], shape [R, C]. Types: data any, others int.
    Errors: ShapeError if the shapes do not fit together.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.CSR(([2.0, 3.0], [1, 0], [0, 1, 2]), shape=(2, 2)) @ rnp.array([1.0, 10.0])
    Array([20.,  3.], f32[2], cpu:0)
    """

    __slots__ = ()
    _other = 0

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
        """The same as `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO."""
        return BCSR((self.data, self.indices, self.indptr), shape=self.shape).to_bcoo()

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        """Rows and columns exchanged. Errors: ArgumentError for another order."""
        _require_exchange("CSR", axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])

    @property
    def T(self) -> CSC:
        """Rows and columns exchanged."""
        return self.transpose()


class CSC(_Compressed):
    """A sparse matrix by columns: column c has the numbers indptr[c] to indptr[c + 1].

    args:  (data, indices, indptr), indices being rows

    Shapes: data [N], indices [N], indptr [C + 1], shape [R, C]. Types: data any, others int.
    Errors: ShapeError if the shapes do not fit together.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.CSC(([2.0, 3.0], [1, 0], [0, 1, 2]), shape=(2, 2)).todense()
    Array([[0., 3.],
           [2., 0.]], f32[2,2], cpu:0)
    """

    __slots__ = ()
    _other = -1

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSC:
        """The same as `csr_fromdense`, by columns."""
        return csr_fromdense(rnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO."""
        return self.T.to_bcoo().T

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """Rows and columns exchanged. Errors: ArgumentError for another order."""
        _require_exchange("CSC", axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])

    @property
    def T(self) -> CSR:
        """Rows and columns exchanged."""
        return self.transpose()


for _class in (COO, CSR, CSC):
    tree.register_node_class(_class)


def _coordinates(x: Operand) -> Operand:
    return x.to_bcoo() if isinstance(x, Matrix) else x


def _times(name: str, kind: type, mat: COO | CSR, dense: ArrayLike, transpose: bool) -> Array:
    """The product of a matrix of one format, or of its transpose, with a dense array."""
    _require(name, kind, mat)
    return cast(Array, (mat.T if transpose else mat) @ dense)


def _require_lists(name: str, shape: Sequence[int], data: Shape, lists: dict[str, tuple[Array, int]]) -> None:
    if len(shape) != 2 or len(data) != 1 or any(x.shape != (size,) for x, size in lists.values()):
        shapes_text = ", ".join(f"{n} {x.shape}" for n, (x, _) in lists.items())
        raise ShapeError(
            f"{name}: cannot make {tuple(shape)} of data {data}, {shapes_text} (lists that fit together required)"
        )


def _require_exchange(name: str, axes: Sequence[int] | None) -> None:
    if axes is not None and tuple(axes) != (1, 0):
        raise ArgumentError(f"{name}.transpose: cannot permute axes by {tuple(axes)} (None or (1, 0) required)")


def _require(name: str, kind: type, value: object) -> None:
    if not isinstance(value, kind):
        raise ArgumentError(f"{name}: cannot take {type(value).__name__} for a {kind.__name__}")


def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
    """The nonzero elements of a matrix, with their rows and columns.

    nse: the number of elements to make room for, by default their count; required under jit

    Shapes: [R, C]. Types: those of `mat`.
    Errors: ShapeError if it is not a matrix; a TracerError if nse= is missing under jit.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.coo_fromdense(rnp.eye(2)).row
    Array([0, 1], i32[2], cpu:0)
    """
    m = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    if m.ndim != 2:
        raise ShapeError(f"coo_fromdense: cannot make a matrix of {m!r} (two axes required)")
    return COO((m.data, m.indices[:, 0], m.indices[:, 1]), shape=m.shape, rows_sorted=True)


def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """The nonzero elements of a matrix, row by row.

    nse: the number of elements to make room for, by default their count; required under jit

    Shapes: [R, C]. Types: those of `mat`.
    Errors: ShapeError if it is not a matrix; a TracerError if nse= is missing under jit.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.csr_fromdense(rnp.eye(2)).indptr
    Array([0, 1, 2], i32[3], cpu:0)
    """
    m = BCSR.from_bcoo(bcoo_sort_indices(coo_fromdense(mat, nse=nse, index_dtype=index_dtype).to_bcoo()))
    return CSR((m.data, m.indices, m.indptr), shape=m.shape)


def coo_todense(mat: COO) -> Array:
    """The dense matrix.

    Shapes: those of `mat`. Types: those of its data. Errors: ArgumentError if it is not a COO.

    >>> import rune
    >>> rune.sparse.coo_todense(rune.sparse.COO(([5.0], [0], [1]), shape=(1, 2)))
    Array([[0., 5.]], f32[1,2], cpu:0)
    """
    _require("coo_todense", COO, mat)
    return mat.todense()


def csr_todense(mat: CSR) -> Array:
    """The dense matrix.

    Shapes: those of `mat`. Types: those of its data. Errors: ArgumentError if it is not a CSR.

    >>> import rune
    >>> rune.sparse.csr_todense(rune.sparse.CSR(([5.0], [1], [0, 1]), shape=(1, 2)))
    Array([[0., 5.]], f32[1,2], cpu:0)
    """
    _require("csr_todense", CSR, mat)
    return mat.todense()


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a matrix, or of its transpose if `transpose`, with a vector.

    Shapes: mat [R, C], v [C] -> [R]. Types: promoted. Errors: ArgumentError if it is not a COO.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.coo_matvec(rune.sparse.coo_fromdense(rnp.eye(2)), rnp.array([3.0, 4.0]))
    Array([3., 4.], f32[2], cpu:0)
    """
    return _times("coo_matvec", COO, mat, v, transpose)


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a matrix, or of its transpose if `transpose`, with a vector.

    Shapes: mat [R, C], v [C] -> [R]. Types: promoted. Errors: ArgumentError if it is not a CSR.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.csr_matvec(rune.sparse.csr_fromdense(rnp.eye(2)), rnp.array([3.0, 4.0]))
    Array([3., 4.], f32[2], cpu:0)
    """
    return _times("csr_matvec", CSR, mat, v, transpose)


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a matrix, or of its transpose if `transpose`, with a dense matrix.

    Shapes: mat [R, C], B [C, K] -> [R, K]. Types: promoted.
    Errors: ArgumentError if it is not a COO.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.coo_matmat(rune.sparse.coo_fromdense(rnp.eye(2)), rnp.ones((2, 1))).shape
    (2, 1)
    """
    return _times("coo_matmat", COO, mat, B, transpose)


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a matrix, or of its transpose if `transpose`, with a dense matrix.

    Shapes: mat [R, C], B [C, K] -> [R, K]. Types: promoted.
    Errors: ArgumentError if it is not a CSR.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.csr_matmat(rune.sparse.csr_fromdense(rnp.eye(2)), rnp.ones((2, 1))).shape
    (2, 1)
    """
    return _times("csr_matmat", CSR, mat, B, transpose)
