"""Data-dependent indexing: gather and scatter.

`IndexDims` says how windows sit in the operand, in the terms of XLA's Gather: the last axis of
`indices` holds a start for each operand axis in `start_map`; the window spans `slice_sizes`;
`collapsed` axes (size 1) are dropped from the result, the others appear at `offset` axes of the
result; `operand_batching` axes go hand in hand with `indices_batching` axes. A scatter has the
same picture with the updates in the place of the result.

A window that would leave the operand is moved inside ("clip"), or reads as the fill value and is
not written ("fill"). "promise_in_bounds" reads as "clip" and writes as "fill": so a window that
breaks the promise has no gradient, as in JAX.
Source: XLA operation semantics, Gather and Scatter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.lower import Bounds, Element, Piece, Scatter, Source, View
from rune.core.primitive import ZERO, Primitive, Rule
from rune.core.types import ArrayType, Shape
from rune.dims import Size, less, symbol
from rune.errors import ArgumentError, ShapeError
from rune.ops.arithmetic import cast, eq, mul, select, zero_like
from rune.ops.creation import iota
from rune.ops.family import (
    Batched,
    broadcast,
    fit,
    reduce_sum,
    require,
    reshape,
    same_dtype,
    zeros_like,
)
from rune.ops.movement import repeat_lane

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IndexDims:
    """How the windows of a gather or scatter sit in the operand."""

    offset: Axes  # axes of the result (updates) that run over the window
    collapsed: Axes  # operand axes of window size 1, absent from the result
    start_map: Axes  # operand axis of each component of an index vector
    operand_batching: Axes = ()
    indices_batching: Axes = ()

    def shifted(self) -> IndexDims:
        """With every axis moved by one, and no batching added."""
        return IndexDims(
            up(self.offset), up(self.collapsed), up(self.start_map),
            up(self.operand_batching), up(self.indices_batching),
        )  # fmt: skip

    def batched(self) -> IndexDims:
        """With operand, indices and result all led by one more batch axis."""
        moved = self.shifted()
        return replace(
            moved,
            operand_batching=(0, *moved.operand_batching),
            indices_batching=(0, *moved.indices_batching),
        )

    def window_axes(self, ndim: int) -> Axes:
        """The operand axes that appear in the result, in order."""
        gone = {*self.collapsed, *self.operand_batching}
        return tuple(i for i in range(ndim) if i not in gone)


def up(axes: Axes) -> Axes:
    return tuple(a + 1 for a in axes)


def _result_shape(indices: ArrayType, dims: IndexDims, sizes: Shape) -> Shape:
    window = [sizes[a] for a in dims.window_axes(len(sizes))]
    batch = list(indices.shape[:-1])
    rank = len(window) + len(batch)
    return tuple(window.pop(0) if i in dims.offset else batch.pop(0) for i in range(rank))


MODES = ("clip", "fill", "promise_in_bounds")


def _check_dims(
    name: str, operand: ArrayType, indices: ArrayType, dims: IndexDims, sizes: Shape, mode: str
) -> None:
    require(name, dtypes.INTEGER, "integer index", indices)
    if mode not in MODES:
        raise ArgumentError(f"{name}: cannot index with mode {mode!r} ({', '.join(MODES)})")
    fits = (
        len(sizes) == operand.ndim
        and indices.ndim >= 1
        and indices.shape[-1] == len(dims.start_map)
        and len(dims.offset) == len(dims.window_axes(operand.ndim))
        and all(sizes[a] == 1 for a in (*dims.collapsed, *dims.operand_batching))
    )
    if not fits:
        raise ShapeError(f"{name}: cannot index {operand} by {indices} (windows {sizes}, {dims})")


def _check_windows(name: str, operand: ArrayType, sizes: Shape, shape: Shape, mode: str) -> None:
    """A window that is moved inside must fit; with no window at all, nothing is read."""
    for axis, (size, whole) in enumerate(zip(sizes, operand.shape, strict=True)):
        if mode != "fill" and less(whole, size) and 0 not in shape:
            raise ShapeError(
                f"{name}: cannot index {operand} (axis {axis}: windows of {size} in {whole})",
                hint='mode="fill" takes indices out of bounds' if whole == 0 else None,
            )


# --- where an element comes from, as index expressions ----------------------------------------


def _piece(
    position: tuple, operand: ArrayType, indices: ArrayType, dims: IndexDims, sizes: Shape,
    clip: bool,
) -> Piece:  # fmt: skip
    """The operand element that belongs to `position` of the result."""
    batch = tuple(p for i, p in enumerate(position) if i not in dims.offset)
    offsets = iter(position[i] for i in dims.offset)
    window = set(dims.window_axes(operand.ndim))
    elements, where, found = [], [], []
    for axis, size in enumerate(operand.shape):
        at: Size = next(offsets) if axis in window else 0
        if axis in dims.operand_batching:
            at = batch[dims.indices_batching[dims.operand_batching.index(axis)]]
        elif axis in dims.start_map:
            source = (*batch, dims.start_map.index(axis))
            start, bounds, made = _start(axis, source, size - sizes[axis], clip)
            elements += made
            where += bounds
            at = at + start
        found.append(at)
    return Piece(0, tuple(found), tuple(where), tuple(elements))


def _start(
    axis: int, source: tuple, last: Size, clip: bool
) -> tuple[Size, list[Bounds], list[Element]]:
    inside = Element(f"start{axis}", 1, source, clamp=(0, last))
    address = symbol(inside.name, 0, last)
    if clip:
        return address, [], [inside]
    raw = Element(f"raw{axis}", 1, source)
    return address, [Bounds(symbol(raw.name, -(1 << 62), 1 << 62), 0, last + 1)], [inside, raw]


# --- the same with NumPy, independently -------------------------------------------------------


def _positions(
    operand: np.ndarray, indices: np.ndarray, dims: IndexDims, sizes: Any, clip: bool
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Index arrays into the operand for every element of the result, and where they are inside."""
    window = dims.window_axes(operand.ndim)
    rank = indices.ndim - 1 + len(window)
    batch_axes = [i for i in range(rank) if i not in dims.offset]
    inside: np.ndarray = np.ones((1,) * rank, bool)
    found = []
    for axis in range(operand.ndim):
        at = np.zeros((1,) * rank, np.int64)
        if axis in window:
            at = at + _along(np.arange(sizes[axis]), rank, [dims.offset[window.index(axis)]])
        if axis in dims.operand_batching:
            batch = dims.indices_batching[dims.operand_batching.index(axis)]
            at = at + _along(np.arange(operand.shape[axis]), rank, [batch_axes[batch]])
        if axis in dims.start_map:
            start = indices[..., dims.start_map.index(axis)].astype(np.int64)
            last = operand.shape[axis] - sizes[axis]
            if not clip:
                inside = inside & _along((start >= 0) & (start <= last), rank, batch_axes)
            at = at + _along(np.clip(start, 0, last), rank, batch_axes)
        found.append(at)
    return tuple(found), inside


def _along(values: np.ndarray, rank: int, axes: Sequence[int]) -> np.ndarray:
    shape = [1] * rank
    for size, axis in zip(values.shape, axes, strict=True):
        shape[axis] = size
    return values.reshape(shape)


# --- gather -----------------------------------------------------------------------------------


def _gather_type(
    operand: ArrayType, indices: ArrayType, fill: ArrayType, *, dims: IndexDims,
    slice_sizes: Shape, mode: str,
) -> ArrayType:  # fmt: skip
    _check_dims("gather", operand, indices, dims, slice_sizes, mode)
    same_dtype("gather", operand, fill)
    shape = _result_shape(indices, dims, slice_sizes)
    _check_windows("gather", operand, slice_sizes, shape, mode)
    return operand.with_shape(shape)


def _gather_reference(
    operand: np.ndarray, indices: np.ndarray, fill: np.ndarray, *, dims: IndexDims,
    slice_sizes: Any, mode: str,
) -> np.ndarray:  # fmt: skip
    shape: Any = _result_shape(type_of(indices), dims, slice_sizes)
    if 0 in shape or 0 in operand.shape:
        return np.broadcast_to(fill, shape)
    at, inside = _positions(operand, indices, dims, slice_sizes, mode != "fill")
    found = np.broadcast_to(operand[np.broadcast_arrays(*at)] if at else operand, shape)
    return np.where(inside, found, fill)


def _gather_transpose(
    ct: Any, linear: Batched, operand: Any, indices: Any, fill: Any, *, dims: IndexDims,
    slice_sizes: Shape, mode: str,
) -> list[Any]:  # fmt: skip
    params = {"dims": dims, "slice_sizes": slice_sizes, "mode": mode}
    found: list[Any] = [None, None, None]
    shape = operand.shape if linear[0] else type_of(operand).shape
    if linear[0]:
        found[0] = scatter_add(fit(zero_like(ct), shape), indices, ct, **params)
    if linear[2]:
        yes, no = np.ones((), np.bool_), np.zeros((), np.bool_)
        read = gather(fit(yes, shape), indices, no, **params)
        filled = select(read, zero_like(ct), ct)
        found[2] = reduce_sum(filled, axes=tuple(range(type_of(ct).ndim)))
    return found


def _gather_batch(
    batched: Batched, size: Any, operand: Any, indices: Any, fill: Any, *, dims: IndexDims,
    slice_sizes: Shape, mode: str,
) -> tuple[Any, bool]:  # fmt: skip
    if batched[2]:
        params = {"dims": dims, "slice_sizes": slice_sizes, "mode": mode}
        return _gather_batched_fill(batched, size, operand, indices, fill, params), True
    if batched[0] and batched[1]:
        moved, sizes = dims.batched(), (1, *slice_sizes)
    elif batched[0]:
        moved = _operand_lanes(dims)
        sizes = (size, *slice_sizes)
    else:
        moved = replace(dims, offset=up(dims.offset), indices_batching=up(dims.indices_batching))
        sizes = slice_sizes
    return gather(operand, indices, fill, dims=moved, slice_sizes=sizes, mode=mode), True


def _operand_lanes(dims: IndexDims) -> IndexDims:
    """The operand has a leading lane axis that every window spans whole."""
    moved = dims.shifted()
    return replace(moved, offset=(0, *moved.offset), indices_batching=dims.indices_batching)


def _gather_batched_fill(
    batched: Batched, size: Any, operand: Any, indices: Any, fill: Any, params: dict
) -> Any:
    zero, no = zero_like(fill), np.zeros((), np.bool_)
    where = (batched[0] or not batched[1], batched[1], False)
    operand = operand if where[0] == batched[0] else repeat_lane(operand, size)
    found, _ = _gather_batch(where, size, operand, indices, zero, **params)
    yes = fit(np.ones((), np.bool_), type_of(operand).shape)
    mask, _ = _gather_batch(where, size, yes, indices, no, **params)
    return select(mask, found, broadcast(fill, shape=type_of(found).shape, axes=(0,)))


def _read_back(x: Any, indices: Any, params: Mapping[str, Any]) -> Any:
    """What a scatter with the same parameters writes to: 0 for windows that it drops."""
    mode = "clip" if params["mode"] == "clip" else "fill"
    return gather(x, indices, zero_like(x), **{**params, "mode": mode})


def _gather_view(
    position: tuple, operand: ArrayType, indices: ArrayType, fill: ArrayType, *,
    dims: IndexDims, slice_sizes: Shape, mode: str,
) -> Source:  # fmt: skip
    piece = _piece(position, operand, indices, dims, slice_sizes, mode != "fill")
    return Source((piece,), fill=2)


gather: Primitive = Primitive(
    "gather", "indexing", _gather_type, _gather_reference,
    jvp=(
        lambda dx, x, i, fill, y, **params: _read_back(dx, i, params),
        ZERO,
        lambda df, x, i, fill, y, **params: gather(
            fit(zero_like(x), type_of(x).shape), i, df, **params
        ),
    ),
    transpose=_gather_transpose,
    batch=_gather_batch,
    lower=View(_gather_view),
)  # fmt: skip


# --- scatter ----------------------------------------------------------------------------------


def _scatter_type(
    operand: ArrayType, indices: ArrayType, updates: ArrayType, *, dims: IndexDims,
    slice_sizes: Shape, mode: str,
) -> ArrayType:  # fmt: skip
    _check_dims("scatter", operand, indices, dims, slice_sizes, mode)
    same_dtype("scatter", operand, updates)
    expected = _result_shape(indices, dims, slice_sizes)
    _check_windows("scatter", operand, slice_sizes, expected, mode)
    if updates.shape != expected:
        raise ShapeError(
            f"scatter: cannot write {updates} into {operand} at {indices} "
            f"(updates of shape {expected} expected)"
        )
    return operand


def _scatter_reference(write: Any) -> Rule:
    def reference(
        operand: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, dims: IndexDims,
        slice_sizes: Any, mode: str,
    ) -> np.ndarray:  # fmt: skip
        out = np.array(operand)
        if updates.size and operand.size:
            at, inside = _positions(operand, indices, dims, slice_sizes, mode == "clip")
            full = np.broadcast_arrays(*at, inside, updates)
            kept = full[-2].astype(bool)
            write(out, tuple(a[kept] for a in full[:-2]), full[-1][kept])
        return out

    return reference


def _write_in_order(out: np.ndarray, at: tuple[np.ndarray, ...], values: np.ndarray) -> None:
    out[at] = values


def _scatter_rule(
    position: tuple, operand: ArrayType, indices: ArrayType, updates: ArrayType, *,
    dims: IndexDims, slice_sizes: Shape, mode: str,
) -> Piece:  # fmt: skip
    return _piece(position, operand, indices, dims, slice_sizes, mode == "clip")


def _batch_scatter(primitive: Any) -> Rule:
    def batch(
        batched: Batched, size: Any, operand: Any, indices: Any, updates: Any, *,
        dims: IndexDims, slice_sizes: Shape, mode: str,
    ) -> tuple[Any, bool]:  # fmt: skip
        operand = operand if batched[0] else repeat_lane(operand, size)
        updates = updates if batched[2] else repeat_lane(updates, size)
        if batched[1]:
            moved, sizes = dims.batched(), (1, *slice_sizes)
        else:
            moved, sizes = _operand_lanes(dims), (size, *slice_sizes)
        return primitive()(
            operand, indices, updates, dims=moved, slice_sizes=sizes, mode=mode
        ), True

    return batch


def _add_transpose(
    ct: Any, linear: Batched, operand: Any, indices: Any, updates: Any, **params: Any
) -> list[Any]:
    return [
        ct if linear[0] else None, None, _read_back(ct, indices, params) if linear[2] else None,
    ]  # fmt: skip


def _scatter_add_type(*types: ArrayType, **params: Any) -> ArrayType:
    require("scatter_add", dtypes.NUMERIC, "numeric", types[0])
    return _scatter_type(*types, **params)


scatter_add: Primitive = Primitive(
    "scatter_add", "indexing", _scatter_add_type, _scatter_reference(np.add.at),
    jvp=(
        lambda dx, x, i, u, y, **params: dx,
        ZERO,
        lambda du, x, i, u, y, **params: scatter_add(zeros_like(x), i, du, **params),
    ),
    transpose=_add_transpose,
    batch=_batch_scatter(lambda: scatter_add),
    lower=Scatter("add", 2, _scatter_rule),
)  # fmt: skip


def _last_written(x: Any, indices: Any, u: Any, params: dict) -> Any:
    """1 for the updates that a later one does not overwrite, else 0, in the dtype of u."""
    shape = type_of(u).shape
    count: Any = 1
    for size in shape:
        count = count * size
    number = reshape(iota(shape=(count,), axis=0, dtype=dtypes.i32), shape=shape)
    none = fit(np.array(-1, np.int32), type_of(x).shape)
    winner = scatter(none, indices, number, **params)
    return cast(eq(_read_back(winner, indices, params), number), type_of(u).dtype)


def _scatter_wrt_operand(dx: Any, x: Any, i: Any, u: Any, y: Any, **params: Any) -> Any:
    kept = scatter(fit(literal_like(1, x), type_of(x).shape), i, zeros_like(u), **params)
    return mul(dx, kept)


def _scatter_wrt_updates(du: Any, x: Any, i: Any, u: Any, y: Any, **params: Any) -> Any:
    return scatter_add(zeros_like(x), i, mul(du, _last_written(x, i, u, params)), **params)


scatter: Primitive = Primitive(
    "scatter", "indexing", _scatter_type, _scatter_reference(_write_in_order),
    jvp=(_scatter_wrt_operand, ZERO, _scatter_wrt_updates),
    batch=_batch_scatter(lambda: scatter),
    lower=Scatter(None, 2, _scatter_rule),
)  # fmt: skip

PRIMITIVES = (gather, scatter, scatter_add)
