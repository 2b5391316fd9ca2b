"""Running sums along a split axis: each device adds earlier totals to those of its block.

    cumsum of 16 numbers on each of 8 devices      one number is sent to 7 others, and not 16

The same goes for products, maxima and minima, in both directions.

Invariant: the result is split as the operand. Sums of floats are rounded in another order, so those
           of less than 32 bits are computed as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.lower import Cumulative
from rune.core.primitive import Primitive
from rune.core.values import Value
from rune.ops.arithmetic import add, max, min, mul
from rune.ops.family import broadcast, reshape, size_value
from rune.ops.movement import pad
from rune.ops.scalars import order_limits
from rune.ops.windows import dynamic_slice
from rune.transforms.programs.call_rules import Params
from rune.transforms.sharding.block import Block, Layouts
from rune.transforms.sharding.reshard import device_number, gathered
from rune.transforms.sharding.spans import cropped

_COMBINED_BY: Mapping[str, Callable[[Value, Value], Value]] = {"add": add, "mul": mul, "max": max, "min": min}


def running(local: Layouts, primitive: Primitive, args: Sequence[Value], params: Params) -> Block | None:
    """The result of a running sum along an axis that is split; None for other operations."""
    if not isinstance(primitive.lower, Cumulative):
        return None
    (operand,), axis = args, params["axis"]
    type = type_of(operand)
    is_rounded = type.dtype in dtypes.INEXACT and type.dtype.itemsize < np.dtype(dtypes.f32).itemsize
    if not local.owns(operand) or operand.spans or not operand.layout[axis] or is_rounded or type.is_symbolic:
        return None
    block = primitive(local.at(operand, operand.layout), **params)
    size = type_of(block).shape[axis]
    assert isinstance(size, int)
    if not size:
        return None
    end = 0 if params["reverse"] else size - 1
    totals = _totals(local, primitive, operand, cropped(block, axis, end, end + 1), params)
    shape = type_of(block).shape
    before = broadcast(
        reshape(totals, shape=(*shape[:axis], *shape[axis + 1 :])), shape=shape, axes=_others(axis, shape)
    )
    return Block(local, _COMBINED_BY[primitive.lower.combine](before, block), type, operand.layout)


def _others(axis: int, shape: Sequence[object]) -> tuple[int, ...]:
    return tuple(n for n in range(len(shape)) if n != axis)


def _totals(local: Layouts, primitive: Primitive, operand: Block, total: Value, params: Params) -> Value:
    """The sum of the blocks before a device's, from the total of its own; `axis` has size 1."""
    assert isinstance(primitive.lower, Cumulative)
    axis, names, mesh = params["axis"], operand.layout[params["axis"]], local.region.mesh
    totals = total
    for name in reversed(names):
        totals = gathered(totals, axis, name, mesh.shape[name])
    # The sums up to each device; the first device gets the neutral number.
    sums = primitive(totals, **params)
    neutral = literal_like(_neutral(primitive.lower.combine, type_of(total).dtype), total)
    sides = [tuple(int(n == axis) for n in range(type_of(total).ndim)), (0,) * type_of(total).ndim]
    low, high = reversed(sides) if params["reverse"] else sides
    padded = pad(sums, neutral, low=low, high=high, interior=sides[1])
    index = np.dtype(dtypes.i32)
    number = device_number(names, mesh, index)
    place = add(number, size_value(1, index)) if params["reverse"] else number
    starts = [place if n == axis else size_value(0, index) for n in range(type_of(total).ndim)]
    return dynamic_slice(padded, *starts, sizes=type_of(total).shape)


def _neutral(combine: str, dtype: np.dtype) -> object:
    least, greatest = order_limits(dtype) if combine in ("max", "min") else (0, 0)
    return {"add": 0, "mul": 1, "max": least, "min": greatest}[combine]
