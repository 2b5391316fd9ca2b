"""Where the windows of a gather or scatter lie: `IndexDims`, and the maps derived from it.

`IndexDims` says how windows sit in the operand, in the terms of XLA's Gather: the last axis of
`indices` holds a start for each operand axis in `start_map`; the window spans `slice_sizes`;
`collapsed` axes (size 1) are dropped from the result, the others appear at `offset` axes of the
result; `operand_batching` axes pair up with `indices_batching` axes. A scatter has the same
geometry, with the updates in place of the result.

The map from an element of the result to an element of the operand is written twice: as index
expressions for kernels (`piece_at`), and with NumPy for the references (`positions`).

Source: XLA operation semantics, Gather and Scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from rune import dtypes
from rune.core.lower import Bounds, Element, Piece
from rune.core.types import ArrayType, Shape
from rune.dims import Size, less, symbol
from rune.errors import ArgumentError, ShapeError
from rune.ops.family import require
from rune.records import dataclass

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IndexDims:
    """How the windows of a gather or scatter sit in the operand."""

    offset: Axes  # axes of the result (updates) that run over the window
    collapsed: Axes  # operand axes of window size 1, absent from the result
    start_map: Axes  # operand axis that each component of an index vector refers to
    operand_batching: Axes = ()
    indices_batching: Axes = ()

    def shifted(self) -> IndexDims:
        """With every axis moved by one, and no batch axis added."""
        return IndexDims(
            up(self.offset),
            up(self.collapsed),
            up(self.start_map),
            up(self.operand_batching),
            up(self.indices_batching),
        )

    def batched(self) -> IndexDims:
        """With one more batch axis in front of operand, indices and result."""
        dims = self.shifted()
        return replace(dims, operand_batching=(0, *dims.operand_batching), indices_batching=(0, *dims.indices_batching))

    def window_axes(self, ndim: int) -> Axes:
        """The operand axes that appear in the result, in order."""
        absent_axes = {*self.collapsed, *self.operand_batching}
        return tuple(i for i in range(ndim) if i not in absent_axes)


class WindowParams(TypedDict):
    """The parameters of gather and scatter: where windows lie, how large they are, and the mode."""

    dims: IndexDims
    slice_sizes: Shape
    mode: str


def up(axes: Sequence[int]) -> Axes:
    """The same axes after one more leading axis."""
    return tuple(a + 1 for a in axes)


def result_shape(indices: ArrayType, dims: IndexDims, sizes: Shape) -> Shape:
    """The shape of a gather's result, or a scatter's updates."""
    window = [sizes[a] for a in dims.window_axes(len(sizes))]
    batch = list(indices.shape[:-1])
    rank = len(window) + len(batch)
    return tuple(window.pop(0) if i in dims.offset else batch.pop(0) for i in range(rank))


MODES = ("clip", "fill", "promise_in_bounds")


def check_dims(name: str, operand: ArrayType, indices: ArrayType, dims: IndexDims, sizes: Shape, mode: str) -> None:
    """Errors: DtypeError, ArgumentError or ShapeError if dims, mode or indices do not fit."""
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


def check_windows(name: str, operand: ArrayType, sizes: Shape, shape: Shape, mode: str) -> None:
    """A window that is moved inside must fit into its axis; where there is no window, nothing is
    read.

    Errors: ShapeError for a window longer than its axis; UndecidedComparison if that depends on
            symbolic sizes, unless the window is a single element.
    """
    if mode == "fill" or 0 in shape:
        return
    for axis, (size, length) in enumerate(zip(sizes, operand.shape, strict=True)):
        is_longer = less(length, size) if size == 1 else length < size
        if is_longer:
            raise ShapeError(
                f"{name}: cannot index {operand} (axis {axis}: windows of {size} in {length})",
                hint='mode="fill" takes indices out of bounds' if length == 0 else None,
            )


# --- where an element comes from, as index expressions ----------------------------------------


def piece_at(position: tuple, operand: ArrayType, indices: ArrayType, params: WindowParams, clip: bool) -> Piece:
    """The operand element that belongs to `position` of the result.

    clip: whether a window that would leave the operand is moved inside
    """
    dims, sizes = params["dims"], params["slice_sizes"]
    batch = tuple(p for i, p in enumerate(position) if i not in dims.offset)
    offsets = iter(position[i] for i in dims.offset)
    window = set(dims.window_axes(operand.ndim))
    elements, where, index = [], [], []
    for axis, size in enumerate(operand.shape):
        at: Size = next(offsets) if axis in window else 0
        if axis in dims.operand_batching:
            at = batch[dims.indices_batching[dims.operand_batching.index(axis)]]
        elif axis in dims.start_map:
            source = (*batch, dims.start_map.index(axis))
            start, bounds, start_elements = _start(axis, source, size - sizes[axis], clip, indices.dtype)
            elements += start_elements
            where += bounds
            at = at + start
        index.append(at)
    return Piece(0, tuple(index), tuple(where), tuple(elements))


def _start(
    axis: int, source: tuple, last: Size, clip: bool, dtype: np.dtype
) -> tuple[Size, list[Bounds], list[Element]]:
    inside = Element(f"start{axis}", 1, source, clamp=(0, last))
    address = symbol(inside.name, 0, last)
    if clip:
        return address, [], [inside]
    # Index expressions have no 64-bit integers: of a wide one they keep only on which side it is
    # outside.
    is_wide = dtype.itemsize == 8
    low, high = (-1, last + 1) if is_wide else (-(1 << 62), 1 << 62)
    raw = Element(f"raw{axis}", 1, source, clamp=(low, high) if is_wide else None)
    return address, [Bounds(symbol(raw.name, low, high), 0, last + 1)], [inside, raw]


# --- the same with NumPy, independently -------------------------------------------------------


def positions(
    operand: np.ndarray, indices: np.ndarray, dims: IndexDims, sizes: Any, clip: bool
) -> tuple[np.ndarray, np.ndarray]:
    """For every element of the result its place in the flattened operand, and whether it is in
    bounds.

    Both arrays have the rank of the result, and size 1 along axes where all entries are equal.
    """
    window = dims.window_axes(operand.ndim)
    rank = indices.ndim - 1 + len(window)
    batch_axes = [i for i in range(rank) if i not in dims.offset]
    inside: np.ndarray = np.ones((1,) * rank, bool)
    flat, stride = np.zeros((1,) * rank, np.intp), 1
    for axis in reversed(range(operand.ndim)):
        if axis in window:
            along = _along(np.arange(sizes[axis]), rank, [dims.offset[window.index(axis)]])
            flat = _plus(flat, along, stride)
        if axis in dims.operand_batching:
            batch = dims.indices_batching[dims.operand_batching.index(axis)]
            along = _along(np.arange(operand.shape[axis]), rank, [batch_axes[batch]])
            flat = _plus(flat, along, stride)
        if axis in dims.start_map:
            start = places(indices[..., dims.start_map.index(axis)])
            last = operand.shape[axis] - sizes[axis]
            if not within(start, last):
                if not clip:
                    is_in = (start >= 0) & (start <= last)
                    inside = inside & _along(is_in, rank, batch_axes)
                start = np.clip(start, 0, last)
            flat = _plus(flat, _along(start, rank, batch_axes), stride)
        stride *= operand.shape[axis]
    return flat, inside


def places(indices: np.ndarray) -> np.ndarray:
    """Indices as NumPy's own dtype; u64 values beyond its range become its largest."""
    if indices.dtype == dtypes.u64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.intp).max))
    return indices.astype(np.intp, copy=False)


def within(start: np.ndarray, last: int) -> bool:
    """Whether all are in 0...last, judged by their extrema, without a mask."""
    return not start.size or bool(0 <= start.min() and start.max() <= last)


def _plus(total: np.ndarray, at: np.ndarray, stride: int) -> np.ndarray:
    """total + at * stride, without passes that would change nothing."""
    offset = at * stride if stride != 1 else at
    return total + offset if total.size > 1 or total.any() else offset


def _along(values: np.ndarray, rank: int, axes: Sequence[int]) -> np.ndarray:
    shape = [1] * rank
    for size, axis in zip(values.shape, axes, strict=True):
        shape[axis] = size
    return values.reshape(shape)
