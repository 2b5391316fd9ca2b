"""Shuffles without a table: computes a permutation of 0 .. size-1 for single numbers.

A block cipher permutes its blocks, so one whose blocks are the numbers below `size` is a shuffle:
no table is stored, element n is found without those before it, and a restored run costs nothing.
A number is written as high · side + low, and each round of a Feistel network adds a hash of one
half to the other. A result of `size` or more passes through the network again until it is below.

Source: Black & Rogaway 2002, "Ciphers with arbitrary finite domains", the generalised Feistel
        cipher and cycle walking; the mixing function is the finaliser of SplitMix64 (Steele, Lea &
        Flood 2014, "Fast splittable pseudorandom number generators").
Not done: security; this is a shuffle, not a cipher for secrets.
"""

from __future__ import annotations

import functools
import math

import numpy as np

ROUNDS = 12
BLOCK = 1 << 10  # consecutive numbers that are computed together
_GOLDEN = 0x9E3779B97F4A7C15  # 2⁶⁴ / golden ratio, odd
_WORD = (1 << 64) - 1


def permuted(numbers: np.ndarray, size: int, words: tuple[int, ...], epoch: int) -> np.ndarray:
    """The images of the numbers under the permutation for this key and epoch.

    Types:  i64 below `size`, which is below 2⁶²
    words:  the words of the key, each below 2⁶⁴
    """
    if not numbers.size or int(numbers.max()) - int(numbers.min()) >= BLOCK:
        return _images(numbers, size, words, epoch)
    result = np.empty_like(numbers)
    blocks, places = np.divmod(numbers, BLOCK)
    for number in {int(blocks.min()), int(blocks.max())}:
        inside = blocks == number
        result[inside] = _block(number, size, words, epoch)[places[inside]]
    return result


@functools.lru_cache(maxsize=256)  # 2 MiB
def _block(number: int, size: int, words: tuple[int, ...], epoch: int) -> np.ndarray:
    numbers = np.arange(number * BLOCK, min(size, (number + 1) * BLOCK))
    return _images(numbers, size, words, epoch)


def _images(numbers: np.ndarray, size: int, words: tuple[int, ...], epoch: int) -> np.ndarray:
    side = math.isqrt(max(size - 1, 0)) + 1  # the least number with side² ≥ size
    *rounds, parity = hashes((*words, epoch), ROUNDS + 1).tolist()
    result = numbers.astype(np.uint64)
    beyond = np.ones(result.shape, bool)
    while beyond.any():
        result[beyond] = _network(result[beyond], side, rounds)
        beyond = result >= size
    # For an odd side each round is an even permutation, so most walks would be even as well.
    if size > 1 and parity & 1:
        result[result < 2] ^= np.uint64(1)
    return result.astype(np.int64)


def _network(x: np.ndarray, side: int, rounds: list[int]) -> np.ndarray:
    high, low = np.divmod(x, np.uint64(side))
    for key in rounds:
        # The hash's upper half, scaled to the side, which is below 2³².
        total = (_mixed(low ^ np.uint64(key)) >> np.uint64(32)) * np.uint64(side) >> np.uint64(32)
        total += high
        total -= np.uint64(side) * (total >= side)
        high, low = low, total
    return high * np.uint64(side) + low


def _mixed(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hashes(words: tuple[int, ...], count: int) -> np.ndarray:
    """`count` words of 64 bits, each a hash of all of `words` and of its number."""
    state = np.zeros(1, np.uint64)
    for word in words:
        state = _mixed(state * np.uint64(_GOLDEN) + np.uint64((word + 1) * _GOLDEN & _WORD))
    return _mixed(state + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN))
