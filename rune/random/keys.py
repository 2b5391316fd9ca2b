"""Keys, from which random numbers are computed. Using a key twice gives the same numbers.

Keys are elements of arrays whose dtype names the generator, such as `key<fry>[3]` for three keys.
They can be reshaped, indexed and moved like numbers, under every transformation, but arithmetic
rejects them. A raw key, as made by `PRNGKey`, is an array u32[2]; functions take both kinds and
return the same kind. The bits are JAX's, with partitionable counters by default (ordered.py has the
others). All 64 bits of a seed count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rune import config, dtypes, ops
from rune.array import Array, as_array, default_place, put
from rune.core.interpreter import Tracer, literal, type_of
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.dims import Dim, Size
from rune.dtypes import KeyDtype, stored_keys
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.ops.conventions import entries
from rune.ops.family import size_value
from rune.ops.operators import Operators
from rune.ops.promote import opened
from rune.ops.random import WORDS, keys_of, random_clone, random_fold_in, random_seed, side_by_side
from rune.random.ordered import random_split
from rune.typing import ArrayLike, DTypeLike

DEFAULT = "threefry2x32"
Key = Any  # an array of keys, concrete or traced
KeyLike = Any  # keys, or raw ones: an array u32[..., 2]


def implementation(impl: Any) -> str:
    """The name of a generator, from its name or the dtype of its keys; the default for None.

    Errors: ArgumentError for a generator that does not exist.
    """
    name = DEFAULT if impl is None else getattr(impl, "impl", impl)
    if name not in dtypes.KEY_OF:
        of_xla = "its bits depend on the device and the version of XLA; those of philox4x32 are the same everywhere"
        raise ArgumentError(
            f"key: cannot use {impl!r} (one of {', '.join(dtypes.KEY_OF)})",
            hint=of_xla if name in ("rbg", "unsafe_rbg") else None,
        )
    return name


def is_keys(value: ArrayLike) -> bool:
    """Whether a value is an array of keys."""
    return isinstance(value, Operators | Tracer) and type_of(value).dtype in dtypes.KEYS


def _array_type(value: object) -> ArrayType | None:
    """The type of an array or a tracer; None for any other value."""
    return type_of(value) if isinstance(value, Operators | Tracer | np.ndarray) else None


def as_keys(name: str, key: KeyLike) -> Key:
    """Typed keys, converted from raw ones if necessary. Errors: ArgumentError if not a key."""
    key = opened(key)
    if is_keys(key):
        return key
    key_type = _array_type(key)
    if key_type is not None and key_type.dtype == dtypes.u32 and key_type.shape[-1:] == (WORDS,):
        return keys_of(key, DEFAULT)
    description = key_type if key_type is not None else f"{type(key).__name__} {str(key)[:40]!r}"
    raise ArgumentError(
        f"{name}: cannot use {description} as a key (a key, or u32[{WORDS}])",
        hint="make keys with rune.random.key(seed), or leave the key out and give shape= by name",
    )


def single_key(name: str, key: KeyLike) -> Key:
    """A single key. Errors: ArgumentError for an array of keys, or if not a key."""
    keys = as_keys(name, key)
    if keys.shape:
        raise ArgumentError(
            f"{name}: cannot use an array of keys of shape {keys.shape} (one key required)",
            hint="use rune.vmap to map over keys",
        )
    return keys


def generator_of(keys: Key) -> str:
    """The name of the generator that keys are for."""
    return dtypes.IMPL_OF[type_of(keys).dtype]


def _in_kind(new: Key, original: KeyLike) -> Array:
    """New keys in the kind of the original: typed keys, or raw keys as words."""
    return new if is_keys(opened(original)) else side_by_side(new)


# --- making keys ------------------------------------------------------------------------------


def key(seed: ArrayLike, *, impl: str | None = None, dtype: DTypeLike | None = None) -> Key:
    """A key from an integer. All 64 bits of a Python integer or a 64-bit array count.

    impl, dtype:  the generator, "threefry2x32" (the default) or "philox4x32".
    Shapes: seed int[] -> key [].
    Errors: ArgumentError for a seed that is not a single integer; OverflowError over 64 bits.
    Source: Threefry, Salmon, Moraes, Dror & Shaw 2011, SC11.

    >>> import rune
    >>> rune.random.key(2**40 + 5)
    Array([256,   5], key<fry>[], cpu:0)
    """
    if impl is not None and dtype is not None:
        raise ArgumentError("key: cannot use impl= and dtype= together (both name the generator)")
    name = implementation(dtype if impl is None else impl)
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        return _key_of_int(seed, name)
    return random_seed(*_halves("key", seed), impl=name)


def _key_of_int(seed: int | np.integer, impl: str) -> Key:
    halves = [np.uint32(half) for half in _halves_of_int(seed)]
    if impl != DEFAULT:
        return random_seed(*map(as_array, halves), impl=impl)
    key = ArrayType((), dtypes.KEY_OF[impl])
    return put(stored_keys(halves, key.dtype), key, default_place())


def PRNGKey(seed: ArrayLike, *, impl: object = None) -> Array:
    """A raw key, as older code uses. It does not record its generator.

    Shapes: seed int[] -> u32[2].
    Errors: those of `key`; ArgumentError for a generator other than the default.

    >>> import rune
    >>> rune.random.PRNGKey(7)
    Array([0, 7], u32[2], cpu:0)
    """
    if implementation(impl) != DEFAULT:
        raise ArgumentError(
            f"PRNGKey: cannot make a raw key for {impl} (raw keys count as keys of {DEFAULT})",
            hint="use rune.random.key(seed, impl=...)",
        )
    return key_data(key(seed))


def _halves(name: str, number: ArrayLike | Value) -> tuple[Array, Array]:
    """The high and the low word of an integer, Python's or an array's."""
    if isinstance(number, int | np.integer) and not isinstance(number, bool):
        first, second = (as_array(half, dtypes.u32) for half in _halves_of_int(number))
        return first, second
    number = opened(number)
    if isinstance(number, Dim):
        number = size_value(number, dtypes.i32)
    number_type = _array_type(number)
    if number_type is None or number_type.shape or number_type.dtype not in dtypes.INTEGER:
        description = number_type if number_type is not None else type(number).__name__
        raise ArgumentError(f"{name}: cannot use {description} as a seed (one integer required)")
    low = ops.convert(number, dtype=dtypes.u32)
    if number_type.dtype.itemsize < 8:
        return as_array(0, dtypes.u32), low
    high = ops.shr(number, literal(32, number_type.dtype))
    return ops.convert(high, dtype=dtypes.u32), low


def _halves_of_int(seed: int | np.integer) -> tuple[int, int]:
    number, is_wide = int(seed), np.asarray(seed).dtype.itemsize == 8
    if not -(1 << 63) <= number < 1 << 64:
        raise OverflowError(f"key: cannot use the seed {number} (64 bits at most)")
    # As in JAX, a negative 32-bit seed is only its low word; under x64 integers have 64 bits.
    has_high = is_wide and config.current().x64
    is_short = -(1 << 31) <= number < 1 << 32
    high = 0 if is_short and not has_high else number >> 32
    return high & 0xFFFFFFFF, number & 0xFFFFFFFF


def split(key: KeyLike, num: Size | Sequence[Size] = 2) -> Array:
    """`num` new keys, or keys of that shape; after this, do not use `key` any more.

    The first keys do not depend on the number of keys: split(k, 4)[:2] == split(k, 2), unless
    threefry_partitionable=False is set.
    Shapes: key [] -> keys [*num]; of a raw key u32[2] u32[*num, 2].
    Types:  keys of the same generator.
    Errors: ArgumentError for an array of keys.
    Source: Threefry, Salmon, Moraes, Dror & Shaw 2011, SC11.

    >>> import rune
    >>> first, second = rune.random.split(rune.random.key(0))
    >>> first
    Array([1797259609, 2579123966], key<fry>[], cpu:0)
    """
    new = random_split(single_key("split", key), shape=static_shape("split", num))
    return _in_kind(new, key)


def fold_in(key: KeyLike, data: ArrayLike) -> Array:
    """The key at position `data` below `key`: fold_in(k, i) == split(k, n)[i].

    data: a Python integer (64 bits count) or an integer array; a negative integer of an array
            counts as its low 32 bits.
    Shapes: key [], data int[] -> key []; a raw key u32[2] gives a raw key.
    Types:  keys of the same generator.
    Errors: ArgumentError for an array of keys or data; OverflowError for a negative int.
    Source: Threefry, Salmon, Moraes, Dror & Shaw 2011, SC11.

    >>> import rune
    >>> rune.random.fold_in(rune.random.key(0), 1)
    Array([ 928981903, 3453687069], key<fry>[], cpu:0)
    """
    parent = single_key("fold_in", key)
    if isinstance(data, int) and data < 0:
        raise OverflowError(f"fold_in: cannot fold in {data} (not negative)")
    return _in_kind(random_fold_in(parent, *_place("fold_in", data)), key)


def _place(name: str, data: ArrayLike) -> tuple[Array, Array]:
    """The high and the low word of a position; a negative one has only its low word, as in JAX."""
    if isinstance(data, np.integer):
        data = np.asarray(data).astype(dtypes.canonical(data.dtype))
    high, low = _halves(name, data)
    if getattr(data, "dtype", None) != dtypes.i64:
        return high, low
    is_short = ops.eq(high, literal(0xFFFFFFFF, dtypes.u32))
    return ops.select(is_short, literal(0, dtypes.u32), high), low


def static_shape(name: str, shape: Any) -> Shape:
    """A shape as a tuple. Errors: ShapeError if it is neither a size nor a sequence of sizes."""
    sizes = entries(shape)
    if all(_is_size(d) for d in sizes):
        return tuple(d if isinstance(d, Dim) else int(d) for d in sizes)
    raise ShapeError(f"{name}: cannot use {shape!r} as a shape (a tuple of sizes required)")


def _is_size(size: Size) -> bool:
    if isinstance(size, Dim):
        return True
    is_integer = isinstance(size, int | np.integer) and not isinstance(size, bool)
    return is_integer and int(size) >= 0


# --- words of keys ----------------------------------------------------------------------------


def key_data(keys: KeyLike) -> Array:
    """The words of keys.

    Shapes: keys [*S] -> u32[*S, 2].
    Errors: ArgumentError if it is not a key.

    >>> import rune
    >>> rune.random.key_data(rune.random.key(42))
    Array([ 0, 42], u32[2], cpu:0)
    """
    return side_by_side(as_keys("key_data", keys))


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None, dtype: DTypeLike | None = None) -> Key:
    """Keys from words; the inverse of `key_data`.

    Shapes: u32[*S, 2] -> keys [*S].
    Errors: DtypeError, ShapeError for another array.

    >>> import rune, rune.numpy as rnp
    >>> rune.random.wrap_key_data(rnp.array([0, 42], dtype="uint32"))
    Array([ 0, 42], key<fry>[], cpu:0)
    """
    key_bits_array = opened(key_bits_array)
    if not hasattr(key_bits_array, "dtype"):
        kind = type(key_bits_array).__name__
        raise DtypeError(f"wrap_key_data: cannot take {kind} (an array of u32 required)")
    words = type_of(key_bits_array)
    if words.dtype != dtypes.u32:
        raise DtypeError(f"wrap_key_data: cannot take {words} (u32 required)")
    if words.shape[-1:] != (WORDS,):
        raise ShapeError(f"wrap_key_data: cannot take {words} (last axis of {WORDS} required)")
    return keys_of(key_bits_array, implementation(dtype if impl is None else impl))


def key_impl(keys: KeyLike) -> str:
    """The name of the generator of keys.

    Shapes: keys of any shape; the result is a text.
    Errors: ArgumentError if it is not a key.

    >>> import rune
    >>> rune.random.key_impl(rune.random.key(0))
    'threefry2x32'
    """
    return generator_of(as_keys("key_impl", keys))


def key_dtype(impl_spec: object = None) -> KeyDtype:
    """The dtype of the keys of a generator.

    Errors: ArgumentError for an unknown generator.

    >>> import rune
    >>> rune.random.key_dtype()
    key<fry>
    """
    return KeyDtype(implementation(impl_spec))


def clone(key: KeyLike) -> Array:
    """The same key, marked as unused: the check for reuse accepts it.

    Shapes: keys of any shape, unchanged.
    Types:  keys of the same generator.
    Errors: ArgumentError if it is not a key.

    >>> import rune
    >>> rune.random.clone(rune.random.key(3))
    Array([0, 3], key<fry>[], cpu:0)
    """
    return _in_kind(random_clone(as_keys("clone", key)), key)
