"""Sorting along one dimension, of several arrays by the first of them; largest elements.

Every sort is stable and its order total: NaN after all numbers, -0 equal to 0, complex numbers by
their real and then their imaginary part. The approximate forms are exact here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from rune import ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError
from rune.numpy.arguments import static_int, value
from rune.ops import ordering as o
from rune.ops.sorting import positions_like
from rune.typing import ArrayLike


@overload
def sort(operand: ArrayLike, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Array: ...
@overload
def sort(
    operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> tuple[Array, ...]: ...
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Array | tuple[Array, ...]:
    """An array sorted along a dimension; or arrays, all permuted by the first `num_keys` of them.

    Shapes: all equal, unchanged. Ties always keep their order, even if is_stable is false.
    Types:  any, unchanged.
    Errors: ShapeError where shapes differ; ArgumentError for more keys than arrays.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.sort((rnp.array([2, 1]), rnp.array([5.0, 7.0])))
    (Array([1, 2], i32[2], cpu:0), Array([7., 5.], f32[2], cpu:0))
    """
    is_one = not isinstance(operand, list | tuple)
    arrays: Sequence[Array] = (operand,) if is_one else operand
    if not arrays:
        raise ArgumentError("sort: cannot sort no arrays (at least one required)")
    rows, at = [], 0
    for x in arrays:
        row, at = o.along_last("sort", value("sort", x), dimension)
        rows.append(row)
    results = tuple(o.back(x, at) for x in ops.sort(*rows, num_keys=num_keys))
    return results[0] if is_one else results


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Keys sorted along a dimension, and the values permuted in the same way.

    Shapes: all equal, unchanged. Types: that of each.
    Errors: as `sort`.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.sort_key_val(rnp.array([2, 1]), rnp.array([5.0, 7.0]))[1]
    Array([7., 5.], f32[2], cpu:0)
    """
    sorted_keys, sorted_values = sort((keys, values), dimension, is_stable)
    return sorted_keys, sorted_values


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """The k largest elements along an axis, the largest first, and their positions as i32.

    The order is IEEE 754's totalOrder (2019, section 5.10): 0.0 is larger than -0.0, NaN larger
    than all numbers, and a NaN whose sign bit is set smaller. Equal elements keep their order.

    Shapes: operand [*A, N, *B] -> twice [*A, k, *B].
    Types:  that of `operand`, and i32.
    Errors: ArgumentError for k below 0 or over N.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.top_k(rnp.array([3.0, 9.0, 5.0]), 2)
    (Array([9., 5.], f32[2], cpu:0), Array([1, 2], i32[2], cpu:0))
    """
    rows, at = o.along_last("top_k", value("top_k", operand), axis)
    largest, positions = ops.top_k(rows, k=static_int("top_k", "k", k))
    return o.back(largest, at), o.back(positions, at)


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """`top_k` along a dimension, exact, since no executor would gain from an approximation.

    Shapes: operand [*A, N, *B] -> twice [*A, k, *B]. Types: that of `operand`, and i32.
    Errors: ArgumentError for k below 0 or over the size, and unless aggregate_to_topk.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.approx_max_k(rnp.array([3.0, 9.0, 5.0]), 1)[0]
    Array([9.], f32[1], cpu:0)
    """
    _require_aggregate("approx_max_k", aggregate_to_topk)
    return top_k(operand, k, axis=reduction_dimension)


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The k smallest elements along a dimension, the smallest first, and their positions.

    Shapes: operand [*A, N, *B] -> twice [*A, k, *B]. Types: that of `operand`, and i32.
    Errors: as `approx_max_k`.

    >>> import rune.numpy as rnp
    >>> from rune import lax
    >>> lax.approx_min_k(rnp.array([3.0, 9.0, 5.0]), 1)[0]
    Array([3.], f32[1], cpu:0)
    """
    _require_aggregate("approx_min_k", aggregate_to_topk)
    rows, at = o.along_last("approx_min_k", value("approx_min_k", operand), reduction_dimension)
    size, count = type_of(rows).shape[-1], static_int("approx_min_k", "k", k)
    if not (0 <= count and count <= size):
        raise ArgumentError(
            f"approx_min_k: cannot take {count} of {size} elements ({type_of(operand)}, axis {reduction_dimension})"
        )
    # Not top_k of negated elements: the negative of the least integer is itself.
    results = ops.sort(rows, positions_like(rows), num_keys=1)
    first, second = (o.back(_first(x, count), at) for x in results)
    return first, second


def _first(x: Array, count: int) -> Array:
    shape = type_of(x).shape
    limit = (*shape[:-1], count)
    return ops.slice_(x, start=(0,) * len(shape), limit=limit, stride=(1,) * len(shape))


def _require_aggregate(name: str, aggregate: bool) -> None:
    if not aggregate:
        raise ArgumentError(
            f"{name}: cannot return the largest elements by parts (aggregate_to_topk=False)",
            hint="the number of parts depends on JAX's hardware",
        )
