"""The paths of optimisers that Optax has, step by step, against stored ones of Optax 0.2.8."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rune
from tests.optim.all_names import ALL_NAMES
from tests.optim.make_optax_curves import optimizers, schedules
from tests.optim.paths import curve

STORED = json.loads((Path(__file__).parent / "optax_0_2_8.json").read_text())
OPTIMIZERS, SCHEDULES = optimizers(ALL_NAMES), schedules(ALL_NAMES)


@pytest.mark.parametrize("name", STORED["curves"])
def test_a_compiled_path_is_that_of_optax(name: str):
    points = curve(OPTIMIZERS[name])

    # f64, except that corrections of starts and rates of schedules are computed in f32.
    np.testing.assert_allclose(points, STORED["curves"][name], rtol=5e-5, atol=2e-6)


@pytest.mark.parametrize("name", STORED["rates"])
def test_a_schedule_is_that_of_optax(name: str):
    for wrap in (lambda f: f, rune.jit):
        schedule = wrap(SCHEDULES[name])
        rates = [float(schedule(np.int32(t))) for t in range(25)]
        np.testing.assert_allclose(rates, STORED["rates"][name], rtol=2e-6, atol=1e-7)
