"""`sort` and `top_k` on a device: long rows by digits, short ones by counting predecessors.

    keys -> words     integers that compare as the keys do (ops/sorting/keys.py), as u32
    words -> order    the last word first, by all of its digits; each sort carries the order along
    order -> results  every operand is gathered in that order

In a short row every element is compared with every other, by two kernels with as many threads as
there are elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rune import dims, dtypes
from rune.core.interpreter import literal, type_of
from rune.core.lower import Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import product
from rune.lowering.codegen.target import Target
from rune.lowering.sorting.digits import KEYS
from rune.lowering.sorting.groups import KEY, ORDER
from rune.lowering.sorting.radix import WORD, Tiles, Word, sort_words, tiles
from rune.lowering.written import Loops
from rune.ops.arithmetic import add, bitcast, cast, logical_and, logical_not, logical_or, lt, mul, select, shl, shr, sub
from rune.ops.creation import iota
from rune.ops.family import broadcast, fit, reshape
from rune.ops.movement import concatenate, pad, slice_
from rune.ops.reduction import reduce_min, reduce_sum
from rune.ops.sorting import needs_few_passes, positions_like
from rune.ops.sorting.keys import less, ordered, take_last, totally_ordered

SHORT = 256  # the most elements of a row that are compared all with all
LONG = 4096  # elements of a row of which `top_k` by passes looks at the minima of blocks first
MOST = literal((1 << 2 * WORD) - 1, dtypes.u64)  # after every word


def sorted_rows(target: Target, operands: Sequence[Value], num_keys: int) -> list[Value]:
    """Sort rows on the target, in place of the expansion of `sort`."""
    first, tiling = operands[0], tiles(target)
    alone = type_of(first).dtype if len(operands) == 1 else dtypes.c64
    if _is_short(first):
        order = _order_of_short([key for x in operands[:num_keys] for key in ordered(x)])
        return [take_last(x, order) for x in operands]
    if tiling.threads > 1 and alone in KEYS:
        return sort_words(Word(first, WORD), None, tiling, (KEY,))
    if alone in dtypes.INTEGER | {dtypes.bool_} and alone.itemsize <= 4:
        (key,) = ordered(first)
        (word,) = _words(key, alone)
        return [_value_of(sort_words(word, None, tiling, (KEY,))[0], word.bits, alone)]
    order = _order([word for x in operands[:num_keys] for word in _words_of(x, tiling)], tiling)
    return [take_last(x, order) for x in operands]


def _words_of(x: Value, tiling: Tiles) -> list[Word]:
    """The words of a key, most significant first; the key itself if groups can sort it."""
    dtype = type_of(x).dtype
    if tiling.threads > 1 and dtype in KEYS:
        return [Word(x, WORD)]
    return [word for key in ordered(x) for word in _words(key, dtype)]


def largest(target: Target, x: Value, k: int) -> list[Value]:
    """Do `top_k` on the target; it compares every bit of a float."""
    if target.language == "llvm" and needs_few_passes(type_of(x), k):
        return _largest_by_passes(x, k)
    tiling = tiles(target)
    keys = [logical_not(key) for key in totally_ordered(x)]  # the complements are in the opposite order
    if _is_short(x):
        order = _order_of_short(keys)
    else:
        order = _order([word for key in keys for word in _words(key, type_of(x).dtype)], tiling)
    shape = type_of(x).shape
    limit, start = (*shape[:-1], k), (0,) * len(shape)
    positions = slice_(order, start=start, limit=limit, stride=(1,) * len(shape))
    return [take_last(x, positions), positions]


def _largest_by_passes(x: Value, k: int) -> list[Value]:
    """`top_k` by one pass for each of the k: the least of what comes after the one before it."""
    (key,) = totally_ordered(x)
    (word,) = _words(logical_not(key), type_of(x).dtype)
    # The first of equal elements comes first: a position breaks the tie, so that no two are equal.
    half = literal(WORD, dtypes.u64)
    packed = logical_or(shl(cast(word.value, dtypes.u64), half), cast(positions_like(x), dtypes.u64))
    size = type_of(x).shape[-1]
    if isinstance(size, int) and size >= LONG:
        packed = _best_blocks(packed, k, 1 << (math.isqrt(size // k).bit_length() - 1))
    positions = _positions_of_least(packed, k)
    return [take_last(x, positions), positions]


def _best_blocks(packed: Value, k: int, length: int) -> Value:
    """The blocks of a row with the k least minima, side by side: the k least words are in them."""
    *rows, size = type_of(packed).shape
    axes = len(rows)
    high = (0,) * axes + (-size % length,)
    words = pad(packed, MOST, low=(0,) * (axes + 1), high=high, interior=(0,) * (axes + 1))
    minima = reduce_min(reshape(words, shape=(*rows, -(-size // length), length)), axes=(axes + 1,))
    blocks = shr(_positions_of_least(minima, k), literal(length.bit_length() - 1, dtypes.i32))
    shape = (*rows, k, length)
    starts = mul(blocks, fit(literal(length, dtypes.i32), (*rows, k)))
    places = add(
        broadcast(starts, shape=shape, axes=tuple(range(axes + 1))), iota(shape=shape, axis=axes + 1, dtype=dtypes.i32)
    )
    return take_last(words, reshape(places, shape=(*rows, k * length)))


def _positions_of_least(packed: Value, k: int) -> Value:
    """The lower halves of the k least words of each row, in order."""
    shape, axis = type_of(packed).shape, type_of(packed).ndim - 1
    columns: list[Value] = []
    candidates = packed
    for _ in range(k):
        least = reduce_min(candidates, axes=(axis,))
        columns.append(reshape(cast(least, dtypes.i32), shape=(*shape[:-1], 1)))
        is_later = lt(broadcast(least, shape=shape, axes=tuple(range(axis))), packed)
        candidates = select(is_later, packed, fit(MOST, shape))
    return concatenate(*columns, axis=axis)


def _order(words: Sequence[Word], tiling: Tiles) -> Value:
    """The i32 positions that put words into order, the most significant first."""
    order: Value | None = None
    for word in reversed(words):
        value = word.value if order is None else take_last(word.value, order)
        (order,) = sort_words(Word(value, word.bits), order, tiling, (ORDER,))
    assert order is not None
    return order


# --- words ------------------------------------------------------------------------------------


def _words(key: Value, dtype: np.dtype) -> list[Word]:
    """The words, most significant first, of an integer key made from elements of a dtype."""
    if type_of(key).dtype.itemsize == 8:
        low = key if type_of(key).dtype == dtypes.u64 else _from_zero(bitcast(key, dtype=dtypes.u64), 64)
        half = literal(WORD, dtypes.u64)
        return [Word(cast(part, dtypes.u32), WORD) for part in (shr(low, half), low)]
    bits, spare = _bits(dtype)
    key = shr(key, literal(spare, dtypes.i32)) if spare else key
    number = cast(key, dtypes.u32) if type_of(key).dtype == dtypes.u32 else bitcast(key, dtype=dtypes.u32)
    return [Word(number if _counts_from_zero(dtype) else _from_zero(number, bits), bits)]


def _counts_from_zero(dtype: np.dtype) -> bool:
    return dtype in dtypes.UNSIGNED or dtype == dtypes.bool_


def _bits(dtype: np.dtype) -> tuple[int, int]:
    """How many bits of a key distinguish elements of a dtype, and how many below are unused."""
    # Keys of narrow floats are those of f32, whose lowest bits then follow from the sign.
    if dtype in (dtypes.bf16, dtypes.f8_e5m2):
        return 16, 16
    if dtype in (dtypes.f16, dtypes.f8_e4m3):
        return 19, 13
    if dtype == dtypes.bool_ or dtype.itemsize < 4:
        return 8 * dtype.itemsize, 0
    return WORD, 0


def _from_zero(bits: Value, count: int) -> Value:
    """Signed numbers of so many bits, as unsigned ones in the same order: the least is 0."""
    sign = literal(1 << (count - 1), type_of(bits).dtype)
    number = add(bits, sign)
    below = literal((1 << count) - 1, type_of(bits).dtype)
    return number if count == 8 * type_of(bits).dtype.itemsize else logical_and(number, below)


def _value_of(word: Value, bits: int, dtype: np.dtype) -> Value:
    """The integers from which a word was made."""
    if dtype == dtypes.u32:
        return word
    number = bitcast(word, dtype=dtypes.i32)
    if not _counts_from_zero(dtype):
        number = sub(number, literal(1 << (bits - 1) if bits < WORD else -1 << (WORD - 1), dtypes.i32))
    return cast(number, dtype)


# --- short rows -------------------------------------------------------------------------------


def _is_short(x: Value) -> bool:
    most = dims.bounds(type_of(x).shape[-1])[1]
    return most is not None and most <= SHORT


def _order_of_short(keys: Sequence[Value]) -> Value:
    """The order of a row: the place of each element is the number of elements before it."""
    positions = positions_like(keys[0])
    shape = type_of(positions).shape
    pairs, rows = (*shape, shape[-1]), tuple(range(len(shape) - 1))
    elements, others = (
        [broadcast(x, shape=pairs, axes=(*rows, axis)) for x in (*keys, positions)]
        for axis in (len(shape) - 1, len(shape))
    )
    return inverse_rows(reduce_sum(cast(less(others, elements), dtypes.i32), axes=(len(shape),)))


def _inverse_type(places: ArrayType) -> ArrayType:
    return places


def _inverse_reference(places: np.ndarray) -> np.ndarray:
    return np.argsort(places, axis=-1, kind="stable").astype(np.int32)


def _inverse_loops(places: ArrayType) -> Loops:
    *rows, size = places.shape
    return Loops(f"""{{
        for r in {product(rows)} grid {{ for n in {size} grid {{
          to: i32 in 0..{size - 1} = x0[({size})*r + n]
          store y0[({size})*r + to] = i32(index(n))
        }} }} }}""")


# The position of each number in rows that contain each of 0…N-1 once.
inverse_rows = Primitive("inverse_rows", "sorting", _inverse_type, _inverse_reference, lower=Written(_inverse_loops))
