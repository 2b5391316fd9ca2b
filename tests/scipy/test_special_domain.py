"""rune.scipy.special over whole domains: accuracy, limits, and derivatives at difficult points.

SciPy in f64 is the oracle; the tolerances are relative, 1e-13 in f64 and 1e-6 in f32. A line of the
table allows more where the function magnifies the rounding of its argument, or SciPy's own formula
has fewer digits (checked once against 50 digits).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.special

import rune
import rune.numpy as rnp
from rune.scipy import special
from rune.scipy.special import arguments
from tests.support.arrays import array
from tests.support.close import near, same
from tests.support.sampling import one_in

LIMITS = np.array([0.0, 1.0, 2.0, 0.5, 1e-10, 1e-30, np.inf, np.nan])


def _log(low: float, high: float) -> np.ndarray:
    """Numbers of all magnitudes from 10**low to 10**high."""
    return 10.0 ** np.linspace(low, high, 301)


def _line(reach: float) -> np.ndarray:
    return np.concatenate([np.linspace(-reach, reach, 401), LIMITS])


POSITIVE = np.concatenate([_log(-10, 4), np.linspace(0.01, 9.0, 301), LIMITS])


@dataclass(frozen=True)
class Domain:
    """A function at points, and the relative errors that are allowed in f64 and f32."""

    name: str
    points: tuple[np.ndarray, ...]
    wide: float = 1e-13
    narrow: float = 1e-6

    def __str__(self) -> str:
        return self.name


def _crossed(*points: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(g.ravel() for g in np.meshgrid(*points))


SHAPES = np.array([1e-3, 0.1, 0.5, 1.0, 2.5, 10.0, 19.0, 21.0, 150.0])
WIDE_SHAPES = np.array([0.02, 0.1, 0.3, 1.0, 2.5, 19.0, 21.0, 150.0, 3e3])
RATIOS = np.array([1e-6, 0.01, 0.3, 0.71, 0.95, 1.0, 1.1, 1.29, 1.6, 4.0])


# Whole numbers and others on both sides of 0, near it and beyond 30, where other ways are taken.
POLES = np.array([-4097.0, -301, -50, -31, -30.5, -17, -2, -1, -0.5, 0, 1, 3, 17, 31, 40, 63.5, 301])


def _near_mode() -> tuple[np.ndarray, ...]:
    """Parameters a, and x from far below a to far above it."""
    a, ratio = _crossed(SHAPES, RATIOS)
    return a, a * ratio


DOMAINS = [
    Domain("gamma", (_line(30.0),), narrow=2e-6),
    Domain("gammaln", (POSITIVE,), wide=2e-12, narrow=4e-6),
    Domain("gammasgn", (_line(20.25),)),
    Domain("digamma", (POSITIVE,)),
    Domain("polygamma", _crossed(np.array([0.0, 1.0, 2.0, 5.0]), _log(-2, 4)), narrow=5e-6),
    Domain("zeta", _crossed(np.array([1.01, 2.0, 3.3, 17.0]), _log(-2, 3)), narrow=3e-6),
    *[Domain(name, (_line(12.0),)) for name in ("erf", "erfc", "dawsn", "expit", "log_expit")],
    Domain("erfcx", (_line(9.0),)),
    Domain("erfi", (_line(9.0),)),
    Domain("ndtr", (_line(12.0),)),
    Domain("log_ndtr", (_line(12.0),)),
    Domain("ndtri", (np.linspace(0.0, 1.0, 401),)),
    Domain("ndtri", (_log(-30, -0.5),)),
    Domain("erfcinv", (np.concatenate([_log(-30, 0), np.linspace(0.0, 2.0, 201)]),)),
    *[Domain(name, (_line(30.0),), narrow=1e-6) for name in ("i0e", "i1e")],
    *[Domain(name, (POSITIVE,)) for name in ("k0", "k1", "k0e", "k1e")],
    Domain("ellipk", (np.linspace(-20.0, 0.999, 401),)),
    Domain("ellipe", (np.linspace(-20.0, 1.0, 401),)),
    Domain("ellipkm1", (_log(-30, 1),)),
    Domain("exp1", (POSITIVE,)),
    Domain("expi", (np.linspace(0.5, 80.0, 401),)),
    Domain("expn", _crossed(np.arange(12.0), _log(-3, 2)), narrow=3e-6),
    Domain("spence", (np.linspace(0.0, 12.0, 401)[1:],), narrow=3e-6),
    Domain("entr", (POSITIVE,)),
    Domain("xlogy", _crossed(LIMITS, LIMITS)),
    Domain("xlog1py", _crossed(LIMITS, LIMITS)),
    Domain("rel_entr", _crossed(LIMITS[:-2], LIMITS[:-2])),
    Domain("owens_t", _crossed(np.linspace(-6.0, 6.0, 25), np.linspace(-5.0, 5.0, 21)), wide=1e-11, narrow=3e-6),
    Domain("gammainc", _near_mode(), wide=3e-13, narrow=2e-5),
    Domain("gammaincc", _near_mode(), wide=3e-13, narrow=2e-5),
    Domain("gammainc", _crossed(LIMITS, LIMITS)),
    Domain("gammaincc", _crossed(LIMITS, LIMITS), narrow=3e-6),
    Domain("betainc", _crossed(SHAPES[1:], SHAPES[1:], np.linspace(0.0, 1.0, 13)), wide=3e-13, narrow=2e-5),
    Domain("betaincc", _crossed(SHAPES[1:], SHAPES[1:], np.linspace(0.0, 1.0, 13)), wide=3e-13, narrow=2e-5),
    Domain("gammaincinv", _crossed(SHAPES[2:], np.linspace(0.0, 1.0, 13)), wide=1e-12, narrow=2e-5),
    *[
        Domain(name, _crossed(WIDE_SHAPES, _log(-20, -0.01)[::7]), wide=2e-13, narrow=1e-5)
        for name in ("gammaincinv", "gammainccinv")
    ],
    Domain("betaincinv", _crossed(SHAPES[2:], SHAPES[2:], np.linspace(0.0, 1.0, 7)), wide=1e-12, narrow=2e-5),
    Domain("betaln", _crossed(SHAPES, SHAPES), wide=1e-12, narrow=4e-6),
    Domain("binom", _crossed(np.arange(40.0), np.arange(12.0)), narrow=1e-5),
    Domain("binom", _crossed(POLES, POLES), wide=1e-12, narrow=3e-4),  # logarithms near 1,400 cancel
    Domain("hyp1f1", _crossed(SHAPES[2:5], SHAPES[2:5], np.linspace(-40.0, 80.0, 25)), wide=1e-11, narrow=1e-4),
]


def _within(domain: Domain, dtype: Any, relative: float) -> None:
    points = [p.astype(dtype) for p in domain.points]
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, domain.name)(*(p.astype(np.float64) for p in points))
        expected = expected.astype(dtype).astype(np.float64)  # infinite where f32 overflows

    values = getattr(special, domain.name)(*map(array, points))

    assert values.dtype == dtype
    least = float(np.finfo(dtype).tiny)
    near(expected, values, relative=relative, absolute=least, why="relative, down to the least")


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_a_function_keeps_its_digits_in_f64(domain: Domain):
    _within(domain, np.float64, domain.wide)


@pytest.mark.parametrize("domain", one_in(4, DOMAINS), ids=str)
def test_a_function_keeps_its_digits_in_f32(domain: Domain):
    _within(domain, np.float32, domain.narrow)


def test_the_faddeeva_function_keeps_its_digits_in_the_whole_plane():
    z = np.add.outer(np.linspace(-8.0, 8.0, 33), 1j * np.linspace(-4.0, 8.0, 25)).ravel()

    near(scipy.special.wofz(z), special.wofz(array(z)), relative=1e-13, why="trapezoidal rule")


@pytest.mark.parametrize("name", ["sici", "fresnel"])
def test_pairs_of_integrals_keep_their_digits(name: str):
    x = np.concatenate([np.linspace(0.01, 30.0, 401), [1e3, 12345.6]])
    x = np.concatenate([x, -x])
    expected = list(getattr(scipy.special, name)(x))

    pair = list(getattr(special, name)(array(x)))

    near(expected, pair, relative=1e-12, why="SciPy rounds the square in the angle")


def test_bessel_functions_are_accurate_relative_to_their_amplitude():
    x = np.concatenate([np.linspace(0.01, 60.0, 601), [1e3]])

    for name in ("j0", "j1", "y0", "y1"):
        expected, result = getattr(scipy.special, name)(x), getattr(special, name)(array(x))
        near(expected, result, relative=1e-12, absolute=1e-15, why="zeros are crossed")


def test_the_rows_of_bessel_jn_are_the_functions_of_all_orders():
    z = np.linspace(-20.0, 20.0, 41)
    expected = np.stack([scipy.special.jv(order, z) for order in range(6)])

    near(expected, special.bessel_jn(array(z), v=5), relative=1e-11, why="50 steps down")


def test_bernoulli_numbers_are_those_of_scipy():
    near(scipy.special.bernoulli(30), special.bernoulli(30), relative=1e-6, why="rounded to f32")


def test_spherical_harmonics_are_those_of_scipy():
    n, m = np.array([0, 1, 2, 5, 30]), np.array([0, -1, 2, -3, 11])
    theta, phi = np.linspace(0.1, 3.0, 5), np.linspace(0.0, 6.0, 5)
    expected = scipy.special.sph_harm_y(n, m, theta, phi)

    harmonics = special.sph_harm_y(array(n), array(m), array(theta), array(phi))

    near(expected, harmonics, relative=1e-12, why="30 steps of a stable recurrence")


# --- derivatives ------------------------------------------------------------------------------

SECOND = {
    "gammaln": 2.3,
    "digamma": 1.7,
    "erfcx": 0.4,
    "log_ndtr": -2.1,
    "ndtri": 0.3,
    "erfcinv": 0.7,
    "dawsn": 0.8,
    "exp1": 0.9,
    "expi": 1.4,
    "spence": 2.2,
    "i0": 1.3,
    "i1e": 0.7,
    "k0": 1.1,
    "j0": 2.2,
    "j1": 0.9,
    "y0": 1.8,
    "ellipk": 0.4,
    "ellipe": 0.004,
    "logit": 0.4,
    "gamma": 1.6,
}


@pytest.mark.parametrize(("name", "at"), SECOND.items(), ids=SECOND)
def test_second_derivatives_agree_with_finite_differences(name: str, at: float):
    slope = rune.grad(getattr(special, name))
    h = 1e-5

    curvature = rune.grad(slope)(array(np.float64(at)))

    upper, lower = (slope(array(np.float64(at + s))) for s in (h, -h))
    near((upper - lower) / (2 * h), curvature, relative=1e-6, why="central differences")


@pytest.mark.parametrize("a", [0.3, 4.0, 30.0])
def test_the_second_derivative_of_gammainc_in_its_parameter_agrees_with_finite_differences(a: float):
    slope = rune.grad(lambda a: special.gammainc(a, array(np.float64(1.1)) * a))
    h = 1e-4

    curvature = rune.grad(slope)(array(np.float64(a)))

    upper, lower = (slope(array(np.float64(a + s))) for s in (h, -h))
    near((upper - lower) / (2 * h), curvature, relative=1e-6, why="central differences")


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_lanes_do_not_depend_on_their_neighbours(name: str):
    a, x = array(np.array([0.5, 3.0, 700.0])), array(np.array([2.0, 1.0, 650.0]))

    lanes = getattr(special, name)(a, x)

    same(rnp.stack([getattr(special, name)(*pair) for pair in zip(a, x)]), lanes)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_are_computed_in_f32_and_rounded_once(dtype: str):
    x = rnp.array([0.3, 1.7, 4.0], dtype)

    values = special.gammaln(x)

    same(rnp.astype(special.gammaln(rnp.astype(x, "float32")), dtype), values)


def test_complex_numbers_are_refused_by_name():
    with pytest.raises(rune.errors.DtypeError, match="gammaln: cannot take"):
        special.gammaln(array(np.array([1j])))


def test_the_gradient_is_not_nan_where_an_entropy_is_zero():
    gradient = rune.grad(lambda x: rnp.sum(special.xlogy(x, 2.0)))(array(np.zeros(2)))

    near(np.full(2, np.log(2.0)), gradient, relative=1e-7, why="log(2) of a weak f32 number")


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_one_program_computes_a_long_array_with_the_results_of_its_parts(dtype):
    x = rnp.asarray(np.linspace(-3, 3, arguments.LARGE), dtype)
    before = rune.work_stats("cpu").submitted
    values = special.ndtr(x)
    runs = rune.work_stats("cpu").submitted - before

    parts = [special.ndtr(p) for p in rnp.split(x, 4)]
    assert (runs, rune.work_stats("cpu").submitted - before) == (1, 1)
    limit = 2 * float(rnp.finfo(x.dtype).eps)
    near(rnp.concatenate(parts), values, relative=8 * limit, absolute=limit, why="another exp")
