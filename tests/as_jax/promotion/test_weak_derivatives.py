"""Derivatives with respect to a Python number are weak through every construct, as in JAX."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from tests.as_jax.promotion.make_weak_derivatives import CALLS, line

STORED: dict[str, str] = dict(
    zip(CALLS, Path(__file__).with_name("weak_derivatives_jax_0_10_2.txt").read_text().splitlines(), strict=True)
)


@pytest.mark.parametrize("call", CALLS)
def test_a_derivative_is_weak_where_it_is_in_jax(call: str):
    assert line(call) == STORED[call]


def test_a_step_along_the_gradient_of_a_number_keeps_the_dtype_of_the_other_operand():
    step = jnp.ones(2, jnp.bfloat16) - 0.1 * jax.grad(jnp.sin)(2.0)

    assert step.dtype == jnp.bfloat16
