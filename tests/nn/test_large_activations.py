"""Activations of many elements are compiled in eager calls: one pass with the bits of `jit`."""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.nn as nn
import rune.numpy as rnp
from tests.support.close import same

SMOOTH = (
    "sigmoid",
    "softplus",
    "log_sigmoid",
    "silu",
    "mish",
    "elu",
    "celu",
    "selu",
    "gelu",
    "squareplus",
    "soft_sign",
)
LENGTH = (1 << 18) + 3


@pytest.mark.parametrize("name", SMOOTH)
def test_an_activation_of_many_elements_has_the_bits_of_compiled_code(name: str):
    x = np.linspace(-12.0, 12.0, LENGTH, dtype=np.float32)
    x[:3] = np.nan, np.inf, -np.inf
    activation = getattr(nn, name)

    same([activation(rnp.asarray(x))], [rune.jit(activation)(x)])


def test_an_activation_with_a_named_argument_is_not_compiled():
    x = np.linspace(-3.0, 3.0, LENGTH, dtype=np.float32)

    same([nn.leaky_relu(rnp.asarray(x), negative_slope=0.5)], [np.where(x >= 0, x, x * np.float32(0.5))])
