"""Arithmetic on denormal results of exponentials has the bits of NumPy, though it does not wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import rune
import rune.numpy as rnp
import rune.scipy.special as special
from rune import dtypes
from rune.backends.cpu.compiler import machine
from rune.lowering.codegen.llvm.render import render
from rune.lowering.codegen.llvm.underflow import TWO_FORMS
from tests.lowering.codegen.llvm_run import MACHINES, SCALAR, elementwise, op, run
from tests.support.bits import assert_same_bits

SIZES = (1, 2, 15, 16, 17, 31, 33, 127, 130, 257, 4099, 65_537)
WAITING = {name: replace(m, waits_for_denormals=True) for name, m in {**MACHINES, "scalar": SCALAR}.items()}


def hard_numbers(size: int, seed: int = 0) -> np.ndarray:
    """f32 of all magnitudes, with zeros of both signs, infinities and NaN."""
    rng = np.random.default_rng(seed)
    numbers = (rng.normal(size=size) * 10.0 ** rng.integers(-44, 38, size)).astype(np.float32)
    special_values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38], np.float32)
    places = rng.random(size) < 0.1
    numbers[places] = rng.choice(special_values, places.sum())
    return numbers


def exponents(size: int) -> np.ndarray:
    """Numbers whose exponentials are normal, denormal, 0 and infinite."""
    return np.random.default_rng(1).uniform(-110, 95, size).astype(np.float32)


FUNCTIONS = {
    "p * y": lambda xp, p, y: p * y,
    "p / y": lambda xp, p, y: p / y,
    "y / p": lambda xp, p, y: y / p,
    "y / (y + p)": lambda xp, p, y: y / (y + p),
    "p * p": lambda xp, p, y: p * p,
    "sqrt(p)": lambda xp, p, y: xp.sqrt(p),
    "2 * p * (p * y)": lambda xp, p, y: 2 * p * (p * y),
    "max(p, 1e-30) * y": lambda xp, p, y: xp.maximum(p, np.float32(1e-30)) * y,
    "(y > 0 ? p : -p) * y": lambda xp, p, y: xp.where(y > 0, p, -p) * y,
    "p * y / 3 - p": lambda xp, p, y: p * y / 3 - p,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("source", [rnp.exp, rnp.exp2, rune.nn.sigmoid, special.erfc], ids=lambda f: f.__name__)
def test_arithmetic_on_vanishing_numbers_has_the_bits_of_numpy(source):
    def compute(x, y):
        p = source(x)
        return p, [f(rnp, p, y) for f in FUNCTIONS.values()]

    compute = rune.jit(compute)
    for size in SIZES:
        y = hard_numbers(size)
        p, results = compute(exponents(size), y)
        for (name, f), result in zip(FUNCTIONS.items(), results, strict=True):
            assert_same_bits(f(np, np.asarray(p), y), np.asarray(result), name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quotients_of_denormal_numbers_in_memory_have_the_bits_of_numpy():
    quotient = rune.jit(lambda x, y: x / y)
    for size in SIZES:
        x, y = hard_numbers(size), hard_numbers(size, seed=1)
        assert_same_bits(x / y, np.asarray(quotient(x, y)))


def halfway(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Factors and addends whose exact sum lies beside the middle between two f32, one of them odd.

    The product is half of the addend's last place times 1 - (n / 2**23)**2, which f64 rounds away.
    """
    rng = np.random.default_rng(2)
    n = rng.integers(1, 100, size) * 2.0**-23
    exponent = rng.integers(-125, -64, size)
    place = np.maximum(rng.integers(-100, 40, size), -149 - exponent)  # of the addend's last digit, beside x
    x, y = np.ldexp(1 + n, exponent), np.ldexp(1 - n, place - 1)
    addend = np.ldexp(2 * rng.integers(1 << 22, 1 << 23, size) - 1.0, exponent + place)
    return x.astype(np.float32), y.astype(np.float32), (addend * rng.choice([-1, 1], size)).astype(np.float32)


def near_the_product(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Factors of all sizes, and addends that cancel their product, or to which it adds little."""
    rng = np.random.default_rng(2)
    x = np.exp(rng.uniform(-104, -44, size)).astype(np.float32)
    y = (rng.normal(size=size) * 2.0 ** rng.integers(-30, 60, size)).astype(np.float32)
    beside = 1 + rng.choice([0.0, 2.0**-24, 2.0**-30, 1e9], size)
    return x, y, (-x.astype(np.float64) * y * beside).astype(np.float32)


@pytest.mark.parametrize("numbers", [halfway, near_the_product])
@pytest.mark.parametrize("name", WAITING)
def test_a_fused_step_rounds_once(name: str, numbers: Callable[[int], tuple[np.ndarray, np.ndarray, np.ndarray]]):
    size, on = 1_031, WAITING[name]
    x, y, addend = numbers(size)
    result = np.empty(size, np.float32)
    # A quotient of an element may be tiny, and so may what it is multiplied by.
    code = elementwise([dtypes.f32] * 4, lambda x, one, y, c: op("fma", op("div", x, one), y, c), size, dtypes.f32)
    assert TWO_FORMS in render(code, on).declarations
    run(code, [x, np.ones_like(x), y, addend, result], on)
    for factor, other, c, actual in zip(x, y, addend, result, strict=True):
        exact = Fraction(float(factor)) * Fraction(float(other)) + Fraction(float(c))
        neighbours = np.nextafter(actual, np.array([-np.inf, np.inf], np.float32))
        error = abs(Fraction(float(actual)) - exact)
        assert all(error <= abs(Fraction(float(n)) - exact) for n in neighbours)


@pytest.mark.parametrize(
    "name", ["log1p", "expm1", "tanh", "sin", "tan", "sinh", "arcsinh", "arctan", "arctanh", "cosh"]
)
@pytest.mark.parametrize("size", [1, 17, 4_099])
def test_functions_of_tiny_numbers_are_those_of_f64(name: str, size: int):
    x = np.random.default_rng(3).uniform(-104, -1, size).astype(np.float32)
    p, result = rune.jit(lambda x: (rnp.exp(x), getattr(rnp, name)(rnp.exp(x))))(x)
    expected = getattr(np, name)(np.asarray(p, np.float64))
    np.testing.assert_allclose(result, expected, rtol=3e-7, atol=1.5e-45)


@pytest.mark.parametrize("name", ["logistic", "exp", "log"])
def test_functions_with_denormal_results_or_operands_are_those_of_f64(name: str):
    x = np.random.default_rng(4).uniform(-103, -80, 4_099).astype(np.float32)
    wide = np.exp(x.astype(np.float64))
    operand = wide.astype(np.float32)
    function, argument, expected = {
        "logistic": (rune.nn.sigmoid, x, wide / (1 + wide)),
        "exp": (rnp.exp, x, wide),
        "log": (rnp.log, operand, np.log(operand.astype(np.float64))),
    }[name]
    np.testing.assert_allclose(rune.jit(function)(argument), expected, rtol=3e-7, atol=1.5e-45)


@pytest.mark.parametrize(
    ("compute", "has_forms"),
    [
        (lambda x, y: op("exp", x), False),
        (lambda x, y: op("mul", x, y), False),
        (lambda x, y: op("add", op("exp", x), y), False),
        (lambda x, y: op("mul", op("exp", x), y), True),
        (lambda x, y: op("div", x, y), True),
    ],
    ids=["exp(x)", "x * y", "exp(x) + y", "exp(x) * y", "x / y"],
)
def test_only_quotients_and_what_multiplies_exponentials_have_two_forms(compute, has_forms: bool):
    code = elementwise([dtypes.f32] * 2, compute, 100, dtypes.f32)
    declarations = {
        waits: render(code, replace(machine(), waits_for_denormals=waits)).declarations for waits in (True, False)
    }
    assert (TWO_FORMS in declarations[True]) == has_forms
    assert TWO_FORMS not in declarations[False]
