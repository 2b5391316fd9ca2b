"""The order of keys with NumPy: each becomes unsigned 32-bit words, most significant first.

Words of equal rank compare as the keys do: NaN after all numbers, -0 equal to 0, complex numbers
by their real and then their imaginary part, False before True. A stable sort of one word packs it
with its position into 64 bits, which no two elements then share, so that NumPy's vectorised sort
serves; several words are sorted from the last to the first, of short rows by one call of NumPy's.
Source: least significant digit first, Knuth, The Art of Computer Programming 3, section 5.2.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from rune import dtypes
from rune.ops.complex_numbers import PART
from rune.ops.scalars import NIBBLES

SHORT = 64  # elements of a row up to which calls of NumPy take longer than what they do
_NATIVE = frozenset({dtypes.f32, dtypes.f64, dtypes.bool_}) | (dtypes.INTEGER - set(NIBBLES))
_HALF = np.uint64(32)
MANY = 1 << 15  # words below which the extra calls of NumPy cost more time than they save
GROUP = 64  # the most words of a group of which `largest` looks at the least one first
LEAST_GROUP = 4  # words of a group below which its minimum saves nothing
SPARE = 4  # groups for each of the k


def sorted_rows(x: np.ndarray) -> np.ndarray:
    """`x` sorted along its last axis."""
    if x.dtype in dtypes.COMPLEX and x.shape[-1] <= SHORT and not np.count_nonzero(x != x):
        return np.sort(x, axis=-1, kind="stable")  # which has NaN parts in another order
    if x.dtype not in _NATIVE:
        return take_rows(x, permutation([x]))
    rows = np.sort(x, axis=-1)
    if x.dtype in dtypes.FLOATING and np.signbit(x[x == 0]).any():
        rows[rows == 0] = x[x == 0]  # a row has as many zeros as before, in the same order
    return rows


def permutation(keys: Sequence[np.ndarray]) -> np.ndarray:
    """The positions, along the last axis, that sort by the keys; ties keep their order."""
    words = [w for key in keys for w in words_of(key)]
    if len(words) > 1 and words[0].shape[-1] <= SHORT:
        return np.lexsort(words[::-1])  # NumPy's last key is the most significant
    order = _order(words.pop())
    while words:
        word = take_rows(words.pop(), order)
        order = take_rows(order, _order(word))
    return order


def largest(x: np.ndarray, k: int) -> np.ndarray:
    """The positions of the k last elements in total order, the last first; of a tie, the first
    comes first.
    """
    words = [~w for w in total_words_of(x)]
    if len(words) > 1:
        return permutation(words)[..., :k]
    packed = _packed_candidates(words[0], k)
    if packed is None:
        packed = _packed(words[0])
    if 0 < k < packed.shape[-1]:
        packed = np.partition(packed, k - 1, axis=-1)[..., :k]
    return _positions(np.sort(packed, axis=-1))[..., :k]


def _packed_candidates(word: np.ndarray, k: int) -> np.ndarray | None:
    """The packed words of each row that may be among its k least; None unless they are few.

    The k-th least of the minima of groups is no less than the k-th least word, because k groups
    have a word that is at most as large.
    """
    n = word.shape[-1]
    size = min(GROUP, n // (SPARE * max(k, 1)))
    if word.size < MANY or size < LEAST_GROUP or k == 0:
        return None
    rows = word.reshape(-1, n)
    count = n // size
    # Groups of words that lie `count` apart: all minima are found by whole vectors.
    minima = rows[:, : size * count].reshape(-1, size, count).min(axis=1)
    bound = np.partition(minima, k - 1, axis=-1)[:, k - 1 : k]
    places = np.flatnonzero(rows <= bound)
    row, position = np.divmod(places, n)
    counts = np.bincount(row, minlength=len(rows))
    widest = int(counts.max())
    if widest > n // LEAST_GROUP:  # many equal words
        return None
    packed = np.full((len(rows), widest), ~np.uint64(0))
    number = np.arange(len(places)) - (np.cumsum(counts) - counts)[row]
    packed[row, number] = (rows.reshape(-1)[places].astype(np.uint64) << _HALF) | position.astype(np.uint64)
    return packed.reshape(*word.shape[:-1], widest)


def total_words_of(key: np.ndarray) -> list[np.ndarray]:
    """u32 arrays, as of `words_of`, that compare as IEEE 754's totalOrder has it: by every bit."""
    if key.dtype in dtypes.COMPLEX:
        return _words_of_parts(key, total_words_of)
    if key.dtype not in dtypes.FLOATING:
        return words_of(key)
    number = key if key.dtype == dtypes.f64 else key.astype(np.float32, copy=False)
    bits = np.ascontiguousarray(number).view(f"i{number.itemsize}")
    # The bits of negative numbers grow with the magnitude: all but the sign are inverted.
    return words_of(bits ^ (bits >> (8 * number.itemsize - 1) & np.iinfo(bits.dtype).max))


def _words_of_parts(key: np.ndarray, words: Callable[[np.ndarray], list[np.ndarray]]) -> list[np.ndarray]:
    """The words of the real parts, and those of the imaginary parts."""
    both = words(np.ascontiguousarray(key[..., None]).view(PART[key.dtype]))
    return [word[..., part] for part in (0, 1) for word in both]


def search_keys(x: np.ndarray) -> np.ndarray:
    """Numbers, or records of numbers, whose order NumPy's searchsorted can follow."""
    if x.dtype in _NATIVE:
        return x
    words = words_of(x)
    if len(words) == 1:
        return words[0]
    halves = [(a.astype(np.uint64) << _HALF) | b for a, b in zip(words[::2], words[1::2])]
    if len(halves) == 1:
        return halves[0]
    pairs = np.stack(halves, axis=-1).astype(">u8")
    return pairs.view("S16")[..., 0]  # bytes compare from the first to the last


def words_of(key: np.ndarray) -> list[np.ndarray]:
    """u32 arrays, most significant first, that compare as the elements of `key` do."""
    if key.dtype in dtypes.COMPLEX:
        return _words_of_parts(key, words_of)
    if key.dtype in (dtypes.f64, dtypes.i64, dtypes.u64):
        wide = _ordered_bits(key, np.dtype(np.uint64))
        return [(wide >> _HALF).astype(np.uint32), wide.astype(np.uint32)]
    if key.dtype in dtypes.FLOATING:
        return [_ordered_bits(key.astype(np.float32), np.dtype(np.uint32))]
    if key.dtype in dtypes.SIGNED:
        return [_ordered_bits(key.astype(np.int32, copy=False), np.dtype(np.uint32))]
    return [key.astype(np.uint32)]


def _ordered_bits(x: np.ndarray, unsigned: np.dtype) -> np.ndarray:
    """Numbers as wide as `unsigned`, as unsigned integers in the same order."""
    if x.dtype == unsigned:
        return x
    sign = unsigned.type(1 << (8 * unsigned.itemsize - 1))
    if x.dtype.kind == "i":
        return np.ascontiguousarray(x).view(unsigned) ^ sign
    signed_dtype = np.dtype(f"i{unsigned.itemsize}")
    bits = np.ascontiguousarray(x + x.dtype.type(0)).view(signed_dtype)  # -0 + 0 is 0
    mask = bits >> (8 * unsigned.itemsize - 1)  # all ones where negative
    mask |= _LEAST[signed_dtype]
    mask ^= bits
    result = mask.view(unsigned)
    is_nan = x != x
    if np.count_nonzero(is_nan):
        result[is_nan] = ~unsigned.type(0)
    return result


_LEAST = {dtypes.i32: np.iinfo(np.int32).min, dtypes.i64: np.iinfo(np.int64).min}


def take_rows(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """At every position, the element of the same row at the given position; faster than
    take_along_axis.
    """
    if x.ndim > 1:
        starts = np.arange(math.prod(x.shape[:-1])) * x.shape[-1]
        positions = positions + starts.reshape(*x.shape[:-1], 1)
    if not positions.size:
        return np.empty(positions.shape, x.dtype)
    return np.take(x.reshape(-1), positions)


def _packed(word: np.ndarray) -> np.ndarray:
    assert word.shape[-1] <= 1 << 32
    positions = np.arange(word.shape[-1], dtype=np.uint64)
    return (word.astype(np.uint64) << _HALF) | positions


def _positions(packed: np.ndarray) -> np.ndarray:
    return packed.astype(np.uint32).astype(np.int64)


def _order(word: np.ndarray) -> np.ndarray:
    return _positions(np.sort(_packed(word), axis=-1))
