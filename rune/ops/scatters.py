"""Scatters that multiply, or take the minimum or maximum: several updates of one element all count.

The derivative of a product in one of its factors is the product of the others, which is computed
without a division, so that zeros do no harm. The element and all updates that equal a minimum or
maximum share its tangent equally, as in JAX; all that are NaN share the tangent of a NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dims as sizes_of
from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size, product
from rune.errors import ShapeError
from rune.ops.arithmetic import (
    add,
    cast,
    div,
    eq,
    logical_and,
    logical_or,
    logical_xor,
    mul,
    ne,
    select,
    shr,
    zero_like,
)
from rune.ops.family import Batched, fit, reshape, zeros_like
from rune.ops.index_dims import IndexDims
from rune.ops.indexing import (
    gather,
    numbers,
    read_back,
    scatter,
    scatter_add,
    scatter_primitive,
    window_numbers,
    windows_meeting,
)

if TYPE_CHECKING:
    from rune.array import Array

# --- products ---------------------------------------------------------------------------------

_ROWS = IndexDims((), (0,), (0,))


def _at_rows(primitive: Primitive, table: Value, rows: Value, last: Value) -> Array:
    """A gather or scatter of single elements of a flat table."""
    shape = (*type_of(rows).shape, 1)
    return primitive(table, reshape(rows, shape=shape), last, dims=_ROWS, slice_sizes=(1,), mode="fill")


def _products(x: ArrayType, indices: Value, u: Value, params: Any) -> tuple[Array, Array]:
    """For every update, the product of all updates of the same element, and of all but itself.

    The updates of one element whose windows' numbers agree except for the last k bits are a group;
    its two halves are the groups for k - 1. Groups are split from the largest to the smallest, and
    multiplied from the smallest to the largest.

    Cost: log2 of the number of windows, times two gathers and two scatters.
    """
    shape, one = type_of(u).shape, literal_like(1, u)
    total, groups = product(shape), product(x.shape)
    place = reshape(numbers(groups), shape=x.shape)
    group = reshape(read_back(place, indices, params, -1), shape=(total,))
    number = reshape(window_numbers(indices, params["dims"], shape), shape=(total,))
    halves: list[tuple[Array, Value]] = []
    for bit in reversed(range(_bits(windows_meeting(indices, params["dims"])))):
        side = logical_and(shr(number, _i32(bit)), _i32(1))
        half = add(add(group, group), side)  # still negative for an update out of bounds
        halves.append((half, fit(one, (2 * groups,))))
        # A half is identified by the number of the last update in it.
        last = _at_rows(scatter, fit(_i32(0), (2 * groups,)), half, numbers(total))
        group, groups = _at_rows(gather, last, half, _i32(-1)), total
    products, others = reshape(u, shape=(total,)), fit(one, (total,))
    for half, ones in reversed(halves):
        half_products = _at_rows(scatter, ones, half, products)  # all updates of one half write the same value
        other = _at_rows(gather, half_products, logical_xor(half, _i32(1)), one)
        products, others = mul(products, other), mul(others, other)
    return reshape(products, shape=shape), reshape(others, shape=shape)


def multiply_at(x: Value, indices: Value, u: Value, **params: object) -> Array:
    """scatter_mul; for complex numbers, whose parts cannot be multiplied separately, composed of
    other primitives.
    """
    if type_of(x).dtype not in dtypes.COMPLEX:
        return scatter_mul(x, indices, u, **params)
    products, _ = _products(type_of(x), indices, u, params)
    return scatter(x, indices, mul(read_back(x, indices, params), products), **params)


def _i32(number: int) -> np.ndarray:
    return np.array(number, np.int32)


def _bits(count: Size) -> int:
    """Bits of the numbers below `count`, which may be symbolic."""
    high = sizes_of.bounds(count)[1]
    if high is None:
        raise ShapeError(f"scatter_mul: cannot differentiate {count} windows (no upper bound)")
    return max(0, high - 1).bit_length()


def _mul_jvp(tangents: Sequence[Value | None], args: Sequence[Value], y: Value, **params: object) -> Array:
    (dx, _, du), (x, i, u) = tangents, args
    from_operand = zeros_like(x) if dx is None else scatter_mul(dx, i, u, **params)
    if du is None:
        return from_operand
    _, others = _products(type_of(x), i, u, params)
    return scatter_add(from_operand, i, mul(du, mul(read_back(x, i, params), others)), **params)


def _mul_transpose(
    ct: Value, linear: Batched, operand: ArrayType, indices: Value, updates: Value, **params: object
) -> list[Array | None]:
    return [scatter_mul(ct, indices, updates, **params), None, None]


scatter_mul: Primitive = scatter_primitive(
    "scatter_mul", "real", "mul", np.multiply.at, _mul_jvp, _mul_transpose, linear_in=((0,),)
)


# --- minima and maxima ------------------------------------------------------------------------


def _matches(a: Value, y: Value) -> Array:
    """Where `a` equals the extremum y, or both are NaN."""
    return logical_or(eq(a, y), logical_and(ne(a, a), ne(y, y)))


def _extremum_jvp(tangents: Sequence[Value | None], args: Sequence[Value], y: Value, **params: object) -> Array:
    # The element and all updates that equal the result share the tangent equally.
    (dx, _, du), (x, i, u) = tangents, args
    from_x, from_u = _matches(x, y), _matches(u, read_back(y, i, params))
    count = scatter_add(cast(from_x, dtypes.i32), i, cast(from_u, dtypes.i32), **params)
    share = div(literal_like(1, x), cast(count, type_of(x).dtype))
    from_operand = zeros_like(x) if dx is None else select(from_x, mul(dx, share), zero_like(x))
    if du is None:
        return from_operand
    from_updates = select(from_u, mul(du, read_back(share, i, params)), zero_like(u))
    return scatter_add(from_operand, i, from_updates, **params)


scatter_min = scatter_primitive("scatter_min", "ordered", "min", np.minimum.at, _extremum_jvp)
scatter_max = scatter_primitive("scatter_max", "ordered", "max", np.maximum.at, _extremum_jvp)

PRIMITIVES = (scatter_mul, scatter_min, scatter_max)
