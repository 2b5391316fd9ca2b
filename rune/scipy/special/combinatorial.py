"""Beta function, binomials, factorials and Pochhammer's symbol: quotients of gamma functions.

For moderate numbers they are such quotients, which lose no digits. For large numbers the logarithms
are combined first, so that their common part is never formed.
"""

from __future__ import annotations

import math
import numbers
from functools import partial

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.errors import ArgumentError
from rune.numpy.arguments import static_count
from rune.scipy.special.arguments import elementwise, reals, rounded, undefined, widened
from rune.scipy.special.densities import stirling_error
from rune.scipy.special.gammas import gamma_function, gammasgn, log_gamma
from rune.scipy.special.stirling import HALF_LOG_2PI, SHIFT, stirling_series
from rune.typing import ArrayLike

_DIRECT = 30.0  # up to here the gamma functions themselves are divided, in f32 too


def log_beta(a: Array, b: Array) -> Array:
    """log |B(a, b)| of floating arrays."""
    is_less = a < b  # not minimum and maximum, whose derivatives at NaN are 0
    low, high = rnp.where(is_less, a, b), rnp.where(is_less, b, a)
    n = low + high
    direct = log_gamma(low) + log_gamma(high) - log_gamma(n)
    is_far = (low > 0) & (high >= SHIFT)
    is_both = is_far & (low >= SHIFT)
    h = rnp.where(is_far, high, float(SHIFT))
    small = rnp.where(is_far, low, 1.0)
    change = -(h - 0.5) * rnp.log1p(small / h) - small * (rnp.log(h + small) - 1.0)
    far = log_gamma(small) + change + stirling_series(h) - stirling_series(h + small)
    large = rnp.where(is_both, low, float(SHIFT))
    both = _log_beta_of_large(large, rnp.where(is_both, h, large))
    return rnp.where(is_both, both, rnp.where(is_far, far, direct))


def _log_beta_of_large(a: Array, b: Array) -> Array:
    """log B(a, b) for b >= a >= 8; all large terms are negative."""
    n = a + b
    powers = a * rnp.log(a / n) + b * rnp.log1p(-a / n)
    errors = stirling_error(a) + stirling_error(b) - stirling_error(n)
    return powers + HALF_LOG_2PI - 0.5 * rnp.log(a) - 0.5 * rnp.log(b / n) + errors


@elementwise
def betaln(a: Array, b: Array) -> Array:
    """log |B(a, b)|, the logarithm of the beta function.

    Source: DLMF 5.12.1 and 5.11.1.
    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> from rune.scipy.special import betaln
    >>> betaln(2.0, 3.0)
    Array(-2.4849067, f32*[], cpu:0)
    """
    return log_beta(a, b)


def _sign(x: Array) -> Array:
    return ops.stop_gradient(gammasgn(x))


@elementwise
def beta(a: Array, b: Array) -> Array:
    """B(a, b) = Γ(a) Γ(b) / Γ(a + b).

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.
    Source: quotients of gamma functions, DLMF 5.12.1 and 5.11.1.

    >>> from rune.scipy.special import beta
    >>> beta(2.0, 3.0)
    Array(0.08333334, f32*[], cpu:0)
    """
    is_direct = (rnp.abs(a) + rnp.abs(b) < _DIRECT) & (a + b != 0)
    a1, b1 = rnp.where(is_direct, a, 1.0), rnp.where(is_direct, b, 1.0)
    direct = gamma_function(a1) * gamma_function(b1) / gamma_function(a1 + b1)
    signs = _sign(a) * _sign(b) * _sign(a + b)
    return rnp.where(is_direct, direct, signs * rnp.exp(log_beta(a, b)))


def _rounded(value: Array, *operands: Array) -> Array:
    """`value`, rounded if all operands are integers; its derivatives are unchanged."""
    is_whole = rnp.abs(value) < 0.1 / rnp.finfo(value.dtype).eps
    for x in operands:
        is_whole = is_whole & (x == rnp.round(x))
    change = rnp.where(is_whole, rnp.round(value) - value, 0.0)
    return value + ops.stop_gradient(change)


def over_gamma(x: Array) -> Array:
    """1 / Γ(x), which is 0 at the poles."""
    is_pole = (x <= 0) & (x == rnp.floor(x))
    return rnp.where(is_pole, 0.0, 1.0 / gamma_function(rnp.where(is_pole, 1.0, x)))


def _is_negative_whole(x: Array) -> Array:
    return (x < 0) & (x == rnp.round(x))


@elementwise
def binom(n: Array, k: Array) -> Array:
    """Γ(n + 1) / (Γ(k + 1) Γ(n - k + 1)), the number of choices of k out of n.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of gamma functions, DLMF 5.12.1 and 5.11.1.

    >>> from rune.scipy.special import binom
    >>> binom(5.0, 2.0)
    Array(10., f32*[], cpu:0)
    """
    is_direct = rnp.abs(n) + rnp.abs(k) < _DIRECT
    n1, k1 = rnp.where(is_direct, n, 1.0), rnp.where(is_direct, k, 1.0)
    direct = gamma_function(n1 + 1.0) * over_gamma(k1 + 1.0) * over_gamma(n1 - k1 + 1.0)
    logs = -rnp.log(rnp.abs(n + 1.0)) - log_beta(1.0 + n - k, 1.0 + k)
    signs = _sign(n + 1.0) * _sign(k + 1.0) * _sign(n - k + 1.0)
    is_none = _is_negative_whole(k) | _is_negative_whole(n - k)
    far = rnp.where(is_none, 0.0, signs * rnp.exp(logs))
    number = _rounded(rnp.where(is_direct, direct, far), n, k)
    return undefined(_is_negative_whole(n) | rnp.isnan(n) | rnp.isnan(k), number)


def comb(N: ArrayLike, k: ArrayLike, exact: bool = False, repetition: bool = False) -> Array:
    """The number of ways to choose k out of N, as a float; with `repetition`, elements may repeat.

    0 for k > N or negative numbers.
    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError for exact=True.
    Source: quotients of gamma functions, DLMF 5.12.1 and 5.11.1.

    >>> from rune.scipy.special import comb
    >>> comb(5, 2)
    Array(10., f32*[], cpu:0)
    """
    if exact:
        raise ArgumentError("comb: cannot use exact=True (results are floating arrays)")
    n, k = reals("comb", N, k)
    if repetition:
        # Nothing is chosen in one way, out of nothing, too.
        n = rnp.where(k == 0, n, n + k - 1.0)
    return rnp.where((k <= n) & (n >= 0) & (k >= 0), binom(n, k), 0.0)


def perm(N: ArrayLike, k: ArrayLike, exact: bool = False) -> Array:
    """The number of ordered choices of k out of N, as a float; 0 for k > N or negative numbers.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError for exact=True.
    Source: quotients of gamma functions, DLMF 5.12.1 and 5.11.1.

    >>> from rune.scipy.special import perm
    >>> perm(5, 2)
    Array(20., f32*[], cpu:0)
    """
    if exact:
        raise ArgumentError("perm: cannot use exact=True (results are floating arrays)")
    n, k = reals("perm", N, k)
    is_good = (k <= n) & (n >= 0) & (k >= 0)
    quotient = poch(rnp.where(is_good, n - k + 1.0, 1.0), rnp.where(is_good, k, 0.0))
    return rnp.where(is_good, _rounded(quotient, n, k), 0.0)


@partial(elementwise, name="factorial")
def _factorial(n: Array) -> Array:
    return rnp.where(n < 0, 0.0, _rounded(gamma_function(rnp.where(n < 0, 0.0, n) + 1.0), n))


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n! = Γ(n + 1), as a float; 0 for negative n.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError for exact=True.
    Source: quotients of gamma functions, DLMF 5.12.1 and 5.11.1.

    >>> from rune.scipy.special import factorial
    >>> factorial(5)
    Array(120., f32*[], cpu:0)
    """
    if exact:
        raise ArgumentError("factorial: cannot use exact=True (results are floating arrays)")
    return _factorial(n)


@elementwise
def poch(z: Array, m: Array) -> Array:
    """Pochhammer's symbol Γ(z + m) / Γ(z), the rising factorial z (z + 1) … for integer m.

    Shapes: broadcast together.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: quotients of gamma functions, DLMF 5.12.1 and 5.11.1.

    >>> from rune.scipy.special import poch
    >>> poch(3.0, 2.0)
    Array(12., f32*[], cpu:0)
    """
    is_pole = (z <= 0) & (z == rnp.floor(z))
    # Where both are poles, the quotient is that of the reflected gamma functions.
    is_turned = is_pole & (m == rnp.floor(m)) & (z + m <= 0)
    z = rnp.where(is_turned, 1.0 - z - m, z)
    turn = rnp.where(is_turned & (rnp.remainder(m, 2.0) != 0), -1.0, 1.0)
    quotient = turn * _poch(z, m)
    quotient = rnp.where(is_pole & ~is_turned, 0.0, quotient)
    quotient = rnp.where((z + m <= 0) & (z + m == rnp.floor(z + m)) & ~is_pole, rnp.inf, quotient)
    return rnp.where(m == 0, 1.0, undefined(rnp.isnan(m), quotient))


def _poch(z: Array, m: Array) -> Array:
    """Γ(z + m) / Γ(z) away from the poles."""
    is_direct = (rnp.abs(z) < _DIRECT) & (rnp.abs(z + m) < _DIRECT)
    z1, m1 = rnp.where(is_direct, z, 1.0), rnp.where(is_direct, m, 0.0)
    direct = gamma_function(z1 + m1) * over_gamma(z1)
    is_both = (z >= SHIFT) & (z + m >= SHIFT)
    z2, m2 = rnp.where(is_both, z, float(SHIFT)), rnp.where(is_both, m, 0.0)
    change = (z2 - 0.5) * rnp.log1p(m2 / z2) + m2 * (rnp.log(z2 + m2) - 1.0)
    change = change + stirling_series(z2 + m2) - stirling_series(z2)
    other = log_gamma(z + m) - log_gamma(z)
    signs = rnp.where(is_both, 1.0, _sign(z + m) * _sign(z))
    far = signs * rnp.exp(rnp.where(is_both, change, other))
    return rnp.where(is_direct, direct, far)


def multigammaln(a: ArrayLike, d: int) -> Array:
    """log of the multivariate gamma function of dimension d, for a > (d - 1) / 2.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError for d < 1.
    Source: DLMF 5.5.3 and 5.11.1.

    >>> from rune.scipy.special import multigammaln
    >>> multigammaln(2.0, 1)
    Array(0., f32[], cpu:0)
    """
    is_number = isinstance(d, numbers.Real) or getattr(d, "ndim", 1) == 0
    if not is_number or d < 1 or d != int(d):
        raise ArgumentError(f"multigammaln: cannot use dimension {d!r} (a whole number of at least 1 required)")
    d = static_count("multigammaln", "a dimension", int(d))
    x, dtype = widened(reals("multigammaln", a)[0])
    terms = log_gamma(x[..., None] - rnp.arange(d, dtype=x.dtype) / 2)
    return rounded(terms.sum(-1) + d * (d - 1) / 4 * math.log(math.pi), dtype)
