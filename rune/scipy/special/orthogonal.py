"""Orthogonal polynomials of integer degree, and spherical harmonics, by their recurrences.

A recurrence runs up to the largest requested degree, which must be known while tracing; elements of
a lower degree keep the value they had there.

Source: DLMF 18.9.1 and 14.30.1; Press et al., Numerical Recipes 6.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.control import fori_loop
from rune.errors import ArgumentError
from rune.scipy.special.arguments import reals
from rune.typing import ArrayLike

Degrees = ArrayLike | Sequence[int]  # known while tracing
Recurrence = Callable[[Array, Array, Array, Array], Array]


def _degree(name: str, n: Degrees) -> np.ndarray:
    """Concrete integer degrees.

    Errors: ArgumentError for others, ConcretizationTypeError for traced ones.
    """
    degrees = np.asarray(n)
    if degrees.dtype.kind not in "iu" or np.any(degrees < 0):
        raise ArgumentError(f"{name}: cannot use degree {n} (integers of at least 0 required)")
    return degrees


def _evaluated(name: str, n: Degrees, x: ArrayLike, first: Callable[[Array], Array], up: Recurrence) -> Array:
    """The polynomial of degree n at x: 1, first(x), then up(k, x, p_k, p_(k-1)) = p_(k+1)."""
    degree = _degree(name, n)
    (x,) = reals(name, x)
    most = int(degree.max(initial=0))
    degrees, x = rnp.broadcast_arrays(rnp.asarray(degree, x.dtype), x)
    one = rnp.ones_like(x)

    def step(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        current, below = carry
        k = k.astype(x.dtype)
        above = up(k, x, current, below)
        is_kept = k >= degrees
        return rnp.where(is_kept, current, above), rnp.where(is_kept, below, current)

    start = rnp.where(degrees == 0, one, first(x)), one
    return fori_loop(1, max(most, 1), step, start)[0]


def eval_legendre(n: Degrees, x: ArrayLike) -> Array:
    """Legendre's polynomial of degree n at x.

    n: integers known while tracing, as for all polynomials here. Errors: ArgumentError for others.
    Shapes: broadcast together. Types: bools and integers become floats.
    Source: the recurrences of DLMF 18.9.1.

    >>> from rune.scipy.special import eval_legendre
    >>> eval_legendre(2, 1.0)
    Array(1., f32[], cpu:0)
    """
    return _evaluated(
        "eval_legendre", n, x, lambda x: x, lambda k, x, p, q: ((2.0 * k + 1.0) * x * p - k * q) / (k + 1.0)
    )


def eval_chebyt(n: Degrees, x: ArrayLike) -> Array:
    """Chebyshev's polynomial of the first kind.

    Shapes: n and x broadcast together.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `n` is not an integer; DtypeError for
            complex numbers.
    Source: the recurrences of DLMF 18.9.1.

    >>> from rune.scipy.special import eval_chebyt
    >>> eval_chebyt(2, 0.5)
    Array(-0.5, f32*[], cpu:0)
    """
    return _evaluated("eval_chebyt", n, x, lambda x: x, lambda k, x, p, q: 2.0 * x * p - q)


def eval_chebyu(n: Degrees, x: ArrayLike) -> Array:
    """Chebyshev's polynomial of the second kind.

    Shapes: n and x broadcast together.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `n` is not an integer; DtypeError for
            complex numbers.
    Source: the recurrences of DLMF 18.9.1.

    >>> from rune.scipy.special import eval_chebyu
    >>> eval_chebyu(2, 0.5)
    Array(0., f32*[], cpu:0)
    """
    return _evaluated("eval_chebyu", n, x, lambda x: 2.0 * x, lambda k, x, p, q: 2.0 * x * p - q)


def eval_hermite(n: Degrees, x: ArrayLike) -> Array:
    """Hermite's polynomial, of the weight exp(-x²).

    Shapes: n and x broadcast together.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `n` is not an integer; DtypeError for
            complex numbers.
    Source: the recurrences of DLMF 18.9.1.

    >>> from rune.scipy.special import eval_hermite
    >>> eval_hermite(2, 1.0)
    Array(2., f32[], cpu:0)
    """
    return _evaluated("eval_hermite", n, x, lambda x: 2.0 * x, lambda k, x, p, q: 2.0 * (x * p - k * q))


def eval_hermitenorm(n: Degrees, x: ArrayLike) -> Array:
    """Hermite's polynomial, of the weight exp(-x²/2).

    Shapes: n and x broadcast together.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `n` is not an integer; DtypeError for
            complex numbers.
    Source: the recurrences of DLMF 18.9.1.

    >>> from rune.scipy.special import eval_hermitenorm
    >>> eval_hermitenorm(2, 2.0)
    Array(3., f32[], cpu:0)
    """
    return _evaluated("eval_hermitenorm", n, x, lambda x: x, lambda k, x, p, q: x * p - k * q)


def eval_laguerre(n: Degrees, x: ArrayLike) -> Array:
    """Laguerre's polynomial.

    Shapes: n and x broadcast together.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array or `n` is not an integer; DtypeError for
            complex numbers.
    Source: the recurrences of DLMF 18.9.1.

    >>> from rune.scipy.special import eval_laguerre
    >>> eval_laguerre(2, 2.0)
    Array(-1., f32[], cpu:0)
    """
    return _evaluated(
        "eval_laguerre", n, x, lambda x: 1.0 - x, lambda k, x, p, q: ((2.0 * k + 1.0 - x) * p - k * q) / (k + 1.0)
    )


# --- spherical harmonics ----------------------------------------------------------------------


def _normalised(n: Array, m: Array, cosine: Array, sine: Array, most: int) -> Array:
    """Legendre's associated function of degree n and order m >= 0, with norm 1 on the sphere."""

    def diagonal(k: Array, value: Array) -> Array:
        k = k.astype(cosine.dtype)
        factor = -rnp.sqrt((2.0 * k + 1.0) / (2.0 * k)) * sine
        return value * rnp.where(k <= m, factor, 1.0)

    first = rnp.full_like(cosine, math.sqrt(0.25 / math.pi))
    start = fori_loop(1, most + 1, diagonal, first)

    def up(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        current, below = carry
        k = k.astype(cosine.dtype)
        is_used = (k > m) & (k <= n)
        gap = rnp.where(is_used, k * k - m * m, 1.0)
        last = k - 1.0
        ratio = rnp.where(is_used, (last * last - m * m) / (4.0 * last * last - 1.0), 0.0)
        above = rnp.sqrt((4.0 * k * k - 1.0) / gap) * (cosine * current - rnp.sqrt(ratio) * below)
        return rnp.where(is_used, above, current), rnp.where(is_used, current, below)

    value = fori_loop(1, most + 1, up, (start, rnp.zeros_like(start)))[0]
    return rnp.where(m > n, 0.0, value)


def sph_harm_y(
    n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, diff_n: int | None = None, n_max: int | None = None
) -> Array:
    """The spherical harmonic of degree n and order m, -n <= m <= n, at the polar angle theta and
    the azimuth phi, with the phase (-1)^m; complex.

    Shapes: the arguments broadcast.
    n_max:  the largest degree, where n is traced.
    Errors: ArgumentError for diff_n (differentiate with rune.jvp), or a traced n without n_max.
    Source: DLMF 14.30.1; Press et al., Numerical Recipes 6.7.

    >>> from rune.scipy.special import sph_harm_y
    >>> sph_harm_y(0, 0, 0.0, 0.0)
    Array(0.2820948+0.j, c64[], cpu:0)
    """
    if diff_n is not None:
        raise ArgumentError("sph_harm_y: cannot use diff_n (differentiate with rune.jvp)")
    most = int(np.max(_degree("sph_harm_y", n), initial=0)) if n_max is None else n_max
    theta, phi = reals("sph_harm_y", theta, phi)
    degree, order, theta, phi = rnp.broadcast_arrays(
        rnp.asarray(n).astype(theta.dtype), rnp.asarray(m).astype(theta.dtype), theta, phi
    )
    size = rnp.abs(order)
    # For a polar angle outside 0..π, the sine's magnitude; its slope at the pole is that inside.
    sine = rnp.sin(theta)
    value = _normalised(degree, size, rnp.cos(theta), rnp.where(sine < 0, -sine, sine), most)
    sign = rnp.where((order < 0) & (rnp.remainder(size, 2.0) == 1.0), -1.0, 1.0)
    return sign * value * rnp.exp(1j * (order * phi))
