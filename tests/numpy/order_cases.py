"""Cases that rest on order: sorting, search, sets, histograms, quantiles."""

from __future__ import annotations

from typing import Any

from tests.numpy.spelling import Case, b, case, f, i, n, named, pos

SORTING = [
    *named("sort sort_complex", f(3, 5)),
    case("argsort", lambda xp, x: xp.argsort(x, kind="stable"), f(3, 5), smooth=False),
    *[
        case(f"sort {name}", lambda xp, x, kw=kw: xp.sort(x, **kw), f(3, 4, 2))
        for name, kw in (
            ("over axis 0", {"axis": 0}),
            ("flattened", {"axis": None}),
            ("stably", {"axis": 1, "stable": True}),
        )
    ],
    case("sort of ties", lambda xp, x: xp.sort(x, axis=0), n(6, 2), smooth=False),
    case("sort of bools", lambda xp, x: xp.sort(x), b(9), smooth=False),
    case("sort with NaN", lambda xp, x: xp.sort(xp.where(x > 1, xp.nan, x)), f(9), smooth=False),
    case("argsort of ties", lambda xp, x: xp.argsort(x, axis=0, stable=True), n(9, 2), smooth=False),
    case("argsort flattened", lambda xp, x: xp.argsort(x, axis=None, kind="stable"), f(3, 4), smooth=False),
    case("partition", lambda xp, x: xp.partition(x, 2, axis=0)[2], f(5, 3)),
    case("partition from the end", lambda xp, x: xp.partition(x, -2)[:, -2], f(3, 5)),
    case("argpartition", lambda xp, x: xp.take_along_axis(x, xp.argpartition(x, 2, axis=0), axis=0)[2], f(5, 3)),
    case("lexsort", lambda xp, x, y: xp.lexsort((x, y)), f(9), n(9), smooth=False),
    case("lexsort over axis 0", lambda xp, x, y: xp.lexsort((x, y), axis=0), f(5, 2), n(5, 2), smooth=False),
    case("lexsort of rows", lambda xp, x: xp.lexsort(x), n(3, 8), smooth=False),
    *[
        case(
            f"searchsorted {side}",
            lambda xp, x, v, side=side: xp.searchsorted(xp.sort(x), v, side),
            n(8),
            n(2, 3),
            smooth=False,
        )
        for side in ("left", "right")
    ],
    case("searchsorted of floats", lambda xp, x, v: xp.searchsorted(xp.sort(x), v), f(8), f(5), smooth=False),
    case(
        "searchsorted with a sorter",
        lambda xp, x, v: xp.searchsorted(x, v, sorter=xp.argsort(x)),
        f(8),
        f(5),
        smooth=False,
    ),
    case("digitize", lambda xp, x, e: xp.digitize(x, xp.sort(e)), f(2, 5), f(4), smooth=False),
    case("digitize right", lambda xp, x, e: xp.digitize(x, xp.sort(e), right=True), n(6), n(4), smooth=False),
    case("digitize descending", lambda xp, x, e: xp.digitize(x, xp.sort(e)[::-1]), n(6), f(4), smooth=False),
]

_METHODS = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen "
    "weibull linear median_unbiased normal_unbiased lower higher midpoint nearest"
).split()
_Q = (0.0, 0.1, 0.25, 0.6, 1.0)


def _weighted(xp: Any, x: Any, w: Any) -> Any:
    return xp.quantile(x, (0.15, 0.72), axis=1, weights=w, method="inverted_cdf")


QUANTILES = [
    *named("median nanmedian", f(3, 4)),
    case("median over an axis", lambda xp, x: xp.median(x, axis=1), f(3, 5)),
    case("median over two axes, kept", lambda xp, x: xp.median(x, axis=(0, 2), keepdims=True), f(2, 3, 4)),
    case("median of integers", lambda xp, x: xp.median(x, axis=0), i(4, 3), smooth=False),
    case("median with NaN", lambda xp, x: xp.median(xp.where(x > 2, xp.nan, x), axis=0), f(5, 4), smooth=False),
    case("nanmedian with NaN", lambda xp, x: xp.nanmedian(xp.where(x > 1, xp.nan, x), axis=0), f(5, 4), smooth=False),
    *[
        case(
            f"{name} {method}",
            lambda xp, x, name=name, method=method: getattr(xp, name)(x, _Q, axis=1, method=method),
            f(3, 7),
        )
        for name in ("quantile", "nanquantile")
        for method in _METHODS
    ],
    case("quantile over two axes, kept", lambda xp, x: xp.quantile(x, 0.3, axis=(0, 1), keepdims=True), f(2, 3, 4)),
    case("quantile of all", lambda xp, x: xp.quantile(x, 0.3), f(2, 3)),
    case("quantile with weights", _weighted, f(3, 7), pos(3, 7), smooth=False),
    case("percentile", lambda xp, x: xp.percentile(x, (10, 50), axis=0), f(5, 3)),
    case(
        "nanpercentile", lambda xp, x: xp.nanpercentile(xp.where(x > 2, xp.nan, x), 30, axis=0), f(6, 3), smooth=False
    ),
]

HISTOGRAMS = [
    case("histogram", lambda xp, x: xp.histogram(x), f(20), smooth=False),
    case("histogram of bins", lambda xp, x: xp.histogram(x, 4, (-1.0, 2.0)), f(4, 5), smooth=False),
    case("histogram of edges", lambda xp, x, e: xp.histogram(x, xp.sort(e)), f(20), f(5), smooth=False),
    case("histogram of integers", lambda xp, x: xp.histogram(x, 5), i(20), smooth=False),
    case(
        "histogram with weights",
        lambda xp, x, w: xp.histogram(x, 5, (-3.0, 3.0), weights=w),
        f(20),
        pos(20),
        smooth=False,
    ),
    case("histogram density", lambda xp, x: xp.histogram(x, 5, density=True), f(20), smooth=False),
    case("histogram_bin_edges", lambda xp, x: xp.histogram_bin_edges(x, 6), f(9)),
    case(
        "histogram_bin_edges by rule",
        lambda xp, x: xp.histogram_bin_edges(x, "sturges"),
        f(9),
        smooth=False,
        static=True,
    ),
    case("histogram2d", lambda xp, x, y: xp.histogram2d(x, y, 3), f(20), f(20), smooth=False),
    case(
        "histogram2d in ranges",
        lambda xp, x, y: xp.histogram2d(x, y, (2, 3), ((-1, 1), (0, 2)), density=True),
        f(30),
        f(30),
        smooth=False,
    ),
    case("histogramdd", lambda xp, x: xp.histogramdd(x, 3)[0], f(20, 3), smooth=False),
    case("histogramdd of edges", lambda xp, x, e: xp.histogramdd(x, [xp.sort(e), 3])[0], f(20, 2), f(4), smooth=False),
    case("bincount", lambda xp, x: xp.bincount(x), n(9), smooth=False, static=True),
    case("bincount with weights", lambda xp, x, w: xp.bincount(x, w, 6), n(9), f(9), smooth=False, static=True),
]

SETS = [
    case("unique", lambda xp, x: xp.unique(x), n(3, 4), smooth=False, static=True),
    case("unique with everything", lambda xp, x: xp.unique(x, True, True, True), i(20), smooth=False, static=True),
    case("unique rows", lambda xp, x: xp.unique(x, True, True, True, axis=0), n(9, 2), smooth=False, static=True),
    case("unique columns", lambda xp, x: xp.unique(x, axis=1), n(2, 9), smooth=False, static=True),
    case("unique with NaN", lambda xp, x: xp.unique(xp.where(x > 0, xp.nan, x)), f(9), smooth=False, static=True),
    case(
        "unique with different NaNs",
        lambda xp, x: xp.unique(xp.where(x > 0, xp.nan, x), equal_nan=False),
        f(9),
        smooth=False,
        static=True,
    ),
    *[
        case(name, lambda xp, x, name=name: tuple(getattr(xp, name)(x)), n(9), smooth=False, static=True)
        for name in ("unique_all", "unique_counts", "unique_inverse")
    ],
    case("unique_values", lambda xp, x: xp.sort(xp.unique_values(x)), n(9), smooth=False, static=True),
    *named("union1d intersect1d setdiff1d setxor1d", i(9), i(7), smooth=False, static=True),
    case(
        "intersect1d with positions",
        lambda xp, x, y: xp.intersect1d(x, y, return_indices=True),
        i(9),
        i(7),
        smooth=False,
        static=True,
    ),
    case(
        "setdiff1d assumed unique",
        lambda xp, x, y: xp.setdiff1d(x, y, assume_unique=True),
        i(9),
        i(7),
        smooth=False,
        static=True,
    ),
    *named("isin", i(3, 4), i(5), smooth=False),
    case("isin inverted", lambda xp, x, y: xp.isin(x, y, invert=True), n(9), n(2), smooth=False),
]

ORDER: list[Case] = [*SORTING, *QUANTILES, *HISTOGRAMS, *SETS]
