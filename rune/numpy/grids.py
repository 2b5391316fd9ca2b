"""Positions: in grids, on diagonals and in triangles, flat and by axis; and the index tricks.

`mgrid`, `ogrid`, `r_`, `c_`, `s_` and `index_exp` are objects to be indexed, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.dims import Size, product
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.numpy.arguments import (
    in_dtype,
    rank,
    require_room,
    shape_of,
    static_count,
    static_int,
    static_ints,
    static_size,
    value,
)
from rune.numpy.creation import arange, array, meshgrid
from rune.numpy.joining import concatenate
from rune.numpy.logic import nonzero
from rune.numpy.matrices import tril_indices, triu_indices
from rune.numpy.sequences import linspace
from rune.ops import conventions as c
from rune.ops.family import size_value
from rune.ops.index_values import from_end
from rune.ops.operators import Operators
from rune.ops.promote import broadcast_to, constant
from rune.ops.scalars import holds
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, DTypeLike, Nested


@overload
def indices(dimensions: object, dtype: DTypeLike | None = None, sparse: Literal[False] = False) -> Array: ...
@overload
def indices(dimensions: object, dtype: DTypeLike | None = None, *, sparse: Literal[True]) -> tuple[Array, ...]: ...
@overload
def indices(dimensions: object, dtype: DTypeLike | None = None, sparse: bool = False) -> Any: ...
def indices(dimensions: object, dtype: DTypeLike | None = None, sparse: bool = False) -> Array | tuple[Array, ...]:
    """The position along each axis of every element of an array of a shape.

    Shapes: (N_0, N_1, ...) -> [axes, N_0, N_1, ...]; with `sparse` [1, ..., N_i, ..., 1] each.
    Types:  i32 unless dtype is given.
    Errors: DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.indices((2, 2))[1]
    Array([[0, 1],
           [0, 1]], i32[2,2], cpu:0)
    """
    sizes = shape_of("indices", dimensions)
    kind = dtypes.canonical(dtypes.i64) if dtype is None else dtypes.as_dtype(dtype)
    n = len(sizes)
    thin = [
        ops.iota(shape=tuple(d if i == a else 1 for i, d in enumerate(sizes)), axis=a, dtype=kind) for a in range(n)
    ]
    if sparse:
        return tuple(thin)
    if not thin:
        return ops.iota(shape=(0,), axis=0, dtype=kind)
    wide = [c.expand_dims(broadcast_to("indices", x, sizes), 0) for x in thin]
    return wide[0] if n == 1 else ops.concatenate(*wide, axis=0)


def ix_(*args: Nested) -> tuple[Array, ...]:
    """Vectors as index arrays of a grid: x[ix_(rows, columns)] is the block they select.

    Shapes: [N_0], [N_1], ... -> [N_0, 1, ...], [1, N_1, ...], ...; a bool vector stands for its
            true positions.
    Types:  each its own; i32 for bools and for no elements, i64 under x64.
    Errors: ShapeError unless every argument has rank 1.

    >>> import rune.numpy as rnp
    >>> [i.shape for i in rnp.ix_(rnp.arange(2), rnp.arange(3))]
    [(2, 1), (1, 3)]
    """
    open_mesh = []
    for axis, arg in enumerate(args):
        x = array(arg) if isinstance(arg, list | tuple) else value("ix_", arg)
        if rank(x) != 1:
            raise ShapeError(f"ix_: cannot use {type_of(x)} (rank 1 required)")
        x = nonzero(x)[0] if type_of(x).dtype == dtypes.bool_ else x
        size = type_of(x).shape[0]
        positions = x if size != 0 else c.astype(x, dtypes.canonical(dtypes.i64))
        indices = c.reshape(positions, tuple(size if i == axis else 1 for i in range(len(args))))
        open_mesh.append(c.distinct(indices, arg))
    return tuple(open_mesh)


# --- diagonals and triangles ------------------------------------------------------------------


def diag_indices(n: Size, ndim: int = 2) -> tuple[Array, ...]:
    """The positions of the diagonal of an array with `ndim` axes of size n.

    Shapes: n -> `ndim` vectors [n]. Types: i32.
    Errors: ArgumentError for sizes that are not integers.

    >>> import rune.numpy as rnp
    >>> rnp.diag_indices(2)
    (Array([0, 1], i32[2], cpu:0), Array([0, 1], i32[2], cpu:0))
    """
    n = static_size("diag_indices", "a size", n)
    if n < 0 or ndim < 0:
        raise ArgumentError(f"diag_indices: cannot use n={n} and ndim={ndim} (one is negative)")
    return (arange(n),) * static_int("diag_indices", "a number of axes", ndim)


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """`diag_indices` for an array.

    Shapes: arr [N, N, …] -> for each axis [N]. Types: i32.
    Errors: ShapeError unless all axes have one size.

    >>> import rune.numpy as rnp
    >>> len(rnp.diag_indices_from(rnp.zeros((2, 2, 2))))
    3
    """
    arr_type = type_of(value("diag_indices_from", arr))
    if arr_type.ndim < 2 or any(d != arr_type.shape[0] for d in arr_type.shape):
        raise ShapeError(f"diag_indices_from: cannot take the diagonal of {arr_type} (2 or more equal sizes)")
    return diag_indices(arr_type.shape[0], arr_type.ndim)


def _of_matrix(name: str, arr: ArrayLike) -> tuple[int, int]:
    arr_type = type_of(value(name, arr))
    if arr_type.ndim != 2:
        raise ShapeError(f"{name}: cannot take a triangle of {arr_type} (rank 2 required)")
    rows, columns = (static_int(name, "a size", d) for d in arr_type.shape)
    return rows, columns


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for a matrix.

    Shapes: arr [N, M] -> rows [K], columns [K]. Types: i32.
    Errors: ArgumentError if an argument is not an array; ShapeError for any other rank.

    >>> import rune.numpy as rnp
    >>> len(rnp.tril_indices_from(rnp.zeros((3, 3)))[0])
    6
    """
    rows, columns = _of_matrix("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for a matrix.

    Shapes: arr [N, M] -> rows [K], columns [K]. Types: i32.
    Errors: ArgumentError if an argument is not an array; ShapeError for any other rank.

    >>> import rune.numpy as rnp
    >>> len(rnp.triu_indices_from(rnp.zeros((3, 3)), 1)[0])
    3
    """
    rows, columns = _of_matrix("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def mask_indices(n: int, mask_func: Callable[..., Any], k: object = 0, *, size: int | None = None) -> tuple[Array, ...]:
    """The positions that mask_func(ones((n, n)), k) leaves nonzero.

    Shapes: n -> rows [K], columns [K]; K is `size` if given, padded with 0. Types: i32.
    Errors: ArgumentError if `n` is not an integer.

    >>> import rune.numpy as rnp
    >>> rnp.mask_indices(2, rnp.triu)[1]
    Array([0, 1, 1], i32[3], cpu:0)
    """
    count = static_count("mask_indices", "a size", n)
    require_room("mask_indices", count, count)
    square = ops.broadcast(np.ones((), np.int32), shape=(count, count), axes=())
    return nonzero(mask_func(square, k), size=size)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A copy with `val` on the diagonal, repeated as needed; `wrap` continues below a tall matrix.

    Shapes: a [M, N] or [N, N, …], val any -> that of `a`. Types: that of `a`.
    Errors: ArgumentError unless inplace=False; ShapeError for a rank below 2 or for unequal sizes
            above.

    >>> import rune.numpy as rnp
    >>> rnp.fill_diagonal(rnp.zeros((2, 2)), 5.0, inplace=False)
    Array([[5., 0.],
           [0., 5.]], f32[2,2], cpu:0)
    """
    if inplace:
        raise ArgumentError(
            "fill_diagonal: cannot write into an array (arrays are immutable)",
            hint="fill_diagonal(..., inplace=False) returns a changed copy",
        )
    x = value("fill_diagonal", a)
    shape = static_ints("fill_diagonal", "a size", type_of(x).shape)
    if len(shape) < 2 or (len(shape) > 2 and any(d != shape[0] for d in shape)):
        raise ShapeError(f"fill_diagonal: cannot fill {type_of(x)} (a matrix, or equal sizes)")
    step = 1 + sum(int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape) - 1))
    total = int(np.prod(shape, dtype=np.int64))
    end = total if wrap or len(shape) > 2 else min(total, shape[1] * shape[1])
    places = np.arange(0, end, step)
    filling = array(val) if isinstance(val, list | tuple) else val
    values = c.reshape(in_dtype("fill_diagonal", filling, type_of(x).dtype), -1)
    if not len(places) or 0 in type_of(values).shape:
        return x
    entries = values[np.arange(len(places)) % type_of(values).shape[0]]
    return c.reshape(c.reshape(x, -1).at[places].set(entries, unique_indices=True), shape)


# --- flat positions ---------------------------------------------------------------------------


@tiered
def unravel_index(indices: ArrayLike, shape: int | Shape, order: str = "C") -> tuple[Array, ...]:
    """The position along each axis of a flat position; clipped to the array.

    order:  "C" counts along the last axis first, "F" along the first one.
    Shapes: any, unchanged by each result.
    Types:  that of `indices`, or i32 for a small one that cannot hold a size of the shape.
    Errors: ArgumentError if an argument is not an array or the order is unknown; DtypeError for
            anything but integers.

    >>> import rune.numpy as rnp
    >>> rnp.unravel_index(rnp.array([5, -1]), (2, 3))
    (Array([1, 1], i32[2], cpu:0), Array([2, 2], i32[2], cpu:0))
    """
    x = _integers("unravel_index", indices)
    sizes = shape_of("unravel_index", shape)
    if order not in ("C", "F"):
        raise ArgumentError(f'unravel_index: cannot use order={order!r} ("C" or "F")')
    elements, kind = product(sizes), _dtype_of_positions(value("unravel_index", indices), sizes)
    x = from_end(x, elements)
    dtype = type_of(x).dtype
    total = size_value(elements, dtype)
    x = c.clip(x, 0, ops.sub(total, constant(1, total)))
    coordinates: list[Array] = []
    for size in sizes if order == "F" else reversed(sizes):
        count = size_value(size, dtype)
        coordinates.append(ops.cast(c.remainder(x, count), kind))
        x = c.floor_divide(x, count)
    return tuple(coordinates if order == "F" else reversed(coordinates))


def _dtype_of_positions(indices: Array, sizes: Shape) -> np.dtype:
    """That of the indices, if it can count the sizes; i32 for a small one that cannot."""
    dtype = type_of(indices).dtype
    is_enough = dtype.itemsize >= 4 or all(isinstance(d, int) and holds(dtype, d) for d in sizes)
    return dtype if is_enough else dtypes.i32


@tiered
def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: object,
    mode: str = "clip",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The flat position of the positions along each axis.

    Shapes: positions broadcast together. Types: integers, promoted together, or in `dtype`.
    mode:   "clip" (the default, since compiled programs cannot raise) or "wrap", or one for each
            axis; "raise" is for concrete positions. order: "C" or "F".
    Errors: ArgumentError for an unknown mode, or for a position out of bounds with "raise".

    >>> import rune.numpy as rnp
    >>> rnp.ravel_multi_index((rnp.array([1, 0]), rnp.array([2, 1])), (2, 3))
    Array([5, 1], i32[2], cpu:0)
    """
    sizes = shape_of("ravel_multi_index", dims)
    parts = [_integers("ravel_multi_index", x) for x in multi_index]
    if dtype is not None:
        parts = [c.astype(x, dtypes.as_dtype(dtype)) for x in parts]
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    if len(parts) != len(sizes) or len(modes) != len(sizes) or order not in ("C", "F"):
        raise ArgumentError(
            f"ravel_multi_index: cannot match {len(parts)} positions and {len(modes)} modes to "
            f"{len(sizes)} axes (order {order!r})"
        )
    pairs = [_bounded(x, d, m) for x, d, m in zip(parts, sizes, modes, strict=True)]
    position: Any = 0
    steps = list(zip(pairs, sizes, strict=True))
    for x, size in steps if order == "C" else reversed(steps):
        position = position * size_value(size, type_of(x).dtype) + x
    return position if steps else array(0)


def _bounded(x: ArrayLike, size: Size, mode: str) -> ArrayLike:
    count = size_value(size, type_of(x).dtype)
    if mode == "wrap":
        return c.remainder(x, count)
    if mode == "raise":
        if bool(np.any((np.asarray(x) < 0) | (np.asarray(x) >= np.asarray(count)))):
            raise ArgumentError(f"ravel_multi_index: cannot place {x} in an axis of size {size}")
        return x
    if mode != "clip":
        raise ArgumentError(f"ravel_multi_index: cannot use mode={mode!r} (clip, wrap or raise)")
    return c.clip(x, 0, ops.sub(count, constant(1, count)))


def _integers(name: str, x: ArrayLike) -> Array:
    integers = value(name, x)
    if type_of(integers).dtype not in dtypes.INTEGER:
        raise DtypeError(f"{name}: cannot use {type_of(integers)} as positions (integers required)")
    return c.astype(integers, dtypes.i32) if type_of(integers).dtype.itemsize < 4 else integers


# --- objects to be indexed --------------------------------------------------------------------


def _counted(name: str, part: object) -> Array:
    """The values of a slice: start:stop:step, or start:stop:count with an imaginary count."""
    if not isinstance(part, slice):
        raise ArgumentError(f"{name}: cannot use {part!r} (a slice start:stop:step required)")
    start = 0 if part.start is None else part.start
    if part.stop is None:
        raise ArgumentError(f"{name}: cannot count without an end ({part})")
    if isinstance(part.step, complex):
        return linspace(start, part.stop, int(abs(part.step)))
    return arange(start, part.stop, 1 if part.step is None else part.step)


class _Grid:
    """mgrid (dense) and ogrid (sparse): coordinates of the grid spanned by slices.

    Shapes: one slice -> [N]; K in a tuple -> dense [K, N1, …, NK], sparse K of [1, Nk, 1].
    Types:  i32 for integers, f32 for floats and numbers of points.
    Errors: ArgumentError if an argument is not a slice start:stop:step.

    >>> import rune.numpy as rnp
    >>> rnp.mgrid[0:2, 0:3].shape, [x.shape for x in rnp.ogrid[0:2, 0:3]]
    ((2, 2, 3), [(2, 1), (1, 3)])
    """

    def __init__(self, name: str, *, sparse: bool):
        self.name, self.sparse = name, sparse

    def __repr__(self) -> str:
        return f"rune.numpy.{self.name}"

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, list | tuple):
            return _counted(self.name, key)
        vectors = c.same_dtype(self.name, *(_counted(self.name, k) for k in key))
        grids = meshgrid(*vectors, indexing="ij", sparse=self.sparse)
        if self.sparse:
            return tuple(grids)
        return ops.concatenate(*(c.expand_dims(x, 0) for x in grids), axis=0)


class _Joined:
    """r_ and c_: arrays, numbers and slices joined along an axis.

    A leading string is NumPy's directive: "axis", "axis,rank" or "axis,rank,place of the new axes".
    Shapes: rows [N] and numbers -> r_ [total length], c_ [N, number of parts]. Types: promoted.
    Errors: ArgumentError for any other string; ShapeError if the parts do not match.

    >>> import rune.numpy as rnp
    >>> rnp.r_[1.0, 2:4], rnp.c_[rnp.zeros(1), rnp.ones(1)].shape
    (Array([1., 2., 3.], f32*[3], cpu:0), (1, 2))
    """

    def __init__(self, name: str, axis: int, least: int, start: int):
        self.name, self.directive = name, (axis, least, start)

    def __repr__(self) -> str:
        return f"rune.numpy.{self.name}"

    def __getitem__(self, key: Any) -> Array:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, least, start = self.directive
        if items and isinstance(items[0], str) and items[0] in ("r", "c"):
            row = self[tuple(items[1:])]
            return c.reshape(row, (1, -1) if items[0] == "r" else (-1, 1)) if rank(row) == 1 else row
        if items and isinstance(items[0], str):
            axis, least, start = self._directive(items.pop(0))
        return concatenate([self._part(x, least, start) for x in items], axis)

    def _directive(self, text: str) -> tuple[int, int, int]:
        try:
            numbers = [int(part) for part in text.split(",")]
        except ValueError:
            why = "'axis,rank,place' required"
            raise ArgumentError(f"{self.name}: cannot follow {text!r} ({why})") from None
        return tuple((*numbers, *(0, 1, -1)[len(numbers) :])[:3])  # type: ignore[return-value]

    def _part(self, item: ArrayLike, least: int, start: int) -> Array:
        if isinstance(item, slice):
            part = _counted(self.name, item)
        else:
            part = array(item) if not isinstance(item, Operators) else item
        missing = least - rank(part)
        if missing <= 0:
            return part
        first = min(max(start if start >= 0 else start + missing + 1, 0), missing)
        shape = ((1,) * first, type_of(part).shape, (1,) * (missing - first))
        return c.reshape(part, sum(shape, ()))


class _Index:
    """s_ and index_exp: the index itself, to be stored and used later. Errors: none.

    >>> import rune.numpy as rnp
    >>> rnp.s_[1:], rnp.index_exp[0], rnp.arange(3)[rnp.s_[1:]].shape
    (slice(1, None, None), (0,), (2,))
    """

    def __init__(self, name: str, *, tuples: bool):
        self.name, self.tuples = name, tuples

    def __repr__(self) -> str:
        return f"rune.numpy.{self.name}"

    def __getitem__(self, key: Any) -> Any:
        return (key,) if self.tuples and not isinstance(key, tuple) else key


mgrid, ogrid = _Grid("mgrid", sparse=False), _Grid("ogrid", sparse=True)
r_, c_ = _Joined("r_", 0, 1, -1), _Joined("c_", -1, 2, 0)
s_, index_exp = _Index("s_", tuples=False), _Index("index_exp", tuples=True)

__all__ = ["c_", "diag_indices", "diag_indices_from", "fill_diagonal", "index_exp", "indices", "ix_"]
__all__ += ["mask_indices", "mgrid", "ogrid", "r_", "ravel_multi_index", "s_", "tril_indices_from"]
__all__ += ["triu_indices_from", "unravel_index"]
