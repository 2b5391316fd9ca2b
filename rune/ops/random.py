"""Random bits and keys as primitives: each stays one equation until the program is lowered.

A key is words of 32 bits, one operand each, all of the shape of the key array: () for one key.
Bits depend on the key and on the position in the result alone, counted in row-major order, so the
first elements of a longer result are those of a shorter one, and a batch of keys gives what its
keys give one by one.

    random_bits     unsigned integers of `shape` for every key
    random_split    the keys at positions 0, 1, … of `shape`; the words are a last axis
    random_fold_in  the key at the position that an integer names
    random_seed     a key made of the two halves of a seed
    random_clone    the same words, as ones that have not been used

Expanded, they are integer arithmetic on the index: generation fuses into whatever reads it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.lower import View
from rune.core.primitive import ZERO, Primitive, Rule
from rune.core.types import ArrayType, Shape
from rune.dims import product
from rune.errors import DtypeError, ShapeError
from rune.ops.arithmetic import add, cast, convert, logical_or, logical_xor, mul, shl, shr
from rune.ops.ciphers import GENERATORS, Arithmetic, Words
from rune.ops.creation import iota
from rune.ops.family import Batched, broadcast, reshape, types_text, view_of
from rune.ops.movement import concatenate, repeat_lane

u32, u64 = dtypes.u32, dtypes.u64
BITS = (dtypes.u8, dtypes.u16, u32, u64)
WORDS = 2  # of a key
LOW = (1 << 32) - 1  # the bits of a word
FEW = 4  # keys made one by one: by Python's integers, and in programs
CHUNK = 1 << 14  # elements that the reference computes at a time, so that they stay in the cache


# --- arithmetic -------------------------------------------------------------------------------


def _rotate_numpy(x: Any, by: int) -> Any:
    return (x << np.uint32(by)) | (x >> np.uint32(32 - by))


def _products_numpy(x: Any, y: Any) -> tuple[Any, Any]:
    wide = np.asarray(x, np.uint64) * np.asarray(y, np.uint64)
    return (wide >> np.uint64(32)).astype(np.uint32), wide.astype(np.uint32)


def _rotate(x: Any, by: int) -> Any:
    return logical_or(shl(x, literal(by, u32)), shr(x, literal(32 - by, u32)))


def _products(x: Any, y: Any) -> tuple[Any, Any]:
    wide = mul(convert(x, dtype=u64), convert(y, dtype=u64))
    return convert(shr(wide, literal(32, u64)), dtype=u32), mul(x, y)


def _rotate_int(x: int, by: int) -> int:
    return (x << by | x >> 32 - by) & LOW


def _products_int(x: int, y: int) -> tuple[int, int]:
    return x * y >> 32, x * y & LOW


INTS = Arithmetic(int, lambda x, y: x + y & LOW, operator.xor, _rotate_int, _products_int)
NUMPY = Arithmetic(np.uint32, np.add, np.bitwise_xor, _rotate_numpy, _products_numpy)
EQUATIONS = Arithmetic(lambda c: literal(c, u32), add, logical_xor, _rotate, _products)


# --- what the rules share ---------------------------------------------------------------------


def _key_shape(name: str, words: Sequence[ArrayType]) -> Shape:
    """The shape of the key array. Errors: DtypeError, ShapeError for words that are none."""
    if any(w.dtype != u32 for w in words):
        raise DtypeError(f"{name}: cannot take {types_text(words)} (u32 words required)")
    if any(w.shape != words[0].shape for w in words):
        raise ShapeError(f"{name}: cannot take {types_text(words)} (one shape required)")
    return words[0].shape


def _batch(primitive: Callable[[], Primitive]) -> Rule:
    """A batch of keys is a key array with one more leading axis."""

    def batch(batched: Batched, size: Any, *words: Any, **params: Any) -> tuple[Any, bool]:
        whole = [w if b else repeat_lane(w, size) for w, b in zip(words, batched, strict=True)]
        return primitive()(*whole, **params), True

    return batch


def side_by_side(words: Words) -> Any:
    """The words of keys along a new last axis."""
    shape = type_of(words[0]).shape
    return concatenate(*(reshape(w, shape=(*shape, 1)) for w in words), axis=len(shape))


def _positions(shape: Shape) -> Words:
    """High and low word of the row-major number of every element; 0 words stay constants."""
    count = product(shape)
    if isinstance(count, int) and count <= 1 << 32:
        return literal(0, u32), reshape(iota(shape=(count,), axis=0, dtype=u32), shape=shape)
    number = reshape(iota(shape=(count,), axis=0, dtype=u64), shape=shape)
    return cast(shr(number, literal(32, u64)), u32), cast(number, u32)


def _along(words: Words, shape: Shape) -> Words:
    """Words of a key array of shape B for every element of [*B, *shape]; one key stays rank 0."""
    keys = type_of(words[0]).shape
    axes = tuple(range(len(keys)))
    return [broadcast(w, shape=(*keys, *shape), axes=axes) if keys else w for w in words]


def _for_every_key(positions: Words, keys: Shape, shape: Shape) -> Words:
    axes = tuple(range(len(keys), len(keys) + len(shape)))
    return [
        broadcast(p, shape=(*keys, *shape), axes=axes) if keys and type_of(p).shape else p
        for p in positions
    ]


def _counted(count: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Runs of positions below `count`: where they stand, and their high and low words."""
    for start in range(0, count, CHUNK):
        stop = min(start + CHUNK, count)
        number = np.arange(start, stop, dtype=np.uint64)
        high, low = (number >> np.uint64(32)).astype(np.uint32), number.astype(np.uint32)
        yield slice(start, stop), high, low


# --- random_bits ------------------------------------------------------------------------------


def _bits_type(*words: ArrayType, shape: Shape, dtype: np.dtype, impl: str) -> ArrayType:
    keys = _key_shape("random_bits", words)
    if dtype not in BITS:
        allowed = ", ".join(map(dtypes.short, BITS))
        raise DtypeError(f"random_bits: cannot make {dtypes.short(dtype)} (one of {allowed})")
    return ArrayType((*keys, *shape), dtype)


def _bits_reference(*words: np.ndarray, shape: tuple, dtype: np.dtype, impl: str) -> np.ndarray:
    keys = [np.reshape(w, (-1, 1)) for w in words]
    out = np.empty((keys[0].shape[0], math.prod(shape)), dtype)
    for part, high, low in _counted(out.shape[1]):
        first, second, mixed = GENERATORS[impl].sample(NUMPY, keys, (high, low))
        if dtype == u64:
            out[:, part] = (first.astype(u64) << np.uint64(32)) | second
        else:
            out[:, part] = mixed.astype(dtype)
    return out.reshape((*np.shape(words[0]), *shape))


def _bits_expand(*words: Any, shape: Shape, dtype: np.dtype, impl: str) -> Any:
    keys = type_of(words[0]).shape
    positions = _for_every_key(_positions(shape), keys, shape)
    first, second, mixed = GENERATORS[impl].sample(EQUATIONS, _along(words, shape), positions)
    if dtype != u64:
        return cast(mixed, dtype)
    high = shl(convert(first, dtype=u64), literal(32, u64))
    return logical_or(high, convert(second, dtype=u64))


random_bits: Primitive = Primitive(
    "random_bits", "random", _bits_type, _bits_reference, jvp=(ZERO,) * WORDS,
    batch=_batch(lambda: random_bits), expand=_bits_expand,
)  # fmt: skip


# --- random_split -----------------------------------------------------------------------------


def _split_type(*words: ArrayType, shape: Shape, impl: str) -> ArrayType:
    return ArrayType((*_key_shape("random_split", words), *shape, WORDS), u32)


def _split_reference(*words: np.ndarray, shape: tuple, impl: str) -> np.ndarray:
    derive, count = GENERATORS[impl].derive, math.prod(shape)
    if not np.ndim(words[0]) and count <= FEW:
        key = list(map(int, words))
        made = [derive(INTS, key, (0, n)) for n in range(count)]
        return np.array(made, u32).reshape((*shape, WORDS))
    keys = [np.reshape(w, (-1, 1)) for w in words]
    out = np.empty((keys[0].shape[0], count, WORDS), u32)
    for part, high, low in _counted(count):
        for number, word in enumerate(derive(NUMPY, keys, (high, low))):
            out[:, part, number] = word
    return out.reshape((*np.shape(words[0]), *shape, WORDS))


def _split_expand(*words: Any, shape: Shape, impl: str) -> Any:
    keys, derive = type_of(words[0]).shape, GENERATORS[impl].derive
    count = product(shape)
    if keys and isinstance(count, int) and 0 < count <= FEW:
        # One after the other: so the many keys are what runs in lanes, not the few positions.
        numbers = (literal(n, u32) for n in range(count))
        made = [side_by_side(derive(EQUATIONS, words, (literal(0, u32), n))) for n in numbers]
        rows = [reshape(m, shape=(*keys, 1, WORDS)) for m in made]
        return reshape(concatenate(*rows, axis=len(keys)), shape=(*keys, *shape, WORDS))
    positions = _for_every_key(_positions(shape), keys, shape)
    return side_by_side(derive(EQUATIONS, _along(words, shape), positions))


random_split: Primitive = Primitive(
    "random_split", "random", _split_type, _split_reference, jvp=(ZERO,) * WORDS,
    batch=_batch(lambda: random_split), expand=_split_expand,
)  # fmt: skip


# --- random_fold_in, random_seed --------------------------------------------------------------


def _fold_in_type(*operands: ArrayType, impl: str) -> ArrayType:
    return ArrayType((*_key_shape("random_fold_in", operands), WORDS), u32)


def _fold_in_reference(*operands: np.ndarray, impl: str) -> np.ndarray:
    if not np.ndim(operands[0]):
        *words, high, low = map(int, operands)
        return np.array(GENERATORS[impl].derive(INTS, words, (high, low)), u32)
    *words, high, low = operands
    return np.stack(GENERATORS[impl].derive(NUMPY, words, (high, low)), axis=-1)


def _fold_in_expand(*operands: Any, impl: str) -> Any:
    *words, high, low = operands
    return side_by_side(GENERATORS[impl].derive(EQUATIONS, words, (high, low)))


random_fold_in: Primitive = Primitive(
    "random_fold_in", "random", _fold_in_type, _fold_in_reference, jvp=(ZERO,) * (WORDS + 2),
    batch=_batch(lambda: random_fold_in), expand=_fold_in_expand,
)  # fmt: skip


def _seed_type(*halves: ArrayType, impl: str) -> ArrayType:
    return ArrayType((*_key_shape("random_seed", halves), WORDS), u32)


def _seed_reference(*halves: np.ndarray, impl: str) -> np.ndarray:
    return np.stack(GENERATORS[impl].seed(NUMPY, halves), axis=-1)


def _seed_expand(*halves: Any, impl: str) -> Any:
    return side_by_side(GENERATORS[impl].seed(EQUATIONS, halves))


random_seed: Primitive = Primitive(
    "random_seed", "random", _seed_type, _seed_reference, jvp=(ZERO,) * 2,
    batch=_batch(lambda: random_seed), expand=_seed_expand,
)  # fmt: skip

random_clone: Primitive = Primitive(
    "random_clone", "random", lambda words: words, lambda words: words, jvp=(ZERO,),
    batch=lambda batched, size, words: (random_clone(words), True),
    lower=View(lambda indices, words: view_of(indices)),
)  # fmt: skip

PRIMITIVES = (random_bits, random_split, random_fold_in, random_seed, random_clone)
