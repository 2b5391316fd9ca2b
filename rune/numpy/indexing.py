"""Reading and writing by computed positions: take, put, and the same along an axis.

Positions out of bounds follow `mode`: "fill" (the default; also "drop") reads NaN, the smallest
signed or largest unsigned integer, or True, and writes nothing; "clip" and "wrap" select another
element. Negative positions count from the end, except in the "clip" of take and put.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune import config, dtypes, ops
from rune.array import Array, as_array
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, AxisError, DtypeError, MissingRule, ShapeError
from rune.numpy.arguments import along, in_dtype, rank, refuse, value
from rune.ops import conventions as c
from rune.ops.family import size_value
from rune.ops.index_dims import IndexDims
from rune.ops.index_values import from_end, modulo, signed
from rune.ops.promote import as_type, broadcast_shape, broadcast_to, unrounded
from rune.ops.subscript import absent, read
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike

_MODES = ("fill", "drop", "clip", "wrap", "promise_in_bounds")


def _mode(name: str, mode: str | None) -> str:
    """Errors: MissingRule for "raise", which no compiled program can honour; ArgumentError."""
    if mode == "raise":
        raise MissingRule(
            f"{name}: cannot use mode='raise' (compiled programs raise nothing)",
            hint="use mode='fill', 'clip' or 'wrap'",
        )
    if mode not in (None, *_MODES):
        raise ArgumentError(f"{name}: cannot use mode={mode!r} (one of {', '.join(_MODES)})")
    if mode is None and config.current().check_bounds:
        return "promise_in_bounds"  # so that the check sees positions outside the array
    return "fill" if mode in (None, "drop") else mode


def _of_primitive(mode: str) -> str:
    """The mode in which positions from `_positions` are used."""
    return "clip" if mode == "wrap" else mode


def _positions(name: str, indices: ArrayLike, size: Size, mode: str) -> Array:
    """Integer positions in 0…size-1, or outside where the mode says fill."""
    indices = _index_array(name, indices)
    if type_of(indices).dtype not in dtypes.INTEGER:
        raise DtypeError(f"{name}: cannot index with {type_of(indices)} (integer dtype required)")
    places = _of_mode(mode)(indices, size)
    return as_array(places, places.dtype) if isinstance(places, np.ndarray) else places


def _index_array(name: str, indices: ArrayLike) -> ArrayLike:
    """Indices as an array; 64-bit NumPy data keep their width until the axis size narrows it."""
    is_wide = isinstance(indices, np.ndarray) and indices.dtype in (dtypes.i64, dtypes.u64)
    return indices if is_wide else value(name, indices)


def _of_mode(mode: str) -> Callable[[Any, Size], Any]:
    """Positions along an axis, as a mode changes them."""
    return {"wrap": modulo, "clip": signed}.get(mode, from_end)


def _vectors(places: ArrayLike) -> Array:
    return ops.reshape(places, shape=(*type_of(places).shape, 1))


@tiered
def take(
    a: Any,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Elements (slices along `axis`) at `indices`; of the flattened array for None.

    Shapes: a [*A, N, *B], indices [*I] -> [*A, *I, *B]. Types: that of `a`.
    Errors: DtypeError for indices that are not integers, AxisError when taking elements
            from an axis of size 0. `unique_indices` and `indices_are_sorted` only allow a faster
            program.

    >>> import rune.numpy as rnp
    >>> rnp.take(rnp.array([10.0, 20.0]), rnp.array([1, -2, 5]))
    Array([20., 10., nan], f32[3], cpu:0)
    """
    refuse("take", out=out)
    kind = _mode("take", mode)
    x = value("take", a)
    if axis is None:
        x, axis = c.reshape(x, -1), 0
    at = c.normalised_axis("take", axis, type_of(x))
    shape = type_of(x).shape
    places = _positions("take", indices, shape[at], kind)
    if shape[at] == 0 and 0 not in type_of(places).shape:
        raise AxisError(f"take: cannot take {type_of(places)} from axis {at} of {type_of(x)}")
    batch = rank(places)
    others = tuple(i for i in range(len(shape) - 1 + batch) if not at <= i < at + batch)
    return ops.gather(
        x,
        _vectors(places),
        absent(x, fill_value),
        dims=IndexDims(others, (at,), (at,)),
        slice_sizes=tuple(1 if i == at else d for i, d in enumerate(shape)),
        mode=_of_primitive(kind),
    )


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """A copy with the elements at the flat positions `ind` replaced by v, repeated as needed.

    mode: what becomes of positions outside the array: without one, negative ones count from the
          end, and those that are still outside are the nearest end. "clip" is NumPy's, where a
          negative position is 0; "wrap" takes them modulo the size, "drop" leaves them out.
    Shapes: a [*A], ind and v any -> [*A]. Types: that of `a`.
    Errors: ArgumentError unless inplace=False; DtypeError for indices that are not integers.

    >>> import rune.numpy as rnp
    >>> rnp.put(rnp.zeros(4), rnp.array([0, -1]), rnp.array([1.0, 2.0]), inplace=False)
    Array([1., 0., 0., 2.], f32[4], cpu:0)
    """
    _refuse_in_place("put", inplace)
    kind = _mode("put", mode)
    beyond_ends = "clip" if mode is None and kind == "fill" else kind
    x = value("put", a)
    values = c.reshape(in_dtype("put", v, type_of(x).dtype), -1)
    flat = c.reshape(x, -1)
    places = c.reshape(_positions("put", ind, type_of(flat).shape[0], kind), -1)
    count, value_count = type_of(places).shape[0], type_of(values).shape[0]
    if count == 0 or value_count == 0:
        return x
    number = ops.iota(shape=(count,), axis=0, dtype=dtypes.i32)
    updates = read(values, c.remainder(number, size_value(value_count, dtypes.i32)))
    out = ops.scatter(
        flat,
        _vectors(places),
        updates,
        dims=IndexDims((), (0,), (0,)),
        slice_sizes=(1,),
        mode=_of_primitive(beyond_ends),
    )
    return c.reshape(out, type_of(x).shape)


# --- along an axis ----------------------------------------------------------------------------


@tiered
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """For every place of `indices`, the element at that position along `axis`.

    wrap_negative_indices: whether a negative position counts from the end; otherwise it is out of
                           bounds.
    Shapes: arr [*A, N, *B], indices [*A, M, *B] -> [*A, M, *B]; other axes broadcast.
    Types:  that of `arr`.
    Errors: ShapeError where the ranks differ; DtypeError for indices that are not integers.

    >>> import rune.numpy as rnp
    >>> rnp.take_along_axis(rnp.array([[1, 2], [3, 4]]), rnp.array([[1], [0]]), axis=1)
    Array([[2],
           [3]], i32[2,1], cpu:0)
    """
    name = "take_along_axis"
    x, vectors, how = _along(name, value(name, arr), indices, axis, mode, wrap_negative_indices)
    return ops.gather(x, vectors, absent(x, fill_value), **how)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """A copy with `values` at the positions `indices` along `axis`; of duplicates the last one
    wins.

    Shapes: arr [*A, N, *B], indices [*A, M, *B] -> arr's; other axes broadcast, as do values.
    Types:  that of `arr`.
    Errors: ArgumentError unless inplace=False; those of take_along_axis.

    >>> import rune.numpy as rnp
    >>> rnp.put_along_axis(rnp.zeros((2, 2)), rnp.array([[1], [0]]), 5.0, axis=1, inplace=False)
    Array([[0., 5.],
           [5., 0.]], f32[2,2], cpu:0)
    """
    _refuse_in_place("put_along_axis", inplace)
    array = value("put_along_axis", arr)
    x, vectors, how = _along("put_along_axis", array, indices, axis, mode)
    updates = as_type(unrounded("put_along_axis", values), type_of(x).dtype, name="put_along_axis")
    updates = broadcast_to("put_along_axis", updates, type_of(vectors).shape[:-1])
    return c.reshape(ops.scatter(x, vectors, updates, **how), type_of(array).shape)


def _along(
    name: str, x: ArrayLike, indices: ArrayLike, axis: int | None, mode: str | None, from_the_end: bool = True
) -> tuple[Array, Array, dict[str, Array]]:
    """The array, index vectors along `axis`, and how a gather or scatter uses them."""
    kind, places = _mode(name, mode), _index_array(name, indices)
    x, at = along(name, x, axis)
    if rank(places) != rank(x):
        index_type = type_of(value(name, indices))
        raise ShapeError(f"{name}: cannot index {type_of(x)} by {index_type} (ranks differ)")
    index_mode = "wrap" if kind == "wrap" else "fill" if from_the_end else "clip"  # clipping counts from the end
    places = _positions(name, places, type_of(x).shape[at], index_mode)
    x, places = _others_broadcast(name, x, places, at)
    others = tuple(i for i in range(rank(x)) if i != at)
    dims = IndexDims((), (at,), (at,), others, others)
    how = {"dims": dims, "slice_sizes": (1,) * rank(x), "mode": _of_primitive(kind)}
    return x, _vectors(places), how


def _others_broadcast(name: str, x: ArrayLike, places: ArrayLike, axis: int) -> tuple[Array, Array]:
    shapes = [type_of(v).shape for v in (x, places)]
    thin = [tuple(1 if i == axis else d for i, d in enumerate(s)) for s in shapes]
    common = broadcast_shape(name, *thin)
    targets = [tuple(s[i] if i == axis else d for i, d in enumerate(common)) for s in shapes]
    return broadcast_to(name, x, targets[0]), broadcast_to(name, places, targets[1])


def _refuse_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ArgumentError(
            f"{name}: cannot write into an array (arrays are immutable)",
            hint=f"{name}(..., inplace=False) returns a changed copy",
        )
