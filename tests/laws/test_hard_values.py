"""Functions of one real number at its limits: denormals, overflow, infinities, NaN, in f32.

The oracle is the same function of NumPy or SciPy, computed in f64 at the same numbers and rounded:
an intermediate value may overflow in f32 where the result does not, and rune must give the result.
A function of two numbers has no value where one of them is NaN."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.special

import rune
import rune.numpy as rnp
import rune.scipy.special as special
from tests.support.sampling import each_value

_SIZES = (
    0,
    1e-45,
    1e-38,
    1e-20,
    1e-7,
    1e-3,
    0.5,
    1,
    2.5,
    7.9,
    8.1,
    19.9,
    20.1,
    34,
    35.1,
    40,
    57,
    60.3,
    87,
    88.8,
    90,
    91.8,
    103,
    170,
    300,
    1e3,
    33333,
    1e5,
    1e7,
    1e10,
    1e19,
    2e19,
    1e30,
    1e38,
    3e38,
    np.finfo(np.float32).max,
    np.inf,
)
HARD = np.array([*(-s for s in _SIZES), *_SIZES, np.nan], np.float32)

# Not functions of the real number alone, or their meaning depends on the dtype.
NOT_COMPARED = {"spacing"}
NOT_UFUNCS = {"i0", "sinc", "zeta"}


@dataclass(frozen=True, slots=True)
class Difference:
    """Where some functions are right otherwise than the oracle."""

    reason: str
    names: frozenset[str]
    where: np.ndarray


_AT_INFINITY = frozenset({"gammaln", "i0", "i1", "j0", "j1", "spence"})
DIFFERENCES = (
    Difference("the limit, where the oracle has NaN or another", _AT_INFINITY, np.isinf(HARD)),
    Difference("the oracle loses the angle", frozenset({"j0", "j1", "y0", "y1"}), abs(HARD) > 1e9),
    Difference("the oracle rounds πx", frozenset({"sinc"}), HARD == np.round(HARD)),
)


def unary() -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """The functions of one real number that both sides have."""
    for ours, other in ((rnp, np), (special, scipy.special)):
        for name in sorted(vars(ours).keys() - NOT_COMPARED):
            oracle = getattr(other, name, None)
            if oracle is not None and (takes(oracle, 1) or name in NOT_UFUNCS):
                yield name, getattr(ours, name), oracle


def takes(oracle: object, count: int) -> bool:
    """Whether it is a universal function of this many numbers, with one result."""
    return isinstance(oracle, np.ufunc) and (oracle.nin, oracle.nout) == (count, 1)


UNARY = {f"{f.__module__}.{name}": (name, f, oracle) for name, f, oracle in unary()}


def expected(oracle: Callable[..., Any]) -> np.ndarray | None:
    """The oracle's values in f32; None if it is not a function of floats to floats."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = np.asarray(oracle(HARD.astype(np.float64)))
        except TypeError:
            return None
        return values.astype(np.float32) if values.dtype == np.float64 else None


def is_compared(name: str) -> np.ndarray:
    """Where the oracle's value is right."""
    exceptions = [d.where for d in DIFFERENCES if name in d.names]
    return ~np.any(exceptions, axis=0) if exceptions else np.ones(HARD.shape, bool)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda d: d.reason)
def test_each_difference_is_needed(difference: Difference):
    cases = [(f, oracle) for n, f, oracle in UNARY.values() if n in difference.names]

    for function, oracle in cases:
        values, exact = np.asarray(function(rnp.asarray(HARD))), expected(oracle)
        assert exact is not None
        assert not np.array_equal(values[difference.where], exact[difference.where], True)


def test_numbers_of_the_law_reach_every_function():
    assert len(UNARY) > 80


@each_value()
@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("case", UNARY)
def test_a_function_of_one_number_is_right_at_its_limits(case: str, way: str):
    name, function, oracle = UNARY[case]
    exact = expected(oracle)
    if exact is None:
        pytest.skip("not a function of floats to floats")

    values = np.asarray((rune.jit(function) if way == "compiled" else function)(rnp.asarray(HARD)))

    # A denormal may be 0: executors may flush it.
    with np.errstate(invalid="ignore"):
        is_right = np.isclose(values, exact, rtol=3e-5, atol=1.2e-38, equal_nan=True)
    wrong = ~is_right & is_compared(name)
    assert not wrong.any(), list(zip(HARD[wrong], values[wrong], exact[wrong], strict=True))


BINARY = {
    name: getattr(special, name)
    for name in sorted(vars(special))
    if takes(getattr(scipy.special, name, None), 2) and not name.startswith("eval_")
}
# 0 times anything is 0 by definition, and no factors have the product 1.
DECIDED = {("xlogy", 1): 0.0, ("xlog1py", 1): 0.0, ("poch", 0): 0.0}


@each_value()
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_numbers_has_no_value_at_nan(name: str, place: int):
    others = HARD[~np.isnan(HARD) & (HARD != DECIDED.get((name, place), np.nan))]
    operands = [others, np.full_like(others, np.nan)]

    values = np.asarray(BINARY[name](*map(rnp.asarray, operands[:: -1 if place == 0 else 1])))

    assert np.isnan(values).all(), others[~np.isnan(values)]


@pytest.mark.parametrize("place", [0, 1])
def test_the_slope_of_an_angle_is_right_at_any_distance(place: int):
    sizes = np.array([1e-36, 1e-25, 1e-20, 0.5, 3.0, 1e18, 1e20, 1e36], np.float32)
    y, x = (sizes * 3, sizes * -2)
    wide = np.hypot(x.astype(np.float64), y) ** 2

    slope = rune.vmap(rune.grad(rnp.arctan2, argnums=place))(rnp.asarray(y), rnp.asarray(x))

    exact = (x if place == 0 else -y.astype(np.float64)) / wide
    np.testing.assert_allclose(np.asarray(slope), exact.astype(np.float32), rtol=1e-6)
