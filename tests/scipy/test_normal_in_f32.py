"""Φ, log Φ, their inverse and logit in f32, in ulps, on every executor, compiled and not.

SciPy in f64 is the oracle, except near 1/2, where its `logit` subtracts logarithms and log1p is
used. Arguments are ordinary numbers, tails down to denormal numbers, the neighbours of roots and of
every point where the formula changes, and all special values. Results that are denormal are
compared in units of the least normal number's ulp: some executors flush them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.special

import rune
from rune.backends import Device
from rune.scipy import special
from tests.support.arrays import array
from tests.support.close import near, same
from tests.support.sampling import in_turn

COMPUTING = [d for d in rune.devices() if d.target.backend != "null"]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, -1e30, 3e38, -3e38, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0]
DENORMAL = [1e-45, -1e-45, 1e-40, -1e-40]
BOUNDS = [-10.0, 0.25, 0.75, 2.0**-100, 0.07, -14.2, 14.2, 20.0]  # where formulas change
LIMITS = {"ndtr": 2.5, "log_ndtr": 3.5, "ndtri": 4.5, "logit": 2.4}


def _exact_logit(p: np.ndarray) -> np.ndarray:
    return np.where(np.abs(p - 0.5) < 0.2, np.log1p((2 * p - 1) / (1 - p)), scipy.special.logit(p))


ORACLES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ndtr": scipy.special.ndtr,
    "log_ndtr": scipy.special.log_ndtr,
    "ndtri": scipy.special.ndtri,
    "logit": _exact_logit,
}


def _with_neighbours(points: list[float]) -> np.ndarray:
    middle = np.array(points, np.float32)
    return np.concatenate([middle, *(np.nextafter(middle, np.float32(end)) for end in (-np.inf, np.inf))])


def _arguments(name: str) -> np.ndarray:
    rng = np.random.default_rng(11)
    edges = np.concatenate([np.array(SPECIAL, np.float32), _with_neighbours(BOUNDS)])
    if name in ("ndtri", "logit"):
        tails = 10.0 ** rng.uniform(-37, 0, 4001)
        parts = [rng.random(6007), tails, 1 - 10.0 ** rng.uniform(-7.2, 0, 2003), 0.5 + rng.normal(0, 1e-4, 1009)]
    else:
        parts = [
            rng.normal(0, 2, 6007),
            rng.uniform(-16, 16, 4001),
            rng.uniform(-700, 50, 503),
            rng.normal(0, 1e-4, 101),
        ]
    return np.concatenate([edges, *parts]).astype(np.float32)


def _worst(name: str, x: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """The largest error in ulps, infinite for a NaN that should be none, and where it is."""
    with np.errstate(all="ignore"):
        exact = ORACLES[name](x.astype(np.float64))
        rounded = exact.astype(np.float32)
        ulp = np.spacing(np.clip(np.abs(rounded), np.finfo("f4").tiny, np.finfo("f4").max)).astype(np.float64)
        ulps = np.abs(values.astype(np.float64) - exact) / ulp
        # A denormal result may be 0: as much as an ulp of the least normal number, times 2**23.
        is_flushed = (np.abs(rounded) < np.finfo("f4").tiny) & (values == 0)
    equal = (values == rounded) | np.isnan(values) & np.isnan(rounded) | is_flushed
    ulps = np.where(equal, 0.0, np.where(np.isnan(ulps), np.inf, ulps))
    return float(ulps.max()), float(x[np.argmax(ulps)])


@in_turn()
@pytest.mark.parametrize("device", COMPUTING, ids=lambda d: d.name)
@pytest.mark.parametrize("name", ORACLES)
def test_a_function_is_within_its_ulps_on_an_executor(name: str, device: Device):
    x = _arguments(name)

    values = np.asarray(rune.jit(getattr(special, name), device=device.name)(array(x)))

    assert _worst(name, x, values) <= (LIMITS[name], np.inf)


@pytest.mark.parametrize("name", ORACLES)
def test_an_eager_function_is_within_its_ulps(name: str):
    x = np.concatenate([_arguments(name)[:3001], np.array(DENORMAL, np.float32)])

    assert _worst(name, x, np.asarray(getattr(special, name)(array(x)))) <= (LIMITS[name], np.inf)


@pytest.mark.parametrize("name", ORACLES)
def test_denormal_arguments_are_numbers_in_compiled_code(name: str):
    x = np.array([*DENORMAL, *_with_neighbours([2.0**-126, 2.0**-149])], np.float32)

    values = np.asarray(rune.jit(getattr(special, name))(array(x)))

    assert _worst(name, x, values) <= (LIMITS[name], np.inf)


@pytest.mark.parametrize("name", ORACLES)
def test_the_slope_in_f32_is_that_in_f64(name: str):
    x = np.array([0.003, 0.249, 0.25, 0.4999, 0.5, 0.7501, 0.99, 3e-7], np.float32)
    slopes = rune.vmap(rune.grad(getattr(special, name)))

    near(np.asarray(slopes(array(x.astype("f8")))), slopes(array(x)), relative=5e-6, why="exp(x²/2) of a rounded x")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ORACLES)
def test_half_types_are_those_of_f32_rounded_once(name: str, dtype: str):
    x = rune.numpy.asarray(_arguments(name)[::7], dtype)
    function = getattr(special, name)

    with np.errstate(over="ignore"):
        wide = np.asarray(function(x.astype("float32"))).astype(x.dtype)

    same(wide, np.asarray(function(x)))
