"""Sorting on a device: a network of comparisons that suits any length, one stage after another.

In each stage every element is compared with at most one other, so a stage is one kernel over all
elements; there are t (t + 1) / 2 stages for up to 2^t elements. Which elements meet depends on
the number of the stage alone. The position is the last key: no two elements are equal, and the
order is the stable one.

Cost: O(n log^2 n) comparisons; the number of equations does not depend on n.
Source: Batcher's merge exchange, Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, literal_like, type_of
from rune.core.values import Operand, Value
from rune.dims import Size, bounds
from rune.ops.arithmetic import (
    add,
    bitcast,
    cast,
    eq,
    ge,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    mul,
    ne,
    select,
    shr,
    sub,
    zero_like,
)
from rune.ops.complex_numbers import imag, real
from rune.ops.creation import iota
from rune.ops.family import reshape, size_value
from rune.ops.index_dims import IndexDims
from rune.ops.indexing import gather
from rune.ops.repeat import repeat
from rune.ops.transcendental import sqrt

if TYPE_CHECKING:
    from rune.array import Array

_LARGEST = (1 << 31) - 1  # elements that i32 positions can tell


def permutation(keys: Sequence[Value]) -> Array:
    """The i32 positions, along the last axis, that put the keys into order; ties keep theirs."""
    shape = type_of(keys[0]).shape
    numbers = iota(shape=shape, axis=len(shape) - 1, dtype=dtypes.i32)
    return _run([*(k for key in keys for k in ordered(key)), numbers])[-1]


def sort_integers(x: Value) -> Any:
    """Integers or bools, sorted along the last axis."""
    (key,) = ordered(x)
    return cast(_run([key])[0], type_of(x).dtype)


def ordered(key: Value) -> Sequence[Value]:
    """Integers of 32 or 64 bits, most significant first, that compare as the elements do."""
    dtype = type_of(key).dtype
    if dtype in dtypes.COMPLEX:
        return [*ordered(real(key)), *ordered(imag(key))]
    if dtype in dtypes.FLOATING:
        wide = dtype == dtypes.f64
        number = cast(key, dtypes.f64 if wide else dtypes.f32)
        return [_float_order(number, dtypes.i64 if wide else dtypes.i32)]
    return [key if dtype.itemsize >= 4 else cast(key, dtypes.i32)]


def _float_order(x: Value, integer: np.dtype) -> Array:
    bits = bitcast(select(eq(x, zero_like(x)), zero_like(x), x), dtype=integer)
    most = np.iinfo(integer).max
    # Of negative numbers the bits grow with the size: all but the sign are turned over.
    turned = logical_xor(bits, literal_like(most, bits))
    order = select(lt(bits, zero_like(bits)), turned, bits)
    return select(ne(x, x), literal_like(most, bits), order)


def reversed_order(key: Value) -> Value:
    """An integer key for the opposite order."""
    return logical_not(key)


# --- the network ------------------------------------------------------------------------------


def _run(keys: Sequence[Value]) -> list[Any]:
    """The keys in lexicographic order, all of them moved alike."""
    shape = type_of(keys[0]).shape
    levels = _levels(shape[-1])
    size = size_value(shape[-1], dtypes.i32)

    def step(i: Value, *values: Value) -> list[Array]:
        period, phase, distance = stage_numbers(i, levels)
        position = iota(shape=shape, axis=len(shape) - 1, dtype=dtypes.i32)
        before = sub(position, distance)
        is_low = logical_and(_meets(position, period, phase), lt(position, sub(size, distance)))
        is_high = logical_and(ge(before, _ZERO), _meets(before, period, phase))
        partner = select(is_low, add(position, distance), select(is_high, before, position))
        others = [take_last(v, partner) for v in values]
        moves = select(is_low, less(others, values), less(values, others))
        return [select(moves, other, value) for value, other in zip(values, others, strict=True)]

    return repeat(levels * (levels + 1) // 2, step, *keys) if levels else list(keys)


def _levels(size: Size) -> int:
    """The least t such that 2^t is enough, for any size within its bounds."""
    most = bounds(size)[1]
    return (max(1, _LARGEST if most is None else most) - 1).bit_length()


def stage_numbers(i: Value, levels: int) -> tuple[Array, Array, Array]:
    """p, r and d of stage i: the elements at j and j + d meet where j & p == r.

    Group k has the stages m = 0…k, and so starts at stage k (k + 1) / 2.
    """
    one, top = _integer(1), _integer(1 << levels >> 1)
    root = sqrt(add(mul(cast(i, dtypes.f32), _float(8)), _float(1.5)))  # far from any integer
    k = cast(mul(sub(root, _float(1)), _float(0.5)), dtypes.i32)
    m = sub(i, shr(mul(k, add(k, one)), one))
    period = shr(top, k)
    is_first = eq(m, _ZERO)
    before = shr(top, sub(m, select(is_first, _ZERO, one)))
    distance = select(is_first, period, sub(before, period))
    return period, select(is_first, _ZERO, period), distance


def _integer(value: int) -> Value:
    return literal(value, dtypes.i32)


def _float(value: float) -> Value:
    return literal(value, dtypes.f32)


_ZERO = _integer(0)


def _meets(position: Value, period: Value, phase: Value) -> Array:
    return eq(logical_and(position, period), phase)


def less(a: Sequence[Value], b: Sequence[Value]) -> Array:
    """a < b, lexicographically."""
    is_less = lt(a[-1], b[-1])
    for x, y in reversed(list(zip(a[:-1], b[:-1], strict=True))):
        is_less = logical_or(lt(x, y), logical_and(eq(x, y), is_less))
    return is_less


def take_last(x: Operand, positions: Value) -> Array:
    """For every place the element of the same row at that position.

    Shapes: x [*B, N], positions [*B, M] -> [*B, M].
    """
    ndim = type_of(x).ndim
    rows = tuple(range(ndim - 1))
    return gather(
        x,
        reshape(positions, shape=(*type_of(positions).shape, 1)),
        zero_like(x),
        dims=IndexDims((), (ndim - 1,), (ndim - 1,), rows, rows),
        slice_sizes=(1,) * ndim,
        mode="promise_in_bounds",
    )
