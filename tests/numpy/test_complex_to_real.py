"""Conversions of complex numbers to real ones, which a setting allows where a user asks for them.

Refused by default; under complex_to_real="warned", as in NumPy and JAX, they warn and give the real
part. What computes in a dtype still refuses: the real part of a sum is not what `var` would sum up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.errors import DtypeError
from tests.support.close import same

REAL = ("int8", "uint8", "int32", "float16", "float32", "float64")
WAYS: dict[str, Callable[[Any, str], Any]] = {
    "method": lambda z, dtype: z.astype(dtype),
    "astype": lambda z, dtype: rnp.astype(z, dtype),
    "asarray": lambda z, dtype: rnp.asarray(z, dtype=dtype),
    "array": lambda z, dtype: rnp.array(z, dtype=dtype),
    "convert_element_type": lambda z, dtype: lax.convert_element_type(z, dtype),
    "jit": lambda z, dtype: rune.jit(lambda z: z.astype(dtype))(z),
    "vmap": lambda z, dtype: rune.vmap(lambda z: z.astype(dtype))(z),
}
warns = pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part .*take .real first")


def numbers(*shape: int) -> np.ndarray:
    flat = np.arange(1, 1 + np.prod(shape))
    return (flat - 2.5 * 1j * flat).astype(np.complex64).reshape(shape)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", REAL)
def test_the_real_part_is_what_numpy_gives(way: str, dtype: str):
    with rune.configure(complex_to_real="warned"):
        for shape in ((1,), (3,), (5, 7), (2, 0)):
            z = numbers(*shape)
            with warns:
                same(np.real(z).astype(dtype), np.asarray(WAYS[way](rnp.asarray(z), dtype)))


@pytest.mark.parametrize("value", [np.array([1 + 2j, 3 - 4j]), np.complex64(1 + 2j)], ids=["array", "scalar"])
def test_numbers_of_numpy_are_converted_as_numpy_does(value: Any):
    with rune.configure(complex_to_real="warned"), warns:
        same(np.real(value).astype(np.float32), np.asarray(rnp.asarray(value, dtype="float32")))


def test_the_warning_names_the_line_of_the_user():
    with rune.configure(complex_to_real="warned"), warns as caught:
        rnp.asarray(numbers(3)).astype("float32")

    assert caught[0].filename == __file__


def test_the_cotangent_is_that_of_the_real_part():
    """jax 0.10.2: jax.vjp(lambda z: z.astype(jnp.float32), z)[1](ct) is ct + 0j."""
    with rune.configure(complex_to_real="warned"), warns:
        _, pull = rune.vjp(lambda z: z.astype("float32"), rnp.asarray(numbers(3)))

    same(np.array([2, -1, 0], np.complex64), np.asarray(pull(rnp.array([2.0, -1.0, 0.0]))[0]))


def test_truth_counts_the_imaginary_part_and_needs_no_warning():
    with rune.configure(complex_to_real="warned"), warnings.catch_warnings():
        warnings.simplefilter("error")
        same(np.array([True, False]), np.asarray(rnp.array([2j, 0j]).astype("bool")))


@pytest.mark.parametrize("way", WAYS)
def test_an_imaginary_part_is_kept_unless_the_setting_allows_it(way: str):
    with pytest.raises(DtypeError, match="the imaginary part would be lost"):
        WAYS[way](rnp.asarray(numbers(3)), "float32")


COMPUTING: dict[str, Callable[[Any], Any]] = {
    "sum": lambda z: rnp.sum(z, dtype="float32"),
    "mean": lambda z: rnp.mean(z, dtype="float32"),
    "var": lambda z: rnp.var(z, dtype="float32"),
    "std": lambda z: rnp.std(z, dtype="float32"),
    "cumprod": lambda z: rnp.cumprod(z, dtype="float32"),
    "dot": lambda z: rnp.dot(z, z, preferred_element_type="float32"),
    "einsum": lambda z: rnp.einsum("i,i", z, z, preferred_element_type="float32"),
    "set": lambda z: rnp.zeros(3).at[:].set(z),
    "a Python number": lambda z: rnp.array(1 + 2j, dtype="float32"),
    "a list": lambda z: rnp.array([1 + 2j], dtype="float32"),
}


@pytest.mark.parametrize("name", COMPUTING)
def test_what_computes_in_a_dtype_refuses_complex_numbers_under_the_setting_too(name: str):
    with rune.configure(complex_to_real="warned"), pytest.raises(TypeError, match="the imaginary part would be lost"):
        COMPUTING[name](rnp.asarray(numbers(3)))
