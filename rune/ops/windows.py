"""dynamic_slice and dynamic_update_slice: windows of static size, with starts known only at run
time.

A start is clamped so that the window fits the operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Bounds, Element, Piece, Source, View
from rune.core.primitive import Joint, Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.dims import Size, symbol
from rune.errors import ShapeError
from rune.ops.arithmetic import cast, zero_like
from rune.ops.family import Batched, fit, require, reshape, same_dtype, types_text, zeros_like
from rune.ops.index_dims import IndexDims, up
from rune.ops.index_values import signed
from rune.ops.indexing import gather, scatter
from rune.ops.movement import concatenate, repeat_lane

if TYPE_CHECKING:
    from rune.array import Array


def _check_starts(name: str, operand: ArrayType, starts: Sequence[ArrayType]) -> None:
    require(name, dtypes.INTEGER, "integer start", *starts)
    if len(starts) != operand.ndim or any(s.shape for s in starts):
        raise ShapeError(
            f"{name}: cannot start in {operand} at {types_text(starts)} (one rank-0 integer per axis required)"
        )


def _dynamic_slice_type(operand: ArrayType, *starts: ArrayType, sizes: Shape) -> ArrayType:
    _check_starts("dynamic_slice", operand, starts)
    _check_window("dynamic_slice", operand, sizes)
    return operand.with_shape(sizes)


def _check_window(name: str, operand: ArrayType, sizes: Shape) -> None:
    if len(sizes) != operand.ndim or not all(s == d or s <= d for s, d in zip(sizes, operand.shape)):
        raise ShapeError(f"{name}: cannot fit a window of {sizes} in {operand}")


def _windows(operand: np.ndarray, starts: Sequence[np.ndarray], sizes: Shape) -> tuple[slice, ...]:
    return tuple(
        slice(at, at + n)
        for at, n in ((_clamp(int(s), d - n), n) for s, d, n in zip(starts, operand.shape, sizes, strict=True))
    )


def _clamp(start: int, last: int) -> int:
    return sorted((0, start, last))[1]


def _clamped(first: int, operand: ArrayType, sizes: Shape) -> dict[int, Element]:
    """The start along each axis that the window does not span whole; along the others it is 0."""
    lasts = [d - size for d, size in zip(operand.shape, sizes, strict=True)]
    return {
        axis: Element(f"start{axis}", first + axis, (), clamp=(0, last))
        for axis, last in enumerate(lasts)
        if not (isinstance(last, int) and last == 0)
    }


def _start_symbol(element: Element | None) -> Size:
    return 0 if element is None or element.clamp is None else symbol(element.name, *element.clamp)


def _dynamic_slice_view(position: tuple, operand: ArrayType, *starts: ArrayType, sizes: Shape) -> Source:
    elements = _clamped(1, operand, sizes)
    index = tuple(p + _start_symbol(elements.get(axis)) for axis, p in enumerate(position))
    return Source((Piece(0, index, (), tuple(elements.values())),))


def _slice_transpose(
    ct: Value, linear: Batched, operand: ArrayType, *starts: Value, sizes: Shape
) -> list[Array | None]:
    zeros = fit(zero_like(ct), operand.shape)
    return [dynamic_update_slice(zeros, ct, *starts), *(None for _ in starts)]


def _stack_starts(batched: Batched, size: Size, starts: Sequence[Value], shape: Shape) -> Array:
    """Starts along the axes of `shape` as index vectors [size, ndim]."""
    signed_starts = [signed(s, d) for s, d in zip(starts, shape, strict=True)]
    lanes = [s if b else repeat_lane(s, size) for s, b in zip(signed_starts, batched, strict=True)]
    is_wide = any(type_of(s).dtype == dtypes.i64 for s in lanes)
    common = [cast(s, dtypes.i64 if is_wide else dtypes.i32) for s in lanes]
    return concatenate(*(reshape(s, shape=(size, 1)) for s in common), axis=1)


def _lane_dims(ndim: int, *, with_lane: bool) -> IndexDims:
    """One whole window per lane: result [lane, *window]."""
    dims = IndexDims(tuple(range(1, ndim + 1)), (), tuple(range(ndim)))
    if not with_lane:
        return dims
    return replace(dims, start_map=up(dims.start_map), operand_batching=(0,), indices_batching=(0,))


def _dynamic_slice_batch(
    batched: Batched, size: Size, operand: Value, *starts: Value, sizes: Shape
) -> tuple[Array, bool]:
    if not any(batched[1:]):
        zero = zero_like(starts[0]) if starts else np.zeros((), np.int32)
        return dynamic_slice(operand, zero, *starts, sizes=(size, *sizes)), True
    indices = _stack_starts(batched[1:], size, starts, type_of(operand).shape[-len(starts) :])
    dims = _lane_dims(len(starts), with_lane=batched[0])
    window = (1, *sizes) if batched[0] else sizes
    fill = zero_like(operand)
    return gather(operand, indices, fill, dims=dims, slice_sizes=window, mode="clip"), True


dynamic_slice: Primitive = Primitive(
    "dynamic_slice",
    "indexing",
    _dynamic_slice_type,
    lambda operand, *starts, sizes: operand[_windows(operand, starts, sizes)],
    jvp=Joint(lambda tangents, args, y, *, sizes: dynamic_slice(tangents[0], *args[1:], sizes=sizes)),
    transpose=_slice_transpose,
    linear_in=((0,),),
    batch=_dynamic_slice_batch,
    lower=View(_dynamic_slice_view),
    jax_names={"slice_sizes": "sizes"},
)


def _update_type(operand: ArrayType, update: ArrayType, *starts: ArrayType) -> ArrayType:
    same_dtype("dynamic_update_slice", operand, update)
    _check_starts("dynamic_update_slice", operand, starts)
    _check_window("dynamic_update_slice", operand, update.shape)
    return operand


def _update_reference(operand: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    out = np.array(operand)
    out[_windows(operand, starts, update.shape)] = update
    return out


def _update_view(position: tuple, operand: ArrayType, update: ArrayType, *starts: ArrayType) -> Source:
    elements = _clamped(2, operand, update.shape)
    index = tuple(p - _start_symbol(elements.get(axis)) for axis, p in enumerate(position))
    where = tuple(Bounds(index[axis], 0, update.shape[axis]) for axis in elements)
    return Source((Piece(1, index, where, tuple(elements.values())), Piece(0, position)))


def _update_jvp(tangents: Sequence[Value | None], args: Sequence[Value], y: Value) -> Array:
    d_operand, d_update = (zeros_like(a) if t is None else t for t, a in zip(tangents[:2], args[:2], strict=True))
    return dynamic_update_slice(d_operand, d_update, *args[2:])


def _update_transpose(
    ct: Value, linear: Batched, operand: ArrayType, update: ArrayType, *starts: Value
) -> list[Array | None]:
    shape = type_of(update).shape if not linear[1] else update.shape
    of_operand = dynamic_update_slice(ct, fit(zero_like(ct), shape), *starts)
    of_update = dynamic_slice(ct, *starts, sizes=shape)
    return [of_operand if linear[0] else None, of_update if linear[1] else None, *(None for _ in starts)]


def _update_batch(batched: Batched, size: Size, operand: Value, update: Value, *starts: Value) -> tuple[Array, bool]:
    operand = operand if batched[0] else repeat_lane(operand, size)
    update = update if batched[1] else repeat_lane(update, size)
    if not any(batched[2:]):
        zero = zero_like(starts[0]) if starts else np.zeros((), np.int32)
        return dynamic_update_slice(operand, update, zero, *starts), True
    indices = _stack_starts(batched[2:], size, starts, type_of(operand).shape[1:])
    dims = _lane_dims(len(starts), with_lane=True)
    window = (1, *type_of(update).shape[1:])
    return scatter(operand, indices, update, dims=dims, slice_sizes=window, mode="clip"), True


dynamic_update_slice: Primitive = Primitive(
    "dynamic_update_slice",
    "indexing",
    _update_type,
    _update_reference,
    jvp=Joint(_update_jvp),
    transpose=_update_transpose,
    linear_in=((0, 1),),
    batch=_update_batch,
    lower=View(_update_view),
)

PRIMITIVES = (dynamic_slice, dynamic_update_slice)
