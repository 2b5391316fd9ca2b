"""By index: reads and writes of an array at indices, where the axis that they address is split.

    gather, dynamic_slice, slice              each device reads what its block has, and 0 elsewhere:
                                              the sum over the devices has every element
    scatter..., dynamic_update_slice          each device writes to its block, and drops the others

So the result of a read is sent, or the updates of a write, and not the array. Indices become
positions in the block: the index minus the first of the block, if it is one that the array has. A
window is a single element along the axis; of a longer one each element gets an index of its own.

Invariant: the same bits. Sums are of unsigned integers, of which all but one are 0, so that -0.0
           and NaN remain. A device writes the updates of its block in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rune import dtypes
from rune.core.axes import Name
from rune.core.interpreter import literal_like, type_of
from rune.core.lower import Scatter
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.ops import complex_numbers, scalars
from rune.ops.arithmetic import add, bitcast, cast, ge, le, logical_and, lt, max, min, mul, ne, select, sub, zero_like
from rune.ops.collectives import psum
from rune.ops.creation import iota
from rune.ops.family import broadcast, fit, reshape, size_value
from rune.ops.index_dims import IndexDims
from rune.ops.index_values import signed
from rune.ops.indexing import gather, scatter
from rune.ops.movement import concatenate, slice_
from rune.ops.precision import bits_of
from rune.ops.windows import dynamic_slice, dynamic_update_slice
from rune.records import dataclass
from rune.transforms.programs.call_rules import Params
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.reshard import device_number

Cut = Mapping[int, tuple[Name, ...]]  # the mesh axes that split an axis of the array
READS = (gather, dynamic_slice, slice_)


def indexed_axes(primitive: Primitive, types: Sequence[ArrayType], params: Params) -> list[int]:
    """The axes of the first operand that indices address, and along which it may be split."""
    if primitive is gather or isinstance(primitive.lower, Scatter):
        sizes, shape = params["slice_sizes"], types[0].shape
        axes = [axis for axis in params["dims"].start_map if sizes[axis] == 1 or _is_less(sizes[axis], shape[axis])]
    elif primitive is dynamic_slice:
        axes = _shorter(types[0], params["sizes"])
    elif primitive is slice_:
        axes = _shorter(types[0], primitive.type_rule(types[0], **params).shape)
    elif primitive is dynamic_update_slice:
        axes = _shorter(types[0], types[1].shape)
    else:
        return []
    is_united = primitive not in READS or _has_bits(types[0].dtype)
    return [axis for axis in axes if types[0].shape[axis] != 1] if is_united else []


def _shorter(operand: ArrayType, sizes: Sequence[Size]) -> list[int]:
    return [axis for axis, (size, window) in enumerate(zip(operand.shape, sizes, strict=True)) if size != window]


def _is_less(window: Size, size: Size) -> bool:
    return isinstance(window, int) and isinstance(size, int) and 1 < window < size


def _has_bits(dtype: np.dtype) -> bool:
    """Whether elements of this dtype, or their parts, are whole bytes that can be summed."""
    return dtype == dtypes.bool_ or (dtype in dtypes.NUMERIC and scalars.bit_width(dtype) >= 8)


# --- reads --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ByIndex:
    """An operation at indices of split axes of its first operand.

    array: the type of the first operand, of which the device has a block
    cut:   its split axes that are indexed
    """

    primitive: Primitive
    array: ArrayType
    cut: Cut
    region: Region

    def read(self, operands: Sequence[Value], params: Params, finish: Callable[[Value], Value]) -> Value:
        """The elements at the indices, on every device.

        params: for the device's part of the result
        finish: a layout of the result, for which its elements are summed
        """
        block, window = operands[0], _window(self, operands, params)
        local = {"dims": window.dims, "slice_sizes": window.sizes, "mode": "fill"}
        positions = self._in_block(window)
        elements = gather(window.block, positions, zero_like(block), **local)
        names = [name for axis_names in self.cut.values() for name in axis_names]
        result = _united(elements, names, finish)
        if self.primitive is not gather or params["mode"] != "fill":
            return result
        # Where no device has an element, the result is the operand that fills it.
        shape = self.array_here(block).shape
        yes, no = np.ones((), np.bool_), np.zeros((), np.bool_)
        return select(finish(gather(fit(yes, shape), operands[1], no, **params)), result, operands[2])

    def write(self, operands: Sequence[Value], params: Params) -> Value:
        """The block of the first operand with the updates that belong to it."""
        window = _window(self, operands, params)
        positions = self._in_block(window)
        primitive = scatter if self.primitive is dynamic_update_slice else self.primitive
        updates = operands[1] if self.primitive is dynamic_update_slice else operands[2]
        local = {"dims": window.dims, "slice_sizes": window.sizes, "mode": "fill"}
        return primitive(window.block, positions, updates, **local)

    def array_here(self, block: Value) -> ArrayType:
        """The array of which the device has the block, if no other axes are split."""
        type = type_of(block)
        sizes = (self.array.shape[axis] if axis in self.cut else size for axis, size in enumerate(type.shape))
        return type.with_shape(tuple(sizes))

    def _in_block(self, window: _Window) -> Value:
        """The indices of the windows as positions in the block, or outside of it."""
        block, columns = type_of(window.block), []
        for axis, column in zip(window.dims.start_map, window.columns, strict=True):
            length = self.array.shape[axis] if axis in self.cut else block.shape[axis]
            last = length - window.sizes[axis]
            places = signed(column, length)
            places = _clamped(places, last) if window.is_clamped else _or_below(places, last)
            if axis in self.cut:
                places = sub(places, self._first(axis, block.shape[axis], type_of(places).dtype))
            columns.append(places)
        widest = dtypes.i64 if any(type_of(c).dtype == dtypes.i64 for c in columns) else dtypes.i32
        parts = [reshape(cast(c, widest), shape=(*type_of(c).shape, 1)) for c in columns]
        return parts[0] if len(parts) == 1 else concatenate(*parts, axis=type_of(parts[0]).ndim - 1)

    def _first(self, axis: int, length: Size, dtype: np.dtype) -> Value:
        """The index in the array of the first element of this device's block."""
        return mul(device_number(self.cut[axis], self.region.mesh, dtype), size_value(length, dtype))


def _clamped(places: Value, last: Size) -> Value:
    return max(min(places, _like(last, places)), zero_like(places))


def _or_below(places: Value, last: Size) -> Value:
    """The places, with -1 for those that no block has."""
    is_there = logical_and(ge(places, zero_like(places)), le(places, _like(last, places)))
    return select(is_there, places, literal_like(-1, places))


def _like(size: Size, places: Value) -> Value:
    return size_value(size, type_of(places).dtype)


def _united(elements: Value, names: Sequence[Name], finish: Callable[[Value], Value]) -> Value:
    """The sum over the devices of elements that all but one of them have as 0, bit for bit."""
    dtype = type_of(elements).dtype
    if dtype in dtypes.COMPLEX:
        parts = (_united(part(elements), names, finish) for part in (complex_numbers.real, complex_numbers.imag))
        return complex_numbers.complex(*parts)
    if dtype == dtypes.bool_:
        total = _united(cast(elements, dtypes.u8), names, finish)
        return ne(total, zero_like(total))
    bits = bitcast(elements, dtype=bits_of(dtype)) if dtype in dtypes.FLOATING else elements
    for name in names:
        bits = psum(bits, axis_name=name)
    bits = finish(bits)
    return bitcast(bits, dtype=dtype) if dtype in dtypes.FLOATING else bits


# --- windows ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Window:
    """Windows of one element along split axes, in the terms of gather and scatter.

    columns:    the index along each axis of dims.start_map
    is_clamped: whether an index that the array does not have becomes its nearest
    """

    block: Value
    columns: Sequence[Value]
    dims: IndexDims
    sizes: tuple[Size, ...]
    is_clamped: bool


def _window(operation: ByIndex, operands: Sequence[Value], params: Params) -> _Window:
    primitive, cut = operation.primitive, sorted(operation.cut)
    if primitive is slice_:
        return _of_slice(operands[0], params, cut)
    if primitive is dynamic_slice:
        return _of_starts(operation.array_here(operands[0]), operands[0], operands[1:], params["sizes"], cut)
    if primitive is dynamic_update_slice:
        sizes = type_of(operands[1]).shape
        return _of_starts(operation.array_here(operands[0]), operands[0], operands[2:], sizes, cut)
    # A write drops what is out of bounds unless it is clamped; a read is clamped unless it fills.
    mode = params["mode"]
    is_clamped = mode != "fill" if primitive is gather else mode == "clip"
    window = _Window(operands[0], _columns(operands[1]), params["dims"], params["slice_sizes"], is_clamped)
    for axis in cut:
        if window.sizes[axis] != 1:
            window = _elements_along(window, axis, operation.array.shape[axis])
    return window


def _elements_along(window: _Window, axis: int, length: Size) -> _Window:
    """The windows with an index for each of their elements along an axis.

    The axis of the result that ran over the window has these indices now, at the same place.
    """
    dims, size = window.dims, window.sizes[axis]
    offset = dims.offset[dims.window_axes(len(window.sizes)).index(axis)]
    place = offset - sum(other < offset for other in dims.offset)  # among the axes of the indices

    def spread(column: Value) -> Value:
        shape = type_of(column).shape
        axes = tuple(n + (n >= place) for n in range(len(shape)))
        return broadcast(column, shape=(*shape[:place], size, *shape[place:]), axes=axes)

    columns: list[Value] = []
    for number, column in zip(dims.start_map, window.columns, strict=True):
        places = spread(signed(column, length) if number == axis else column)
        if number == axis:
            last, index = length - size, _numbers(type_of(places).shape, place, places)
            # A window that is partly outside of the array has no elements, if it is not moved.
            start = _clamped(places, last) if window.is_clamped else _or_below(places, last)
            places = add(start, index)
            places = places if window.is_clamped else select(lt(start, zero_like(start)), start, places)
        columns.append(places)
    by_element = replace(
        dims,
        offset=tuple(other for other in dims.offset if other != offset),
        collapsed=(*dims.collapsed, axis),
        indices_batching=tuple(n + (n >= place) for n in dims.indices_batching),
    )
    sizes = tuple(1 if n == axis else other for n, other in enumerate(window.sizes))
    return _Window(window.block, columns, by_element, sizes, window.is_clamped)


def _columns(indices: Value) -> list[Value]:
    """The components of index vectors."""
    *batch, count = type_of(indices).shape
    if count == 1:
        return [reshape(indices, shape=tuple(batch))]
    start, stride = (0,) * len(batch), (1,) * (len(batch) + 1)
    columns = (
        slice_(indices, start=(*start, n), limit=(*batch, n + 1), stride=stride)
        for n in range(count)  # type: ignore[arg-type]
    )
    return [reshape(column, shape=tuple(batch)) for column in columns]


def _of_starts(
    array: ArrayType, block: Value, starts: Sequence[Value], sizes: Sequence[Size], cut: list[int]
) -> _Window:
    """A window at these starts, of which each element along split axes is one of its own."""
    axes = _shorter(array, sizes)
    batch = tuple(sizes[axis] for axis in cut)
    columns = []
    for axis in axes:
        length = array.shape[axis]
        start = _clamped(signed(starts[axis], length), length - sizes[axis])
        columns.append(add(start, _numbers(batch, cut.index(axis), start)) if axis in cut else fit(start, batch))
    return _Window(block, columns, _by_element(len(sizes), axes, cut), _single(sizes, cut), True)


def _of_slice(operand: Value, params: Params, cut: list[int]) -> _Window:
    """The elements of a slice along split axes; along the others it is taken at once."""
    full_spans = [(0, size, 1) for size in type_of(operand).shape]
    spans = list(zip(params["start"], params["limit"], params["stride"], strict=True))
    start, limit, stride = zip(*(full_spans[axis] if axis in cut else s for axis, s in enumerate(spans)), strict=True)
    block = slice_(operand, start=start, limit=limit, stride=stride)
    batch = tuple(-(-(spans[axis][1] - spans[axis][0]) // spans[axis][2]) for axis in cut)
    columns = []
    for number, axis in enumerate(cut):
        first = size_value(spans[axis][0], dtypes.i32)
        columns.append(add(mul(_numbers(batch, number, first), size_value(spans[axis][2], dtypes.i32)), first))
    sizes = type_of(block).shape
    return _Window(block, columns, _by_element(len(sizes), cut, cut), _single(sizes, cut), True)


def _numbers(shape: tuple[Size, ...], axis: int, like: Value) -> Value:
    return iota(shape=shape, axis=axis, dtype=type_of(like).dtype)


def _by_element(ndim: int, axes: Sequence[int], cut: Sequence[int]) -> IndexDims:
    """The indices lie along the split axes of the window, and the rest of it at its other axes."""
    return IndexDims(tuple(axis for axis in range(ndim) if axis not in cut), tuple(cut), tuple(axes))


def _single(sizes: Sequence[Size], cut: Sequence[int]) -> tuple[Size, ...]:
    return tuple(1 if axis in cut else size for axis, size in enumerate(sizes))
