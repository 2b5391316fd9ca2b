"""How a length is divided: into two factors, and into the radices of stages."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.scratch import LINE
from rune.ops.fourier.in_memory import LONGEST_PRIME
from rune.ops.fourier.lengths import prime_factors

WRITTEN_OUT = (2, 3, 4, 5, 7, 8, 11, 13, 16)  # radices whose transforms are in registers (butterflies.py)
_ODD = (1, 3, 5, 7, 9, 15, 21, 25, 27, 35, 45, 63, 75, 81, 105, 125, 135)  # factors of convolutions
SUMMED = 31  # the largest prime whose transform is a sum; that of a larger one is a convolution


def split_of(n: int, lanes: int) -> tuple[int, int] | None:
    """The two factors of n that differ least, each at least `lanes`; None if there are none."""
    for a in range(math.isqrt(n), lanes - 1, -1):
        if n % a == 0:
            return a, n // a
    return None


def twin_factors(n: int, lanes: int) -> tuple[int, int] | None:
    """The factors of rows that share vectors: half a vector or a whole one; None for others.

    >>> twin_factors(64, 16), twin_factors(128, 16), twin_factors(256, 16), twin_factors(512, 16)
    ((8, 8), (16, 8), (16, 16), None)
    """
    half = lanes // 2
    by_length = {a * b: (a, b) for a, b in ((half, half), (lanes, half), (lanes, lanes))}
    return by_length.get(n) if half >= 4 else None


def radices(n: int) -> tuple[int, ...]:
    """The radices of the stages of a transform. Few different ones, as each is compiled separately.

    >>> radices(128), radices(360)
    ((4, 4, 8), (5, 3, 3, 8))
    """
    primes = prime_factors(n)
    twos, odd = primes.count(2), sorted((p for p in primes if p != 2), reverse=True)
    eights = int(twos % 2 and twos > 1)  # stages of 4 leave one 2 of an odd power: 8 takes it
    return (*odd, *(4,) * ((twos - 3 * eights) // 2), *(8,) * eights, *(2,) * (twos == 1))


def few_radices(n: int) -> tuple[int, ...]:
    """The same by as few stages as there are with a radix of 8, for code that all lengths share.

    >>> few_radices(128), few_radices(256), few_radices(360)
    ((4, 4, 8), (4, 8, 8), (5, 3, 3, 8))
    """
    primes = prime_factors(n)
    twos, odd = primes.count(2), sorted((p for p in primes if p != 2), reverse=True)
    if twos == 4:
        return (*odd, 16)
    # One 2 that is left over makes two fours of itself and an eight.
    fours = (0, 2, 1)[twos % 3] if twos > 1 else 0
    return (*odd, *(4,) * fours, *(8,) * ((twos - 2 * fours) // 3), *(2,) * (twos == 1))


def piece_of(radix: int, last: bool) -> str:
    """The function of a stage."""
    if radix not in WRITTEN_OUT:
        return "prime" if radix <= SUMMED else "convolved"
    return f"{'plain' if last else 'turned'}{radix}"


def is_in_lanes(n: int) -> bool:
    """Whether stages transform n numbers in lanes: prime factors have work memory on the stack."""
    return prime_factors(n)[-1] <= LONGEST_PRIME


def cost(n: int) -> float:
    """What a transform of n numbers costs in lanes, in units of about a nanosecond."""
    return n * sum(map(_stage_cost, few_radices(n)))


def split_cost(n: int, lanes: int) -> float:
    """The same of one row that splits, whose last vectors may be partial."""
    factors = split_of(n, lanes)
    assert factors is not None
    return sum(-(-n // size // lanes) * cost(size) for size in factors)


def _stage_cost(radix: int) -> float:
    """For each number: a pass through memory, and operations; two transforms of a convolution."""
    if piece_of(radix, last=False) == "convolved":
        return 4 + 2 * cost(circular_length(radix)) / radix
    return 1.5 + (radix / 5 if radix % 2 else math.log2(radix) / 2)


@functools.lru_cache(maxsize=1024)
def circular_length(prime: int) -> int:
    """The length of the convolution for a prime.

    >>> circular_length(257), circular_length(83)
    (256, 168)
    """
    # Nothing wraps onto the first p - 1 sums from twice as many numbers less one on.
    return min((prime - 1, *_good_lengths(2 * prime - 3)), key=cost)


@functools.lru_cache(maxsize=1024)
def split_length(least: int, lanes: int) -> int:
    """The length from `least` on whose rows cost least, of full vectors and two such factors."""
    vectors = max(-(-least // lanes), lanes)
    return min((k * lanes for k in _good_lengths(vectors)), key=lambda n: split_cost(n, lanes))


def _good_lengths(least: int) -> Iterator[int]:
    return (odd << (-(-least // odd) - 1).bit_length() for odd in _ODD)


def step_between(columns: int, shape: Shape) -> int:
    """The step between rows, one cache line more than a row.

    With rows a power of two apart, a column would use only a few sets of the cache.
    """
    return columns + LINE // shape.bytes
