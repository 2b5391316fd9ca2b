"""Families of integers.

Source, unless another is named: Johnson, Kemp & Kotz, Univariate Discrete Distributions.
"""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune.array import Array
from rune.scipy.special import incomplete_beta, incomplete_gamma
from rune.scipy.special.combinatorial import log_beta
from rune.scipy.special.densities import log_beta_power, log_poisson, times_log
from rune.scipy.special.densities import poisson as poisson_mass
from rune.scipy.special.elementary import entr, xlog1py
from rune.scipy.special.gammas import digamma, zeta_of
from rune.scipy.stats.discrete import Discrete, Summed


def _share(p: Array) -> Array:
    return (p >= 0) & (p <= 1)


def _from_zero(*shapes: Array) -> tuple[float, float]:
    return 0.0, rnp.inf


def _from_one(*shapes: Array) -> tuple[float, float]:
    return 1.0, rnp.inf


bernoulli = Discrete(
    "bernoulli",
    "1 with probability p, else 0",
    ("p",),
    bounds=lambda p: (0.0, 1.0),
    valid=_share,
    log_mass=lambda k, p: times_log(k, p) + xlog1py(1.0 - k, -p),
    mass=lambda k, p: rnp.where(k == 1, p, 1.0 - p),
    lower=lambda k, p: 1.0 - p,
    upper=lambda k, p: p,
    entropy_of=lambda p: entr(p) + entr(1.0 - p),
    mean_of=lambda p: p,
    variance_of=lambda p: p * (1.0 - p),
)


def _binom_log_mass(k: Array, n: Array, p: Array) -> Array:
    """By deviances inside, by powers at the ends."""
    is_inside = (k > 0) & (k < n) & (p > 0) & (p < 1)
    a, b = rnp.where(is_inside, k, 1.0), rnp.where(is_inside, n - k, 1.0)
    x = rnp.where(is_inside, p, 0.5)
    # p^k q^(n-k) / B(k, n-k) = mass · k (n-k) / n
    inner = log_beta_power(a, b, x, 1.0 - x) - rnp.log(a) - rnp.log(b / (a + b))
    return rnp.where(is_inside, inner, times_log(k, p) + xlog1py(n - k, -p))


binom = Discrete(
    "binom",
    "successes in n trials of probability p",
    ("n", "p"),
    log_mass=_binom_log_mass,
    bounds=lambda n, p: (0.0, n),
    valid=lambda n, p: (n >= 0) & (n == rnp.round(n)) & _share(p),
    lower=lambda k, n, p: incomplete_beta.upper(k + 1.0, n - k, p),
    upper=lambda k, n, p: incomplete_beta.lower(k + 1.0, n - k, p),
    mean_of=lambda n, p: n * p,
    variance_of=lambda n, p: n * p * (1.0 - p),
)


def _betabinom_log_mass(k: Array, n: Array, a: Array, b: Array) -> Array:
    ways = -rnp.log1p(n) - log_beta(n - k + 1.0, k + 1.0)
    return ways + log_beta(k + a, n - k + b) - log_beta(a, b)


_betabinom_lower = Summed(
    0.0,
    lambda n, a, b: log_beta(a, n + b) - log_beta(a, b),
    lambda k, n, a, b: ((n - k) * (a - 1.0) - (k + 1.0) * (b - 1.0)) / ((k + 1.0) * (n - k - 1.0 + b)),
    reach=lambda n, a, b: n,
)

betabinom = Discrete(
    "betabinom",
    "successes in n trials of a beta distributed probability",
    ("n", "a", "b"),
    log_mass=_betabinom_log_mass,
    lower=_betabinom_lower,
    bounds=lambda n, a, b: (0.0, n),
    valid=lambda n, a, b: (n >= 0) & (n == rnp.round(n)) & (a > 0) & (b > 0),
    mean_of=lambda n, a, b: n * a / (a + b),
    variance_of=lambda n, a, b: n * a * b * (a + b + n) / (rnp.square(a + b) * (a + b + 1.0)),
)

geom = Discrete(
    "geom",
    "trials of probability p until the first success",
    ("p",),
    bounds=_from_one,
    log_mass=lambda k, p: xlog1py(k - 1.0, -p) + rnp.log(p),
    valid=lambda p: (p > 0) & (p <= 1),
    lower=lambda k, p: -rnp.expm1(k * rnp.log1p(-p)),
    upper=lambda k, p: rnp.exp(k * rnp.log1p(-p)),
    entropy_of=lambda p: (entr(p) + entr(1.0 - p)) / p,
    mean_of=lambda p: 1.0 / p,
    variance_of=lambda p: (1.0 - p) / (p * p),
)


def _nbinom_log_mass(k: Array, n: Array, p: Array) -> Array:
    is_inside = (k > 0) & (p < 1)
    b = rnp.where(is_inside, k, 1.0)
    x = rnp.where(is_inside, p, 0.5)
    # p^n q^k / B(n, k) = mass · k
    inner = log_beta_power(n, b, x, 1.0 - x) - rnp.log(b)
    return rnp.where(is_inside, inner, n * rnp.log(p) + xlog1py(k, -p))


nbinom = Discrete(
    "nbinom",
    "failures before the n-th success, of probability p",
    ("n", "p"),
    bounds=_from_zero,
    log_mass=_nbinom_log_mass,
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    lower=lambda k, n, p: incomplete_beta.lower(n, k + 1.0, p),
    upper=lambda k, n, p: incomplete_beta.upper(n, k + 1.0, p),
    mean_of=lambda n, p: n * (1.0 - p) / p,
    variance_of=lambda n, p: n * (1.0 - p) / (p * p),
)


def _poisson_entropy(mu: Array) -> Array:
    """The sum of -p log p up to a mean of 120; beyond, its expansion in 1/mu, to a relative error
    of 1e-9.
    """
    few = rnp.minimum(mu, 120.0)[..., None]
    k = rnp.arange(256, dtype=mu.dtype)
    log_mass = log_poisson(k, rnp.maximum(few, 1e-30))
    total = -rnp.sum(rnp.exp(log_mass) * log_mass, -1)
    many = rnp.maximum(mu, 120.0)
    series = 0.5 * rnp.log(2 * math.pi * math.e * many)
    series -= (1 / 12 + (1 / 24 + 19 / 360 / many) / many) / many
    return rnp.where(mu <= 120.0, rnp.where(mu == 0, 0.0, total), series)


poisson = Discrete(
    "poisson",
    "events of mean number mu",
    ("mu",),
    bounds=_from_zero,
    valid=lambda mu: mu >= 0,
    log_mass=log_poisson,
    mass=poisson_mass,
    lower=lambda k, mu: incomplete_gamma.upper(k + 1.0, mu),
    upper=lambda k, mu: incomplete_gamma.lower(k + 1.0, mu),
    mean_of=lambda mu: mu,
    variance_of=lambda mu: mu,
    entropy_of=_poisson_entropy,
)

randint = Discrete(
    "randint",
    "the whole numbers from low to high - 1, equally likely",
    ("low", "high"),
    bounds=lambda low, high: (low, high - 1.0),
    valid=lambda low, high: low < high,
    log_mass=lambda k, low, high: -rnp.log(high - low) + 0.0 * k,
    lower=lambda k, low, high: (k - low + 1.0) / (high - low),
    upper=lambda k, low, high: (high - 1.0 - k) / (high - low),
    entropy_of=lambda low, high: rnp.log(high - low),
    mean_of=lambda low, high: 0.5 * (low + high - 1.0),
    variance_of=lambda low, high: (rnp.square(high - low) - 1.0) / 12.0,
)

dlaplace = Discrete(
    "dlaplace",
    "the discrete Laplace distribution",
    ("a",),
    valid=lambda a: a > 0,
    bounds=lambda a: (-rnp.inf, rnp.inf),
    log_mass=lambda k, a: rnp.log(rnp.tanh(0.5 * a)) - a * rnp.abs(k),
    lower=lambda k, a: _dlaplace_lower(k, a),
    upper=lambda k, a: _dlaplace_lower(-k - 1.0, a),
    mean_of=rnp.zeros_like,
    variance_of=lambda a: 0.5 / rnp.square(rnp.sinh(0.5 * a)),
)


def _dlaplace_lower(k: Array, a: Array) -> Array:
    size = rnp.where(k < 0, -k, k + 1.0)
    tail = rnp.exp(-a * size) / (1.0 + rnp.exp(-a))
    return rnp.where(k < 0, tail, 1.0 - tail)


def _logser_shares(k: Array, p: Array) -> tuple[Array, Array]:
    """The probabilities up to k and beyond k; the latter is B_p(k + 1, 0) over the sum of all.

    Where it is small, the fraction of the incomplete beta function; else the series of
    ∫ t**k / (1 - t) = -log(1 - p) - H_k + Σ (-1)**(n + 1) C(k, n) (1 - p)**n / n.
    """
    y, norm = 1.0 - p, -rnp.log1p(-p)
    is_far = (k + 3.0) * y > 1.0
    far_k, far_p = rnp.where(is_far, k, 1.0), rnp.where(is_far, p, 0.5)
    far = p / norm * rnp.power(far_p, far_k)
    far = far / incomplete_beta.fraction(far_k + 1.0, rnp.zeros_like(p), far_p, 1.0 - far_p)
    near_k, near_y = rnp.where(is_far, 1.0, k), rnp.where(is_far, 0.25, y)
    term, series = rnp.ones_like(p), rnp.zeros_like(p)
    for n in range(1, _LOGSER_TERMS[p.dtype.itemsize] + 1):
        term = -term * near_y * (near_k - (n - 1.0)) / n
        series = series - term / n
    near = (digamma(near_k + 1.0) + rnp.euler_gamma - series) / norm
    return rnp.where(is_far, 1.0 - far, near), rnp.where(is_far, far, 1.0 - near)


_LOGSER_TERMS = {4: 12, 8: 19}  # of 1 / (n n!), until they vanish

logser = Discrete(
    "logser",
    "the logarithmic series distribution",
    ("p",),
    bounds=_from_one,
    valid=lambda p: (p > 0) & (p < 1),
    log_mass=lambda k, p: k * rnp.log(p) - rnp.log(k) - rnp.log(-rnp.log1p(-p)),
    lower=lambda k, p: _logser_shares(k, p)[0],
    upper=lambda k, p: _logser_shares(k, p)[1],
    shares=_logser_shares,
    mean_of=lambda p: -p / ((1.0 - p) * rnp.log1p(-p)),
    variance_of=lambda p: -p * (p + rnp.log1p(-p)) / rnp.square((1.0 - p) * rnp.log1p(-p)),
)

zipf = Discrete(
    "zipf",
    "Zipf's distribution, of the power -a",
    ("a",),
    bounds=_from_one,
    valid=lambda a: a > 1,
    log_mass=lambda k, a: rnp.where(k == 1.0, 0.0, -a * rnp.log(k)) - rnp.log(_zeta(a)),
    upper=lambda k, a: zeta_of(a, k + 1.0) / _zeta(a),
    mean_of=lambda a: rnp.where(a > 2, _zeta(rnp.where(a > 2, a - 1.0, 2.0)) / _zeta(a), math.inf),
)


def _zeta(a: Array) -> Array:
    return zeta_of(a, rnp.ones_like(a))
