"""The record of a sparse array, and its positions as columns; see rune/sparse/__init__.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod
from typing import Self, TypeAlias, TypeVar

import numpy as np

import rune.numpy as rnp
from rune import dtypes
from rune.array import Array
from rune.core.types import ArrayType
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import shape_of
from rune.typing import ArrayLike, DTypeLike

Operand: TypeAlias = "Sparse | ArrayLike"
Either: TypeAlias = "Sparse | Array"  # of results: it depends on the operands
Parts = Sequence[ArrayLike]  # the arrays that make up a sparse array


class Sparse(ABC):
    """The base class of arrays in all sparse formats: `data`, and the shape of the dense array.

    Shapes: shape; each format has its own shape of data. Types: dtype is that of the data.
    Errors: none: make an array of one of the formats.

    >>> import rune
    >>> isinstance(rune.sparse.eye(2, sparse_format="csr"), rune.sparse.Sparse)
    True
    """

    __slots__ = ("data", "shape")
    __array_priority__ = 2000  # NumPy arrays on the left defer to it

    data: Array
    shape: tuple[int, ...]

    @abstractmethod
    def todense(self) -> Array:
        """The dense array."""

    @property
    @abstractmethod
    def nse(self) -> int:
        """The number of elements that the lists have room for."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the data."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the dense array."""
        return prod(self.shape)

    def dense_type(self) -> ArrayType:
        """The type of the dense array."""
        return self.data.type.update(shape=self.shape)

    def __repr__(self) -> str:
        name = type(self).__name__
        if not hasattr(self.data, "dtype"):  # in a tree of something else than arrays
            return f"{name}(data={self.data!r})"
        extras = "".join(f", {n}={getattr(self, n)}" for n in ("n_batch", "n_dense") if getattr(self, n, 0))
        return f"{name}({dtypes.short(self.data.dtype)}[{','.join(map(str, self.shape))}], nse={self.nse}{extras})"


def sizes_of(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape as integers, each of which may be an array.

    Errors: ShapeError for a negative size.
    """
    return shape_of(name, shape)  # type: ignore[return-value]  # symbolic in eval_shape alone


class Coordinates(Sparse):
    """The record: data, indices, shape, and known properties of the indices."""

    __slots__ = ("indices", "indices_sorted", "unique_indices")

    def __init__(
        self, args: Parts, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ):
        self.data, self.indices = map(rnp.asarray, args)
        self.shape = sizes_of("BCOO", shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        if self.indices.ndim < 2 or self.n_dense < 0 or not self._fits():
            raise ShapeError(
                f"BCOO: cannot make {self.shape} of data {self.data.shape} and indices {self.indices.shape} "
                "([*batch, N, *dense] and [*batch, N, axes] required)"
            )

    def _fits(self) -> bool:
        batch, dense = self.shape[: self.n_batch], self.shape[self.n_batch + self.n_sparse :]
        heads = (self.data.shape[: self.n_batch], self.indices.shape[: self.n_batch])
        are_batched = all(a in (1, b) for head in heads for a, b in zip(head, batch, strict=True))
        return are_batched and self.data.shape[self.n_batch :] == (self.nse, *dense)

    # --- what it is ---------------------------------------------------------------------------

    @property
    def nse(self) -> int:
        """The number of elements in a list: the specified elements."""
        return int(self.indices.shape[-2])

    @property
    def n_batch(self) -> int:
        """The number of leading axes whose indices have a list of elements each."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of axes that positions index."""
        return int(self.indices.shape[-1])

    @property
    def n_dense(self) -> int:
        """The number of last axes, which each element holds in full."""
        return self.ndim - self.n_batch - self.n_sparse

    def tree_flatten(self) -> tuple[tuple[Array, Array], tuple[tuple[int, ...], bool, bool]]:
        """Data and indices; the shape and known properties of the indices."""
        return (self.data, self.indices), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux: tuple[tuple[int, ...], bool, bool], leaves: Sequence[Array]) -> Self:
        """The array with these leaves, without checks."""
        new = object.__new__(cls)
        new.data, new.indices = leaves
        new.shape, new.indices_sorted, new.unique_indices = aux
        return new

    # --- others like it -----------------------------------------------------------------------

    def remade(self, args: Parts, *, shape: Sequence[int], is_sorted: bool = False, is_unique: bool = False) -> Self:
        """Another array of this class."""
        return type(self)(args, shape=shape, indices_sorted=is_sorted, unique_indices=is_unique)

    def astype(self, dtype: DTypeLike) -> Self:
        """The numbers in another dtype."""
        return self.with_data(self.data.astype(dtype))

    def with_data(self, data: Array) -> Self:
        """Other numbers at the same positions."""
        args = (data, self.indices)
        return self.remade(args, shape=self.shape, is_sorted=self.indices_sorted, is_unique=self.unique_indices)


S = TypeVar("S", bound=Coordinates)


def layout(m: Coordinates) -> tuple[int, int]:
    return m.n_batch, m.n_dense


def require_sparse(name: str, *values: object) -> None:
    """Errors: ArgumentError if a value is not a sparse array."""
    for value in values:
        if not isinstance(value, Coordinates):
            raise ArgumentError(
                f"{name}: cannot take {type(value).__name__} for a sparse array",
                hint="rune.sparse.bcoo_fromdense makes one of an array",
            )


def spread(m: S) -> S:
    """The array with a list of elements for each index of the batch."""
    batch = m.shape[: m.n_batch]
    data = rnp.broadcast_to(m.data, (*batch, *m.data.shape[m.n_batch :]))
    return m.remade((data, rnp.broadcast_to(m.indices, (*batch, *m.indices.shape[m.n_batch :]))), shape=m.shape)


def data_of_lists(m: Coordinates) -> Array:
    """The data, with a batch axis of one element only where the positions have one, too."""
    batch = np.broadcast_shapes(m.data.shape[: m.n_batch], m.indices.shape[: m.n_batch])
    return rnp.broadcast_to(m.data, (*batch, *m.data.shape[m.n_batch :]))


def listed(m: S, n_batch: int = 0, n_dense: int = 0) -> S:
    """The array with this many batch and dense axes; other axes become sparse, with longer
    lists.
    """
    m = spread(m)
    outer, inner = m.n_batch - n_batch, m.n_dense - n_dense
    columns = columns_of(m)[n_batch:]
    rank = m.n_batch + 1 + inner  # of [*batch, N, *dense axes that become sparse]
    for axis in range(inner):
        positions = rnp.arange(m.data.shape[m.n_batch + 1 + axis], dtype=m.indices.dtype)
        columns.append(positions.reshape(*(1,) * (m.n_batch + 1 + axis), -1, *(1,) * (inner - 1 - axis)))
    head, sizes = m.data.shape[:n_batch], m.data.shape[:rank]
    count = prod(sizes[n_batch:])
    columns = [
        rnp.broadcast_to(c.reshape(*c.shape, *(1,) * (rank - c.ndim)), sizes).reshape(*head, count) for c in columns
    ]
    indices = rnp.stack(columns, -1) if columns else rnp.zeros((*head, count, 0), m.indices.dtype)
    if not outer and not inner:
        return m
    return m.remade((m.data.reshape(*head, count, *m.data.shape[rank:]), indices), shape=m.shape)


def columns_of(m: Coordinates) -> list[Array]:
    """The positions of elements along batch and sparse axes, which broadcast to [*batch, N]."""
    rank = m.n_batch + 1
    batch = [
        rnp.arange(size, dtype=m.indices.dtype).reshape(*(1,) * k, size, *(1,) * (rank - 1 - k))
        for k, size in enumerate(m.shape[: m.n_batch])
    ]
    return [*batch, *(m.indices[..., k] for k in range(m.n_sparse))]


def flat_positions(m: Coordinates, sizes: tuple[int, ...]) -> Array:
    """The positions along sparse axes of these sizes as one number: [*batch, N]."""
    number = rnp.zeros(m.indices.shape[:-1], m.indices.dtype)
    for k, size in enumerate(sizes):
        number = number * size + m.indices[..., k]
    return number


def is_inside(m: Coordinates) -> Array:
    """Whether the positions of elements are in bounds: bool[*batch, N]."""
    sizes = m.shape[m.n_batch : m.n_batch + m.n_sparse]
    return rnp.all((m.indices >= 0) & (m.indices < rnp.asarray(sizes, m.indices.dtype)), -1)


def per_element(m: Coordinates, values: Array) -> Array:
    """[*batch, N], reshaped to broadcast against the data."""
    return values.reshape(*values.shape, *(1,) * m.n_dense)


def chosen(
    m: S, is_chosen: Array, columns: Sequence[Array], sizes: Sequence[int], data: Array, shape: Sequence[int]
) -> S:
    """The selected elements, at new positions; the others become 0, out of bounds.

    columns, sizes: the positions along each sparse axis, [*batch, N], and the sizes of these axes
    """
    places = [rnp.where(is_chosen, c, size) for c, size in zip(columns, sizes, strict=True)]
    head = data.shape[: data.ndim - m.n_dense]
    indices = rnp.stack(places, -1) if places else rnp.zeros((*head, 0), m.indices.dtype)
    zero = rnp.zeros((), data.dtype)
    return m.remade((rnp.where(per_element(m, is_chosen), data, zero), indices.astype(m.indices.dtype)), shape=shape)
