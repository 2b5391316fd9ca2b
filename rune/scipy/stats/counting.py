"""Families of whole numbers.

Source, where none is given: Johnson, Kemp & Kotz, Univariate Discrete Distributions.
"""

from __future__ import annotations

import math
from typing import Any

import rune.numpy as rnp
from rune.scipy.special import incomplete_beta, incomplete_gamma
from rune.scipy.special.combinatorial import log_beta
from rune.scipy.special.densities import log_beta_power, log_poisson
from rune.scipy.special.densities import poisson as poisson_mass
from rune.scipy.special.elementary import entr, times_log, xlog1py
from rune.scipy.special.gammas import zeta_of
from rune.scipy.stats.discrete import Discrete, Summed


def _share(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _from_zero(*shapes: Any) -> tuple[float, float]:
    return 0.0, rnp.inf


def _from_one(*shapes: Any) -> tuple[float, float]:
    return 1.0, rnp.inf


bernoulli = Discrete(
    "bernoulli", "1 with probability p, else 0", ("p",), bounds=lambda p: (0.0, 1.0), valid=_share,
    log_mass=lambda k, p: times_log(k, p) + xlog1py(1.0 - k, -p),
    mass=lambda k, p: rnp.where(k == 1, p, 1.0 - p),
    lower=lambda k, p: 1.0 - p, upper=lambda k, p: p,
    entropy_of=lambda p: entr(p) + entr(1.0 - p), mean_of=lambda p: p,
    variance_of=lambda p: p * (1.0 - p),
)  # fmt: skip


def _binom_log_mass(k: Any, n: Any, p: Any) -> Any:
    """By deviances inside, by powers at the ends."""
    is_inside = (k > 0) & (k < n) & (p > 0) & (p < 1)
    a, b = rnp.where(is_inside, k, 1.0), rnp.where(is_inside, n - k, 1.0)
    x = rnp.where(is_inside, p, 0.5)
    # p^k q^(n-k) / B(k, n-k) = mass · k (n-k) / n
    inner = log_beta_power(a, b, x, 1.0 - x) - rnp.log(a) - rnp.log(b / (a + b))
    return rnp.where(is_inside, inner, times_log(k, p) + xlog1py(n - k, -p))


binom = Discrete(
    "binom", "successes in n trials of probability p", ("n", "p"), log_mass=_binom_log_mass,
    bounds=lambda n, p: (0.0, n), valid=lambda n, p: (n >= 0) & (n == rnp.round(n)) & _share(p),
    lower=lambda k, n, p: incomplete_beta.upper(k + 1.0, n - k, p),
    upper=lambda k, n, p: incomplete_beta.lower(k + 1.0, n - k, p),
    mean_of=lambda n, p: n * p, variance_of=lambda n, p: n * p * (1.0 - p),
)  # fmt: skip


def _betabinom_log_mass(k: Any, n: Any, a: Any, b: Any) -> Any:
    ways = -rnp.log1p(n) - log_beta(n - k + 1.0, k + 1.0)
    return ways + log_beta(k + a, n - k + b) - log_beta(a, b)


_betabinom_lower = Summed(
    0.0, lambda n, a, b: log_beta(a, n + b) - log_beta(a, b),
    lambda k, n, a, b: (n - k) * (k + a) / ((k + 1.0) * (n - k - 1.0 + b)),
    reach=lambda n, a, b: n,
)  # fmt: skip

betabinom = Discrete(
    "betabinom", "successes in n trials of a beta distributed probability", ("n", "a", "b"),
    log_mass=_betabinom_log_mass, lower=_betabinom_lower,
    bounds=lambda n, a, b: (0.0, n),
    valid=lambda n, a, b: (n >= 0) & (n == rnp.round(n)) & (a > 0) & (b > 0),
    mean_of=lambda n, a, b: n * a / (a + b),
    variance_of=lambda n, a, b: (
        n * a * b * (a + b + n) / (rnp.square(a + b) * (a + b + 1.0))
    ),
)  # fmt: skip

geom = Discrete(
    "geom", "trials of probability p until the first success", ("p",), bounds=_from_one,
    log_mass=lambda k, p: xlog1py(k - 1.0, -p) + rnp.log(p), valid=lambda p: (p > 0) & (p <= 1),
    lower=lambda k, p: -rnp.expm1(k * rnp.log1p(-p)), upper=lambda k, p: rnp.exp(k * rnp.log1p(-p)),
    entropy_of=lambda p: (entr(p) + entr(1.0 - p)) / p, mean_of=lambda p: 1.0 / p,
    variance_of=lambda p: (1.0 - p) / (p * p),
)  # fmt: skip


def _nbinom_log_mass(k: Any, n: Any, p: Any) -> Any:
    is_inside = (k > 0) & (p < 1)
    b = rnp.where(is_inside, k, 1.0)
    x = rnp.where(is_inside, p, 0.5)
    # p^n q^k / B(n, k) = mass · k
    inner = log_beta_power(n, b, x, 1.0 - x) - rnp.log(b)
    return rnp.where(is_inside, inner, n * rnp.log(p) + xlog1py(k, -p))


nbinom = Discrete(
    "nbinom", "failures before the n-th success, of probability p", ("n", "p"), bounds=_from_zero,
    log_mass=_nbinom_log_mass, valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    lower=lambda k, n, p: incomplete_beta.lower(n, k + 1.0, p),
    upper=lambda k, n, p: incomplete_beta.upper(n, k + 1.0, p),
    mean_of=lambda n, p: n * (1.0 - p) / p, variance_of=lambda n, p: n * (1.0 - p) / (p * p),
)  # fmt: skip

poisson = Discrete(
    "poisson", "events of mean number mu", ("mu",), bounds=_from_zero, valid=lambda mu: mu >= 0,
    log_mass=log_poisson, mass=poisson_mass,
    lower=lambda k, mu: incomplete_gamma.upper(k + 1.0, mu),
    upper=lambda k, mu: incomplete_gamma.lower(k + 1.0, mu),
    mean_of=lambda mu: mu, variance_of=lambda mu: mu,
)  # fmt: skip

randint = Discrete(
    "randint", "the whole numbers from low to high - 1, equally likely", ("low", "high"),
    bounds=lambda low, high: (low, high - 1.0), valid=lambda low, high: low < high,
    log_mass=lambda k, low, high: -rnp.log(high - low) + 0.0 * k,
    lower=lambda k, low, high: (k - low + 1.0) / (high - low),
    upper=lambda k, low, high: (high - 1.0 - k) / (high - low),
    entropy_of=lambda low, high: rnp.log(high - low),
    mean_of=lambda low, high: 0.5 * (low + high - 1.0),
    variance_of=lambda low, high: (rnp.square(high - low) - 1.0) / 12.0,
)  # fmt: skip

dlaplace = Discrete(
    "dlaplace", "the discrete Laplace distribution", ("a",), valid=lambda a: a > 0,
    bounds=lambda a: (-rnp.inf, rnp.inf),
    log_mass=lambda k, a: rnp.log(rnp.tanh(0.5 * a)) - a * rnp.abs(k),
    lower=lambda k, a: _dlaplace_lower(k, a), upper=lambda k, a: _dlaplace_lower(-k - 1.0, a),
    mean_of=lambda a: 0.0 * a, variance_of=lambda a: 0.5 / rnp.square(rnp.sinh(0.5 * a)),
)  # fmt: skip


def _dlaplace_lower(k: Any, a: Any) -> Any:
    size = rnp.where(k < 0, -k, k + 1.0)
    tail = rnp.exp(-a * size) / (1.0 + rnp.exp(-a))
    return rnp.where(k < 0, tail, 1.0 - tail)


def _logser_log_mass(k: Any, p: Any) -> Any:
    return k * rnp.log(p) - rnp.log(k) - rnp.log(-rnp.log1p(-p))


_logser_lower = Summed(
    1.0, lambda p: _logser_log_mass(1.0, p), lambda k, p: p * k / (k + 1.0),
    reach=lambda p: math.log(rnp.finfo(p.dtype).eps) / rnp.log(p),
)  # fmt: skip

logser = Discrete(
    "logser", "the logarithmic series distribution", ("p",), bounds=_from_one,
    valid=lambda p: (p > 0) & (p < 1), log_mass=_logser_log_mass,
    lower=_logser_lower,
    mean_of=lambda p: -p / ((1.0 - p) * rnp.log1p(-p)),
    variance_of=lambda p: -p * (p + rnp.log1p(-p)) / rnp.square((1.0 - p) * rnp.log1p(-p)),
)  # fmt: skip

zipf = Discrete(
    "zipf", "Zipf's distribution, of the power -a", ("a",), bounds=_from_one,
    valid=lambda a: a > 1, log_mass=lambda k, a: -a * rnp.log(k) - rnp.log(_zeta(a)),
    upper=lambda k, a: zeta_of(a, k + 1.0) / _zeta(a),
    mean_of=lambda a: rnp.where(a > 2, _zeta(rnp.where(a > 2, a - 1.0, 2.0)) / _zeta(a), math.inf),
)  # fmt: skip


def _zeta(a: Any) -> Any:
    return zeta_of(a, rnp.ones_like(a))
