"""Key arrays: arrays whose elements are keys. They are shaped, indexed and moved as arrays are.

What moves elements moves the words of each key, which never become an axis. Arithmetic, and
conversion to numbers, there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rune import dtypes, tree
from rune.array import Array
from rune.core.interpreter import Tracer, type_of
from rune.core.types import Shape
from rune.dims import Size, product
from rune.errors import ArgumentError
from rune.ops.ciphers import GENERATORS
from rune.ops.random import WORDS

DEFAULT = "threefry2x32"


@dataclass(frozen=True, slots=True)
class KeyDtype:
    """The dtype of keys of one generator. It prints as `key<fry>`, and its items have 64 bits.

    >>> import rune
    >>> rune.random.key(0).dtype, rune.random.key(0).dtype == rune.random.KeyDtype("threefry2x32")
    (key<fry>, True)
    """

    impl: str

    @property
    def name(self) -> str:
        """`key<fry>`."""
        return str(self)

    @property
    def itemsize(self) -> int:
        """Bytes of one key."""
        return WORDS * dtypes.u32.itemsize

    def __str__(self) -> str:
        return f"key<{GENERATORS[self.impl].tag}>"

    __repr__ = __str__


def _moved(name: str, meaning: str) -> Callable[..., Key]:
    """The method of that name, on every word."""

    def method(self: Key, *args: Any, **kwargs: Any) -> Key:
        return self.with_words([getattr(w, name)(*args, **kwargs) for w in self.words])

    method.__name__, method.__doc__ = name, meaning
    return method


class Key:
    """An array of keys; see `key`, `split` and `fold_in`, which make them.

    >>> import rune
    >>> keys = rune.random.split(rune.random.key(0), 3)
    >>> keys.shape, keys.dtype, keys[1:].shape
    ((3,), key<fry>, (2,))
    """

    __slots__ = ("__weakref__", "impl", "words")

    def __init__(self, words: Sequence[Any], impl: str = DEFAULT):
        self.words, self.impl = tuple(words), impl

    @property
    def shape(self) -> Shape:
        """The shape of the key array."""
        return type_of(self.words[0]).shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Size:
        """Number of keys."""
        return product(self.shape)

    @property
    def dtype(self) -> KeyDtype:
        """Which generator the keys are for."""
        return KeyDtype(self.impl)

    def __len__(self) -> int:
        return len(self.words[0])

    def __iter__(self) -> Iterator[Key]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Key:
        return Key([w[index] for w in self.words], self.impl)

    def __rune_words__(self) -> tuple[Any, ...]:
        """What functions that only move elements move: the words."""
        return self.words

    def with_words(self, words: Sequence[Any]) -> Key:
        """Keys of the same generator."""
        return Key(words, self.impl)

    reshape = _moved("reshape", "The keys in another shape.")
    ravel = _moved("ravel", "The keys along one axis.")
    flatten = _moved("ravel", "The keys along one axis.")
    transpose = _moved("transpose", "The axes permuted; reversed without `axes`.")
    swapaxes = _moved("swapaxes", "Two axes exchanged.")
    squeeze = _moved("squeeze", "Axes of size 1 removed.")
    take = _moved("take", "The keys at `indices`.")
    copy = _moved("copy", "The keys.")
    block_until_ready = _moved("block_until_ready", "The keys, when they are computed.")

    @property
    def T(self) -> Key:
        """The axes reversed."""
        return self.transpose()

    @property
    def mT(self) -> Key:
        """The last two axes exchanged."""
        return self.swapaxes(-1, -2)

    @property
    def at(self) -> KeyAt:
        """`keys.at[index].set(key)`: an updated copy; `.get()`: the keys there."""
        return KeyAt(self)

    @property
    def itemsize(self) -> int:
        """Bytes of one key."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Size:
        """Bytes of all keys."""
        return self.size * self.itemsize

    @property
    def device(self) -> Any:
        """The device that holds the keys; None of traced ones."""
        return self.words[0].device

    def devices(self) -> set[Any]:
        """The set of the one device."""
        return self.words[0].devices()

    def is_deleted(self) -> bool:
        """True after donation."""
        return self.words[0].is_deleted()

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Key) or other.impl != self.impl:
            return NotImplemented
        first, second = (a == b for a, b in zip(self.words, other.words, strict=True))
        return first & second

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return NotImplemented if equal is NotImplemented else ~equal

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise ArgumentError(
            f"array: cannot take {self!r} as numbers", hint="rune.random.key_data gives its words"
        )

    def __repr__(self) -> str:
        shape = ",".join(map(str, self.shape))
        if any(isinstance(w, Tracer) for w in self.words):
            return f"Traced<{self.dtype}[{shape}]>"
        data = np.stack([np.asarray(w) for w in self.words], axis=-1)
        body = np.array2string(data, separator=", ", prefix="Key(", threshold=200)
        return f"Key({body}, {self.dtype}[{shape}])"


class KeyAt:
    """keys.at: `keys.at[index]` names keys to replace in a copy, or to read."""

    __slots__ = ("_index", "_keys")

    def __init__(self, keys: Key, index: Any = None):
        self._keys, self._index = keys, index

    def __getitem__(self, index: Any) -> KeyAt:
        return KeyAt(self._keys, index)

    def set(self, values: Any, **how: Any) -> Key:
        """A copy with these keys there. Errors: ArgumentError for other values than such keys."""
        keys = self._keys
        if not isinstance(values, Key) or values.impl != keys.impl:
            raise ArgumentError(f"at.set: cannot put {values!r} among keys {keys.dtype}")
        pairs = zip(keys.words, values.words, strict=True)
        return keys.with_words([w.at[self._index].set(v, **how) for w, v in pairs])

    def get(self, **how: Any) -> Key:
        """The keys there."""
        return self._keys.with_words([w.at[self._index].get(**how) for w in self._keys.words])


Array.register(Key)
tree.register_node(Key, lambda k: (k.words, k.impl), lambda impl, words: Key(words, impl))
