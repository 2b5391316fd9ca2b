"""Bits and new keys, in the order of counters that is in force.

Under `rune.configure(threefry_partitionable=False)` threefry's counters are the halves of one
range, as in JAX before its keys became partitionable: what was drawn then can be drawn again. Keys
made by `fold_in` and from seeds are the same in both orders, and so is what other generators draw.
"""

from __future__ import annotations

import numpy as np

from rune import config, dtypes, ops
from rune.array import Array
from rune.core.interpreter import literal, type_of
from rune.core.types import Shape
from rune.core.values import Value
from rune.dims import Size, product
from rune.ops.ciphers import THREEFRY
from rune.ops.random import generator, keys_of

WORD = 32  # bits


def is_in_halves(key: Value) -> bool:
    """Whether draws from the key take the halves of one range as their counters."""
    return not config.current().threefry_partitionable and generator(type_of(key)) is THREEFRY


def random_split(key: Value, *, shape: Shape) -> Array:
    """New keys of one key: `ops.random_split`, in the order in force."""
    if not is_in_halves(key):
        return ops.random_split(key, shape=shape)
    words = ops.random_words(key, count=2 * product(shape))
    return keys_of(ops.reshape(words, shape=(*shape, 2)), THREEFRY.name)


def random_bits(key: Value, *, shape: Shape, dtype: np.dtype) -> Array:
    """Bits of one key: `ops.random_bits`, in the order in force."""
    if not is_in_halves(key):
        return ops.random_bits(key, shape=shape, dtype=dtype)
    bits, count = 8 * dtype.itemsize, product(shape)
    words = ops.random_words(key, count=-(-(count * bits) // WORD))
    return ops.reshape(_numbers(words, count, dtype), shape=shape)


def _numbers(words: Value, count: Size, dtype: np.dtype) -> Value:
    """`count` numbers of 8, 16, 32 or 64 bits."""
    if dtype == dtypes.u32:
        return words
    return _joined(words, count) if dtype == dtypes.u64 else ops.cast(_parts(words, dtype, count), dtype)


def _joined(words: Value, count: Size) -> Value:
    """Numbers of 64 bits, whose high words are the first half of the words."""
    halves = ops.convert(ops.reshape(words, shape=(2, count)), dtype=dtypes.u64)
    high, low = (ops.reshape(_row(halves, number, count), shape=(count,)) for number in range(2))
    return ops.logical_or(ops.shl(high, literal(WORD, dtypes.u64)), low)


def _row(rows: Value, number: int, count: Size) -> Value:
    return ops.slice_(rows, start=(number, 0), limit=(number + 1, count), stride=(1, 1))


def _parts(words: Value, dtype: np.dtype, count: Size) -> Value:
    """The first `count` parts of the words, the lowest of a word first, below bits of others."""
    bits, length = 8 * dtype.itemsize, type_of(words).shape[0]
    parts = WORD // bits
    offsets = ops.mul(ops.iota(shape=(length, parts), axis=1, dtype=dtypes.u32), literal(bits, dtypes.u32))
    columns = ops.shr(ops.broadcast(words, shape=(length, parts), axes=(0,)), offsets)
    flat = ops.reshape(columns, shape=(length * parts,))
    return ops.slice_(flat, start=(0,), limit=(count,), stride=(1,))
