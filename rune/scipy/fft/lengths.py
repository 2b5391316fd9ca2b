"""Lengths with small prime factors, whose transforms are fastest."""

from __future__ import annotations

from rune.errors import ArgumentError
from rune.numpy.arguments import static_int
from rune.ops.fourier.lengths import prime_factors

_LARGEST_FACTOR = {True: 5, False: 11}  # of real transforms, and of complex ones


def next_fast_len(target: int, real: bool = False) -> int:
    """The smallest length from `target` on without a prime factor above 11 (above 5 if `real`).

    Errors: ArgumentError for a length below 1.

    >>> from rune.scipy import fft
    >>> fft.next_fast_len(1021), fft.next_fast_len(1021, real=True)
    (1024, 1024)
    """
    return _search("next_fast_len", target, real, 1)


def prev_fast_len(target: int, real: bool = False) -> int:
    """The largest length up to `target` without a prime factor above 11 (above 5 if `real`).

    Errors: ArgumentError if an argument is not an array; DtypeError for anything but integers.

    >>> from rune.scipy import fft
    >>> fft.prev_fast_len(1021), fft.prev_fast_len(1021, real=True)
    (1008, 1000)
    """
    return _search("prev_fast_len", target, real, -1)


def _search(name: str, target: int, real: bool, step: int) -> int:
    n = static_int(name, "a length", target)
    if n < 1:
        raise ArgumentError(f"{name}: cannot look for a length beside {n} (1 or more)")
    while max(prime_factors(n), default=1) > _LARGEST_FACTOR[real]:
        n += step
    return n
