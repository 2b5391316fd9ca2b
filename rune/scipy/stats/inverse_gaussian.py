"""The distribution function of the inverse Gaussian distribution of mean mu.

Below y are Φ(a) + exp(2/μ) Φ(b) with a = (y/μ - 1)/√y and b = -(y/μ + 1)/√y. Logarithms are of
these sums, not of their values, which underflow.

Source: Giner & Smyth 2016, statmod: Probability calculations for the inverse Gaussian distribution,
R Journal 8(1).
"""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune.array import Array
from rune.scipy.special import error_functions as normal
from rune.scipy.stats.family import log_share


def lower(y: Array, mu: Array) -> Array:
    """The probability of less than y."""
    first, second = _terms(y, mu)
    return normal.normal_cdf(first) + rnp.exp(second)


def upper(y: Array, mu: Array) -> Array:
    """The probability of more than y."""
    first, second = _terms(y, mu)
    exponent, gap = _far(y, mu)
    return rnp.where(y > mu, 0.5 * rnp.exp(exponent) * gap, normal.normal_cdf(-first) - rnp.exp(second))


def log_lower(y: Array, mu: Array) -> Array:
    """The logarithm of the probability of less than y."""
    first, second = _terms(y, mu)
    return log_share(lower(y, mu), upper(y, mu), rnp.logaddexp(normal.log_normal_cdf(first), second))


def log_upper(y: Array, mu: Array) -> Array:
    """The logarithm of the probability of more than y."""
    exponent, gap = _far(y, mu)
    share = upper(y, mu)
    near = rnp.log(rnp.where(y > mu, 1.0, share))
    return log_share(share, lower(y, mu), rnp.where(y > mu, exponent + rnp.log(0.5 * gap), near))


def _terms(y: Array, mu: Array) -> tuple[Array, Array]:
    """a, and the logarithm of the second term."""
    root = 1.0 / rnp.sqrt(y)
    return root * (y / mu - 1.0), 2.0 / mu + normal.log_normal_cdf(-root * (y / mu + 1.0))


def _far(y: Array, mu: Array) -> tuple[Array, Array]:
    """The exponent of a density and the difference of two Mills' ratios, whose product is twice
    the probability of more than y, if that is above the mean.
    """
    is_far = y > mu
    root = rnp.where(is_far, 1.0 / rnp.sqrt(y), 1.0)
    first = rnp.where(is_far, root * (y / mu - 1.0), 1.0)
    gap = normal.erfcx(math.sqrt(0.5) * first) - normal.erfcx(math.sqrt(0.5) * (first + 2.0 * root))
    return -0.5 * first * first, gap
