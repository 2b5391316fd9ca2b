"""Statistics of samples: moments, standard scores, ranks, modes, correlation."""

from __future__ import annotations

from typing import Any, NamedTuple

import rune.numpy as rnp
from rune.errors import ArgumentError, ShapeError
from rune.ops import cummax
from rune.scipy.special import incomplete_beta
from rune.scipy.special.arguments import reals, rounded, widened


def _flat(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """`a` as floating numbers, flattened for axis None; and the axis."""
    (x,) = reals(name, a)
    return (rnp.ravel(x), 0) if axis is None else (x, axis)


def _central(x: Any, axis: int, power: int, keepdims: bool = False) -> Any:
    apart = x - rnp.mean(x, axis, keepdims=True)
    return rnp.mean(apart**power, axis, keepdims=keepdims)


def moment(a: Any, order: int = 1, axis: int | None = 0, *, center: Any = None) -> Any:
    """The mean of (a - center)**order along an axis; the center is the mean by default.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import moment
    >>> moment(rnp.array([1.0, 3.0]), 2)
    Array(1., f32[], cpu:0)
    """
    x, axis = _flat("moment", a, axis)
    around = rnp.mean(x, axis, keepdims=True) if center is None else center
    return rnp.mean((x - around) ** order, axis)


def skew(a: Any, axis: int | None = 0, bias: bool = True) -> Any:
    """The third central moment over the 3/2 power of the second; NaN for equal numbers.

    bias: False corrects for the size of a sample of three or more.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import skew
    >>> skew(rnp.array([1.0, 2.0, 3.0]))
    Array(0., f32[], cpu:0)
    """
    x, axis = _flat("skew", a, axis)
    found = _central(x, axis, 3) / _central(x, axis, 2) ** 1.5
    n = x.shape[axis]
    return found if bias or n < 3 else found * ((n * (n - 1)) ** 0.5 / (n - 2))


def kurtosis(a: Any, axis: int | None = 0, fisher: bool = True, bias: bool = True) -> Any:
    """The fourth central moment over the square of the second, less 3 if `fisher`.

    bias: False corrects for the size of a sample of four or more.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import kurtosis
    >>> kurtosis(rnp.array([-1.0, 1.0]))
    Array(-2., f32[], cpu:0)
    """
    x, axis = _flat("kurtosis", a, axis)
    found = _central(x, axis, 4) / rnp.square(_central(x, axis, 2))
    n = x.shape[axis]
    if not bias and n > 3:
        found = ((n * n - 1.0) * found - 3.0 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3.0
    return found - 3.0 if fisher else found


def sem(a: Any, axis: int | None = 0, ddof: int = 1) -> Any:
    """The standard error of the mean, std / √n.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import sem
    >>> sem(rnp.array([1.0, 3.0]))
    Array(1., f32[], cpu:0)
    """
    x, axis = _flat("sem", a, axis)
    return rnp.std(x, axis, ddof=ddof) / x.shape[axis] ** 0.5


def zscore(a: Any, axis: int | None = 0, ddof: int = 0) -> Any:
    """(a - mean) / std along an axis; over all numbers for axis None.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import zscore
    >>> zscore(rnp.array([1.0, 3.0]))
    Array([-1.,  1.], f32[2], cpu:0)
    """
    return zmap(a, a, axis, ddof)


def zmap(scores: Any, compare: Any, axis: int | None = 0, ddof: int = 0) -> Any:
    """(scores - mean) / std, of the mean and std of `compare`.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import zmap
    >>> zmap(rnp.array([5.0]), rnp.array([1.0, 3.0]))
    Array([3.], f32[1], cpu:0)
    """
    (scores,), (x,) = reals("zmap", scores), reals("zmap", compare)
    mean = rnp.mean(x, axis, keepdims=True)
    return (scores - mean) / rnp.std(x, axis, ddof=ddof, keepdims=True)


def gmean(a: Any, axis: int | None = 0) -> Any:
    """The geometric mean, exp(mean(log(a))).

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import gmean
    >>> gmean(rnp.array([1.0, 4.0]))
    Array(2., f32[], cpu:0)
    """
    x, axis = _flat("gmean", a, axis)
    return rnp.exp(rnp.mean(rnp.log(x), axis))


def hmean(a: Any, axis: int | None = 0) -> Any:
    """The harmonic mean, 1 / mean(1 / a).

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import hmean
    >>> hmean(rnp.array([1.0, 1.0]))
    Array(1., f32[], cpu:0)
    """
    x, axis = _flat("hmean", a, axis)
    return 1.0 / rnp.mean(1.0 / x, axis)


def iqr(x: Any, axis: int | None = None, rng: tuple[float, float] = (25, 75)) -> Any:
    """The distance of two percentiles, the quartiles by default; NaN of no numbers.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import iqr
    >>> iqr(rnp.arange(5))
    Array(2., f32[], cpu:0)
    """
    found, axis = _flat("iqr", x, axis)
    if found.shape[axis] == 0:
        return rnp.sum(found, axis) * rnp.nan
    low, high = (rnp.percentile(found, p, axis=axis) for p in rng)
    return high - low


class DescribeResult(NamedTuple):
    """What `describe` tells of a sample."""

    nobs: int
    minmax: tuple[Any, Any]
    mean: Any
    variance: Any
    skewness: Any
    kurtosis: Any


def describe(a: Any, axis: int | None = 0, ddof: int = 1, bias: bool = True) -> DescribeResult:
    """Size, extremes, mean, variance, skewness and kurtosis along an axis.

    Errors: ShapeError for no numbers.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import describe
    >>> describe(rnp.array([1.0, 3.0])).variance
    Array(2., f32[], cpu:0)
    """
    x, axis = _flat("describe", a, axis)
    if 0 in x.shape:
        raise ShapeError(f"describe: cannot tell anything of no numbers ({x.shape})")
    return DescribeResult(
        x.shape[axis], (rnp.min(x, axis), rnp.max(x, axis)), rnp.mean(x, axis),
        rnp.var(x, axis, ddof=ddof), skew(x, axis, bias), kurtosis(x, axis, True, bias),
    )  # fmt: skip


# --- ranks ------------------------------------------------------------------------------------


def rankdata(a: Any, method: str = "average", *, axis: int | None = None) -> Any:
    """The rank of each number, from 1 on; equal numbers share by `method`.

    method: "average", "min", "max", "dense" or "ordinal" (none share).
    Types:  floating for "average" (f32, of 64 bits f64), else integers, as SciPy's.  Not
            differentiable.
    Errors: ArgumentError for another method. NaN ranks last.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import rankdata
    >>> rankdata(rnp.array([10.0, 30.0, 10.0]))
    Array([1.5, 3. , 1.5], f32[3], cpu:0)
    """
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ArgumentError(
            f"rankdata: cannot use method={method!r}",
            hint="'average', 'min', 'max', 'dense' or 'ordinal'",
        )
    x = rnp.asarray(a)
    if axis is None:
        return rnp.reshape(_ranks(rnp.reshape(x, (-1,)), method), x.shape)
    rows = rnp.moveaxis(x, axis, -1)
    return rnp.moveaxis(_ranks(rows, method), -1, axis)


def _ranks(x: Any, method: str) -> Any:
    """Ranks along the last axis."""
    order = rnp.argsort(x, axis=-1, stable=True)
    place = rnp.argsort(order, axis=-1, stable=True)
    if method == "ordinal":
        return place + 1
    ordered = rnp.take_along_axis(x, order, -1)
    is_new = ordered[..., 1:] != ordered[..., :-1]
    is_first = rnp.concatenate([rnp.ones_like(ordered[..., :1], dtype=bool), is_new], -1)
    if method == "dense":
        return rnp.take_along_axis(rnp.cumsum(is_first, -1), place, -1)
    number = rnp.arange(x.shape[-1]) + 1
    first = _filled(rnp.where(is_first, number, 0), 1)
    is_last = rnp.concatenate([is_new, rnp.ones_like(ordered[..., :1], dtype=bool)], -1)
    back = rnp.flip(rnp.where(is_last, number, 0), -1)
    last = rnp.flip(_filled_from_above(back, x.shape[-1] + 1), -1)
    wide = rnp.float64 if x.dtype.itemsize >= 8 else rnp.float32
    middle = rnp.astype(first + last, wide) * 0.5
    ranks = {"min": first, "max": last, "average": middle}
    return rnp.take_along_axis(ranks[method], place, -1)


def _filled(marks: Any, least: int) -> Any:
    """The largest mark so far."""
    return rnp.maximum(cummax(marks, axis=marks.ndim - 1, reverse=False), least)


def _filled_from_above(marks: Any, most: int) -> Any:
    """The smallest mark so far, of marks that are 0 where there is none."""
    below = -rnp.where(marks == 0, most, marks)
    return -cummax(below, axis=marks.ndim - 1, reverse=False)


class ModeResult(NamedTuple):
    """The most frequent numbers, and how often they are there."""

    mode: Any
    count: Any


def mode(a: Any, axis: int | None = 0, keepdims: bool = False) -> ModeResult:
    """The most frequent number along an axis, the smallest of several; and its count.

    Errors: ShapeError for no numbers along the axis.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import mode
    >>> mode(rnp.array([1, 2, 2])).mode
    Array(2, i32[], cpu:0)
    """
    x = rnp.asarray(a)
    x, axis = (rnp.reshape(x, (-1,)), 0) if axis is None else (x, axis)
    if x.shape[axis] == 0:
        raise ShapeError(f"mode: cannot find the most frequent of no numbers ({x.shape})")
    rows = rnp.sort(rnp.moveaxis(x, axis, -1), axis=-1)
    ranks = _ranks(rows, "min")
    counts = _ranks(rows, "max") - ranks + 1
    at = rnp.argmax(counts, axis=-1, keepdims=True)
    found = [rnp.take_along_axis(v, at, -1) for v in (rows, counts)]
    if keepdims:
        return ModeResult(*(rnp.moveaxis(v, -1, axis) for v in found))
    return ModeResult(*(v[..., 0] for v in found))


# --- correlation ------------------------------------------------------------------------------


class PearsonRResult(NamedTuple):
    """A correlation, and the probability of one as far from 0 of independent normal numbers."""

    statistic: Any
    pvalue: Any


def pearsonr(x: Any, y: Any) -> PearsonRResult:
    """Pearson's correlation of two samples of rank 1, and its two-sided p-value.

    Errors: ShapeError for fewer than two numbers.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import pearsonr
    >>> pearsonr(rnp.array([1.0, 2.0, 3.0]), rnp.array([2.0, 4.0, 7.0])).statistic
    Array(0.9933993, f32[], cpu:0)
    """
    found = reals("pearsonr", x, y)
    if found[0].ndim != 1 or found[0].shape[0] < 2:
        raise ShapeError(f"pearsonr: cannot correlate {found[0].shape} (two numbers or more)")
    return _correlated(*found)


def _correlated(x: Any, y: Any) -> PearsonRResult:
    (x, kept), (y, _) = widened(x), widened(y)
    x, y = x - rnp.mean(x), y - rnp.mean(y)
    r = rnp.sum(x * y) / rnp.sqrt(rnp.sum(x * x) * rnp.sum(y * y))
    r = rnp.clip(r, -1.0, 1.0)
    half = rnp.full_like(r, 0.5 * x.shape[0] - 1.0)
    # (1 - |r|) / 2 of the beta distribution on [-1, 1]
    chance = 2.0 * incomplete_beta.lower(half, half, 0.5 * (1.0 - rnp.abs(r)))
    return PearsonRResult(rounded(r, kept), rounded(chance, kept))


def spearmanr(x: Any, y: Any) -> PearsonRResult:
    """Spearman's correlation of two samples of rank 1: Pearson's of their ranks; with a p-value by
    Student's t distribution; NaN for fewer than two numbers.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import spearmanr
    >>> spearmanr(rnp.array([1.0, 2.0, 3.0]), rnp.array([2.0, 4.0, 9.0])).statistic
    Array(1., f32[], cpu:0)
    """
    return _correlated(*reals("spearmanr", rankdata(x), rankdata(y)))
