"""Shapes and order of axes. When compiled, none of these computes or copies anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import Tracer, type_of
from rune.core.values import Value
from rune.dims import Dim, Size, at_most
from rune.errors import ArgumentError, AxisError, ShapeError
from rune.numpy.arguments import laid_out, rank, refuse, resolved, shape_of, static_int, static_sizes, value
from rune.ops import conventions as c
from rune.ops import promote
from rune.ops.family import size_value
from rune.ops.movement import part
from rune.ops.promote import constant
from rune.ops.scalars import int_bounds
from rune.sharding.shardings import Sharding
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, Axis


def reshape(
    a: ArrayLike, shape: object, order: str = "C", *, copy: bool | None = None, out_sharding: Sharding | None = None
) -> Array:
    """The same elements in another shape; one size may be -1.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: any -> `shape`. Types: that of `a`.
    order:  "C" reads and writes rows first, "F" columns first.
    Errors: ShapeError when the numbers of elements differ.

    >>> import rune.numpy as rnp
    >>> rnp.reshape(rnp.arange(4), (2, -1), order="F")
    Array([[0, 2],
           [1, 3]], i32[2,2], cpu:0)
    """
    if out_sharding is not None:
        return resolved(reshape, out_sharding, a, shape, order)
    x = value("reshape", a)
    sizes = static_sizes("reshape", "a size", shape)
    if order == "F":
        return c.transpose(c.reshape(c.transpose(x), sizes[::-1]))
    if order not in ("C", "A"):
        refuse("reshape", order=order)
    return c.distinct(c.reshape(x, sizes), a)


@tiered
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Sharding | None = None) -> Array:
    """All elements along one axis.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: any of N elements -> [N]. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.ravel(rnp.zeros((2, 1)))
    Array([0., 0.], f32[2], cpu:0)
    """
    return reshape(a, -1, order, out_sharding=out_sharding)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Axes permuted; reversed for None.

    Shapes: [N_0, N_1, …] -> [N_axes[0], N_axes[1], …]. Types: that of `a`.
    Errors: AxisError if `axes` is not a permutation.

    >>> import rune.numpy as rnp
    >>> rnp.transpose(rnp.zeros((2, 3))).shape
    (3, 2)
    """
    return c.transpose(value("transpose", a), axes)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """Axes permuted.

    Shapes: [N_0, N_1, …] -> [N_axes[0], N_axes[1], …]. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.permute_dims(rnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return c.transpose(value("permute_dims", a), axes)


@tiered
def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two axes exchanged.

    Shapes: [*B, M, N] -> [*B, N, M]. Types: that of `x`.
    Errors: ShapeError for a rank below 2.

    >>> import rune.numpy as rnp
    >>> rnp.matrix_transpose(rnp.zeros((2, 3, 4))).shape
    (2, 4, 3)
    """
    return c.matrix_transpose(value("matrix_transpose", x))


@tiered
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Two axes exchanged.

    Shapes: the two sizes exchanged. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.swapaxes(rnp.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    return c.distinct(c.swapaxes(value("swapaxes", a), axis1, axis2), a)


@tiered
def moveaxis(a: object, source: Any, destination: Any) -> Array:
    """Axes moved to new places, the others kept in order.

    Shapes: [*A, N, *B] -> the same sizes in another order. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.moveaxis(rnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = value("moveaxis", a)
    ndim = rank(x)
    origins = c.normalised_axes("moveaxis", source, type_of(x))
    places = c.normalised_axes("moveaxis", destination, type_of(x))
    if len(origins) != len(places):
        raise AxisError(f"moveaxis: cannot move axes {origins} to {places} (counts differ)")
    order = [i for i in range(ndim) if i not in origins]
    for place, origin in sorted(zip(places, origins, strict=True)):
        order.insert(place, origin)
    return c.distinct(c.transpose(x, order), a)


@tiered
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Axis moved to just before `start`; `moveaxis` is clearer.

    Shapes: [*A, N, *B] -> the same sizes in another order. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.rollaxis(rnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    a_type = type_of(value("rollaxis", a))
    ndim = a_type.ndim
    origin = c.normalised_axis("rollaxis", axis, a_type)
    place = start + ndim if start < 0 else start
    if not 0 <= place <= ndim:
        raise AxisError(f"rollaxis: cannot move axis {origin} of {a_type} to {start} ({-ndim} to {ndim} required)")
    return moveaxis(a, origin, place - 1 if place > origin else place)


def expand_dims(a: ArrayLike, axis: Any) -> Array:
    """Axes of size 1 inserted at `axis` of the result.

    Shapes: [*A, *B] -> [*A, 1, *B]. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.expand_dims(rnp.zeros(3), (0, -1)).shape
    (1, 3, 1)
    """
    return c.expand_dims(value("expand_dims", a), axis)


@tiered
def squeeze(a: ArrayLike, axis: Axis = None) -> Array:
    """Axes of size 1 removed: all, or those given.

    Shapes: [*A, 1, *B] -> [*A, *B]. Types: that of `a`.
    Errors: ShapeError when one is longer.

    >>> import rune.numpy as rnp
    >>> rnp.squeeze(rnp.zeros((1, 3, 1))).shape
    (3,)
    """
    return c.squeeze(value("squeeze", a), axis)


# --- broadcasting -----------------------------------------------------------------------------


def broadcast_to(array: ArrayLike, shape: object, *, out_sharding: Sharding | None = None) -> Array:
    """`array` stretched to `shape` by NumPy's rules.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: any -> `shape`. Types: that of `array`.
    Errors: ShapeError if the array does not broadcast to `shape`.

    >>> import rune.numpy as rnp
    >>> rnp.broadcast_to(rnp.arange(2), (2, 2))
    Array([[0, 1],
           [0, 1]], i32[2,2], cpu:0)
    """
    x = value("broadcast_to", array)
    return laid_out(promote.broadcast_to("broadcast_to", x, shape_of("broadcast_to", shape)), out_sharding)


def broadcast_shapes(*shapes: object) -> tuple:
    """The shape that arrays of these shapes broadcast to.

    Errors: ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    sizes = [shape_of("broadcast_shapes", s) for s in shapes]
    return promote.broadcast_shape("broadcast_shapes", *sizes) if sizes else ()


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """The arrays, each stretched to their common shape.

    Shapes: broadcast together. Types: each its own.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> [x.shape for x in rnp.broadcast_arrays(rnp.zeros((2, 1)), rnp.zeros(3))]
    [(2, 3), (2, 3)]
    """
    arrays = [value("broadcast_arrays", x) for x in args]
    shape = broadcast_shapes(*(type_of(x).shape for x in arrays))
    return [c.distinct(promote.broadcast_to("broadcast_arrays", x, shape), x) for x in arrays]


def _at_least(name: str, arrays: Sequence[ArrayLike], spread: Any) -> Any:
    spread_arrays = [c.distinct(spread(value(name, x)), x) for x in arrays]
    return spread_arrays[0] if len(spread_arrays) == 1 else spread_arrays


@overload
def atleast_1d(arys: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_1d(*arys: ArrayLike) -> Any: ...
@tiered
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays of rank 1 or more; one array for one argument, else a list.

    Shapes: [] -> [1]; others unchanged. Types: that of `arys`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.atleast_1d(2.0).shape
    (1,)
    """
    return _at_least("atleast_1d", arys, lambda x: x if rank(x) else c.expand_dims(x, 0))


@overload
def atleast_2d(arys: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_2d(*arys: ArrayLike) -> Any: ...
@tiered
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays of rank 2 or more, new axes in front.

    Shapes: [] -> [1, 1], [N] -> [1, N]; others unchanged. Types: that of `arys`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.atleast_2d(rnp.zeros(3)).shape
    (1, 3)
    """

    def spread(x: ArrayLike) -> Any:
        return x if rank(x) >= 2 else c.expand_dims(x, tuple(range(2 - rank(x))))

    return _at_least("atleast_2d", arys, spread)


@overload
def atleast_3d(arys: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_3d(*arys: ArrayLike) -> Any: ...
@tiered
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays of rank 3 or more: [] -> [1,1,1], [N] -> [1,N,1], [M,N] -> [M,N,1].

    Shapes: [] -> [1, 1, 1], [N] -> [1, N, 1], [M, N] -> [M, N, 1]; others unchanged.
    Types:  that of `arys`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.atleast_3d(rnp.zeros(3)).shape
    (1, 3, 1)
    """
    new_axes = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}

    def spread(x: ArrayLike) -> Any:
        return x if rank(x) >= 3 else c.expand_dims(x, new_axes[rank(x)])

    return _at_least("atleast_3d", arys, spread)


# --- reversal ---------------------------------------------------------------------------------


@tiered
def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """Order reversed along axes, all for None.

    Shapes: any, unchanged. Types: that of `m`.
    Errors: AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.flip(rnp.arange(3))
    Array([2, 1, 0], i32[3], cpu:0)
    """
    x = value("flip", m)
    return ops.reverse(x, axes=c.normalised_axes("flip", axis, type_of(x)))


def _ranked(name: str, x: ArrayLike, least: int) -> Any:
    x = value(name, x)
    if rank(x) < least:
        raise ShapeError(f"{name}: cannot take {type_of(x)} (rank {least} required)")
    return x


@tiered
def flipud(m: ArrayLike) -> Array:
    """Order of rows (axis 0) reversed.

    Shapes: m [M, *B], unchanged. Types: that of `m`.
    Errors: ArgumentError if an argument is not an array; ShapeError of rank 0.

    >>> import rune.numpy as rnp
    >>> rnp.flipud(rnp.arange(3))
    Array([2, 1, 0], i32[3], cpu:0)
    """
    return flip(_ranked("flipud", m, 1), 0)


@tiered
def fliplr(m: ArrayLike) -> Array:
    """Order of columns (axis 1) reversed.

    Shapes: m [M, N, *B], unchanged. Types: that of `m`.
    Errors: ArgumentError if an argument is not an array; ShapeError for a rank below 2.

    >>> import rune.numpy as rnp
    >>> rnp.fliplr(rnp.array([[1, 2]]))
    Array([[2, 1]], i32[1,2], cpu:0)
    """
    return flip(_ranked("fliplr", m, 2), 1)


@tiered
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotated by k quarter turns from the first of `axes` towards the second.

    Shapes: any; odd k exchanges the sizes of `axes`. Types: that of `m`.
    Errors: AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.rot90(rnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], i32[2,2], cpu:0)
    """
    x = _ranked("rot90", m, 2)
    first, second = c.normalised_axes("rot90", axes, type_of(x))
    turns = static_int("rot90", "a number of turns", k) % 4
    if turns in (0, 2):
        return c.distinct(x, m) if turns == 0 else ops.reverse(x, axes=(first, second))
    if turns == 1:
        return c.swapaxes(ops.reverse(x, axes=(second,)), first, second)
    return ops.reverse(c.swapaxes(x, first, second), axes=(second,))


@tiered
def roll(a: ArrayLike, shift: Any, axis: Axis = None) -> Array:
    """Elements shifted by `shift` along an axis; those that leave re-enter at the other end.

    `axis` None rolls the flattened array; tuples roll several axes. Shifts may be traced.
    Shapes: any, unchanged. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array or `shift` is not an integer; AxisError for
            an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.roll(rnp.arange(4), 1)
    Array([3, 0, 1, 2], i32[4], cpu:0)
    """
    x = value("roll", a)
    if axis is None:
        return c.distinct(c.reshape(roll(c.reshape(x, -1), shift, 0), type_of(x).shape), a)
    axes = c.entries(axis)
    shifts = _shifts(shift)
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ArgumentError(f"roll: cannot match {len(shifts)} shifts to {len(axes)} axes")
    count = max(len(shifts), len(axes))
    spread = [v * count if len(v) == 1 else v for v in (shifts, tuple(axes))]
    for by, at in zip(*spread, strict=True):
        x = _rolled(x, by, c.normalised_axis("roll", at, type_of(x)))
    return c.distinct(x, a)


def _shifts(shift: object) -> tuple[Any, ...]:
    """One or several shifts; traced ones are left as they are."""
    if isinstance(shift, Tracer):
        return tuple(shift) if rank(shift) else (shift,)  # type: ignore[arg-type]
    if not isinstance(shift, tuple | list):
        return static_sizes("roll", "a shift", shift)
    parts = (s if isinstance(s, Tracer) else static_sizes("roll", "a shift", s)[0] for s in shift)
    return tuple(parts)


def _rolled(x: Array | ArrayLike, by: int, axis: int) -> Any:
    size = type_of(x).shape[axis]
    if isinstance(by, Tracer):
        return _rolled_by_traced(x, by, axis)
    if size == 0 or by == 0:
        return x
    if not at_most(1, size):  # it may be empty, and must not become a divisor of 0
        return _rolled_by_traced(x, _shift_value(by), axis)
    cut = -by % size
    if cut == 0:
        return x
    return ops.concatenate(part(x, axis, cut, size), part(x, axis, 0, cut), axis=axis)


def _shift_value(by: Size) -> Value:
    """A shift known in Python, or a symbolic one, as an array of rank 0."""
    if isinstance(by, Dim):
        return size_value(by, dtypes.i32)
    low, high = int_bounds(dtypes.i32)
    return promote.as_type(by, dtypes.i32 if low < by <= high else dtypes.i64, name="roll")


def _rolled_by_traced(x: ArrayLike, by: ArrayLike | Value, axis: int) -> ArrayLike:
    """The window of two copies side by side that begins `by` places before the second."""
    if type_of(by).dtype not in dtypes.INTEGER or type_of(by).shape:
        raise ArgumentError(f"roll: cannot use {type_of(by)} as a shift (an integer required)")
    shape = type_of(x).shape
    if 0 in shape:
        return x
    dtype = dtypes.i64 if type_of(by).dtype in (dtypes.i64, dtypes.u64) else dtypes.i32
    start = c.remainder(ops.neg(ops.cast(by, dtype)), size_value(shape[axis], dtype))
    starts = [start if i == axis else constant(0, start) for i in range(len(shape))]
    return ops.dynamic_slice(ops.concatenate(x, x, axis=axis), *starts, sizes=shape)
