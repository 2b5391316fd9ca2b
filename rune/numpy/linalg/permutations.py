"""Permutations from sequences of row exchanges, as factorisations return them."""

from __future__ import annotations

from rune import dtypes, ops
from rune.array import Array
from rune.control import fori_loop
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.ops.family import stretch
from rune.ops.matrix_helpers import keep
from rune.typing import ArrayLike


def permutation_of_pivots(pivots: ArrayLike, rows: Size) -> Array:
    """The numbers 0 to rows - 1, after exchanging number k with number pivots[k] for ascending k.

    Shapes: i32[*B, K] -> i32[*B, rows].
    """
    *lead, count = type_of(pivots).shape
    shape, axis = (*lead, rows), len(lead)
    place = ops.iota(shape=shape, axis=axis, dtype=dtypes.i32)
    turn = ops.iota(shape=(*lead, count), axis=axis, dtype=dtypes.i32)

    def at(where: Array, x: ArrayLike) -> Array:
        return stretch(ops.reduce_sum(keep(where, x), axes=(axis,)), shape)

    def step(k: Array, order: Array) -> Array:
        k = ops.cast(k, dtypes.i32)  # the counter has 64 bits under x64
        pivot = at(ops.eq(turn, k), pivots)
        is_row, is_pivot_row = ops.eq(place, k), ops.eq(place, pivot)
        half = ops.select(is_pivot_row, at(is_row, order), order)
        return ops.select(is_row, at(is_pivot_row, order), half)

    return fori_loop(0, count, step, place)
