"""Correlations of two samples, of their numbers and of their ranks."""

from __future__ import annotations

from typing import NamedTuple

import rune.numpy as rnp
from rune.array import Array
from rune.errors import DtypeError, ShapeError
from rune.scipy.special import incomplete_beta
from rune.scipy.special.arguments import reals, rounded, widened
from rune.scipy.stats.samples import rankdata
from rune.typing import ArrayLike, Nested


class PearsonRResult(NamedTuple):
    """A correlation, and the probability of one at least as far from 0 in independent normal
    samples.
    """

    statistic: Array
    pvalue: Array


def pearsonr(x: ArrayLike, y: ArrayLike) -> PearsonRResult:
    """Pearson's correlation of two samples of rank 1, and its two-sided p-value.

    Shapes: x, y [N] -> [], []. Types: the common dtype; bools and integers become floats.
    Errors: ShapeError for fewer than two numbers.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import pearsonr
    >>> pearsonr(rnp.array([1.0, 2.0, 3.0]), rnp.array([2.0, 4.0, 7.0])).statistic
    Array(0.9933993, f32[], cpu:0)
    """
    samples = reals("pearsonr", x, y)
    if samples[0].ndim != 1 or samples[0].shape[0] < 2:
        raise ShapeError(f"pearsonr: cannot correlate {samples[0].shape} (two numbers or more)")
    return _correlated(*samples)


def _correlated(x: Array, y: Array) -> PearsonRResult:
    (x, dtype), (y, _) = widened(x), widened(y)
    x, y = x - rnp.mean(x), y - rnp.mean(y)
    r = rnp.sum(x * y) / rnp.sqrt(rnp.sum(x * x) * rnp.sum(y * y))
    r = rnp.clip(r, -1.0, 1.0)
    half = 0.5 * rnp.asarray(x.shape[0], r.dtype) - 1.0
    # (1 - |r|) / 2 of the beta distribution on [-1, 1]
    chance = 2.0 * incomplete_beta.lower(half, half, 0.5 * (1.0 - rnp.abs(r)))
    return PearsonRResult(rounded(r, dtype), rounded(chance, dtype))


def spearmanr(a: Nested, b: Nested) -> PearsonRResult:
    """Spearman's correlation of two samples of rank 1: Pearson's of their ranks; with a p-value by
    Student's t distribution; NaN for fewer than two numbers.
    Shapes: a, b [N] -> [], []. Types: f32, or f64 for 64-bit dtypes.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            for samples of different sizes.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import spearmanr
    >>> spearmanr(rnp.array([1.0, 2.0, 3.0]), rnp.array([2.0, 4.0, 9.0])).statistic
    Array(1., f32[], cpu:0)
    """
    if rnp.iscomplexobj(a) or rnp.iscomplexobj(b):
        raise DtypeError("spearmanr: cannot rank complex numbers (real dtype required)")
    return _correlated(*reals("spearmanr", rankdata(a), rankdata(b)))
