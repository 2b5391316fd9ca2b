"""Functions of many half-precision numbers compute in f32: each answers as for the same numbers in
f32, rounded once, also where sums, squares, slopes or places would not fit into the half type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import rune.numpy as rnp
from rune.scipy import integrate, interpolate, ndimage, signal, stats

NUMBERS = np.random.default_rng(0)
SIGNAL = NUMBERS.normal(300, 100, 700)
IMAGE = SIGNAL.reshape(5, 140)
POINTS = 0.01 * 1.15 ** np.arange(40)  # the first ones so close that slopes do not fit into f16
VALUES = NUMBERS.normal(0, 300, 40)
BETWEEN = POINTS[:-1] + np.diff(POINTS) / 4
TAPS, FEEDBACK = np.array([0.1, 0.2, 0.1]), np.array([1.0, -1.5, 0.5625])

Call = Callable[..., Any]
FUNCTIONS: Mapping[str, tuple[Call, tuple[np.ndarray, ...]]] = {
    "cumulative_trapezoid": (integrate.cumulative_trapezoid, (SIGNAL[:200],)),
    "simpson": (integrate.simpson, (SIGNAL[:100],)),
    "CubicSpline": (lambda x, y, at: interpolate.CubicSpline(x, y)(at), (POINTS, VALUES, BETWEEN)),
    "PchipInterpolator": (lambda x, y, at: interpolate.PchipInterpolator(x, y)(at), (POINTS, VALUES, BETWEEN)),
    "Akima1DInterpolator": (lambda x, y, at: interpolate.Akima1DInterpolator(x, y)(at), (POINTS, VALUES, BETWEEN)),
    "make_interp_spline": (lambda x, y, at: interpolate.make_interp_spline(x, y, 2)(at), (POINTS, VALUES, BETWEEN)),
    "interp1d": (lambda x, y, at: interpolate.interp1d(x, y)(at), (POINTS, VALUES, BETWEEN)),
    "interp": (rnp.interp, (BETWEEN, POINTS, VALUES)),
    "welch": (lambda x: signal.welch(x, nperseg=64)[1], (SIGNAL / 16,)),
    "detrend": (signal.detrend, (SIGNAL,)),
    "lfilter": (signal.lfilter, (TAPS, FEEDBACK, SIGNAL / 16)),
    "filtfilt": (signal.filtfilt, (TAPS, FEEDBACK, SIGNAL / 16)),
    "sosfilt": (signal.sosfilt, (np.concatenate([TAPS, FEEDBACK])[None], SIGNAL / 16)),
    "savgol_filter": (lambda x: signal.savgol_filter(x, 11, 3), (SIGNAL,)),
    "gaussian_filter": (lambda x: ndimage.gaussian_filter(x, 2.0), (IMAGE,)),
    "shift": (lambda x: ndimage.shift(x, (0.25, 0.75)), (IMAGE,)),
    "zoom": (lambda x: ndimage.zoom(x, (1.5, 3.0)), (IMAGE,)),
    "rotate": (lambda x: ndimage.rotate(x, 7.0), (IMAGE,)),
    "affine_transform": (lambda x: ndimage.affine_transform(x, np.array([0.5, 0.25]), (0.5, 100.0)), (IMAGE,)),
    "gaussian_kde": (lambda x: stats.gaussian_kde(8 * x)(8 * x[:20]), (SIGNAL,)),
    "moment": (lambda x: stats.moment(x, 4), (SIGNAL / 64,)),
    "skew": (stats.skew, (SIGNAL,)),
    "zscore": (stats.zscore, (SIGNAL,)),
    "polyfit": (lambda x, y: rnp.polyfit(x, y, 2), (POINTS * 8, VALUES)),
    "cov": (rnp.cov, (IMAGE / 4,)),
    "corrcoef": (rnp.corrcoef, (IMAGE * 16,)),
    "average": (lambda x: rnp.average(x, weights=x), (SIGNAL,)),
    "norm": (rnp.linalg.norm, (SIGNAL,)),
}


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_half_types_answer_as_f32_rounded(name: str, dtype: str):
    function, operands = FUNCTIONS[name]
    halves = [rnp.asarray(x, dtype) for x in operands]
    expected = np.asarray(function(*(x.astype("f32") for x in halves)))
    assert np.isfinite(expected).all()

    actual = np.asarray(function(*halves), np.float64)

    np.testing.assert_allclose(actual, expected, rtol=0, atol=np.abs(expected).max() * float(rnp.finfo(dtype).eps))
