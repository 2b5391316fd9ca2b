"""Counter-based generators: a key and a counter go in, words that look random come out.

Each generator is one function of 32-bit words, written once over an `Arithmetic`: with that of
NumPy it is the reference, with that of primitives the expansion. The words are those of JAX bit
for bit, so which words of the counter belong to splitting and which to sampling is theirs too.

    threefry2x32   20 rounds of add, rotate, xor; the counter has two words
    philox4x32     10 rounds of 32 x 32-bit products; the counter has four

Source: Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", SC11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rune.core.values import Value

Words = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What the generators compute with, on words of 32 bits that wrap."""

    constant: Callable[[int], Value]
    add: Callable[[Any, Any], Value]
    xor: Callable[[Any, Any], Value]
    rotate: Callable[[Any, int], Value]  # to the left
    products: Callable[[Any, Any], tuple[Value, Value]]  # high and low word of the product


@dataclass(frozen=True, slots=True)
class Generator:
    """One counter-based generator; keys have two words, and so has a position (high, low)."""

    name: str
    sample: Callable[[Arithmetic, Words, Words], Words]  # key, position -> words of a sample
    derive: Callable[[Arithmetic, Words, Words], Words]  # key, position -> the key there
    seed: Callable[[Arithmetic, Words], Words]  # high and low word of a seed -> key


# --- threefry2x32 -----------------------------------------------------------------------------

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry2x32(on: Arithmetic, key: Words, counter: Words) -> Words:
    """Two words; five times four rounds, a word of the key added after every four."""
    third = on.xor(on.xor(key[0], key[1]), on.constant(_PARITY))
    schedule = (key[0], key[1], third)
    x, y = on.add(counter[0], key[0]), on.add(counter[1], key[1])
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = on.add(x, y)
            y = on.xor(on.rotate(y, distance), x)
        x = on.add(x, schedule[(group + 1) % 3])
        y = on.add(y, on.add(schedule[(group + 2) % 3], on.constant(group + 1)))
    return x, y


# --- philox4x32 -------------------------------------------------------------------------------

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def philox4x32(on: Arithmetic, key: Words, counter: Words) -> Words:
    """Four words; the key grows by odd constants from round to round."""
    k, j = key
    a, b, c, d = counter
    m, n = map(on.constant, _MULTIPLIERS)
    for number in range(10):
        if number:
            k, j = on.add(k, on.constant(_WEYL[0])), on.add(j, on.constant(_WEYL[1]))
        high_a, low_a = on.products(a, m)
        high_c, low_c = on.products(c, n)
        a, b = on.xor(on.xor(high_c, b), k), low_c
        c, d = on.xor(on.xor(high_a, d), j), low_a
    return a, b, c, d


def _philox_sample(on: Arithmetic, key: Words, position: Words) -> Words:
    zero = on.constant(0)
    a, b, c, d = philox4x32(on, key, (*position, zero, zero))
    # A 64-bit sample is (first, second); a narrower one the xor of all four.
    return a, b, on.xor(on.xor(a, b), on.xor(c, d))


def _philox_derive(on: Arithmetic, key: Words, position: Words) -> Words:
    zero = on.constant(0)
    return philox4x32(on, key, (zero, zero, *position))[:2]


def _philox_seed(on: Arithmetic, seed: Words) -> Words:
    zero = on.constant(0)
    return philox4x32(on, (zero, zero), (*seed, zero, zero))[:2]


def _threefry_sample(on: Arithmetic, key: Words, position: Words) -> Words:
    x, y = threefry2x32(on, key, position)
    return x, y, on.xor(x, y)


GENERATORS: Mapping[str, Generator] = {
    g.name: g
    for g in (
        Generator("threefry2x32", _threefry_sample, threefry2x32, lambda on, seed: tuple(seed)),
        Generator("philox4x32", _philox_sample, _philox_derive, _philox_seed),
    )
}
