"""Patterned matrices, triangles and diagonals.

Patterns come from comparing counts, never from data.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.backends import Device
from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.dims import Size
from rune.errors import ShapeError
from rune.numpy.arguments import placed, rank, refuse, require_room, shape_of, static_count, static_int, value
from rune.numpy.shapes import moveaxis
from rune.ops import conventions as c
from rune.ops import statistics as st
from rune.ops.promote import as_type, broadcast_to, constant
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, DTypeLike


def _band(rows: Size, columns: Size, k: int) -> tuple[Array, Array]:
    """Row number plus k, and column number, at every place of a matrix."""
    shape = (rows, columns)
    row, column = (ops.iota(shape=shape, axis=i, dtype=dtypes.i32) for i in (0, 1))
    # Diagonals beyond a corner all give the same mask, and their numbers may not fit in i32.
    lowest, highest = (size if type(size) is int else 2**30 for size in shape)
    k = max(-lowest, min(k, highest))
    return (row if k == 0 else ops.add(row, as_type(k, dtypes.i32))), column


def _matrix_sizes(name: str, rows: ArrayLike, columns: ArrayLike | None) -> Shape:
    return shape_of(name, (rows, rows if columns is None else columns))


def eye(
    N: ArrayLike,
    M: ArrayLike | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    *,
    device: str | Device | None = None,
) -> Array:
    """Ones on diagonal `k` of an N by M matrix, zeros elsewhere.

    Shapes: N, M -> [N, M], M by default N. Types: f32 unless dtype is given.
    Errors: ArgumentError if `N` is not an integer; DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.eye(2)
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    rows, columns = _matrix_sizes("eye", N, M)
    on = ops.eq(*_band(rows, columns, static_int("eye", "a diagonal", k)))
    identity = c.astype(on, dtypes.as_dtype(dtype or dtypes.canonical(dtypes.f64)))
    return placed(identity, device)


def identity(n: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """The identity matrix.

    Shapes: n -> [n, n]. Types: f32 unless dtype is given.
    Errors: ArgumentError if `n` is not an integer; DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.identity(1)
    Array([[1.]], f32[1,1], cpu:0)
    """
    return eye(n, dtype=dtype)


def tri(N: ArrayLike, M: ArrayLike | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Ones at and below diagonal `k`, zeros above.

    Shapes: N, M -> [N, M], M by default N. Types: f32 unless dtype is given.
    Errors: ArgumentError if `N` is not an integer; DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.tri(2, dtype=int)
    Array([[1, 0],
           [1, 1]], i32[2,2], cpu:0)
    """
    rows, columns = _matrix_sizes("tri", N, M)
    below = ops.ge(*_band(rows, columns, static_int("tri", "a diagonal", k)))
    return c.astype(below, dtypes.as_dtype(dtype or dtypes.f32))


def _masked(name: str, m: ArrayLike, k: int, lower: bool) -> Array:
    m = value(name, m)
    shape = type_of(m).shape
    if len(shape) < 2:
        raise ShapeError(f"{name}: cannot take a triangle of {type_of(m)} (rank 2 required)")
    row, column = _band(shape[-2], shape[-1], static_int(name, "a diagonal", k))
    mask = ops.ge(row, column) if lower else ops.le(row, column)
    return ops.select(broadcast_to(name, mask, shape), m, constant(0, m))


@tiered
def tril(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros above diagonal `k` of the last two axes.

    Shapes: m [*B, M, N], unchanged. Types: that of `m`.
    Errors: ArgumentError if an argument is not an array; ShapeError for a rank below 2.

    >>> import rune.numpy as rnp
    >>> rnp.tril(rnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], f32[2,2], cpu:0)
    """
    return _masked("tril", m, k, lower=True)


@tiered
def triu(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros below diagonal `k` of the last two axes.

    Shapes: m [*B, M, N], unchanged. Types: that of `m`.
    Errors: ArgumentError if an argument is not an array; ShapeError for a rank below 2.

    >>> import rune.numpy as rnp
    >>> rnp.triu(rnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    return _masked("triu", m, k, lower=False)


# --- diagonals --------------------------------------------------------------------------------


@tiered
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of two axes, as the last axis of the result; `offset` counts to the right.

    Shapes: a without the two axes, then [K]. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array; ShapeError for rank 0.

    >>> import rune.numpy as rnp
    >>> rnp.diagonal(rnp.arange(4).reshape(2, 2))
    Array([0, 3], i32[2], cpu:0)
    """
    x = value("diagonal", a)
    if rank(x) < 2:
        raise ShapeError(f"diagonal: cannot take a diagonal of {type_of(x)} (rank 2 required)")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    *lead, rows, columns = type_of(x).shape
    k = static_int("diagonal", "an offset", offset)
    first_row, first_column = max(-k, 0), max(k, 0)
    count = max(0, min(rows - first_row, columns - first_column))
    if count == 0:
        return ops.broadcast(constant(0, x), shape=(*lead, 0), axes=())
    zeros, unit_strides = (0,) * len(lead), (1,) * len(lead)
    square = ops.slice_(
        x,
        start=(*zeros, first_row, first_column),
        limit=(*lead, first_row + count, first_column + count),
        stride=(*unit_strides, 1, 1),
    )
    # In a flattened square, neighbours on the diagonal are count + 1 apart.
    flat = ops.reshape(square, shape=(*lead, count * count))
    return ops.slice_(flat, start=(*zeros, 0), limit=(*lead, count * count), stride=(*unit_strides, count + 1))


@tiered
def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Sum of a diagonal. Types: as `sum`.

    Shapes: a without the two axes.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype;
            ShapeError for rank 0.

    >>> import rune.numpy as rnp
    >>> rnp.trace(rnp.eye(3))
    Array(3., f32[], cpu:0)
    """
    refuse("trace", out=out)
    return st.sum(diagonal(a, offset, axis1, axis2), -1, dtype)


@tiered
def diag(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with `v` on diagonal k, or diagonal k of a matrix.

    Shapes: v [N] -> [N + |k|, N + |k|], v [M, N] -> its diagonal [K]. Types: that of `v`.
    Errors: ArgumentError if an argument is not an array; ShapeError for rank 0.

    >>> import rune.numpy as rnp
    >>> rnp.diag(rnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], i32[2,2], cpu:0)
    """
    x = value("diag", v)
    if rank(x) == 2:
        return diagonal(x, k)
    if rank(x) != 1:
        raise ShapeError(f"diag: cannot use {type_of(x)} (rank 1 or 2 required)")
    off = static_int("diag", "a diagonal", k)
    diagonal_entries = ops.pad(x, constant(0, x), low=(max(-off, 0),), high=(max(off, 0),), interior=(0,))
    (size,) = type_of(diagonal_entries).shape
    row, column = (ops.iota(shape=(size, size), axis=i, dtype=dtypes.i32) for i in (0, 1))
    on = ops.eq(row if off == 0 else ops.add(row, constant(off, row)), column)
    rows = ops.broadcast(diagonal_entries, shape=(size, size), axes=(0,))
    return ops.select(on, rows, constant(0, x))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with the flattened `v` on diagonal k.

    Shapes: v of N elements -> [N + |k|, N + |k|]. Types: that of `v`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.diagflat(rnp.array([[1, 2]])).shape
    (2, 2)
    """
    return diag(c.reshape(value("diagflat", v), -1), k)


def _sizes(name: str, n: int, k: int, m: int | None) -> tuple[int, int, int]:
    rows, diagonal = static_count(name, "a size", n), static_int(name, "a diagonal", k)
    columns = rows if m is None else static_count(name, "a size", m)
    require_room(name, rows, columns)
    # Diagonals beyond the matrix are all the same, and NumPy rejects offsets that do not
    # fit in 64 bits.
    return rows, min(max(diagonal, -rows), columns), columns


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the entries at and below diagonal k.

    Shapes: n, m -> rows [K], columns [K]. Types: i32.
    Errors: ArgumentError for sizes that are not integers.

    >>> import rune.numpy as rnp
    >>> rnp.tril_indices(2)
    (Array([0, 1, 1], i32[3], cpu:0), Array([0, 0, 1], i32[3], cpu:0))
    """
    rows, columns = np.tril_indices(*_sizes("tril_indices", n, k, m))
    return value("tril_indices", rows), value("tril_indices", columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the entries at and above diagonal k.

    Shapes: n, m -> rows [K], columns [K]. Types: i32.
    Errors: ArgumentError for sizes that are not integers.

    >>> import rune.numpy as rnp
    >>> rnp.triu_indices(2)
    (Array([0, 0, 1], i32[3], cpu:0), Array([0, 1, 1], i32[3], cpu:0))
    """
    rows, columns = np.triu_indices(*_sizes("triu_indices", n, k, m))
    return value("triu_indices", rows), value("triu_indices", columns)
