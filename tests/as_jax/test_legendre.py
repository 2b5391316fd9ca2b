"""`jax.scipy.special.lpmn_values`, associated Legendre functions, against SciPy's."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from rune.as_jax.legendre import lpmn_values

POINTS = np.array([-1.0, -0.9, -0.3, 0.0, 0.2, 0.7, 1.0], np.float32)


def _norm(m: int, n: int) -> float:
    return math.sqrt((2 * n + 1) / (4 * math.pi) * math.factorial(n - m) / math.factorial(n + m))


@pytest.mark.parametrize("is_normalized", [False, True])
@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_every_degree_and_order_is_that_of_scipy(size, is_normalized):
    table = np.zeros((size + 1, size + 1, POINTS.size))
    for m, n in np.argwhere(np.triu(np.ones_like(table[..., 0]))).tolist():
        table[m, n] = scipy.special.lpmv(m, n, POINTS.astype(np.float64)) * (_norm(m, n) if is_normalized else 1.0)

    for values in (lpmn_values, jax.jit(lpmn_values, static_argnums=(0, 1, 3))):
        actual = values(size, size, jnp.asarray(POINTS), is_normalized)

        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, table, rtol=1e-5, atol=1e-6 * np.max(np.abs(table)))


def test_jax_has_it_under_its_name():
    assert vars(jax.scipy.special)["lpmn_values"] is lpmn_values


def test_the_slope_is_that_of_the_polynomials():
    slope = jax.grad(lambda z: jnp.sum(lpmn_values(2, 2, z, False)[0]))(jnp.array([0.3, -0.5]))

    np.testing.assert_allclose(slope, 1.0 + 3.0 * np.array([0.3, -0.5]), rtol=1e-6)


@pytest.mark.parametrize(
    ("m", "n", "z", "words"),
    [
        (1, 2, np.zeros(3, np.float32), "orders up to 1"),
        (2, 2, np.zeros((3, 1), np.float32), "shape"),
        (2, 2, np.zeros(3, np.int32), "int32"),
    ],
)
def test_arguments_that_jax_refuses_are_refused(m, n, z, words):
    with pytest.raises((ValueError, TypeError), match=words):
        lpmn_values(m, n, jnp.asarray(z), True)
