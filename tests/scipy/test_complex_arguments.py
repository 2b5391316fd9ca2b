"""Special functions of complex numbers against SciPy: values, poles, the cut, derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import rune
from rune.scipy import special
from tests.support.close import near

DEVICES = [d.name for d in rune.devices() if d.target.backend not in ("null", "reference")]
PLANE = (0.3, 1.0, 3.0, 10.0)  # standard deviations of real and imaginary parts
WRAPS = {"eager": lambda f: f, "compiled": rune.jit, "mapped": rune.vmap}


def _expit(z: Any) -> Any:
    return np.where(z.real < 0, np.exp(z) / (1 + np.exp(z)), 1 / (1 + np.exp(-z)))


def _logit(z: Any) -> Any:
    return np.log(z / (1 - z))


UNARY: dict[str, Callable[[Any], Any]] = {
    "gamma": sp.gamma,
    "loggamma": sp.loggamma,
    "digamma": sp.digamma,
    "erfcx": sp.erfcx,
    "expit": _expit,
    "logit": _logit,
}
BINARY = {"xlogy": sp.xlogy, "xlog1py": sp.xlog1py}


def plane(size: int, spread: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return spread * (rng.normal(size=size) + 1j * rng.normal(size=size))


def apart(actual: Any, expected: np.ndarray) -> np.ndarray:
    """The distance of each value from SciPy's, by the larger of its size and 1."""
    return np.abs(np.asarray(actual) - expected) / np.maximum(np.abs(expected), 1.0)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", UNARY)
def test_a_function_has_scipys_values_in_the_plane(name: str, wrap: str):
    for spread in PLANE:
        z = plane(131, spread)
        expected = UNARY[name](z)
        is_large = np.abs(expected) > 1e30
        with rune.enable_x64():
            actual = WRAPS[wrap](getattr(special, name))(z)

        assert (apart(actual, expected)[~is_large] < 4e-13).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", UNARY)
def test_a_function_has_scipys_values_on_every_executor(name: str, device: str):
    z = plane(37, 2.0).astype(np.complex64)

    actual = rune.jit(getattr(special, name), device=device)(z)

    assert actual.dtype == np.complex64
    assert (apart(actual, UNARY[name](z.astype(complex))) < 4e-5).all()


@pytest.mark.parametrize("name", ["gamma", "loggamma", "digamma"])
@pytest.mark.parametrize("centre", [2, 1, 0, -1, -2, -5])
def test_values_near_zeros_and_poles_keep_their_digits(name: str, centre: int):
    rng = np.random.default_rng(centre + 9)
    offsets = 10.0 ** rng.uniform(-9, -0.5, 97) * np.exp(2j * np.pi * rng.uniform(size=97))
    # What the sum rounds off is no error of the function: SciPy gets the rounded numbers.
    z = centre + offsets
    expected = UNARY[name](z)

    with rune.enable_x64():
        actual = np.asarray(getattr(special, name)(z))

    assert (np.abs(actual - expected) < 2e-13 * np.abs(expected) + 2e-14).all()


@pytest.mark.parametrize("name", BINARY)
def test_a_product_with_a_logarithm_has_scipys_values(name: str):
    x, y = plane(67, 2.0), plane(67, 2.0, seed=1)
    x[:3] = 0.0
    y[0] = -1.0 if name == "xlog1py" else 0.0

    for wrap in (lambda f: f, rune.jit):
        with rune.enable_x64():
            actual = wrap(getattr(special, name))(x, y)
        assert (apart(actual, BINARY[name](x, y)) < 1e-14).all()


def test_a_real_operand_with_a_complex_one_becomes_complex():
    np.testing.assert_allclose(special.xlogy(2.0, np.complex64(1 + 2j)), sp.xlogy(2.0, 1 + 2j), rtol=1e-6)


@pytest.mark.parametrize("name", ["gamma", "loggamma", "digamma"])
def test_poles_infinities_and_nan_are_nan(name: str):
    points = np.array([0, -0.0, -1, -7, np.inf, -np.inf, 1 + np.inf * 1j, complex(np.nan, 1), complex(1, np.nan)])

    for wrap in (lambda f: f, rune.jit):
        values: Any = np.asarray(wrap(getattr(special, name))(points.astype(np.complex64)))
        assert np.isnan(values.real).all()
        assert np.isnan(values.imag).all()


def test_the_sign_of_zero_says_on_which_side_of_the_cut_the_logarithm_is():
    points = np.array([complex(x, side) for x in (-0.5, -2.5, -7.25, 0.25, 3.0) for side in (0.0, -0.0)])

    with rune.enable_x64():
        actual = np.asarray(special.loggamma(points))

    near(sp.loggamma(points), actual, relative=1e-13, absolute=1e-14, why="roundings of reflections")


def test_long_arrays_which_are_compiled_have_scipys_values():
    z = plane(65_537, 2.0).astype(np.complex64)

    actual = np.asarray(special.loggamma(z))

    assert (apart(actual, sp.loggamma(z.astype(complex))) < 6e-6).all()


@pytest.mark.parametrize(
    ("name", "slope"),
    [
        ("loggamma", sp.digamma),
        ("gamma", lambda z: sp.gamma(z) * sp.digamma(z)),
        ("digamma", lambda z: (sp.digamma(z + 1e-5) - sp.digamma(z - 1e-5)) / 2e-5),
        ("erfcx", lambda z: 2 * z * sp.erfcx(z) - 2 / np.sqrt(np.pi)),
    ],
)
def test_a_derivative_is_that_of_the_analytic_function(name: str, slope: Callable[[Any], Any]):
    for z in (1.3 + 0.4j, -1.3 + 0.4j, -3.7 - 2.1j, 0.2 - 5.0j, 12.5 + 3.0j):
        with rune.enable_x64():
            actual = complex(rune.grad(getattr(special, name), holomorphic=True)(z))
        assert abs(actual - slope(z)) < 1e-8 * max(1.0, abs(slope(z)))
