"""Transforms of any length as circular convolutions, whose lengths have small factors.

Stages of a prime length p: the powers of a generator g of the numbers modulo p are 1 to p - 1 in
another order, so

    X[1 / g^q] = x[0] + sum over k of x[g^k] exp(-2πi g^(k-q) / p)

is a convolution of p - 1 numbers, and its transform a product with those of the roots, which is a
table. If p - 1 has large factors itself, zeros are appended up to a better length.

Rows of any length: with the chirp exp(-πi k²/n), by which they are multiplied before and after.

Source: C. M. Rader 1968, "Discrete Fourier transforms when the number of data samples is prime",
Proc. IEEE 56(6); rows, L. I. Bluestein 1970, as ops/fourier/bluestein.py.
"""

from __future__ import annotations

import functools

import numpy as np

from rune.backends.cpu.fft.tables import as_pairs, wide_roots
from rune.ops.fourier.lengths import prime_factors


@functools.lru_cache(maxsize=64)
def order_of(prime: int) -> np.ndarray:
    """The powers of a generator modulo a prime, g^0 to g^(p-2), and their inverses: i64[2, p-1]."""
    factors = set(prime_factors(prime - 1))
    generator = next(g for g in range(2, prime) if all(pow(g, (prime - 1) // f, prime) != 1 for f in factors))
    powers = [pow(generator, k, prime) for k in range(prime - 1)]
    return np.array([powers, [powers[-k] for k in range(prime - 1)]], np.int64)


def spectrum_of(prime: int, size: int, dtype: np.dtype) -> np.ndarray:
    """The transform of the roots in the order of the convolution, divided by `size`: f[size, 2]."""
    roots = wide_roots(order_of(prime)[1], prime, dtype)
    padded = np.zeros(size, roots.dtype)
    padded[: prime - 1] = roots
    # Those before the first, which a longer convolution does not reach by going round.
    padded[size - prime + 2 :] = roots[1:]
    return as_pairs(np.fft.fft(padded) / size, dtype)


def chirp_of(n: int, size: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The chirp, and the transform of its conjugate around 0, divided by `size`: f[2, ...]."""
    chirp = wide_roots(np.arange(n) ** 2 % (2 * n), 2 * n, dtype)
    padded = np.zeros(size, chirp.dtype)
    padded[:n] = chirp.conj()
    padded[size - n + 1 :] = padded[n - 1 : 0 : -1]
    chirp, spectrum = (np.ascontiguousarray(as_pairs(x, dtype).T) for x in (chirp, np.fft.fft(padded) / size))
    return chirp, spectrum
