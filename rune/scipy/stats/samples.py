"""Statistics of samples: moments, standard scores, ranks, modes.

nan_policy is SciPy's: "propagate" (a NaN makes its slice NaN) or "omit" (NaN elements are ignored).
"raise" is refused, since a compiled program cannot raise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.ops import cummax
from rune.records import dataclass
from rune.scipy.special.arguments import reals, rounded, widened
from rune.typing import ArrayLike, Axis, DTypeLike, Nested


@dataclass(frozen=True, slots=True)
class _Sample:
    """Floating numbers, the axis along which they are one sample, and which of them count.

    x:     half types in f32: sizes, squares and fourth powers leave the range of f16
    dtype: of the results
    ndim:  the number of axes that were joined into one; None if `axis` is one of the axes
    """

    x: Array
    axis: Any
    dtype: DTypeLike
    ndim: int | None
    mask: Array | None = None

    def mean(self, values: Array, keepdims: bool = True) -> Array:
        return rnp.mean(values, self.axis, keepdims=keepdims, where=self.mask)

    def sum(self, values: Array, keepdims: bool = True) -> Array:
        return rnp.sum(values, self.axis, keepdims=keepdims, where=self.mask)

    @property
    def length(self) -> Size:
        """The number of elements, whether or not they count."""
        return self.x.shape[self.axis] if self.x.ndim else 1

    def size(self, keepdims: bool = True) -> Array:
        """How many elements count, in the dtype of x: one number, or one for each slice."""
        if self.mask is None:
            return rnp.asarray(self.length, self.x.dtype)
        return rnp.sum(self.mask, self.axis, keepdims=keepdims, dtype=self.x.dtype)

    def from_mean(self, values: Array, keepdims: bool = True) -> Array:
        """Values less the mean: exactly 0 for equal numbers, even if their mean is rounded."""
        least = rnp.min(self.x, self.axis, keepdims=keepdims, initial=rnp.inf, where=self.mask)
        least = ops.stop_gradient(least)  # any shift is right
        return values - least - self.mean(self.x - least, keepdims)

    def central(self, power: int, keepdims: bool) -> Array:
        return self.mean(self.from_mean(self.x) ** power, keepdims)

    def spread(self, ddof: int, keepdims: bool = True) -> Array:
        return rnp.std(self.from_mean(self.x), self.axis, ddof=ddof, keepdims=keepdims, where=self.mask)

    def is_constant(self, variance: Array, keepdims: bool = True) -> Array:
        """Whether all elements that count are equal, but for their rounding."""
        least = rnp.finfo(self.x.dtype).eps * self.mean(self.x, keepdims)
        return variance <= least * least

    def result(self, statistic: Array, keepdims: bool = False) -> Array:
        """A statistic in the dtype of results. If axes were joined, keepdims keeps as many, all of
        size 1.
        """
        statistic = rounded(statistic, self.dtype) if statistic.dtype == self.x.dtype else statistic
        return rnp.reshape(statistic, (1,) * self.ndim) if keepdims and self.ndim is not None else statistic


def _check(name: str, nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit"):
        raise ArgumentError(
            f"{name}: cannot use nan_policy={nan_policy!r}",
            hint="'propagate' or 'omit'; `rune.debug.checks(nans=True)` raises where NaN arises",
        )


def _sample(name: str, a: ArrayLike, axis: Axis, nan_policy: str) -> _Sample:
    """`a` as floating numbers, flattened for axis None."""
    _check(name, nan_policy)
    x, dtype = widened(*reals(name, a))
    mask = ~rnp.isnan(x) if nan_policy == "omit" else None
    if axis is not None:
        return _Sample(x, axis, dtype, None, mask)
    return _Sample(rnp.ravel(x), 0, dtype, x.ndim, None if mask is None else rnp.ravel(mask))


def moment(
    a: ArrayLike,
    order: int | Sequence[int] = 1,
    axis: int | None = 0,
    nan_policy: str = "propagate",
    *,
    center: ArrayLike | None = None,
    keepdims: bool = False,
) -> Array:
    """The mean of (a - center)**order along an axis; the center is the mean by default.

    Shapes: a without the axis, [] for axis None, or with 1 there if keepdims; for several orders
            their results stacked.
    Types:  in the dtype of a; bools and integers become floats.
    Errors: ArgumentError for a nan_policy other than "propagate" and "omit".

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import moment
    >>> moment(rnp.array([1.0, 3.0]), 2)
    Array(1., f32[], cpu:0)
    """
    s = _sample("moment", a, axis, nan_policy)
    apart = s.x - (s.mean(s.x) if center is None else center)
    if not isinstance(order, list | tuple):
        return s.result(s.mean(apart**order, keepdims), keepdims)
    moments = [s.result(s.mean(apart**n, keepdims), keepdims) for n in order]
    return rnp.stack(moments)


def skew(
    a: ArrayLike, axis: int | None = 0, bias: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The third central moment over the 3/2 power of the second; NaN for equal numbers.

    bias:   False corrects for the size of a sample of three or more.
    Shapes: a without the axis, [] for axis None, or with 1 there if keepdims.
    Types:  in the dtype of a; bools and integers become floats.
    Errors: ArgumentError for a nan_policy other than "propagate" and "omit".

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import skew
    >>> skew(rnp.array([1.0, 2.0, 3.0]))
    Array(0., f32[], cpu:0)
    """
    s = _sample("skew", a, axis, nan_policy)
    variance = s.central(2, keepdims)
    skewness = rnp.where(s.is_constant(variance, keepdims), rnp.nan, s.central(3, keepdims) / variance**1.5)
    if not bias:
        n = rnp.maximum(s.size(keepdims), 3.0)
        unbiased_skewness = skewness * rnp.sqrt(n * (n - 1)) / (n - 2)
        skewness = rnp.where(s.size(keepdims) < 3, skewness, unbiased_skewness)
    return s.result(skewness, keepdims)


def kurtosis(
    a: ArrayLike,
    axis: int | None = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """The fourth central moment over the square of the second, less 3 if `fisher`.

    bias:   False corrects for the size of a sample of four or more.
    Shapes: a without the axis, [] for axis None, or with 1 there if keepdims.
    Types:  in the dtype of a; bools and integers become floats.
    Errors: ArgumentError for a nan_policy other than "propagate" and "omit".

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import kurtosis
    >>> kurtosis(rnp.array([-1.0, 1.0]))
    Array(-2., f32[], cpu:0)
    """
    s = _sample("kurtosis", a, axis, nan_policy)
    variance = s.central(2, keepdims)
    ratio = rnp.where(s.is_constant(variance, keepdims), rnp.nan, s.central(4, keepdims) / rnp.square(variance))
    if not bias:
        n = rnp.maximum(s.size(keepdims), 4.0)
        unbiased_ratio = ((n * n - 1.0) * ratio - 3.0 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3.0
        ratio = rnp.where(s.size(keepdims) < 4, ratio, unbiased_ratio)
    return s.result(ratio - 3.0 if fisher else ratio, keepdims)


def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean, std / √n.

    Shapes: a without the axis, [] for axis None, or with 1 there if keepdims.
    Types:  in the dtype of a; bools and integers become floats.
    Errors: ArgumentError for a nan_policy other than "propagate" and "omit".

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import sem
    >>> sem(rnp.array([1.0, 3.0]))
    Array(1., f32[], cpu:0)
    """
    s = _sample("sem", a, axis, nan_policy)
    return s.result(s.spread(ddof, keepdims) / rnp.sqrt(s.size(keepdims)), keepdims)


def zscore(a: ArrayLike, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate") -> Array:
    """(a - mean) / std along an axis, NaN for equal numbers; over all numbers for axis None.

    Shapes: as a. Types: in the dtype of a; bools and integers become floats.
    Errors: ArgumentError for a nan_policy other than "propagate" and "omit".

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import zscore
    >>> zscore(rnp.array([1.0, 3.0]))
    Array([-1.,  1.], f32[2], cpu:0)
    """
    return zmap(a, a, axis, ddof, nan_policy)


def zmap(
    scores: ArrayLike, compare: ArrayLike, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate"
) -> Array:
    """(scores - mean) / std, with the mean and std of `compare`; NaN if its numbers are equal.

    Shapes: as scores. Types: the common dtype; bools and integers become floats.
    Errors: ArgumentError for a nan_policy other than "propagate" and "omit".

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import zmap
    >>> zmap(rnp.array([5.0]), rnp.array([1.0, 3.0]))
    Array([3.], f32[1], cpu:0)
    """
    points, dtype = widened(*reals("zmap", scores))
    s = _sample("zmap", compare, axis, nan_policy)
    keepdims = axis is not None
    spread = s.spread(ddof, keepdims)
    scale = rnp.where(s.is_constant(spread * spread, keepdims), rnp.nan, spread)
    return rounded(s.from_mean(points, keepdims) / scale, rnp.result_type(dtype, s.dtype))


def _averaged(s: _Sample, values: Array, weights: ArrayLike | None, keepdims: bool) -> Array:
    """The mean of the elements that count, weighted or not."""
    if weights is None:
        return s.mean(values, keepdims)
    (shares,) = reals("weights", weights)
    if shares.ndim == 1:
        shares = rnp.reshape(shares, [-1 if i == s.axis % s.x.ndim else 1 for i in range(s.x.ndim)])
    shares = rnp.broadcast_to(shares, s.x.shape)
    return s.sum(values * shares, keepdims) / s.sum(shares, keepdims)


def gmean(
    a: ArrayLike,
    axis: int | None = 0,
    dtype: DTypeLike | None = None,
    weights: ArrayLike | None = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """The geometric mean, exp(mean(log(a))), computed in `dtype` if that is given.

    weights: one for each number, or a vector of them along the axis.
    Shapes:  a without the axis, [] for axis None, or with 1 there if keepdims.
    Types:   dtype if given, else that of a; bools and integers become floats.
    Errors:  ArgumentError for a nan_policy other than "propagate" and "omit".

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import gmean
    >>> gmean(rnp.array([1.0, 4.0]))
    Array(2., f32[], cpu:0)
    """
    s = _sample("gmean", a if dtype is None else rnp.asarray(a, dtype), axis, nan_policy)
    if weights is not None and axis is None:
        weights = rnp.ravel(rnp.asarray(weights))
    return s.result(rnp.exp(_averaged(s, rnp.log(s.x), weights, keepdims)), keepdims)


def hmean(
    a: ArrayLike,
    axis: int | None = 0,
    dtype: DTypeLike | None = None,
    *,
    weights: ArrayLike | None = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """The harmonic mean, 1 / mean(1 / a), computed in `dtype` if that is given. NaN beside negative
    numbers.

    weights: one for each number, or a vector of them along the axis.
    Shapes:  a without the axis, [] for axis None, or with 1 there if keepdims.
    Types:   dtype if given, else that of a; bools and integers become floats.
    Errors:  ArgumentError for a nan_policy other than "propagate" and "omit".

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import hmean
    >>> hmean(rnp.array([1.0, 1.0]))
    Array(1., f32[], cpu:0)
    """
    s = _sample("hmean", a if dtype is None else rnp.asarray(a, dtype), axis, nan_policy)
    if weights is not None and axis is None:
        weights = rnp.ravel(rnp.asarray(weights))
    x = rnp.where(s.x < 0, rnp.nan, s.x)
    return s.result(1.0 / _averaged(s, 1.0 / x, weights, keepdims), keepdims)


def iqr(
    x: ArrayLike,
    axis: Axis = None,
    rng: tuple[float, float] = (25, 75),
    scale: float | str = 1.0,
    nan_policy: str = "propagate",
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Array:
    """The distance of two percentiles, by default the quartiles, over `scale`; NaN for no numbers.

    scale:         a number, or "normal": the distance for a normal distribution of variance 1.
    interpolation: a method of `rune.numpy.percentile`.
    Shapes:        x without the axis, [] for axis None, or with 1 there if keepdims.
    Types:         in the dtype of x; bools and integers become floats.
    Errors:        ArgumentError for a nan_policy other than "propagate" and "omit".

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import iqr
    >>> iqr(rnp.arange(5))
    Array(2., f32[], cpu:0)
    """
    s = _sample("iqr", x, axis, nan_policy)
    if 0 in s.x.shape:
        return s.result(s.sum(s.x, keepdims) * rnp.nan, keepdims)
    percentile = rnp.percentile if s.mask is None else rnp.nanpercentile
    low, high = (percentile(s.x, p, axis=s.axis, method=interpolation, keepdims=keepdims) for p in rng)
    unit = 1.3489795003921634 if scale == "normal" else scale  # 2 sqrt(2) erfinv(0.5)
    return s.result((high - low) / unit, keepdims)


class DescribeResult(NamedTuple):
    """The results of `describe`."""

    nobs: Array | Size
    minmax: tuple[Array, Array]
    mean: Array
    variance: Array
    skewness: Array
    kurtosis: Array


def describe(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, bias: bool = True, nan_policy: str = "propagate"
) -> DescribeResult:
    """Size, extremes, mean, variance, skewness and kurtosis along an axis.

    Shapes: a without the axis, [] for axis None. Types: bools and integers become floats.
    Errors: ShapeError for no numbers; ArgumentError for a nan_policy other than "propagate" and
            "omit".

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import describe
    >>> describe(rnp.array([1.0, 3.0])).variance
    Array(2., f32[], cpu:0)
    """
    s = _sample("describe", a, axis, nan_policy)
    if 0 in s.x.shape:
        raise ShapeError(f"describe: cannot describe {type_of(s.x)} (no elements)")
    least, most = (rnp.min, rnp.max) if s.mask is None else (rnp.nanmin, rnp.nanmax)
    return DescribeResult(
        s.length if s.mask is None else rnp.sum(s.mask, s.axis),
        (s.result(least(s.x, s.axis)), s.result(most(s.x, s.axis))),
        s.result(s.mean(s.x, keepdims=False)),
        s.result(rnp.var(s.x, s.axis, ddof=ddof, where=s.mask)),
        skew(a, axis, bias, nan_policy),
        kurtosis(a, axis, True, bias, nan_policy),
    )


# --- ranks ------------------------------------------------------------------------------------


def rankdata(a: Nested, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """The rank of each number, from 1 on; over all numbers for axis None. Ties are ranked by
    `method`.

    method:     "average", "min", "max", "dense" or "ordinal" (no ties).
    nan_policy: "propagate" (a NaN makes all ranks of its row NaN) or "omit" (only its own). Integer
                ranks cannot express this: there NaN ranks last.
    Types:      floating for "average" (f32, or f64 for 64-bit dtypes), else integers, as in SciPy.
                Not differentiable.
    Errors:     ArgumentError for an unknown method or nan_policy.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import rankdata
    >>> rankdata(rnp.array([10.0, 30.0, 10.0]))
    Array([1.5, 3. , 1.5], f32[3], cpu:0)
    """
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ArgumentError(
            f"rankdata: cannot use method={method!r}", hint="'average', 'min', 'max', 'dense' or 'ordinal'"
        )
    _check("rankdata", nan_policy)
    x = rnp.asarray(a)
    rows = rnp.reshape(x, (-1,)) if axis is None else rnp.moveaxis(x, axis, -1)
    ranks = _ranks(rows, method)
    if method == "average" and rnp.issubdtype(rows.dtype, rnp.floating):
        missing = rnp.isnan(rows)
        if nan_policy == "propagate":
            missing = rnp.any(missing, -1, keepdims=True)
        ranks = rnp.where(missing, rnp.nan, ranks)
    return ranks if axis is None else rnp.moveaxis(ranks, -1, axis)


def _ranks(x: Array, method: str) -> Array:
    """Ranks along the last axis."""
    order = rnp.argsort(x, axis=-1, stable=True)
    place = rnp.argsort(order, axis=-1, stable=True)
    if method == "ordinal":
        return place + 1
    in_order = rnp.take_along_axis(x, order, -1)
    is_new = in_order[..., 1:] != in_order[..., :-1]
    is_first = rnp.concatenate([rnp.ones_like(in_order[..., :1], dtype=bool), is_new], -1)
    if method == "dense":
        return rnp.take_along_axis(rnp.cumsum(is_first, -1), place, -1)
    number = rnp.arange(x.shape[-1]) + 1
    first = _filled(rnp.where(is_first, number, 0), 1)
    is_last = rnp.concatenate([is_new, rnp.ones_like(in_order[..., :1], dtype=bool)], -1)
    back = rnp.flip(rnp.where(is_last, number, 0), -1)
    last = rnp.flip(_filled_from_above(back, x.shape[-1] + 1), -1)
    wide = rnp.float64 if x.dtype.itemsize >= 8 else rnp.zeros(()).dtype
    middle = rnp.astype(first + last, wide) * 0.5
    ranks = {"min": first, "max": last, "average": middle}
    return rnp.take_along_axis(ranks[method], place, -1)


def _filled(marks: Array, least: int) -> Array:
    """The largest mark so far."""
    return rnp.maximum(cummax(marks, axis=marks.ndim - 1, reverse=False), least)


def _filled_from_above(marks: Array, most: Size) -> Array:
    """The smallest mark so far, for marks that are 0 where there is none."""
    below = -rnp.where(marks == 0, most, marks)
    return -cummax(below, axis=marks.ndim - 1, reverse=False)


class ModeResult(NamedTuple):
    """The most frequent numbers, and their counts."""

    mode: Array
    count: Any


def mode(a: Nested, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent number along an axis, the smallest if several tie; and its count.

    nan_policy: "propagate", where NaN counts as the largest number; or "omit", where only a sample
                of NaN alone has the mode NaN.
    Shapes:     a without the axis, [] for axis None, or with 1 there if keepdims.
    Types:      the mode in the dtype of a, the count i32; for no numbers NaN and 0, as floats.
    Errors:     ShapeError for a single number; ArgumentError for an unknown nan_policy.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.stats import mode
    >>> mode(rnp.array([1, 2, 2])).mode
    Array(2, i32[], cpu:0)
    """
    _check("mode", nan_policy)
    x = rnp.asarray(a)
    x, along = (rnp.reshape(x, (-1,)), 0) if axis is None else (x, axis)
    if not x.ndim:
        raise ShapeError("mode: cannot go along an axis of a single number (rank 0)")
    rows = rnp.moveaxis(x, along, -1)
    if rows.shape[-1] == 0:
        nothing = rnp.zeros((*rows.shape[:-1], 1), rnp.result_type(x, rnp.float32))
        rows, counts = nothing + rnp.nan, nothing
    else:
        rows = rnp.sort(rows, axis=-1)
        counts = _counts(rows, nan_policy)
    at = rnp.argmax(counts, axis=-1, keepdims=True)
    modes = [rnp.take_along_axis(v, at, -1) for v in (rows, counts)]
    if not keepdims:
        return ModeResult(*(v[..., 0] for v in modes))
    if axis is None:
        return ModeResult(*(rnp.reshape(v, (1,) * rnp.asarray(a).ndim) for v in modes))
    return ModeResult(*(rnp.moveaxis(v, -1, axis) for v in modes))


def _counts(rows: Array, nan_policy: str) -> Array:
    """How often each number occurs in its row, which is sorted."""
    counts = _ranks(rows, "max") - _ranks(rows, "min") + 1
    if not rnp.issubdtype(rows.dtype, rnp.inexact):
        return counts
    missing = rnp.isnan(rows)
    count = 0 if nan_policy == "omit" else rnp.sum(missing, -1, keepdims=True)
    return rnp.where(missing, count, counts)


# --- correlation ------------------------------------------------------------------------------
