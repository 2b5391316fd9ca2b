"""Transforms of any length as convolutions.

With jk = (j² + k² - (k-j)²)/2, the sum over j of x[j] exp(-2πi jk/n) is a convolution with the
chirp exp(πi j²/n), between two products with that chirp. The circular convolution has a power of
two of at least 2n - 1 as its length, and is computed by transforms of that length.

Source: L. I. Bluestein 1970, "A linear filtering approach to the computation of discrete Fourier
transform", IEEE Trans. Audio Electroacoustics 18(4).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rune.core.interpreter import literal, literal_like, type_of
from rune.ops import arithmetic as a
from rune.ops import pairs
from rune.ops.fourier.along import cut, lengthen, times
from rune.ops.fourier.lengths import padded_length
from rune.ops.fourier.roots import indices, square_modulo, unit_roots
from rune.ops.pairs import Pair


def transform_by_convolution(x: Pair, axis: int, n: int, transform: Callable[[Pair, int], Pair]) -> Pair:
    """The transform along `axis`, of length n, by a function for lengths that are powers of two."""
    dtype = type_of(x[0]).dtype
    size = padded_length(n)
    chirp = _chirp(indices(n, 2 * n), n, dtype)
    x = lengthen(times(x, chirp, axis), axis, size)
    spectrum = transform(x, axis)
    product = times(spectrum, transform(_filter(n, size, dtype), 0), axis)
    # The inverse transform is the transform with the parts exchanged, before and after.
    imag, real = transform((product[1], product[0]), axis)
    spectrum_of_x = times(cut((real, imag), axis, 0, n), chirp, axis)
    return pairs.times(spectrum_of_x, literal(1 / size, dtype))


def _chirp(k: np.ndarray, n: int, dtype: np.dtype) -> Pair:
    """exp(-πi k²/n)."""
    return unit_roots(square_modulo(k, 2 * n), 2 * n, dtype)


def _filter(n: int, size: int, dtype: np.dtype) -> Pair:
    """exp(πi k²/n) for -n < k < n, at k modulo `size`; zero elsewhere."""
    k = indices(size, 2 * n)
    distance = a.min(k, a.sub(literal_like(size, k), k))
    is_inside = a.lt(distance, literal_like(n, k))
    real, imag = _chirp(a.select(is_inside, distance, literal_like(0, k)), n, dtype)
    zero = literal(0, dtype)
    return a.select(is_inside, real, zero), a.select(is_inside, a.neg(imag), zero)
