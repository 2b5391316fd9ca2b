"""Random bits and keys as primitives: each stays one equation until the program is lowered.

A key is an element of an array whose dtype names its generator: two words of 32 bits. Operations
that move elements also move keys; this file has those that compute with keys. Bits depend only on
the key and on the position in the result, in row-major order. So the first elements of a longer
result are those of a shorter one, and a batch of keys gives the same as its keys one by one.

    random_bits     unsigned integers of `shape` for every key
    random_split    the keys at positions 0, 1, … of `shape`
    random_fold_in  the key at the position given by an integer
    random_seed     a key made from the two halves of a seed
    random_clone    the same key, marked as unused
    random_words    words in the order of threefry's counters before JAX made keys partitionable
    key_of_words    the key with two given words
    key_word        one of the words of a key

    threefry2x32_first, …   one word of a cipher of a key's words and a counter's words

Expanded, they are words of a cipher at the index: generation fuses into its readers.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.lower import Parts, View
from rune.core.primitive import ZERO, Primitive, Rule
from rune.core.types import ArrayType, Shape
from rune.core.values import Operand, Value
from rune.dims import Size, product
from rune.dtypes import stored_keys, stored_words
from rune.errors import DtypeError, ShapeError
from rune.ops.arithmetic import add, cast, convert, logical_or, lt, select, shl, shr
from rune.ops.ciphers import GENERATORS, PHILOX, THREEFRY, WORD_NAMES, Arithmetic, Generator, Words
from rune.ops.creation import iota
from rune.ops.family import Batched, broadcast, elementwise, joint_shape, require, reshape, size_value, view_of
from rune.ops.movement import concatenate, slice_

if TYPE_CHECKING:
    from rune.array import Array

u32, u64 = dtypes.u32, dtypes.u64
BITS = (dtypes.u8, dtypes.u16, u32, u64)
WORDS = 2  # of a key
LOW = (1 << 32) - 1  # the bits of a word
NO_KEY = (0,) * WORDS  # the key under which seeds become keys
FEW = 4  # up to this many keys are made one by one: by Python's integers, and in programs
CHUNK = 1 << 14  # elements that the reference computes at a time, so that they stay in the cache


# --- arithmetic -------------------------------------------------------------------------------


def _rotate_numpy(x: np.ndarray, by: int) -> Value:
    return (x << np.uint32(by)) | (x >> np.uint32(32 - by))


def _products_numpy(x: Value, y: np.ndarray) -> tuple[Value, Value]:
    wide = np.asarray(x, np.uint64) * np.asarray(y, np.uint64)
    return (wide >> np.uint64(32)).astype(np.uint32), wide.astype(np.uint32)


def _rotate_int(x: int, by: int) -> int:
    return (x << by | x >> 32 - by) & LOW


def _products_int(x: int, y: int) -> tuple[int, int]:
    return x * y >> 32, x * y & LOW


INTS = Arithmetic(int, lambda x, y: x + y & LOW, operator.xor, _rotate_int, _products_int)
NUMPY: Arithmetic[Any] = Arithmetic(np.uint32, np.add, np.bitwise_xor, _rotate_numpy, _products_numpy)


# --- what the rules share ---------------------------------------------------------------------


def _require_keys(name: str, key: ArrayType) -> None:
    require(name, dtypes.KEYS, "key", key)


def _require_words(name: str, *words: ArrayType) -> None:
    require(name, frozenset({u32}), "u32", *words)


def _batch(primitive: Callable[[], Primitive]) -> Rule:
    """A batch of keys is a key array with one more leading axis."""

    def batch(batched: Batched, size: Size, key: Value, **params: object) -> tuple[Array, bool]:
        return primitive()(key, **params), True

    return batch


def generator(key: ArrayType | np.ndarray) -> Generator:
    """The generator to which keys belong."""
    return GENERATORS[dtypes.IMPL_OF[key.dtype]]


# --- the words of ciphers ---------------------------------------------------------------------


def _cipher_word(generator: Generator, number: int) -> Primitive:
    name = generator.operation(number)

    def type_rule(*words: ArrayType) -> ArrayType:
        _require_words(name, *words)
        return ArrayType(joint_shape(name, words), u32)

    def reference(*words: np.ndarray) -> np.ndarray:
        return generator.cipher(NUMPY, words[:WORDS], words[WORDS:])[number]

    return elementwise(name, "random", type_rule, reference, (ZERO,) * (WORDS + generator.counter_words))


threefry2x32_first, threefry2x32_second, threefry2x32_mixed = (_cipher_word(THREEFRY, number) for number in range(3))
philox4x32_first, philox4x32_second, philox4x32_mixed = (_cipher_word(PHILOX, number) for number in range(3))
CIPHER_WORDS: Mapping[str, Sequence[Primitive]] = {
    THREEFRY.name: (threefry2x32_first, threefry2x32_second, threefry2x32_mixed),
    PHILOX.name: (philox4x32_first, philox4x32_second, philox4x32_mixed),
}
FIRST, SECOND, MIXED = range(len(WORD_NAMES))


def _word(number: int, generator: Generator, key: Words, counter: Words) -> Array:
    """One word of the cipher of a key and a counter, whose words may be Python integers."""
    words = (literal(w, u32) if isinstance(w, int) else w for w in (*key, *counter))
    return CIPHER_WORDS[generator.name][number](*words)


def _key_at(generator: Generator, key: Words, counter: Words) -> Array:
    """The key that a cipher makes from a key and a counter."""
    words = (_word(number, generator, key, counter) for number in (FIRST, SECOND))
    return key_of_words(*words, impl=generator.name)


# --- the words of a key -----------------------------------------------------------------------


def _of_words_type(*words: ArrayType, impl: str) -> ArrayType:
    _require_words("key_of_words", *words)
    return ArrayType(joint_shape("key_of_words", words), dtypes.KEY_OF[impl])


def _word_type(key: ArrayType, *, number: int) -> ArrayType:
    _require_keys("key_word", key)
    return key.with_dtype(u32)


key_of_words: Primitive = elementwise(
    "key_of_words",
    "random",
    _of_words_type,
    lambda *words, impl: stored_keys(words, dtypes.KEY_OF[impl]),
    (ZERO,) * WORDS,
    lower=Parts(),
)
key_word: Primitive = elementwise(
    "key_word", "random", _word_type, lambda key, *, number: stored_words(key)[..., number], (ZERO,), lower=Parts()
)


def words_of(keys: Value) -> Words:
    """The words of keys, each with the shape of the keys."""
    return [key_word(keys, number=number) for number in range(WORDS)]


def side_by_side(keys: Value) -> Array:
    """The words of keys along a new last axis."""
    shape = type_of(keys).shape
    columns = (reshape(w, shape=(*shape, 1)) for w in words_of(keys))
    return concatenate(*columns, axis=len(shape))


def keys_of(data: Operand, impl: str) -> Array:
    """The keys whose words are along the last axis of `data`."""
    shape = type_of(data).shape[:-1]
    stride = (1,) * (len(shape) + 1)
    words = []
    for number in range(WORDS):
        start, limit = (*(0,) * len(shape), number), (*shape, number + 1)
        words.append(reshape(slice_(data, start=start, limit=limit, stride=stride), shape=shape))
    return key_of_words(*words, impl=impl)


def _positions(shape: Shape) -> Words:
    """High and low word of the row-major index of every element; words that are 0 stay
    constants.
    """
    count = product(shape)
    if isinstance(count, int) and count <= 1 << 32:
        return literal(0, u32), reshape(iota(shape=(count,), axis=0, dtype=u32), shape=shape)
    number = reshape(iota(shape=(count,), axis=0, dtype=u64), shape=shape)
    return cast(shr(number, literal(32, u64)), u32), cast(number, u32)


def _along(words: Words, shape: Shape) -> Words:
    """Words of a key array of shape B, for every element of [*B, *shape]; those of one key stay
    rank 0.
    """
    keys = type_of(words[0]).shape
    axes = tuple(range(len(keys)))
    return [broadcast(w, shape=(*keys, *shape), axes=axes) if keys else w for w in words]


def _for_every_key(positions: Words, keys: Shape, shape: Shape) -> Words:
    axes = tuple(range(len(keys), len(keys) + len(shape)))
    return [broadcast(p, shape=(*keys, *shape), axes=axes) if keys and type_of(p).shape else p for p in positions]


def _columns(key: np.ndarray) -> Words:
    """The words of many keys, each as a column, beside the row of positions in a result."""
    words = stored_words(key).reshape(-1, WORDS)
    return [words[:, number : number + 1] for number in range(WORDS)]


def _counted(count: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Runs of positions below `count`: their slice, and their high and low words."""
    for start in range(0, count, CHUNK):
        stop = min(start + CHUNK, count)
        number = np.arange(start, stop, dtype=np.uint64)
        high, low = (number >> np.uint64(32)).astype(np.uint32), number.astype(np.uint32)
        yield slice(start, stop), high, low


# --- random_bits ------------------------------------------------------------------------------


def _bits_type(key: ArrayType, *, shape: Shape, dtype: np.dtype) -> ArrayType:
    _require_keys("random_bits", key)
    if dtype not in BITS:
        dtype_names = ", ".join(map(dtypes.short, BITS))
        raise DtypeError(f"random_bits: cannot make {dtypes.short(dtype)} (one of {dtype_names})")
    return ArrayType((*key.shape, *shape), dtype)


def _bits_reference(key: np.ndarray, *, shape: tuple, dtype: np.dtype) -> np.ndarray:
    keys, of_keys = _columns(key), generator(key)
    out = np.empty((key.size, math.prod(shape)), dtype)
    for part, high, low in _counted(out.shape[1]):
        first, second, xor_word = of_keys.cipher(NUMPY, keys, of_keys.sample((high, low)))
        if dtype == u64:
            out[:, part] = (first.astype(u64) << np.uint64(32)) | second
        else:
            out[:, part] = xor_word.astype(dtype)
    return out.reshape((*key.shape, *shape))


def _bits_expand(key: Value, *, shape: Shape, dtype: np.dtype) -> Value:
    keys, words = type_of(key), _along(words_of(key), shape)
    positions = _for_every_key(_positions(shape), keys.shape, shape)
    of_keys = generator(keys)
    word = functools.partial(_word, generator=of_keys, key=words, counter=of_keys.sample(positions))
    if dtype != u64:
        return cast(word(MIXED), dtype)
    high = shl(convert(word(FIRST), dtype=u64), literal(32, u64))
    return logical_or(high, convert(word(SECOND), dtype=u64))


random_bits: Primitive = Primitive(
    "random_bits",
    "random",
    _bits_type,
    _bits_reference,
    jvp=(ZERO,),
    batch=_batch(lambda: random_bits),
    expand=_bits_expand,
)


# --- random_split -----------------------------------------------------------------------------


def _split_type(key: ArrayType, *, shape: Shape) -> ArrayType:
    _require_keys("random_split", key)
    return key.with_shape((*key.shape, *shape))


def _split_reference(key: np.ndarray, *, shape: tuple) -> np.ndarray:
    of_keys, count = generator(key), math.prod(shape)
    if not key.ndim and count <= FEW:
        pair = stored_words(key).tolist()
        new_keys = [of_keys.cipher(INTS, pair, of_keys.derive((0, n)))[:WORDS] for n in range(count)]
        return np.array([(words,) for words in new_keys], key.dtype).reshape(shape)
    keys, out = _columns(key), np.empty((key.size, count), key.dtype)
    for part, high, low in _counted(count):
        first, second, _ = of_keys.cipher(NUMPY, keys, of_keys.derive((high, low)))
        stored_words(out)[:, part, 0], stored_words(out)[:, part, 1] = first, second
    return out.reshape((*key.shape, *shape))


def _split_expand(key: Value, *, shape: Shape) -> Array:
    keys, words, count = type_of(key), words_of(key), product(shape)
    of_keys = generator(keys)
    if isinstance(count, int) and 0 < count <= FEW:
        # One after another: many keys run in lanes, the few positions do not; and of a key that is
        # split
        # in a loop, only the new keys that are used get computed.
        keys_of_lane = [_key_at(of_keys, words, of_keys.derive((0, n))) for n in range(count)]
        rows = [reshape(m, shape=(*keys.shape, 1)) for m in keys_of_lane]
        return reshape(concatenate(*rows, axis=keys.ndim), shape=(*keys.shape, *shape))
    positions = _for_every_key(_positions(shape), keys.shape, shape)
    return _key_at(of_keys, _along(words, shape), of_keys.derive(positions))


random_split: Primitive = Primitive(
    "random_split",
    "random",
    _split_type,
    _split_reference,
    jvp=(ZERO,),
    batch=_batch(lambda: random_split),
    expand=_split_expand,
)


# --- random_words -----------------------------------------------------------------------------
# The counters are the halves of one range: word p of the first half is the cipher's first word at
# (p, half + p), word p of the second half its second word. An odd range ends with the counter 0,
# whose second word is dropped. So the words of a shorter draw are not the first of a longer one.


def _words_type(key: ArrayType, *, count: Size) -> ArrayType:
    require("random_words", frozenset({dtypes.KEY_OF[THREEFRY.name]}), "threefry key", key)
    if isinstance(count, int) and count > LOW:
        raise ShapeError(
            f"random_words: cannot number {count} words ({LOW} at most)",
            hint="draw in parts, or under rune.configure(threefry_partitionable=True), which has no such limit",
        )
    return ArrayType((*key.shape, count), u32)


def _half(count: Size) -> Size:
    return (count + 1) // 2


def _words_reference(key: np.ndarray, *, count: int) -> np.ndarray:
    half = (count + 1) // 2
    low = np.arange(half, dtype=u32)
    high = low + np.uint32(half)
    counter = (low, np.where(high < count, high, np.uint32(0)))
    halves = THREEFRY.cipher(NUMPY, _columns(key), counter)[:2]
    return np.concatenate(halves, axis=1)[:, :count].reshape((*key.shape, count))


def _halves(count: Size) -> Words:
    """Both words of every counter of a draw."""
    low = iota(shape=(_half(count),), axis=0, dtype=u32)
    high = add(low, size_value(_half(count), u32))
    return low, select(lt(high, size_value(count, u32)), high, literal(0, u32))


def _words_expand(key: Value, *, count: Size) -> Value:
    keys, half = type_of(key).shape, (_half(count),)
    words, counters = _along(words_of(key), half), _for_every_key(_halves(count), keys, half)
    halves = (_word(number, THREEFRY, words, counters) for number in (FIRST, SECOND))
    start, stride = ((number,) * (len(keys) + 1) for number in (0, 1))
    return slice_(concatenate(*halves, axis=len(keys)), start=start, limit=(*keys, count), stride=stride)


random_words: Primitive = Primitive(
    "random_words",
    "random",
    _words_type,
    _words_reference,
    jvp=(ZERO,),
    batch=_batch(lambda: random_words),
    expand=_words_expand,
)


# --- random_fold_in, random_seed --------------------------------------------------------------


def _fold_in_type(key: ArrayType, *position: ArrayType) -> ArrayType:
    _require_keys("random_fold_in", key)
    _require_words("random_fold_in", *position)
    return key.with_shape(joint_shape("random_fold_in", (key, *position)))


def _fold_in_reference(key: np.ndarray, *position: np.ndarray) -> np.ndarray:
    words, of_keys = stored_words(key), generator(key)
    if not any(map(np.ndim, (key, *position))):
        key_words = of_keys.cipher(INTS, words.tolist(), of_keys.derive(tuple(map(int, position))))
        return stored_keys(key_words[:WORDS], key.dtype)
    pair = [words[..., number] for number in range(WORDS)]
    return stored_keys(of_keys.cipher(NUMPY, pair, of_keys.derive(position))[:WORDS], key.dtype)


def _fold_in_expand(key: Value, *position: Value) -> Array:
    of_keys = generator(type_of(key))
    return _key_at(of_keys, words_of(key), of_keys.derive(position))


random_fold_in: Primitive = elementwise(
    "random_fold_in", "random", _fold_in_type, _fold_in_reference, (ZERO,) * (1 + WORDS), expand=_fold_in_expand
)


def _seed_type(*halves: ArrayType, impl: str) -> ArrayType:
    _require_words("random_seed", *halves)
    return ArrayType(joint_shape("random_seed", halves), dtypes.KEY_OF[impl])


def _seed_reference(*halves: np.ndarray, impl: str) -> np.ndarray:
    seed = GENERATORS[impl].seed
    words = halves if seed is None else GENERATORS[impl].cipher(NUMPY, NO_KEY, seed(halves))[:WORDS]
    return stored_keys(words, dtypes.KEY_OF[impl])


def _seed_expand(*halves: Value, impl: str) -> Value:
    seed = GENERATORS[impl].seed
    return key_of_words(*halves, impl=impl) if seed is None else _key_at(GENERATORS[impl], NO_KEY, seed(halves))


random_seed: Primitive = elementwise(
    "random_seed", "random", _seed_type, _seed_reference, (ZERO,) * WORDS, expand=_seed_expand
)


def _clone_type(key: ArrayType) -> ArrayType:
    return key


random_clone: Primitive = Primitive(
    "random_clone",
    "random",
    _clone_type,
    lambda key: key,
    jvp=(ZERO,),
    batch=lambda batched, size, key: (random_clone(key), True),
    lower=View(lambda indices, key: view_of(indices)),
)

PRIMITIVES = (
    random_bits,
    random_split,
    random_fold_in,
    random_seed,
    random_clone,
    random_words,
    key_of_words,
    key_word,
    *(word for words in CIPHER_WORDS.values() for word in words),
)
