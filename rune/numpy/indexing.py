"""Reading by computed positions: take, take_along_axis, diagonals.

Positions out of bounds follow `mode`: "fill" (the default: NaN, the smallest signed, the largest
unsigned integer, True), "clip" or "wrap"; negative positions count from the end, except in "clip".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.numpy.arguments import rank, refuse, static_int, value
from rune.numpy.shapes import moveaxis
from rune.numpy.types import iinfo
from rune.ops import conventions as c
from rune.ops import statistics as st
from rune.ops.family import size_value
from rune.ops.indexing import IndexDims
from rune.ops.promote import as_type, broadcast_shape, broadcast_to, constant

_MODES = ("fill", "clip", "wrap", "promise_in_bounds")


def _mode(name: str, mode: str | None) -> str:
    """Errors: ArgumentError for "raise", which no compiled program can honour, and others."""
    if mode is None:
        return "fill"
    if mode not in _MODES:
        raise ArgumentError(f"{name}: cannot use mode={mode!r} (one of {', '.join(_MODES)})")
    return mode


def _fill(x: Any, fill_value: Any) -> Any:
    """What a position out of bounds reads."""
    found = type_of(x).dtype
    if fill_value is not None:
        return as_type(fill_value, found)
    if found == dtypes.bool_:
        return np.asarray(True)
    if found in dtypes.INTEGER:
        limits = iinfo(found)
        return as_type(limits.min if found in dtypes.SIGNED else limits.max, found)
    return constant(np.nan, x)


def _positions(name: str, indices: Any, size: Size, mode: str) -> Any:
    """Integer positions in 0…size-1, or outside where the mode says fill."""
    indices = value(name, indices)
    found = type_of(indices).dtype
    if found not in dtypes.INTEGER:
        raise DtypeError(f"{name}: cannot index with {type_of(indices)} (integer dtype required)")
    wide = found in (dtypes.i64, dtypes.u64, dtypes.u32)
    indices = c.astype(indices, dtypes.i64 if wide else dtypes.i32)
    count = size_value(size, type_of(indices).dtype)
    if mode == "wrap":
        return c.remainder(indices, count)
    if mode == "clip":
        return indices
    return ops.select(ops.lt(indices, constant(0, indices)), ops.add(indices, count), indices)


def take(
    a: Any, indices: Any, axis: int | None = None, out: None = None, mode: str | None = None,
    unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: Any = None,
) -> Any:  # fmt: skip
    """Elements (slices along `axis`) at `indices`; of the flattened array for None.

    Shapes: a [*A, N, *B], indices [*I] -> [*A, *I, *B].
    Errors: DtypeError for indices that are no integers. The two promises about the indices only
            allow a faster program; they are not needed.

    >>> import rune.numpy as rnp
    >>> rnp.take(rnp.array([10.0, 20.0]), rnp.array([1, -2, 5]))
    Array([20., 10., nan], f32[3], cpu:0)
    """
    refuse("take", out=out)
    kind = _mode("take", mode)
    x = value("take", a)
    x, at = (c.reshape(x, -1), 0) if axis is None else (x, c.normalised_axis("take", axis, rank(x)))
    shape = type_of(x).shape
    places = _positions("take", indices, shape[at], kind)
    batch = rank(places)
    others = tuple(i for i in range(len(shape) - 1 + batch) if not at <= i < at + batch)
    return ops.gather(
        x, ops.reshape(places, shape=(*type_of(places).shape, 1)), _fill(x, fill_value),
        dims=IndexDims(others, (at,), (at,)),
        slice_sizes=tuple(1 if i == at else d for i, d in enumerate(shape)),
        mode="fill" if kind == "fill" else "clip",
    )  # fmt: skip


def take_along_axis(
    arr: Any, indices: Any, axis: int | None = -1, mode: str | None = None, fill_value: Any = None
) -> Any:
    """For every place of `indices`, the element at that position along `axis`.

    Shapes: arr [*A, N, *B], indices [*A, M, *B] -> [*A, M, *B]; other axes broadcast.

    >>> import rune.numpy as rnp
    >>> rnp.take_along_axis(rnp.array([[1, 2], [3, 4]]), rnp.array([[1], [0]]), axis=1)
    Array([[2],
           [3]], i32[2,1], cpu:0)
    """
    kind = _mode("take_along_axis", mode)
    x, places = value("take_along_axis", arr), value("take_along_axis", indices)
    if axis is None:
        x, axis = c.reshape(x, -1), 0
    at = c.normalised_axis("take_along_axis", axis, rank(x))
    if rank(places) != rank(x):
        raise ShapeError(
            f"take_along_axis: cannot index {type_of(x)} by {type_of(places)} (ranks differ)"
        )
    places = _positions("take_along_axis", places, type_of(x).shape[at], kind)
    x, places = _others_broadcast(x, places, at)
    others = tuple(i for i in range(rank(x)) if i != at)
    return ops.gather(
        x, ops.reshape(places, shape=(*type_of(places).shape, 1)), _fill(x, fill_value),
        dims=IndexDims((), (at,), (at,), others, others), slice_sizes=(1,) * rank(x),
        mode="fill" if kind == "fill" else "clip",
    )  # fmt: skip


def _others_broadcast(x: Any, places: Any, axis: int) -> tuple[Any, Any]:
    shapes = [type_of(v).shape for v in (x, places)]
    thin = [tuple(1 if i == axis else d for i, d in enumerate(s)) for s in shapes]
    common = broadcast_shape("take_along_axis", *thin)
    return tuple(
        broadcast_to(
            "take_along_axis", v, tuple(s[i] if i == axis else d for i, d in enumerate(common))
        )
        for v, s in zip((x, places), shapes, strict=True)
    )  # type: ignore[return-value]


# --- diagonals --------------------------------------------------------------------------------


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal of two axes, as the last axis of the result; `offset` counts to the right.

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
    top, left = max(-k, 0), max(k, 0)
    count = max(0, min(rows - top, columns - left))
    if count == 0:
        return ops.broadcast(constant(0, x), shape=(*lead, 0), axes=())
    zeros, ones = (0,) * len(lead), (1,) * len(lead)
    square = ops.slice_(
        x, start=(*zeros, top, left), limit=(*lead, top + count, left + count), stride=(*ones, 1, 1)
    )
    # In a flattened square, neighbours on the diagonal are count + 1 apart.
    flat = ops.reshape(square, shape=(*lead, count * count))
    return ops.slice_(
        flat, start=(*zeros, 0), limit=(*lead, count * count), stride=(*ones, count + 1)
    )


def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
) -> Any:
    """Sum of a diagonal. Types: as `sum`.

    >>> import rune.numpy as rnp
    >>> rnp.trace(rnp.eye(3))
    Array(3., f32[], cpu:0)
    """
    refuse("trace", out=out)
    return st.sum(diagonal(a, offset, axis1, axis2), -1, dtype)


def diag(v: Any, k: int = 0) -> Any:
    """A matrix with `v` on diagonal k, or diagonal k of a matrix.

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
    padded = ops.pad(x, constant(0, x), low=(max(-off, 0),), high=(max(off, 0),), interior=(0,))
    (size,) = type_of(padded).shape
    row, column = (ops.iota(shape=(size, size), axis=i, dtype=dtypes.i32) for i in (0, 1))
    on = ops.eq(row if off == 0 else ops.add(row, constant(off, row)), column)
    rows = ops.broadcast(padded, shape=(size, size), axes=(0,))
    return ops.select(on, rows, constant(0, x))


def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with the flattened `v` on diagonal k.

    >>> import rune.numpy as rnp
    >>> rnp.diagflat(rnp.array([[1, 2]])).shape
    (2, 2)
    """
    return diag(c.reshape(value("diagflat", v), -1), k)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Rows and columns of the entries at and below diagonal k.

    >>> import rune.numpy as rnp
    >>> rnp.tril_indices(2)
    (Array([0, 1, 1], i32[3], cpu:0), Array([0, 0, 1], i32[3], cpu:0))
    """
    rows, columns = np.tril_indices(n, k, m)
    return value("tril_indices", rows), value("tril_indices", columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Rows and columns of the entries at and above diagonal k.

    >>> import rune.numpy as rnp
    >>> rnp.triu_indices(2)
    (Array([0, 0, 1], i32[3], cpu:0), Array([0, 1, 1], i32[3], cpu:0))
    """
    rows, columns = np.triu_indices(n, k, m)
    return value("triu_indices", rows), value("triu_indices", columns)
