"""If the value of a function is NaN, its reverse-mode derivative is NaN, too, never a silent 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.scipy import special, stats
from rune.scipy.stats.family import Continuous

FAMILIES = [name for name, family in vars(stats).items() if isinstance(family, Continuous)]
# Quantiles are searched for in most families; vonmises has no distribution function in closed form.
TRIED = {"logpdf": FAMILIES, "cdf": [n for n in FAMILIES if n != "vonmises"], "ppf": ["norm", "laplace", "pareto"]}


def slope_at_nan(f: Callable[[Any], Any]) -> np.ndarray:
    _, pull = rune.vjp(f, rnp.asarray(np.float32(np.nan)))
    return np.asarray(pull(np.float32(1))[0])


@pytest.mark.parametrize("method", TRIED)
def test_a_distribution_has_a_slope_of_nan_at_nan(method: str):
    families = {name: getattr(stats, name) for name in TRIED[method]}

    slopes = {
        name: slope_at_nan(lambda x, f=family: getattr(f, method)(x, *(1.5 for _ in f.shapes)))
        for name, family in families.items()
    }

    assert [name for name, slope in slopes.items() if not np.isnan(slope)] == []


def slopes_at_nan(f: Callable[..., Any], point: Sequence[float]) -> list[np.ndarray]:
    """The slope in each argument, where that is NaN and the others are those of a point."""
    return [slope_at_nan(lambda x, n=n: f(*point[:n], x, *point[n + 1 :])) for n in range(len(point))]


def test_a_distribution_has_a_slope_of_nan_if_a_parameter_is_nan():
    families = [getattr(stats, name) for name in FAMILIES]

    slopes = {f.name: slopes_at_nan(f.logpdf, [0.5, *(1.5 for _ in f.shapes), 0.0, 1.0]) for f in families}

    assert [name for name, row in slopes.items() if not np.isnan(row).all()] == []


# A point at which every argument matters.
FUNCTIONS = {
    "rel_entr": (1.0, 2.0),
    "kl_div": (1.0, 2.0),
    "huber": (1.0, 2.0),
    "pseudo_huber": (1.0, 2.0),
    "zeta": (2.0, 1.5),
    "hyp2f1": (1.0, 0.5, 2.0, 0.3),
    "betainc": (1.0, 0.5, 0.3),
    "gammainc": (1.0, 0.5),
    "hyp1f1": (1.0, 2.0, 0.5),
    "poch": (1.0, 2.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_special_function_has_a_slope_of_nan_if_an_argument_is_nan(name: str):
    slopes = slopes_at_nan(getattr(special, name), FUNCTIONS[name])

    assert np.isnan(slopes).all(), slopes
