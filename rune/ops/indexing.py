"""Data-dependent indexing: gather, and the scatters that overwrite and add (others: scatters.py).

`IndexDims` (index_dims.py) says how windows sit in the operand. A window that would leave the
operand is moved inside ("clip"), or reads as the fill value and is not written ("fill").
"promise_in_bounds" reads as "clip" and writes as "fill", as in JAX: a window that breaks the
promise has the tangent of the elements that it reads, and its cotangent is dropped.

Updates are applied one after another, in row-major order. So an element that is indexed several
times is changed as many times, and the last of several writes wins (NumPy's ufunc.at). Tangents
that are zero are rank-0 zeros, broadcast: no derivative stores an array of them.
Source: XLA operation semantics, Gather and Scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.lower import Piece, Scatter, Source, View
from rune.core.primitive import ZERO, Joint, Primitive, Rule
from rune.core.types import ArrayType, Shape
from rune.core.values import Operand, Value
from rune.dims import Size, product
from rune.errors import ShapeError
from rune.ops.arithmetic import eq, select, zero_like
from rune.ops.creation import iota
from rune.ops.family import KINDS, Batched, broadcast, fit, reduce_sum, require, reshape, same_dtype, zeros_like
from rune.ops.index_dims import (
    IndexDims,
    WindowParams,
    check_dims,
    check_windows,
    piece_at,
    places,
    positions,
    result_shape,
    up,
    within,
)
from rune.ops.jax_forms import GATHER_NAMES, SCATTER_NAMES, gather_form, scatter_form
from rune.ops.movement import repeat_lane

if TYPE_CHECKING:
    from rune.array import Array

# --- gather -----------------------------------------------------------------------------------


def _gather_type(
    operand: ArrayType, indices: ArrayType, fill: ArrayType, *, dims: IndexDims, slice_sizes: Shape, mode: str
) -> ArrayType:
    check_dims("gather", operand, indices, dims, slice_sizes, mode)
    same_dtype("gather", operand, fill)
    shape = result_shape(indices, dims, slice_sizes)
    check_windows("gather", operand, slice_sizes, shape, mode)
    return operand.with_shape(shape)


def _gather_reference(
    operand: np.ndarray, indices: np.ndarray, fill: np.ndarray, *, dims: IndexDims, slice_sizes: Shape, mode: str
) -> np.ndarray:
    shape: Any = result_shape(type_of(indices), dims, slice_sizes)
    if 0 in shape or 0 in operand.shape:
        return np.broadcast_to(fill, shape)
    rows = _rows_taken(operand, indices, dims, slice_sizes)
    if rows is None or (mode == "fill" and not _starts_inside(operand, indices, dims)):
        at, inside = positions(operand, indices, dims, slice_sizes, mode != "fill")
        if rows is None:
            rows = np.broadcast_to(np.take(operand.reshape(-1), at), shape)
        if not inside.all():
            return np.where(inside, rows, fill)
    return np.require(rows, requirements=["C", "O"])  # `rows` may be a view of the operand


def _starts_inside(operand: np.ndarray, indices: np.ndarray, dims: IndexDims) -> bool:
    """Whether every row that is taken along one axis is in bounds."""
    return within(indices, operand.shape[dims.start_map[0]] - 1)


def _rows_taken(operand: np.ndarray, indices: np.ndarray, dims: IndexDims, slice_sizes: Shape) -> np.ndarray | None:
    """The result by np.take, which copies whole rows, where one axis is indexed and the others are
    whole.

    Indices are clamped. None for other windows, and where each lane has its own operand.
    """
    is_whole = all(
        size == length or axis in dims.start_map
        for axis, (size, length) in enumerate(zip(slice_sizes, operand.shape, strict=True))
    )
    is_one_axis = len(dims.start_map) == 1 and dims.collapsed == dims.start_map
    if dims.operand_batching or not (is_one_axis and is_whole):
        return None
    (axis,) = dims.start_map
    start = places(indices[..., 0])
    rows = np.take(operand, start, axis=axis, mode="clip")
    batch = [k for k in range(rows.ndim) if k not in dims.offset]
    # The axes of the result at which the axes of `rows` belong.
    result_axes = [*dims.offset[:axis], *batch, *dims.offset[axis:]]
    return rows.transpose(np.argsort(result_axes))


def _gather_transpose(
    ct: Value, linear: Batched, operand: ArrayType, indices: Value, fill: Value, **params: Unpack[WindowParams]
) -> list[Array | None]:
    cotangents: list[Array | None] = [None, None, None]
    shape = operand.shape if linear[0] else type_of(operand).shape
    if linear[0]:
        cotangents[0] = scatter_add(fit(zero_like(ct), shape), indices, ct, **params)
    if linear[2]:
        yes, no = np.ones((), np.bool_), np.zeros((), np.bool_)
        read = gather(fit(yes, shape), indices, no, **params)
        fill_cotangents = select(read, zero_like(ct), ct)
        cotangents[2] = reduce_sum(fill_cotangents, axes=tuple(range(type_of(ct).ndim)))
    return cotangents


def _gather_batch(
    batched: Batched, size: Size, operand: Value, indices: Value, fill: Value, **params: Unpack[WindowParams]
) -> tuple[Array, bool]:
    if batched[2]:
        return _gather_batched_fill(batched, size, operand, indices, fill, params), True
    return gather(operand, indices, fill, **_lane_params(batched[0], batched[1], size, params)), True


def _lane_params(operand: bool, indices: bool, size: Size, params: WindowParams) -> WindowParams:
    """The parameters where the operand, the indices or both have a leading axis of `size` lanes."""
    dims, sizes = params["dims"], params["slice_sizes"]
    if operand and indices:
        return {**params, "dims": dims.batched(), "slice_sizes": (1, *sizes)}
    if operand:  # every window spans all lanes
        shifted_dims = dims.shifted()
        offset = (0, *shifted_dims.offset)
        lane_dims = replace(shifted_dims, offset=offset, indices_batching=dims.indices_batching)
        return {**params, "dims": lane_dims, "slice_sizes": (size, *sizes)}
    return {**params, "dims": replace(dims, offset=up(dims.offset), indices_batching=up(dims.indices_batching))}


def _gather_batched_fill(
    batched: Batched, size: Size, operand: Value, indices: Value, fill: Value, params: WindowParams
) -> Array:
    zero, no = zero_like(fill), np.zeros((), np.bool_)
    where = (batched[0] or not batched[1], batched[1], False)
    operand = operand if where[0] == batched[0] else repeat_lane(operand, size)
    elements, _ = _gather_batch(where, size, operand, indices, zero, **params)
    yes = fit(np.ones((), np.bool_), type_of(operand).shape)
    mask, _ = _gather_batch(where, size, yes, indices, no, **params)
    return select(mask, elements, broadcast(fill, shape=type_of(elements).shape, axes=(0,)))


def read_back(x: Value, indices: Operand, params: Mapping[str, object], absent: Value = 0) -> Array:
    """The elements that a scatter with the same parameters writes to; `absent` for windows it
    drops.
    """
    mode = "clip" if params["mode"] == "clip" else "fill"
    return gather(x, indices, literal_like(absent, x), **{**params, "mode": mode})


def _gather_view(
    position: tuple, operand: ArrayType, indices: ArrayType, fill: ArrayType, **params: Unpack[WindowParams]
) -> Source:
    return Source((piece_at(position, operand, indices, params, params["mode"] != "fill"),), fill=2)


gather: Primitive = Primitive(
    "gather",
    "indexing",
    _gather_type,
    _gather_reference,
    jvp=(
        lambda dx, x, i, fill, y, **params: gather(dx, i, zero_like(dx), **params),
        ZERO,
        lambda df, x, i, fill, y, **params: gather(fit(zero_like(x), type_of(x).shape), i, df, **params),
    ),
    transpose=_gather_transpose,
    linear_in=((0, 2),),
    batch=_gather_batch,
    lower=View(_gather_view),
    jax_names=GATHER_NAMES,
    jax_form=gather_form(lambda: gather),
)


# --- scatters: types, meaning, batches --------------------------------------------------------


def _scatter_type(name: str, kind: str) -> Rule:
    def type_rule(
        operand: ArrayType, indices: ArrayType, updates: ArrayType, *, dims: IndexDims, slice_sizes: Shape, mode: str
    ) -> ArrayType:
        require(name, KINDS[kind], kind, operand)
        check_dims(name, operand, indices, dims, slice_sizes, mode)
        same_dtype(name, operand, updates)
        shape = result_shape(indices, dims, slice_sizes)
        check_windows(name, operand, slice_sizes, shape, mode)
        if updates.shape != shape:
            raise ShapeError(
                f"{name}: cannot write {updates} into {operand} at {indices} (updates of shape {shape} expected)"
            )
        return operand

    return type_rule


def _scatter_reference(write: Callable[[np.ndarray, np.ndarray, np.ndarray], None]) -> Rule:
    def reference(
        operand: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, dims: IndexDims, slice_sizes: Shape, mode: str
    ) -> np.ndarray:
        out = np.array(operand, order="C")
        if updates.size and operand.size:
            at, inside = positions(operand, indices, dims, slice_sizes, mode == "clip")
            places = np.broadcast_to(at, updates.shape)
            if inside.all():
                write(out.reshape(-1), places.reshape(-1), updates.reshape(-1))
            else:
                mask = np.broadcast_to(inside, updates.shape)
                write(out.reshape(-1), places[mask], updates[mask])
        return out

    return reference


def _overwrite(out: np.ndarray, at: np.ndarray, values: np.ndarray) -> None:
    out[at] = values


def _scatter_rule(
    position: tuple, operand: ArrayType, indices: ArrayType, updates: ArrayType, **params: Unpack[WindowParams]
) -> Piece:
    return piece_at(position, operand, indices, params, params["mode"] == "clip")


def scatter_primitive(
    name: str,
    kind: str,
    combine: str | None,
    write: Callable[[np.ndarray, np.ndarray, np.ndarray], None],
    jvp: Rule,
    transpose: Rule | None = None,
    linear_in: tuple[tuple[int, ...], ...] = ((0, 2),),
) -> Primitive:
    """The scatter that combines present elements with each update; `write` is NumPy's ufunc.at."""

    def batch(
        batched: Batched, size: Size, operand: Value, indices: Value, updates: Value, **params: Unpack[WindowParams]
    ) -> tuple[Array, bool]:
        operand = operand if batched[0] else repeat_lane(operand, size)
        updates = updates if batched[2] else repeat_lane(updates, size)
        return primitive(operand, indices, updates, **_lane_params(True, batched[1], size, params)), True

    primitive = Primitive(
        name,
        "indexing",
        _scatter_type(name, kind),
        _scatter_reference(write),
        Joint(jvp),
        transpose,
        batch,
        Scatter(combine, 2, _scatter_rule),
        linear_in=linear_in,
        jax_names=SCATTER_NAMES,
        jax_form=scatter_form(lambda: primitive),
    )
    return primitive


# --- which updates meet in one element --------------------------------------------------------


def numbers(count: Size) -> Array:
    """0, 1, 2, ... as i32."""
    return iota(shape=(count,), axis=0, dtype=dtypes.i32)


def windows_meeting(indices: Operand, dims: IndexDims) -> Size:
    """How many windows may write to one element: those of one lane."""
    sizes = type_of(indices).shape[:-1]
    return product(tuple(d for i, d in enumerate(sizes) if i not in dims.indices_batching))


def window_numbers(indices: Operand, dims: IndexDims, shape: Shape) -> Array:
    """For every update the number of its window, in writing order."""
    batch = [i for i in range(len(shape)) if i not in dims.offset]
    axes = tuple(a for i, a in enumerate(batch) if i not in dims.indices_batching)
    sizes = tuple(shape[a] for a in axes)
    return broadcast(reshape(numbers(product(sizes)), shape=sizes), shape=shape, axes=axes)


def _last_written(x: ArrayType, indices: Operand, u: ArrayType, params: Any) -> Array:
    """Where no later update overwrites an update of type `u`, as bool."""
    number = window_numbers(indices, params["dims"], u.shape)
    no_window = fit(np.array(-1, np.int32), x.shape)
    winner = scatter(no_window, indices, number, **params)
    return eq(read_back(winner, indices, params), number)


# --- derivatives ------------------------------------------------------------------------------


def tangent_or_zeros(d: Value | None, primal: Value) -> Value:
    """A tangent; zeros for None."""
    return zeros_like(primal) if d is None else d


def _scatter_jvp(tangents: Sequence[Value | None], args: Sequence[Value], y: Value, **params: object) -> Array:
    (dx, _, du), (x, i, u) = tangents, args
    return scatter(tangent_or_zeros(dx, x), i, tangent_or_zeros(du, u), **params)


def _scatter_transpose(
    ct: Value, linear: Batched, operand: ArrayType, indices: Operand, updates: Any, **params: Any
) -> list[Array | None]:
    cotangents: list[Array | None] = [None, None, None]
    u = updates if linear[2] else type_of(updates)
    if linear[0]:
        cotangents[0] = scatter(ct, indices, fit(zero_like(ct), u.shape), **params)
    if linear[2]:
        cotangents[2] = read_back(ct, indices, params)
        if windows_meeting(indices, params["dims"]) != 1:
            last = _last_written(type_of(ct), indices, u, params)
            cotangents[2] = select(last, cotangents[2], zero_like(ct))
    return cotangents


def _add_jvp(tangents: Sequence[Value | None], args: Sequence[Value], y: Value, **params: object) -> Value | None:
    (dx, _, du), (x, i, _) = tangents, args
    return dx if du is None else scatter_add(tangent_or_zeros(dx, x), i, du, **params)


def _add_transpose(
    ct: Value, linear: Batched, operand: Value, indices: Value, updates: ArrayType, **params: object
) -> list[Value | None]:
    of_updates = read_back(ct, indices, params) if linear[2] else None
    return [ct if linear[0] else None, None, of_updates]


scatter: Primitive = scatter_primitive("scatter", "any or key", None, _overwrite, _scatter_jvp, _scatter_transpose)
scatter_add: Primitive = scatter_primitive("scatter_add", "numeric", "add", np.add.at, _add_jvp, _add_transpose)
PRIMITIVES = (gather, scatter, scatter_add)
