"""How a length is transformed: by stages with these radices, or as a convolution.

A length splits into factors of 4, 2 and odd primes. A stage multiplies by a matrix as wide as its
radix, so a length with a large prime factor becomes a convolution of a length that splits well
(bluestein.py).
"""

from __future__ import annotations

import functools
import math

MOST = 64  # a larger radix costs more than a convolution


def prime_factors(n: int) -> tuple[int, ...]:
    """The prime factors of n > 0 in ascending order.

    >>> prime_factors(360)
    (2, 2, 2, 3, 3, 5)
    """
    factors, divisor = [], 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    return (*factors, n) if n > 1 else tuple(factors)


@functools.lru_cache(maxsize=1024)
def radices(n: int) -> tuple[int, ...] | None:
    """The radices of the stages of a transform of length n, large ones first; None beyond MOST.

    The last radix is the smallest, since the last stage joins its results instead of storing each
    apart.

    >>> radices(360), radices(8), radices(1), radices(67)
    ((5, 3, 3, 4, 2), (4, 2), (), None)
    """
    primes = prime_factors(n)
    if primes and primes[-1] > MOST:
        return None
    twos = primes.count(2)
    odd = sorted((p for p in primes if p != 2), reverse=True)
    return (*odd, *(4,) * (twos // 2), *(2,) * (twos % 2))


@functools.lru_cache(maxsize=1024)
def longer_factor(n: int) -> int:
    """The larger of two factors of n > 0 that are as nearly equal as possible.

    >>> longer_factor(1 << 19), longer_factor(360), longer_factor(7)
    (1024, 20, 7)
    """
    return next(n // a for a in range(math.isqrt(n), 0, -1) if n % a == 0)


def padded_length(n: int) -> int:
    """The least power of two in which a circular convolution of length n does not wrap onto
    itself.
    """
    return 1 << (2 * n - 2).bit_length()
