"""Libraries written against the array API standard compute with `jax.numpy`'s functions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy._lib.array_api_compat as compat  # SciPy's copy of the library

X = np.array([[0.5, -2.0, 3.0], [1.5, 0.0, -1.0], [7.0, 4.0, -0.5]], np.float32)


@pytest.mark.parametrize("way", [lambda f: f, jax.jit, jax.vmap, jax.grad], ids=["eager", "jit", "vmap", "grad"])
def test_the_namespace_of_an_array_is_jax_numpy(way):
    spaces = []

    def f(x):
        spaces.append(compat.array_namespace(x))
        return x.sum()

    way(f)(jnp.asarray(X))

    assert spaces == [jnp]


def test_the_standard_has_the_version_of_jaxs():
    assert jnp.__array_api_version__ == "2024.12"
    assert jnp.zeros(3).__array_namespace__(api_version="2024.12") is jnp
    with pytest.raises(ValueError, match="2019"):
        jnp.zeros(3).__array_namespace__(api_version="2019.12")


def test_masks_and_shapes_that_depend_on_values_are_not_promised():
    capabilities = jnp.__array_namespace_info__().capabilities()

    assert capabilities == {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}


def test_arrays_of_the_standard_are_on_no_device():
    assert jnp.__array_namespace_info__().default_device() is None


def test_the_dtypes_of_the_standard_are_there():
    info = jnp.__array_namespace_info__()

    assert info.dtypes(kind="real floating")["float32"] == info.default_dtypes()["real floating"] == np.float32
    assert info.devices()[0].name == "cpu:0"
