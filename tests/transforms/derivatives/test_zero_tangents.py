"""Zero tangents and cotangents are arrays of their value's dtype, also of rank 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp


def flat(x: Any) -> Any:
    """A function with derivative zero."""
    return rnp.sum(rnp.sign(x))


ZEROS: dict[str, Callable[[Any], Any]] = {
    "jvp": lambda x: rune.jvp(flat, (x,), (x,))[1],
    "jvp of a constant": lambda x: rune.jvp(lambda v: rnp.ones((), x.dtype), (x,), (x,))[1],
    "linearize": lambda x: rune.linearize(flat, x)[1](x),
    "grad": lambda x: rune.grad(flat)(rnp.sum(x)),
    "vjp": lambda x: rune.vjp(lambda v: rnp.sum(x), rnp.sum(x))[1](rnp.sum(x))[0],
}


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", ZEROS)
def test_a_zero_is_an_array_of_its_values_dtype(name: str, dtype: str):
    x = rnp.ones(2, dtype)

    zero = ZEROS[name](x)

    assert isinstance(zero, rnp.ndarray)
    assert (zero.shape, zero.dtype, str(zero)) == ((), x.dtype, "0.0")


@pytest.mark.parametrize("name", ["jvp", "linearize"])
def test_a_derivative_of_a_zero_keeps_its_dtype(name: str):
    x = rnp.ones(2, "f64")

    value, tangent = rune.jvp(ZEROS[name], (x,), (x,))

    assert value.dtype == tangent.dtype == np.float64
    assert (value + rnp.ones((), "f64")).dtype == np.float64


def test_a_zero_tangent_that_a_custom_rule_is_given_keeps_its_dtype():
    dtypes_of_zeros = []

    @rune.custom_jvp
    def product(x: Any, y: Any) -> Any:
        return x * y

    @product.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        dtypes_of_zeros.append((tangents[1] * 1).dtype)
        return product(*primals), primals[1] * tangents[0] + primals[0] * tangents[1]

    one = rnp.ones((), "f64")
    _, tangent = rune.jvp(lambda x: product(x, one), (one,), (one,))

    assert (dtypes_of_zeros, tangent.dtype) == ([np.dtype("f8")], np.float64)
