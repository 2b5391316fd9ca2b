"""NumPyro's chains on rune are draws of the distribution that its chains on jax draw from.

The draws themselves differ: after some hundred steps, rounding decides differently whether a
proposal is accepted. So moments are compared, each within four of its Monte Carlo errors.
"""

from __future__ import annotations

import numpy as np
import pytest

from rune.as_jax import SETTINGS
from tests.as_jax.make_chains import SCRIPT, TARGET, lines_of

STORED = {name: np.array(row, float) for name, *row in map(str.split, TARGET.read_text().splitlines())}


@pytest.fixture(scope="module")
def chains() -> dict[str, np.ndarray]:
    """name -> mean, its error, mean square, its error, R-hat and effective draws of four chains."""
    pytest.importorskip("numpyro", reason="scripts/environment.sh installs it")
    with SETTINGS:
        return {name: np.array(row, float) for name, *row in lines_of(SCRIPT.read_text())}


@pytest.mark.filterwarnings("default")  # those of the library are its own affair
def test_moments_are_those_of_chains_on_jax_within_their_errors(chains: dict[str, np.ndarray]):
    assert list(chains) == list(STORED)
    for moment in (0, 2):
        differences = [chains[n][moment] - STORED[n][moment] for n in STORED]
        errors = [np.hypot(chains[n][moment + 1], STORED[n][moment + 1]) for n in STORED]
        assert np.all(np.abs(differences) < 4 * np.array(errors))


@pytest.mark.filterwarnings("default")
def test_four_chains_agree_and_mix_as_on_jax(chains: dict[str, np.ndarray]):
    r_hat, draws = np.stack([chains[n][4:] for n in STORED]).T
    draws_on_jax = np.array([STORED[n][5] for n in STORED])

    assert np.all(np.abs(r_hat - 1) < 0.01)
    assert np.all(draws > 0.5 * draws_on_jax)
