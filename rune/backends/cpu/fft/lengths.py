"""How a length is divided: into two factors, and into the radices of stages."""

from __future__ import annotations

import math

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.scratch import LINE
from rune.ops.fourier.lengths import prime_factors

WRITTEN_OUT = (2, 3, 4, 5, 8, 16)  # radices whose transforms are in registers (butterflies.py)


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
        return "prime"
    return f"{'plain' if last else 'turned'}{radix}"


def step_between(columns: int, shape: Shape) -> int:
    """The step between rows, one cache line more than a row.

    With rows a power of two apart, a column would use only a few sets of the cache.
    """
    return columns + LINE // shape.bytes
