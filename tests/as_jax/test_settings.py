"""Where rune's rules differ from JAX's on purpose, programs written for JAX get JAX's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def test_explicit_64_bits_are_truncated_with_the_warning_of_jax():
    with pytest.warns(UserWarning, match="Explicitly requested dtype float64 .*is not available"):
        x = jnp.zeros(2, jnp.float64)

    assert x.dtype == jnp.float32


def test_enable_x64_makes_them_available():
    with jax.enable_x64(True):
        assert jnp.zeros(2, jnp.float64).dtype == np.float64


def test_keys_are_arrays_of_an_extended_dtype():
    key = jax.random.key(0)

    assert isinstance(key, jax.Array)
    assert jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    assert jax.dtypes.issubdtype(key.dtype, jax.dtypes.extended)
    assert not jnp.issubdtype(key.dtype, np.floating)


MASK, HARD = np.array([False, True, False]), np.array([np.inf, np.nan, -1], np.float32)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.vmap])
def test_an_array_of_bools_times_floats_is_a_selection_as_in_xla(transform):
    mask, hard = jnp.asarray(MASK), jnp.asarray(HARD)

    for product in (lambda x, y: x * y, jnp.multiply, lambda x, y: y * x):
        np.testing.assert_array_equal(transform(product)(mask, hard), [0, np.nan, 0])
    np.testing.assert_array_equal(mask[0] * jnp.array(1j * np.inf), 0)


def test_the_slope_of_a_selection_by_bools_is_that_of_the_product():
    assert jax.grad(lambda x: (jnp.asarray(MASK) * x).sum())(HARD).tolist() == [0, 1, 0]
    assert jax.jvp(lambda x: jnp.asarray(MASK) * x, (HARD,), (np.ones(3, np.float32),))[1].tolist() == [0, 1, 0]


def test_a_product_with_bools_has_the_type_that_it_has_in_jax():
    mask = jnp.asarray(MASK)

    assert ((mask * 2.5).dtype, (mask * 2.5).weak_type) == (jnp.float32, True)
    assert (mask * 3).dtype == (mask * mask.astype(int)).dtype == jnp.int32
    assert (mask[:, None] * HARD).shape == (3, 3)


def test_python_bools_and_converted_bools_act_as_factors():
    hard = jnp.asarray(HARD)

    assert np.isnan(False * hard)[:2].all()
    assert np.isnan(jnp.asarray(MASK).astype(jnp.float32) * hard)[:2].all()


INTEGERS = np.arange(3, dtype=np.uint8)
OF_JAX_0_10_2 = {
    "product": (lambda x: x * -1, [0, 255, 254]),
    "sum": (lambda x: x + 300, [44, 45, 46]),
    "choice": (lambda x: jnp.where(x > 1, x, -1), [255, 255, 2]),
    "extremum": (lambda x: jnp.maximum(x, -1), [255, 255, 255]),
    "update": (lambda x: x.at[0].set(-1), [255, 1, 2]),
    "bounds": (lambda x: jnp.clip(x, -1, 2), [2, 2, 2]),
    "signed": (lambda x: x.astype(jnp.int8) + 1000, [-24, -23, -22]),
}


@pytest.mark.parametrize("name", OF_JAX_0_10_2)
def test_a_python_integer_wraps_with_an_array_of_fewer_bits(name: str):
    function, expected = OF_JAX_0_10_2[name]
    x = jnp.asarray(INTEGERS)

    assert function(x).tolist() == expected
    assert jax.jit(function)(x).tolist() == expected
    assert jax.vmap(function)(x[None])[0].tolist() == expected


def test_an_array_is_not_made_of_an_integer_that_its_dtype_cannot_hold():
    for make in (jnp.asarray, jnp.array):
        with pytest.raises(OverflowError):
            make(-1, "uint8")
        with pytest.raises(OverflowError):
            make([-1], "uint8")
    with pytest.raises(OverflowError):
        _ = jnp.int32(1) + 2**40
