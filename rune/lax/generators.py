"""Bits from a generator whose state is an array: rng_bit_generator.

The words are XLA's: the blocks of ThreeFry and Philox at a counter, in order, or in pairs along an
axis of even size (32 bits of ThreeFry). The state is a key of two words and a counter of two, which
grows by the number of blocks. `rune.random` draws with keys, which cannot be used twice by mistake.

Source: Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", SC11; XLA
operation semantics, RngBitGenerator.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from rune import dtypes
from rune.array import Array
from rune.errors import DtypeError, ShapeError
from rune.lax.bits import bitcast_convert_type, mulhi
from rune.lax.movement import slice_in_dim
from rune.numpy import arange, asarray, broadcast_arrays, full, stack
from rune.numpy.arguments import laid_out, value
from rune.ops.ciphers import Arithmetic, philox_block, threefry2x32
from rune.sharding.shardings import Sharding
from rune.typing import ArrayLike, DTypeLike


class RandomAlgorithm(enum.IntEnum):
    """The generators of `rng_bit_generator`; the default is Philox.

    >>> from rune import lax
    >>> lax.RandomAlgorithm.RNG_THREE_FRY.name
    'RNG_THREE_FRY'
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike = "uint32",
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Sharding | None = None,
) -> tuple[Array, Array]:
    """The state after a draw, and the random bits that XLA gives for this state, bit for bit.

    key:       the state: two words of a key and two of a counter, its position
    algorithm: RNG_PHILOX, which is the default, or RNG_THREE_FRY
    out_sharding: the sharding of the bits; None leaves the choice to rune.

    Shapes: key [4] (or [2] of u64), shape -> the state like key, and bits of `shape`.
    Types:  key u32 (or u64); bits u8, u16, u32 or u64.
    Errors: ShapeError for a key of another shape; DtypeError for other dtypes.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> state, bits = lax.rng_bit_generator(rnp.array([1, 2, 3, 4], "u4"), (3,))
    >>> state.tolist(), bits.tolist()
    ([1, 2, 4, 4], [512747620, 1298009047, 1267190206])
    """
    bit_dtype = dtypes.as_dtype(dtype)
    if bit_dtype not in (dtypes.u8, dtypes.u16, dtypes.u32, dtypes.u64):
        raise DtypeError(
            f"rng_bit_generator: cannot draw bits as {dtypes.short(bit_dtype)} (u8, u16, u32 or u64 required)"
        )
    state = value("rng_bit_generator", key)
    words = _words_of(state)
    sizes = [*map(int, shape)]
    is_philox = RandomAlgorithm(algorithm) != RandomAlgorithm.RNG_THREE_FRY
    if bit_dtype != dtypes.u64 and not is_philox:
        bits, blocks = _in_pairs(words, sizes)
    else:
        bits, blocks = _in_rows(words, sizes, bit_dtype, is_philox)
    bits = bits.astype(bit_dtype)  # as in JAX, 8 or 16 bits use up a whole word
    new = stack([*words[:2], *_advanced(words[2:], full((), blocks, dtypes.u32))])
    if state.dtype == dtypes.u64:
        new = bitcast_convert_type(new.reshape(2, 2), dtypes.u64)
    return new, laid_out(bits.reshape(sizes), out_sharding)


def _in_rows(words: Sequence[Array], sizes: list[int], bit_dtype: np.dtype, is_philox: bool) -> tuple[Array, int]:
    """Bits of these sizes, the words of the blocks in order, and the number of blocks."""
    is_wide = bit_dtype == dtypes.u64
    count = prod(sizes) * (2 if is_wide else 1)  # of words
    blocks = -(-count // (4 if is_philox else 2))
    block = _philox_blocks if is_philox else _threefry_blocks
    block_words = stack(block(words, blocks), -1)
    if is_wide:
        bits = bitcast_convert_type(block_words.reshape(-1, 2), bit_dtype)[: prod(sizes)]
    else:
        bits = block_words.ravel()[:count]
    return bits.reshape(sizes), blocks


def _in_pairs(words: Sequence[Array], sizes: list[int]) -> tuple[Array, int]:
    """Words of ThreeFry of these sizes, and the number of blocks.

    The two words of a block are neighbours along the first even axis, or the first of the longest
    if all are odd: there the last word of each row is dropped.
    """
    axes = sizes or [1]
    even = [i for i, size in enumerate(axes) if size % 2 == 0]
    axis = even[0] if even else axes.index(max(axes))
    before, size, after = axes[:axis], axes[axis], axes[axis + 1 :]
    halves = [*before, -(-size // 2), *after]
    block_words = [w.reshape(halves) for w in _threefry_blocks(words, prod(halves))]
    pairs = stack(block_words, axis + 1).reshape(*before, 2 * halves[axis], *after)
    return slice_in_dim(pairs, 0, size, axis=axis).reshape(sizes), prod(halves)


def _words_of(state: Array) -> list[Array]:
    """The four words of a state."""
    if state.dtype == dtypes.u64 and state.shape == (2,):
        state = bitcast_convert_type(state, dtypes.u32).ravel()
    if state.dtype != dtypes.u32 or state.shape != (4,):
        raise ShapeError(
            f"rng_bit_generator: cannot draw from a state {state.type} (u32[4] or u64[2] required)",
            hint="rune.random.bits draws with keys",
        )
    return [state[k] for k in range(4)]


def _advanced(counter: Sequence[Any], steps: Any) -> tuple[Any, Any]:
    """The two words of a counter, low and high, after a number of steps."""
    low = counter[0] + steps
    return low, counter[1] + (low < counter[0]).astype(dtypes.u32)


def _threefry_blocks(words: Sequence[Any], count: int) -> Sequence[Array]:
    """The two words of each block."""
    counter = _advanced(words[2:], arange(count, dtype=dtypes.u32))
    return threefry2x32(_ARITHMETIC, words[:2], counter)[:2]


def _philox_blocks(words: Sequence[Any], count: int) -> Sequence[Array]:
    """The four words of each block; the key is also the upper half of the counter."""
    counter = (*_advanced(words[2:], arange(count, dtype=dtypes.u32)), *words[:2])
    return philox_block(_ARITHMETIC, words[:2], counter)


def _products(x: Array, y: Array) -> tuple[Array, Array]:
    return mulhi(*broadcast_arrays(x, y)), x * y


_ARITHMETIC: Arithmetic[Any] = Arithmetic(
    lambda n: asarray(n, dtypes.u32), operator.add, operator.xor, lambda x, by: (x << by) | (x >> (32 - by)), _products
)
