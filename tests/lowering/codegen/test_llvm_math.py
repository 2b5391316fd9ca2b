"""rune's mathematical functions: at most 2 ulp over the whole domain, IEEE 754's special values.

Their errors are no larger than those once measured, which are 2 ulp or less (ulps.py). The oracle
has more digits: f64 for f32, and the C library's extended precision for f64 where the machine has
one. Samples are random bit patterns, the usual ranges, and every edge.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rune.lowering.codegen.llvm.functions import FUNCTIONS
from rune.lowering.scalar.table import OPERATIONS
from tests.lowering.codegen.llvm_run import MACHINES, apply
from tests.lowering.codegen.ulps import NO_EXTENDED_ORACLE, ON_THE_CPU, ORACLE

EXTENDED = np.finfo(np.longdouble).nmant > 60
EDGES = [
    0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    1e-45,
    -1e-45,
    1,
    -1,
    0.5,
    -0.5,
    2,
    88.7228,
    89,
    -103.97,
    -87.3,
    0.625,
    1e9,
    1e10,
    3.4e38,
    -3.4e38,
    math.pi,
    -100,
    16777216.0,
]

UNARY = sorted(name for name in FUNCTIONS if OPERATIONS[name].arity == 1)


def samples(dtype: type, count: int = 20_000) -> np.ndarray:
    """Arguments from everywhere."""
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2 ** (8 * np.dtype(dtype).itemsize) - 1, count, dtype=f"u{dtype(0).nbytes}")
    parts = [
        np.array(EDGES),
        rng.standard_normal(count),
        rng.standard_normal(count) * 30,
        rng.uniform(-1, 1, count),
        rng.standard_normal(count) * 1e-3,
        rng.uniform(-110, 100, count),
        1 + rng.standard_normal(count) * 1e-3,
        rng.uniform(-750, 720, count),
    ]
    with np.errstate(all="ignore"):
        return np.concatenate([bits.view(dtype), *(p.astype(dtype) for p in parts)])


def errors(actual: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors in ulps of the exact value; infinite where one is NaN or has the wrong sign."""
    dtype = actual.dtype
    with np.errstate(all="ignore"):
        nearest = exact.astype(dtype)
        ulp = np.spacing(np.minimum(np.abs(nearest), np.finfo(dtype).max)).astype(exact.dtype)
        steps = np.abs(actual.astype(exact.dtype) - exact) / ulp
    matching = (actual == nearest) & ~np.isfinite(nearest) | np.isnan(actual) & np.isnan(nearest)
    return np.where(matching, 0, np.where(np.isnan(steps), np.inf, steps))


def exact(name: str, x: np.ndarray) -> np.ndarray:
    wide = np.float64 if x.dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        oracle: Any = ORACLE.get(name, getattr(np, name, None))
        return np.asarray(oracle(x.astype(wide)))


@pytest.mark.parametrize("name", UNARY)
def test_the_error_of_f32_is_no_larger_than_measured(name):
    x = samples(np.float32)

    ulps = errors(apply(name, x), exact(name, x))

    worst = int(np.argmax(ulps))
    assert ulps[worst] <= ON_THE_CPU[name][0] <= 2, (x[worst], ulps[worst])


@pytest.mark.skipif(not EXTENDED, reason="no extended precision to compare with")
@pytest.mark.parametrize("name", sorted(set(UNARY) - NO_EXTENDED_ORACLE))
def test_the_error_of_f64_is_no_larger_than_measured(name):
    x = samples(np.float64)

    ulps = errors(apply(name, x), exact(name, x))

    worst = int(np.argmax(ulps))
    assert ulps[worst] <= ON_THE_CPU[name][1] <= 2, (x[worst], ulps[worst])


@pytest.mark.parametrize("name", sorted(NO_EXTENDED_ORACLE - {"erf_inv"}))
def test_f64_error_functions_are_near_the_c_librarys(name):
    # math.erf errs by up to 1 ulp itself. Denormal results are left out: it flushes some.
    x = samples(np.float64, 5_000)
    x = x[(np.abs(x) < 26) & (np.abs(x) > 1e-300)]
    expected = np.array([getattr(math, name)(v) for v in x])

    errors_in_ulp = errors(apply(name, x), expected)

    assert errors_in_ulp.max() <= 3, x[np.argmax(errors_in_ulp)]


def test_f64_erf_inv_undoes_erf():
    y = np.concatenate([np.linspace(-3, 3, 5001), 10.0 ** -np.arange(1, 300)])
    x = np.array([math.erf(v) for v in y])

    inverse = apply("erf_inv", x)

    # What rounding x loses grows with the slope of erf_inv.
    slope = np.sqrt(np.pi) / 2 * np.exp(y * y)
    assert (np.abs(inverse - y) <= 3 * np.spacing(np.abs(y)) + np.spacing(np.abs(x)) * slope).all()


POWERS = [
    0.0,
    -0.0,
    1,
    -1,
    2,
    -2,
    0.5,
    -0.5,
    3,
    -3,
    math.inf,
    -math.inf,
    math.nan,
    1e30,
    1e-30,
    2.5,
    1e10,
    16777215.0,
    16777216.0,
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_special_pairs_follow_ieee(name, dtype):
    x, y = (a.ravel() for a in np.meshgrid(np.array(POWERS, dtype), np.array(POWERS, dtype)))
    with np.errstate(all="ignore"):
        expected = {"pow": np.power, "atan2": np.arctan2}[name](x, y)

    actual = apply(name, x, y)

    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    zeros = expected == 0
    assert (np.signbit(actual[zeros]) == np.signbit(expected[zeros])).all()


@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_f32_functions_of_two_arguments_are_within_2_ulp(name):
    rng = np.random.default_rng(3)
    x = np.abs(rng.standard_normal(40_000) * 10 ** rng.uniform(-4, 4, 40_000)).astype(np.float32)
    y = (rng.standard_normal(40_000) * 9).astype(np.float32)
    with np.errstate(all="ignore"):
        wide = {"pow": np.power, "atan2": np.arctan2}[name](x.astype("d"), y.astype("d"))

    assert errors(apply(name, x, y), wide).max() <= 2


@pytest.mark.skipif(not EXTENDED, reason="no extended precision to compare with")
def test_f64_atan2_is_within_2_ulp():
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(40_000) * 10 ** rng.uniform(-9, 9, 40_000) for _ in range(2))

    errors_in_ulp = errors(apply("atan2", x, y), np.arctan2(x.astype(np.longdouble), y))

    assert errors_in_ulp.max() <= 2


@pytest.mark.skipif(not EXTENDED, reason="no extended precision to compare with")
@pytest.mark.parametrize("base", ["any", "near 1", "next to 1", "at sqrt(1/2)", "negative", "tiny"])
def test_f64_pow_is_within_2_ulp(base):
    rng, count = np.random.default_rng(3), 20_000
    normal = rng.standard_normal(count)
    x, y = {
        "any": (np.abs(normal) * 10 ** rng.uniform(-4, 4, count), rng.standard_normal(count) * 90),
        "near 1": (1 + normal * 1e-4, rng.standard_normal(count) * 1e6),
        "next to 1": (np.nextafter(1, rng.choice([0, 2], count)), normal * 1e17),
        "at sqrt(1/2)": (np.sqrt(0.5) * (1 + normal * 1e-12), rng.uniform(-2040, 2040, count)),
        "negative": (-np.abs(normal), np.round(rng.standard_normal(count) * 40)),
        "tiny": (np.abs(normal) * 1e-310, rng.uniform(-1, 1, count)),
    }[base]
    with np.errstate(all="ignore"):
        wide = np.power(x.astype(np.longdouble), y)

    assert errors(apply("pow", x, y), wide).max() <= 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_powers_of_small_whole_numbers_are_exact(dtype):
    x, y = (a.ravel().astype(dtype) for a in np.mgrid[-20:21, 0:6])

    assert (apply("pow", x, y) == np.power(x, y)).all()


@pytest.mark.parametrize(
    "name", ["sin", "tan", "asin", "atan", "sinh", "tanh", "erf", "expm1", "log1p", "asinh", "atanh", "cbrt", "erf_inv"]
)
def test_odd_functions_keep_the_sign_of_zero(name):
    for dtype in (np.float32, np.float64):
        assert np.signbit(apply(name, np.array([-0.0, 0.0], dtype))).tolist() == [True, False]


@pytest.mark.parametrize("name", ["exp", "tanh", "log", "sin", "erf"])
def test_every_lane_count_gives_the_same_bits(name):
    x = samples(np.float32, 500)
    if not MACHINES["host"].has_cheap_masks:
        pytest.skip("the host has no fused multiply-add at every width")

    bits = {key: apply(name, x, on=on).view(np.uint32) for key, on in MACHINES.items()}

    assert (bits["narrow"] == bits["wide"]).all()
    assert (bits["narrow"] == bits["host"]).all()
