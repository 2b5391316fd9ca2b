"""The generators written a second time, with Python's integers, element by element."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

WORD = 1 << 32


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32-20: the key is injected before the rounds and after every fourth."""
    keys = [*key, key[0] ^ key[1] ^ 0x1BD11BDA]
    rotations = [13, 15, 26, 6, 17, 29, 16, 24]
    x = [(counter[0] + key[0]) % WORD, (counter[1] + key[1]) % WORD]
    for number in range(20):
        by = rotations[number % 8]
        x[0] = (x[0] + x[1]) % WORD
        x[1] = (x[1] * 2**by % WORD + x[1] // 2 ** (32 - by)) ^ x[0]
        if number % 4 == 3:
            n = number // 4 + 1
            x = [(x[0] + keys[n % 3]) % WORD, (x[1] + keys[(n + 1) % 3] + n) % WORD]
    return x[0], x[1]


def philox(key: tuple[int, int], counter: tuple[int, int, int, int]) -> tuple[int, ...]:
    """Philox-4x32-10."""
    x = list(counter)
    for number in range(10):
        k = [(key[0] + number * 0x9E3779B9) % WORD, (key[1] + number * 0xBB67AE85) % WORD]
        first, second = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [second // WORD ^ x[1] ^ k[0], second % WORD, first // WORD ^ x[3] ^ k[1], first % WORD]
    return tuple(x)


def _sample(impl: str, key: tuple[int, int], position: int) -> tuple[int, int, int]:
    high, low = divmod(position, WORD)
    if impl == "threefry2x32":
        x, y = threefry(key, (high, low))
        return x, y, x ^ y
    a, b, c, d = philox(key, (high, low, 0, 0))
    return a, b, a ^ b ^ c ^ d


def _derived(impl: str, key: tuple[int, int], high: int, low: int) -> tuple[int, ...]:
    if impl == "threefry2x32":
        return threefry(key, (high, low))
    return philox(key, (0, 0, high, low))[:2]


Key = tuple[int, int]


def _filled(keys: np.ndarray, shape: tuple, dtype: np.dtype, one: Callable[[Key, int], Any]) -> Any:
    pairs = keys[_tag(keys)].reshape(-1, 2).tolist()
    out = np.empty((len(pairs), math.prod(shape)), dtype)
    for n, pair in enumerate(pairs):
        for position in range(out.shape[1]):
            out[n, position] = one(tuple(pair), position)
    return out.reshape((*keys.shape, *shape))


def _tag(keys: np.ndarray) -> str:
    assert keys.dtype.names is not None
    return keys.dtype.names[0]


def _impl(keys: np.ndarray) -> str:
    return {"fry": "threefry2x32", "phx4": "philox4x32"}[_tag(keys)]


def random_bits(keys: np.ndarray, *, shape: tuple, dtype: np.dtype) -> np.ndarray:
    """The meaning of the primitive."""

    def one(key: Key, position: int) -> int:
        first, second, xor = _sample(_impl(keys), key, position)
        return first * WORD + second if dtype == np.uint64 else xor % 2 ** (8 * dtype.itemsize)

    return _filled(keys, shape, dtype, one)


def random_split(keys: np.ndarray, *, shape: tuple) -> np.ndarray:
    """The meaning of the primitive."""
    impl = _impl(keys)
    return _filled(keys, shape, keys.dtype, lambda key, n: (_derived(impl, key, 0, n),))


def random_words(keys: np.ndarray, *, count: int) -> np.ndarray:
    """The meaning of the primitive."""
    half = -(-count // 2)
    counters = [(p, half + p if half + p < count else 0) for p in range(half)]
    rows = []
    for pair in keys[_tag(keys)].reshape(-1, 2).tolist():
        outputs = [threefry(tuple(pair), counter) for counter in counters]
        rows.append([first for first, _ in outputs] + [second for _, second in outputs])
    return np.array(rows, np.uint32).reshape(len(rows), 2 * half)[:, :count].reshape((*keys.shape, count))


def random_fold_in(keys: np.ndarray, high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """The meaning of the primitive."""
    keys, high, low = np.broadcast_arrays(keys, high, low)
    out = np.empty(keys.shape, keys.dtype)
    for at in np.ndindex(*keys.shape):
        key = tuple(keys[at][0].tolist())
        out[at] = (_derived(_impl(keys), key, int(high[at]), int(low[at])),)
    return out


def key_of_words(*words: np.ndarray, impl: str) -> np.ndarray:
    """The meaning of the primitive."""
    tag = {"threefry2x32": "fry", "philox4x32": "phx4"}[impl]
    dtype = np.dtype([(tag, np.uint32, (2,))], align=True)
    return np.ascontiguousarray(np.stack(words, axis=-1)).view(dtype)[..., 0]


def key_word(keys: np.ndarray, *, number: int) -> np.ndarray:
    """The meaning of the primitive."""
    return np.array(keys[_tag(keys)][..., number])


def random_seed(*halves: np.ndarray, impl: str) -> np.ndarray:
    """The meaning of the primitive."""
    out = np.empty((*np.shape(halves[0]), 2), np.uint32)
    for at in np.ndindex(*np.shape(halves[0])):
        high, low = (int(h[at]) for h in halves)
        out[at] = (high, low) if impl == "threefry2x32" else philox((0, 0), (high, low, 0, 0))[:2]
    return key_of_words(out[..., 0], out[..., 1], impl=impl)


def _words(cipher: Callable[..., tuple[int, ...]], *words: int) -> tuple[int, int, int]:
    """The first two words of a cipher, and the xor of all."""
    output = cipher(words[:2], words[2:])
    return output[0], output[1], functools.reduce(operator.xor, output)


def _word(cipher: Callable[..., tuple[int, ...]], number: int) -> Callable[..., np.ndarray]:
    def meaning(*words: np.ndarray) -> np.ndarray:
        rows = zip(*(w.ravel().tolist() for w in np.broadcast_arrays(*words)), strict=True)
        results = [_words(cipher, *row)[number] for row in rows]
        return np.array(results, np.uint32).reshape(np.broadcast_shapes(*map(np.shape, words)))

    return meaning


OF_KEYS: dict[str, Callable[..., np.ndarray]] = {
    "random_bits": random_bits,
    "random_split": random_split,
    "random_words": random_words,
    "random_fold_in": random_fold_in,
    "random_seed": random_seed,
    "random_clone": lambda x: x,
    "key_of_words": key_of_words,
    "key_word": key_word,
    **{f"threefry2x32_{name}": _word(threefry, k) for k, name in enumerate(("first", "second", "mixed"))},
    **{f"philox4x32_{name}": _word(philox, k) for k, name in enumerate(("first", "second", "mixed"))},
}
