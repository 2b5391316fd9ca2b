"""Calls with keywords that the other tables of NumPy's names do not use, several in one case."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.complex_cases import z
from tests.numpy.spelling import case, f, i, pos

MASK = np.array([[True, False, True, True], [True, True, False, True], [True, True, True, True]])


def _holed(xp: Any, x: Any) -> Any:
    """The numbers, some of them NaN."""
    return xp.where(MASK, x, xp.nan)


def _nan_folds(xp: Any, x: Any) -> Any:
    x = _holed(xp, x)
    mean = xp.nanmean(x, axis=1, keepdims=True)
    return [
        xp.nanvar(x, axis=1, mean=mean),
        xp.nanstd(x, axis=1, ddof=1, mean=mean),
        xp.nanvar(x, ddof=1, keepdims=True),
        xp.nanmean(x, axis=0, where=MASK),
        xp.nanprod(x, axis=1, initial=2.0, keepdims=True),
        xp.nanmedian(x, axis=(0, 1)),
        xp.nanquantile(x, 0.3, axis=1, method="midpoint", keepdims=True),
        xp.nancumsum(x, axis=1),
        xp.nancumprod(x, axis=0),
        xp.nanmax(x, axis=1, keepdims=True),
    ]


def _planes(xp: Any, x: Any) -> Any:
    """Transforms of two axes, with sizes, axes and norms of their own."""
    y = x + 1j
    return [
        xp.fft.fft2(x, s=(3, 5), axes=(0, 2), norm="ortho"),
        xp.fft.ifft2(y, s=(3, 2), axes=(2, 1), norm="forward"),
        xp.fft.rfft2(x, s=(4, 3), axes=(1, 0), norm="forward"),
        xp.fft.irfft2(y, s=(3, 5), axes=(1, 0), norm="ortho"),
        xp.fft.hfft(y, n=5, axis=0, norm="ortho"),
        xp.fft.ihfft(x, n=3, axis=1, norm="forward"),
    ]


KEYWORDS = [
    case(
        "average over two axes",
        lambda xp, x, w: [xp.average(x, axis=(0, 2), weights=w), xp.average(x, axis=(2, 0), weights=w.T)],
        f(2, 3, 4),
        pos(2, 4),
    ),
    case(
        "mean as integers",
        lambda xp, x: [xp.mean(3 * x, axis=1, dtype="int32"), xp.mean(x, dtype="int32", where=MASK)],
        i(3, 4),
        plain=True,
        smooth=False,
    ),
    case("folds of what is no NaN, with keywords", _nan_folds, f(3, 4), plain=True, slack=5.0),
    case(
        "interp of complex values",
        lambda xp, x, y: xp.interp(x, xp.arange(4.0, dtype="float32"), y),
        f(5),
        z(4),
        keeps={4: "points"},
    ),
    case("logspace of several bases", lambda xp, x, b: xp.logspace(x, 2.0, 4, base=b, axis=-1), f(), pos(3)),
    case(
        "unravel_index by columns",
        lambda xp, x: list(xp.unravel_index(abs(x), (3, 4), order="F")),
        i(2, 3),
        smooth=False,
        without={"bool": "positions are numbers"},
    ),
    case(
        "roll by a number of an array",
        lambda xp, x, s: xp.roll(x, s, axis=1),
        f(2, 3),
        i(),
        without=dict.fromkeys(("*f*", "c*", "bool"), "a shift is an integer"),
    ),
    case("transforms of planes, with keywords", _planes, f(2, 3, 4), plain=True),
    case(
        "cross along axes of their own",
        lambda xp, x, y: xp.cross(x, y, axisa=0, axisb=1, axisc=0),
        f(3, 4),
        f(4, 3),
        keeps={3: "space"},
    ),
    case(
        "histogramdd with a range and weights",
        lambda xp, x, w: xp.histogramdd(x, bins=(2, 3), range=[(-1, 1), (-2, 2)], weights=w, density=True)[0],
        f(9, 2),
        pos(9),
        plain=True,
        smooth=False,
    ),
    case("cumulative_prod from one on", lambda xp, x: xp.cumulative_prod(x, axis=1, include_initial=True), f(2, 3)),
    case(
        "isclose with tolerances",
        lambda xp, x: [
            xp.isclose(x, x + 0.01, rtol=0.1),
            xp.isclose(x, x + 0.01, rtol=0.0, atol=0.02),
            xp.array_equal(x * xp.nan, x * xp.nan, equal_nan=True),
        ],
        f(2, 3),
        plain=True,
        smooth=False,
    ),
]
