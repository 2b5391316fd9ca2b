"""odeint of complex numbers, alone and mixed with real ones, against the exponential function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.scipy.integrate import odeint
from tests.support.close import near

TIMES = np.linspace(0.0, 2.0, 5)
WHY = "f32, by steps of tolerance 1e-8"


def _turned(rate: Any, start: Any = 1.0 + 0.0j, times: Any = TIMES) -> Any:
    return odeint(lambda y, t, a: 1j * a * y, rnp.asarray(start), rnp.asarray(times, rnp.float32), rate)


def test_the_solution_of_a_complex_oscillation_is_a_rotation():
    near(np.exp(0.7j * TIMES), rune.jit(_turned)(0.7), relative=1e-5, why=WHY)


def test_a_batch_of_complex_oscillations_rotates():
    rates = np.array([0.3, 0.7, -1.1], np.float32)

    near(np.exp(1j * rates[:, None] * TIMES), rune.vmap(_turned)(rates), relative=1e-5, why=WHY)


@pytest.mark.parametrize(("part", "slope"), [("real", -2 * np.sin(1.4)), ("imag", 2 * np.cos(1.4))])
def test_the_derivative_in_a_real_rate_of_complex_numbers_is_real(part: str, slope: float):
    gradient = rnp.asarray(rune.grad(lambda rate: getattr(_turned(rate)[-1], part))(0.7))

    assert gradient.dtype == np.float32
    near(slope, gradient, relative=1e-4, why=WHY)


def test_the_derivative_in_times_of_complex_numbers_is_real():
    gradient = rune.grad(lambda times: _turned(1.0, times=times)[-1].real)(rnp.asarray(TIMES, rnp.float32))

    near(np.sin(2.0) * np.array([1.0, 0, 0, 0, -1]), gradient, relative=1e-4, why=WHY)


def test_real_leaves_stay_real_among_complex_leaves():
    def slopes(y: Any, t: Any) -> Any:
        return 1j * y[0], -y[1]

    rotation, decay = odeint(slopes, (rnp.asarray(1.0 + 0.0j), rnp.asarray(1.0)), rnp.asarray(TIMES, rnp.float32))

    assert (rotation.dtype, decay.dtype) == (np.complex64, np.float32)
    near([np.exp(1j * TIMES), np.exp(-TIMES)], [rotation, decay], relative=1e-5, why=WHY)
