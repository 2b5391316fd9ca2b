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
