"""Where a function has no value, it has no slope backwards either: no silent 0 is handed on."""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.scipy import special, stats
from rune.scipy.stats.family import Continuous

FAMILIES = [name for name, family in vars(stats).items() if isinstance(family, Continuous)]
# Quantiles are searched for in most families; vonmises has no distribution function in closed form.
TRIED = {"logpdf": FAMILIES, "cdf": [n for n in FAMILIES if n != "vonmises"], "ppf": ["norm", "laplace", "pareto"]}


def slope_at_nan(f) -> np.ndarray:
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


FUNCTIONS = {
    "rel_entr": lambda x: special.rel_entr(x, 2.0),
    "kl_div": lambda x: special.kl_div(2.0, x),
    "pseudo_huber": lambda x: special.pseudo_huber(x, 2.0),
    "zeta": lambda x: special.zeta(2.0, x),
    "hyp2f1": lambda x: special.hyp2f1(1.0, 0.5, 2.0, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_special_function_has_a_slope_of_nan_at_nan(name: str):
    assert np.isnan(slope_at_nan(FUNCTIONS[name]))
