"""Removing, inserting and choosing elements: delete, insert, resize, choose, compress, block.

Positions must be known while tracing, since the shape of the result depends on them: they are
Python integers, slices or concrete arrays.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import Tracer, type_of
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, AxisError, ConcretizationTypeError, DtypeError, ShapeError
from rune.numpy.arguments import (
    along,
    in_dtype,
    known,
    known_nonzero,
    listed,
    rank,
    refuse,
    shape_of,
    static_int,
    value,
)
from rune.numpy.creation import array, ones
from rune.numpy.indexing import take
from rune.numpy.joining import SLICES, concatenate
from rune.numpy.positions import nonzero
from rune.ops import conventions as c
from rune.ops import ordering as o
from rune.ops.family import position_dtype, size_value
from rune.ops.index_values import modulo, signed
from rune.ops.movement import move_axis, part
from rune.ops.operators import Operators
from rune.ops.promote import broadcast_to, broadcast_together, constant
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, Axis, Nested


def _along(name: str, x: ArrayLike, axis: int | None) -> tuple[Any, int, int]:
    """The array (flattened for None), the axis and its size. Errors: for a symbolic size."""
    x, at = along(name, x, axis)
    size = type_of(x).shape[at]
    if not isinstance(size, int):
        raise ArgumentError(f"{name}: cannot use an axis of symbolic size {size}")
    return x, at, size


def _places(name: str, where: object, size: int, end: int) -> np.ndarray:
    """Positions 0..end-1 from an integer, a slice, a list, a mask or a concrete array."""
    if isinstance(where, slice):
        return np.arange(size)[where]
    if isinstance(where, Tracer):
        raise ConcretizationTypeError(
            f"{name}: cannot use traced positions {type_of(where)} (the result's shape would depend on them)"
        )
    places = np.asarray(where)
    if places.dtype == bool:
        if places.shape != (size,):
            raise ShapeError(f"{name}: cannot use a mask of shape {places.shape} (axis of {size})")
        return np.flatnonzero(places)
    if places.size == 0:
        return np.zeros(0, np.int64)
    if places.dtype.kind not in "iu":
        raise DtypeError(f"{name}: cannot use positions of dtype {places.dtype} (integers required)")
    if np.any((places < -size) | (places >= end)):
        raise AxisError(f"{name}: cannot find position {where} (an axis of size {size})")
    # In 64 bits: the size may not fit into the dtype of the positions.
    places = places.astype(np.int64)
    return np.where(places < 0, places + size, places)


def delete(arr: ArrayLike, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """`arr` without the slices at the positions `obj`; flattened first for axis None.

    Shapes: arr [*A, N, *B] -> [*A, N - K, *B] without K positions. Types: that of `arr`.
    obj:    an integer, a slice, a list, a mask or a concrete array.
    assume_unique_indices: promise that no position occurs twice, so that obj may be traced;
            positions out of bounds are then ignored.
    Errors: AxisError for a position out of bounds; ConcretizationTypeError for traced positions.

    >>> import rune.numpy as rnp
    >>> rnp.delete(rnp.arange(5), [1, -1])
    Array([0, 2, 3], i32[3], cpu:0)
    """
    x, at, size = _along("delete", value("delete", arr), axis)
    if assume_unique_indices and isinstance(obj, Operators) and type_of(obj).dtype != dtypes.bool_:
        remains = ones(size, dtypes.bool_).at[c.reshape(obj, -1)].set(False)
        return take(x, nonzero(remains, size=size - obj.size)[0], at)
    deleted_places = np.unique(_places("delete", obj, size, size))
    if len(deleted_places) > SLICES:
        mask = np.ones(size, np.bool_)
        mask[deleted_places] = False
        return take(x, np.flatnonzero(mask).astype(position_dtype(size)), at)
    bounds = [-1, *deleted_places.tolist(), size]
    parts = [part(x, at, a + 1, b) for a, b in pairwise(bounds) if b > a + 1]
    return ops.concatenate(*parts, axis=at) if parts else part(x, at, 0, 0)


def insert(arr: ArrayLike, obj: Any, values: Nested, axis: int | None = None) -> Array:
    """`arr` with values inserted before the positions `obj`; flattened first for axis None.

    obj:    an integer, a slice, a list, a mask or a concrete array; the axis size is its end.
    Shapes: values broadcast to the inserted slices. Types: that of `arr`.
    Errors: AxisError for a position out of bounds; ConcretizationTypeError for traced positions.

    >>> import rune.numpy as rnp
    >>> rnp.insert(rnp.arange(3), [0, 3], 9)
    Array([9, 0, 1, 2, 9], i32[5], cpu:0)
    """
    x, at, size = _along("insert", value("insert", arr), axis)
    places = _places("insert", obj, size, size + 1)
    new_values = array(values) if isinstance(values, list | tuple) else values
    new_values = in_dtype("insert", new_values, type_of(x).dtype)
    single = places.ndim == 0
    places = places.reshape(-1)
    if len(places) == 1:
        new = _one_place(new_values, x, at, single)
        places = np.repeat(places, static_int("insert", "a size", type_of(new).shape[at]))
    else:
        new = broadcast_to("insert", new_values, _with_size(type_of(x).shape, at, len(places)))
    if len(places) and (places == places[0]).all():
        place = int(places[0])
        sides = part(x, at, 0, place), part(x, at, place, size)
        return ops.concatenate(sides[0], c.astype(new, type_of(x).dtype), sides[1], axis=at)
    # Old slice i comes after all new slices whose position is i or less.
    order = np.argsort(np.concatenate([places, np.arange(size)]), kind="stable")
    order = order.astype(position_dtype(len(order)))
    return take(concatenate([new, x], at), order, at) if len(order) else x.copy()


def _one_place(values: ArrayLike, x: ArrayLike, at: int, single: bool) -> Any:
    """All values go to one position; for an integer, as in NumPy, along their first axis."""
    if rank(values) == 0:
        values = c.expand_dims(values, tuple(range(rank(x))))
    elif single and rank(values) <= rank(x):
        full_rank = c.reshape(values, (*(1,) * (rank(x) - rank(values)), *type_of(values).shape))
        values = move_axis(full_rank, 0, at)
    full_rank = c.reshape(values, (*(1,) * (rank(x) - rank(values)), *type_of(values).shape))
    return broadcast_to("insert", full_rank, _with_size(type_of(x).shape, at, type_of(full_rank).shape[at]))


def _with_size(shape: tuple, axis: int, size: Size) -> tuple:
    return (*shape[:axis], size, *shape[axis + 1 :])


@tiered
def resize(a: ArrayLike, new_shape: object) -> Array:
    """The elements in another shape of any size, repeated from the start or cut off.

    Shapes: any -> new_shape. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.resize(rnp.arange(3), (2, 2))
    Array([[0, 1],
           [2, 0]], i32[2,2], cpu:0)
    """
    x, shape = c.reshape(value("resize", a), -1), shape_of("resize", new_shape)
    total = 1
    for size in shape:
        total = total * size
    count = type_of(x).shape[0]
    if count <= 0 or total <= 0:
        return ops.broadcast(constant(0, x), shape=shape, axes=())
    if isinstance(total, int) and isinstance(count, int) and total <= SLICES * count:
        copies, remainder = divmod(total, count)
        parts = [x] * copies + ([part(x, 0, 0, remainder)] if remainder else [])
        return c.reshape(ops.concatenate(*parts, axis=0), shape)
    number = ops.iota(shape=(total,), axis=0, dtype=dtypes.i32)
    return c.reshape(take(x, c.remainder(number, size_value(count, dtypes.i32)), 0), shape)


def trim_zeros(filt: Nested, trim: str = "fb", axis: Axis = None) -> Array:
    """The part of an array between its first and last elements that are not 0.

    Shapes: any -> of the same rank (a number is itself). Types: that of `filt`.
    trim:   "f" for the front, "b" for the back, "fb" for both.
    axis:   the axes to trim; all for None.
    Errors: ArgumentError for an unknown `trim`; ConcretizationTypeError for a traced array.

    >>> import rune.numpy as rnp
    >>> rnp.trim_zeros(rnp.array([0, 0, 3, 0, 4, 0]))
    Array([3, 0, 4], i32[3], cpu:0)
    """
    x = array(filt) if isinstance(filt, list | tuple) else value("trim_zeros", filt)
    sides = str(trim).lower()
    if sides not in ("f", "b", "fb", "bf"):
        raise ArgumentError(f"trim_zeros: cannot use trim={trim!r} ('f', 'b' or 'fb')")
    # NumPy's nonzero refuses an array of rank 0, which has no axis to trim.
    places = np.nonzero(known_nonzero(x)) if rank(x) else ()
    index = [slice(None)] * rank(x)
    for i in c.normalised_axes("trim_zeros", axis, type_of(x)):
        nonzero = places[i]
        low = int(nonzero.min()) if len(nonzero) and "f" in sides else 0
        high = int(nonzero.max()) + 1 if len(nonzero) and "b" in sides else type_of(x).shape[i]
        index[i] = slice(low, high) if len(nonzero) else slice(0, 0)
    return x[tuple(index)]


# --- choice -----------------------------------------------------------------------------------


@tiered
def choose(a: ArrayLike, choices: object, out: None = None, mode: str = "clip") -> Array:
    """For each element i of `a`, the element of the i-th choice at the same place.

    Shapes: `a` and the choices broadcast together. Types: choices promoted together.
    mode:   "clip" (the default, since compiled programs cannot raise), "wrap", or "raise" for
            concrete numbers.
    Errors: ArgumentError for no choices, another mode, or a number out of bounds with "raise".

    >>> import rune.numpy as rnp
    >>> rnp.choose(rnp.array([0, 1, 0]), [rnp.array([1, 2, 3]), 9])
    Array([1, 9, 3], i32[3], cpu:0)
    """
    refuse("choose", out=out)
    x = value("choose", a)
    if type_of(x).dtype not in dtypes.INTEGER | {dtypes.bool_}:
        raise DtypeError(f"choose: cannot choose by {type_of(x)} (integer dtype required)")
    listed_choices = listed("choose", "choices", choices)
    if not listed_choices:
        raise ArgumentError("choose: cannot choose from an empty list (one array or more required)")
    options = c.same_dtype("choose", *(array(v) if isinstance(v, list) else v for v in listed_choices))
    x = _in_range(x, len(options), mode)
    spread = broadcast_together("choose", [x, *options])
    out_ = spread[-1]
    for i in reversed(range(len(options) - 1)):
        is_this = ops.eq(spread[0], constant(i, spread[0]))
        out_ = ops.select(*broadcast_together("choose", [is_this, spread[i + 1], out_]))
    shape = next((type_of(v).shape for v in spread if type_of(v).shape), ())
    return c.distinct(broadcast_to("choose", out_, shape), options[0])


def _in_range(x: Value, count: int, mode: str) -> Value:
    x = c.astype(x, dtypes.i32) if type_of(x).dtype == dtypes.bool_ else x
    if mode == "wrap":
        return modulo(x, count)
    x = signed(x, count)
    if mode == "raise":
        if np.any((np.asarray(x) < 0) | (np.asarray(x) >= count)):
            raise ArgumentError(f"choose: cannot choose by {x} (there are {count} choices)")
    elif mode != "clip":
        raise ArgumentError(f"choose: cannot use mode={mode!r} (clip, wrap or raise)")
    return c.clip(x, 0, count - 1)


@tiered
def block(arrays: object) -> Array:
    """An array assembled from nested lists: the innermost are joined along the last axis.

    Shapes: equal within each list, except along its axis; lower ranks get axes of size 1 in front.
    Types:  promoted together.
    Errors: ArgumentError for an empty list, or lists of different depth.

    >>> import rune.numpy as rnp
    >>> rnp.block([[rnp.ones((1, 1)), rnp.zeros((1, 1))], [rnp.full((1, 2), 7.0)]])
    Array([[1., 0.],
           [7., 7.]], f32[2,2], cpu:0)
    """
    depth = _depth(arrays)
    ndim = max(depth, *(rank(leaf) for leaf in _leaves(arrays)), 0)
    return _blocked(arrays, depth, ndim).copy()


def _depth(part: object) -> int:
    if not isinstance(part, list):
        if isinstance(part, tuple):
            raise ArgumentError("block: cannot use a tuple (nested lists required)")
        return 0
    depths = {_depth(p) for p in part}
    if len(depths) != 1:
        fault = f"lists of depths {sorted(depths)} (one depth required)" if part else "no arrays"
        raise ArgumentError(f"block: cannot join {fault}")
    return 1 + depths.pop()


def _leaves(part: object) -> list[Array]:
    if not isinstance(part, list):
        return [value("block", part)]
    return [leaf for p in part for leaf in _leaves(p)]


def _blocked(part: Any, depth: int, ndim: int) -> Array:
    if depth == 0:
        x = value("block", part)
        return c.reshape(x, (*(1,) * (ndim - rank(x)), *type_of(x).shape))
    return concatenate([_blocked(p, depth - 1, ndim) for p in part], axis=-depth)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements of the flattened array where the flattened condition is nonzero.

    Shapes: condition and arr any -> [K], or [size]; a traced condition is ignored beyond the
            elements of `arr`.
    Types:  that of `arr`.
    size:   the size of the result, so that it can be compiled: it is cut off, or padded with
            `fill_value`.
    Errors: ConcretizationTypeError for a traced condition without `size`; AxisError where a
            condition holds beyond `arr`.

    >>> import rune.numpy as rnp
    >>> rnp.extract(rnp.array([0, 1, 1]), rnp.array([7, 8, 9]))
    Array([8, 9], i32[2], cpu:0)
    """
    flat, elements = (c.reshape(value("extract", x), -1) for x in (condition, arr))
    count, length = type_of(elements).shape[0], type_of(flat).shape[0]
    if length > count:
        if not isinstance(flat, Tracer) and np.asarray(flat)[count:].any():
            raise AxisError(f"extract: cannot take elements beyond {type_of(elements)} ({type_of(flat)} holds there)")
        flat = part(value("extract", flat), 0, 0, count)
    return compress(flat, elements, size=size, fill_value=fill_value)


def compress(
    condition: Nested,
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """The slices along an axis where a vector of conditions is nonzero.

    Shapes: condition [K] with K at most N, a [*A, N, *B] -> [*A, number of truths or size, *B].
    Types:  that of `a`.
    size:   the size of the result, so that it can be compiled: it is cut off, or padded with
            `fill_value`.
    Errors: ShapeError if the condition is not a vector or is too long; ConcretizationTypeError for
            a traced condition without `size`.

    >>> import rune.numpy as rnp
    >>> rnp.compress(rnp.array([True, False, True]), rnp.array([7, 8, 9]), size=3)
    Array([7, 9, 0], i32[3], cpu:0)
    """
    refuse("compress", out=out)
    x = value("compress", a)
    mask = array(condition) if isinstance(condition, list) else value("compress", condition)
    if rank(mask) != 1:
        raise ShapeError(f"compress: cannot use {type_of(mask)} (rank 1 required)")
    if axis is None:
        x, axis = c.reshape(x, -1), 0
    at = c.normalised_axis("compress", axis, type_of(x))
    if type_of(mask).shape[0] > type_of(x).shape[at]:
        raise ShapeError(f"compress: cannot use {type_of(mask)} for axis {at} of {type_of(x)}")
    truth = c.astype(mask, dtypes.bool_)
    if size is None:
        places = np.flatnonzero(known("compress", truth, "size"))
        return take(x, places.astype(position_dtype(type_of(truth).shape[0])), at)
    return _of_size(x, truth, at, size, fill_value)


def _of_size(x: Array, truth: Array, at: int, size: int, fill_value: ArrayLike) -> Array:
    """The first `size` slices where truth holds: each goes to the place of its running count."""
    x = move_axis(x, at, 0)[: type_of(truth).shape[0]]
    count = o.running_count(truth)
    place = ops.sub(count, constant(1, count))
    place = ops.select(truth, place, constant(size, place))
    fill = np.asarray(fill_value).astype(type_of(x).dtype)
    out = ops.broadcast(fill, shape=(size, *type_of(x).shape[1:]), axes=())
    return move_axis(out.at[place].set(x, mode="drop"), 0, at)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """A copy in which the elements where `mask` is nonzero are vals, repeated as needed.

    Shapes: arr any, mask of equal size, vals any -> that of `arr`. Types: that of `arr`.
    Errors: ArgumentError unless inplace=False; ShapeError where the sizes differ.

    >>> import rune.numpy as rnp
    >>> rnp.place(rnp.arange(4), rnp.array([0, 1, 1, 1]), rnp.array([7, 8]), inplace=False)
    Array([0, 7, 8, 7], i32[4], cpu:0)
    """
    if inplace:
        raise ArgumentError(
            "place: cannot write into an array (arrays are immutable)",
            hint="place(..., inplace=False) returns a changed copy",
        )
    x, truth = value("place", arr), c.astype(value("place", mask), dtypes.bool_)
    replacements = array(vals) if isinstance(vals, list | tuple) else vals
    values = c.reshape(in_dtype("place", replacements, type_of(x).dtype), -1)
    if c.size_of(x) != c.size_of(truth) or 0 in type_of(values).shape:
        raise ShapeError(
            f"place: cannot put {type_of(values)} into {type_of(x)} where {type_of(truth)} holds "
            "(a mask of as many elements, and one value at least, required)"
        )
    flat = c.reshape(truth, -1)
    count = o.running_count(flat)
    turn = c.remainder(ops.sub(count, constant(1, count)), type_of(values).shape[0])
    new = take(values, turn, 0)
    return c.reshape(ops.select(flat, new, c.reshape(x, -1)), type_of(x).shape)


__all__ = ["block", "choose", "compress", "delete", "extract", "insert", "place", "resize", "trim_zeros"]
