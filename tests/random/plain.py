"""The generators written a second time, with Python's integers, one element after the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

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


def _every_key(words: tuple[np.ndarray, ...]) -> Iterator[tuple[int, Key]]:
    flat = [np.ravel(w).tolist() for w in words]
    return ((n, (k, j)) for n, (k, j) in enumerate(zip(*flat, strict=True)))


def _filled(words: tuple, shape: tuple, dtype: np.dtype, one: Callable[[Key, int], int]):
    out = np.empty((np.size(words[0]), math.prod(shape)), dtype)
    for n, key in _every_key(words):
        for position in range(out.shape[1]):
            out[n, position] = one(key, position)
    return out.reshape((*np.shape(words[0]), *shape))


def random_bits(*words: np.ndarray, shape: tuple, dtype: np.dtype, impl: str) -> np.ndarray:
    """The meaning of the primitive."""

    def one(key: Key, position: int) -> int:
        first, second, mixed = _sample(impl, key, position)
        return first * WORD + second if dtype == np.uint64 else mixed % 2 ** (8 * dtype.itemsize)

    return _filled(words, shape, dtype, one)


def random_split(*words: np.ndarray, shape: tuple, impl: str) -> np.ndarray:
    """The meaning of the primitive."""
    halves = (
        _filled(words, shape, np.dtype(np.uint32), lambda k, n, i=i: _derived(impl, k, 0, n)[i])
        for i in range(2)
    )
    return np.stack(list(halves), axis=-1)


def random_fold_in(*operands: np.ndarray, impl: str) -> np.ndarray:
    """The meaning of the primitive."""
    out = np.empty((*np.shape(operands[0]), 2), np.uint32)
    for at in itertools.product(*map(range, np.shape(operands[0]))):
        k, j, high, low = (int(w[at]) for w in operands)
        out[at] = _derived(impl, (k, j), high, low)
    return out


def random_seed(*halves: np.ndarray, impl: str) -> np.ndarray:
    """The meaning of the primitive."""
    out = np.empty((*np.shape(halves[0]), 2), np.uint32)
    for at in itertools.product(*map(range, np.shape(halves[0]))):
        high, low = (int(h[at]) for h in halves)
        out[at] = (high, low) if impl == "threefry2x32" else philox((0, 0), (high, low, 0, 0))[:2]
    return out
