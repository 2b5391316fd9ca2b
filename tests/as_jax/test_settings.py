"""Where JAX's rules differ from rune's on purpose, programs written for JAX have JAX's."""

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
def test_a_python_integer_wraps_beside_an_array_of_fewer_bits(name: str):
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
