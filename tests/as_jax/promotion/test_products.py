"""Products of operands of two dtypes, which jax 0.10.2 does not promote, have its dtypes."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.as_jax.promotion.make_products import lines

STORED = Path(__file__).with_name("products_jax_0_10_2.txt").read_text().splitlines()
A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_a_product_of_any_two_dtypes_is_that_of_jax():
    assert [line for line, line_of_jax in zip(lines(), STORED, strict=True) if line != line_of_jax] == []


def test_a_mixed_product_is_one_under_every_transformation():
    x, y = jnp.asarray(A, "bfloat16"), jnp.asarray(B)

    for run in (lax.dot, jax.jit(lax.dot)):
        np.testing.assert_array_equal(run(x, y), A @ B)
    np.testing.assert_array_equal(jax.vmap(lax.dot, (0, None))(x, y), A @ B)
    slopes = jax.grad(lambda a, b: lax.dot(a, b).sum(), argnums=(0, 1))(x, y)
    assert [s.dtype for s in slopes] == [x.dtype, y.dtype]
    np.testing.assert_array_equal(slopes[0], (np.ones((2, 4)) @ B.T))
    np.testing.assert_array_equal(slopes[1], A.T @ np.ones((2, 4)))


def test_complex_numbers_do_not_become_real_in_silence():
    with pytest.raises(TypeError, match="imaginary part would be lost"):
        lax.dot(A, B.astype(np.complex64), preferred_element_type="float32")
