"""Sorting along the last axis: `sort` of several arrays by the first of them, `top_k`, search.

    sort     operands of one shape -> the same, their rows permuted alike so that the first
             `num_keys` are in lexicographic order; equal elements keep their order
    top_k    x, k -> the k last elements in total order, the last one first, and their positions

`sort` has NaN after all numbers and -0 equal to 0; `top_k` goes by every bit, as IEEE 754's
totalOrder and JAX do: -0 before 0, and a NaN whose sign bit is set before all numbers. Complex
numbers are ordered by real and then by imaginary part, False before True. Tangents move with their
elements.

order.py has the order in NumPy, which is the meaning; keys.py the order in integers, for devices,
whose way of sorting is in lowering/sorting; searching.py the search in sorted rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dims, dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_rows
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.ops.creation import iota
from rune.ops.family import Batched, require, types_text
from rune.ops.jax_forms import LAST_AXIS, SORT_NAMES, sort_form, top_k_form
from rune.ops.movement import slice_, spread_batches
from rune.ops.sorting import order
from rune.ops.sorting.keys import take_last as take_last
from rune.ops.sorting.searching import search_sorted

if TYPE_CHECKING:
    from rune.array import Array

Rules = tuple[list[Any], list[Any]]

# Up to this many comparisons, of each element with every other of its row, kernels of a program are
# as fast as a routine that all programs share; they take 10 ms more to compile.
FEW_COMPARISONS = 1 << 12
# The most passes over a row in place of a routine. A pass takes 0.15 ns for each element, and its
# first call 3 ms.
MOST_PASSES = 12


def positions_like(x: Value) -> Array:
    """The position of every element along the last axis, as i32."""
    shape = type_of(x).shape
    return iota(shape=shape, axis=len(shape) - 1, dtype=dtypes.i32)


def last_axis(name: str, x: ArrayType) -> Size:
    """The size of the axis that is sorted. Errors: ShapeError for rank 0."""
    if not x.shape:
        raise ShapeError(f"{name}: cannot order {x} (at least one axis required)")
    return x.shape[-1]


def _is_long(x: ArrayType, *_others: ArrayType, **_params: object) -> bool:
    """Whether the rows are long enough that a routine pays."""
    most = [dims.bounds(size)[1] for size in (*x.shape, x.shape[-1])]
    return None in most or math.prod(size for size in most if size is not None) > FEW_COMPARISONS


def _tangents_at(tangents: Sequence[Value], positions: Value) -> list[Array | None]:
    return [None if t is None else take_last(t, positions) for t in tangents]


# --- sort -------------------------------------------------------------------------------------


def _sort_type(*types: ArrayType, num_keys: int) -> tuple[ArrayType, ...]:
    require("sort", dtypes.ANY, "numeric or bool", *types[:num_keys])
    if not 1 <= num_keys <= len(types):
        raise ArgumentError(f"sort: cannot sort {len(types)} arrays by {num_keys} of them")
    last_axis("sort", types[0])
    if any(t.shape != types[0].shape for t in types):
        raise ShapeError(f"sort: cannot sort {types_text(types)} together (shapes differ)")
    return types


def _sort_reference(*operands: np.ndarray, num_keys: int) -> tuple[np.ndarray, ...]:
    if len(operands) == 1:
        return (order.sorted_rows(operands[0]),)
    permutation = order.permutation(operands[:num_keys])
    return tuple(order.take_rows(x, permutation) for x in operands)


def _sort_jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Mapping[str, object]) -> Rules:
    *outs, positions = sort(*primals, positions_like(primals[0]), **params)
    return outs, _tangents_at(tangents, positions)


def _sort_batch(batched: Batched, size: Size, *operands: Value, num_keys: int) -> Rules:
    outs = sort(*spread_batches(batched, size, operands), num_keys=num_keys)
    return outs, [True] * len(outs)


sort: Primitive = Primitive(
    "sort",
    "sorting",
    _sort_type,
    _sort_reference,
    jvp_equation=_sort_jvp,
    batch=_sort_batch,
    lower=Library(lanes_of_rows, pays=_is_long),
    multiple_results=True,
    jax_names=SORT_NAMES,
    jax_form=sort_form(lambda: sort),
)


def argsort(x: Value) -> Array:
    """The i32 positions, along the last axis, that sort `x`; ties keep their order."""
    return sort(x, positions_like(x), num_keys=1)[1]


# --- top_k ------------------------------------------------------------------------------------


def _top_k_type(x: ArrayType, *, k: int) -> tuple[ArrayType, ...]:
    size = last_axis("top_k", x)
    if k < 0 or not k <= size:
        raise ArgumentError(f"top_k: cannot take {k} of {size} elements ({x})")
    values = x.with_shape((*x.shape[:-1], k))
    return values, ArrayType(values.shape, dtypes.i32)


def needs_few_passes(x: ArrayType, k: int) -> bool:
    """Whether the k largest are found by k passes over a row, with keys of 32 bits."""
    return 1 <= k <= MOST_PASSES and x.dtype.itemsize <= 4 and x.dtype not in dtypes.COMPLEX


def _is_by_routine(x: ArrayType, *, k: int) -> bool:
    """Whether a routine pays."""
    return _is_long(x) and not needs_few_passes(x, k)


def _top_k_reference(x: np.ndarray, *, k: int) -> tuple[np.ndarray, ...]:
    positions = order.largest(x, k)
    return order.take_rows(x, positions), positions.astype(np.int32)


def _top_k_jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Mapping[str, object]) -> Rules:
    values, positions = top_k(*primals, **params)
    return [values, positions], [*_tangents_at(tangents, positions), None]


def _top_k_batch(batched: Batched, size: Size, x: Value, *, k: int) -> Rules:
    return top_k(x, k=k), [True, True]


top_k: Primitive = Primitive(
    "top_k",
    "sorting",
    _top_k_type,
    _top_k_reference,
    jvp_equation=_top_k_jvp,
    batch=_top_k_batch,
    lower=Library(lanes_of_rows, pays=_is_by_routine),
    multiple_results=True,
    jax_names={"axis": LAST_AXIS},
    jax_form=top_k_form(lambda: top_k),
)

PRIMITIVES = (sort, top_k, search_sorted)
