"""Counter-based generators: from a key and a counter to words that look random.

Each cipher is one function of 32-bit words, written once over an `Arithmetic`: with NumPy's it is
the reference, with the one in lowering/scalar/ciphers.py a function of kernels. The words equal
JAX's bit for bit, so the split of the counters between new keys and samples is JAX's too.

    threefry2x32   20 rounds of add, rotate, xor; the counter has two words
    philox4x32     10 rounds of 32 x 32-bit products; the counter has four

Source: Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", SC11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from rune.records import dataclass

Word = TypeVar("Word")
Words = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Arithmetic(Generic[Word]):
    """The operations that generators use, on 32-bit words that wrap."""

    constant: Callable[[int], Word]
    add: Callable[[Word, Word], Word]
    xor: Callable[[Word, Word], Word]
    rotate: Callable[[Word, int], Word]  # to the left
    products: Callable[[Word, Word], tuple[Word, Word]]  # high and low word of the product


Cipher = Callable[[Arithmetic[Any], Words, Words], Words]
WORD_NAMES = ("first", "second", "mixed")  # the three results of a cipher


@dataclass(frozen=True, slots=True)
class Generator:
    """One counter-based generator; its keys have two words, and a position is (high, low).

    cipher: from the words of a key and of a counter to two words, and the xor of all output words
    counter_words: number of words of a counter
    sample, derive: the counter for the sample, or for the new key, at a position
    seed: the counter whose cipher under a key of zeros is the key for the words of a seed; None if
          those words are the key
    """

    name: str
    cipher: Cipher
    counter_words: int
    sample: Callable[[Words], Words]
    derive: Callable[[Words], Words]
    seed: Callable[[Words], Words] | None

    def operation(self, number: int) -> str:
        """The name of the scalar operation that computes one of the cipher's words."""
        return f"{self.name}_{WORD_NAMES[number]}"


# --- threefry2x32 -----------------------------------------------------------------------------

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry2x32(on: Arithmetic[Any], key: Words, counter: Words) -> Words:
    """Five groups of four rounds; words of the key schedule are added after each group."""
    third = on.xor(on.xor(key[0], key[1]), on.constant(_PARITY))
    schedule = (key[0], key[1], third)
    x, y = on.add(counter[0], key[0]), on.add(counter[1], key[1])
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = on.add(x, y)
            y = on.xor(on.rotate(y, distance), x)
        x = on.add(x, schedule[(group + 1) % 3])
        y = on.add(y, on.add(schedule[(group + 2) % 3], on.constant(group + 1)))
    return x, y, on.xor(x, y)


# --- philox4x32 -------------------------------------------------------------------------------

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def philox_block(on: Arithmetic[Word], key: Sequence[Word], counter: Sequence[Word]) -> Sequence[Word]:
    """All four words after ten rounds; between rounds the key grows by odd constants."""
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


def philox4x32(on: Arithmetic[Any], key: Words, counter: Words) -> Words:
    """The first two words of a block, and the xor of all four."""
    a, b, c, d = philox_block(on, key, counter)
    return a, b, on.xor(on.xor(a, b), on.xor(c, d))


def _as_it_is(words: Words) -> Words:
    return words


def _before_zeros(words: Words) -> Words:
    return (*words, 0, 0)


def _behind_zeros(words: Words) -> Words:
    return (0, 0, *words)


THREEFRY = Generator("threefry2x32", threefry2x32, 2, _as_it_is, _as_it_is, None)
PHILOX = Generator("philox4x32", philox4x32, 4, _before_zeros, _behind_zeros, _before_zeros)
GENERATORS: Mapping[str, Generator] = {g.name: g for g in (THREEFRY, PHILOX)}
