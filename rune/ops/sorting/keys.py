"""Keys as integers that compare in the same order, most significant first, and their comparison.

For `sort`, NaN is after all numbers and -0 equal to 0; complex numbers compare by real and then by
imaginary part. `top_k` goes by every bit. lowering/sorting has the ways in which devices sort by
these integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.values import Operand, Value
from rune.ops.arithmetic import bitcast, cast, eq, logical_and, logical_or, logical_xor, lt, ne, select, zero_like
from rune.ops.complex_numbers import imag, real
from rune.ops.family import reshape
from rune.ops.index_dims import IndexDims
from rune.ops.indexing import gather

if TYPE_CHECKING:
    from rune.array import Array


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
    bits = bitcast(x, dtype=integer)
    most = np.iinfo(integer).max
    # Not by comparing floats: some devices flush the smallest ones to 0.
    is_zero = eq(logical_and(bits, literal_like(most, bits)), zero_like(bits))
    order = _signed_order(select(is_zero, zero_like(bits), bits))
    return select(ne(x, x), literal_like(most, bits), order)


def _signed_order(bits: Value) -> Array:
    """Bits of floats, read as integers, that compare as the floats do."""
    # The bits of negative numbers grow with the magnitude: all but the sign are inverted.
    most = np.iinfo(type_of(bits).dtype).max
    inverted_bits = logical_xor(bits, literal_like(most, bits))
    return select(lt(bits, zero_like(bits)), inverted_bits, bits)


def totally_ordered(key: Value) -> Sequence[Value]:
    """Integers, as of `ordered`, that compare as IEEE 754's totalOrder has it.

    -0 is before 0, a NaN with its sign bit set before all numbers, and any other after them.
    Source: IEEE 754-2019, section 5.10.
    """
    dtype = type_of(key).dtype
    if dtype in dtypes.COMPLEX:
        return [*totally_ordered(real(key)), *totally_ordered(imag(key))]
    if dtype not in dtypes.FLOATING:
        return ordered(key)
    wide = dtype == dtypes.f64
    number = cast(key, dtypes.f64 if wide else dtypes.f32)
    return [_signed_order(bitcast(number, dtype=dtypes.i64 if wide else dtypes.i32))]


def less(a: Sequence[Value], b: Sequence[Value]) -> Array:
    """a < b, lexicographically."""
    is_less = lt(a[-1], b[-1])
    for x, y in reversed(list(zip(a[:-1], b[:-1], strict=True))):
        is_less = logical_or(lt(x, y), logical_and(eq(x, y), is_less))
    return is_less


def take_last(x: Operand, positions: Value) -> Array:
    """At every position, the element of the same row at the given position.

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
