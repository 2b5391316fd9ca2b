"""fwd_and_bwd gives what vjp gives, by two functions that are compiled once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError

X, Y = rnp.arange(3.0) + 1, rnp.arange(3.0) - 1


def product(x: rune.Array, y: rune.Array) -> rune.Array:
    return rnp.sin(x) * y


@pytest.mark.parametrize("jitted", [True, False])
def test_both_passes_together_are_vjp(jitted: bool):
    forward, backward = rune.fwd_and_bwd(product, (1, 0), jitted=jitted)

    z, residuals = forward(X, Y)
    dy, dx = backward(residuals, 2 * rnp.ones(3))

    np.testing.assert_allclose(z, np.sin(X) * Y, rtol=1e-6)
    np.testing.assert_allclose(dx, 2 * np.cos(X) * Y, rtol=1e-6)
    np.testing.assert_allclose(dy, 2 * np.sin(X), rtol=1e-6)


def test_one_number_gives_one_cotangent_and_aux_is_the_last_result():
    forward, backward = rune.fwd_and_bwd(lambda x, y: (product(x, y), x + y), -1, has_aux=True)

    _, residuals, aux = forward(X, Y)

    np.testing.assert_allclose(backward(residuals, rnp.ones(3)), np.sin(X), rtol=1e-6)
    np.testing.assert_array_equal(aux, X + Y)


def test_later_calls_compile_nothing():
    passes: Any = rune.fwd_and_bwd(product, (0, 1))
    forward, backward = passes
    for scale in (1.0, 2.0, 3.0):
        z, residuals = forward(scale * X, Y)
        backward(residuals, z)

    assert (forward.cache_size(), backward.cache_size()) == (1, 1)


def test_a_missing_argument_is_refused_by_number():
    forward, _ = rune.fwd_and_bwd(product, 2)

    with pytest.raises(ArgumentError, match="cannot differentiate argument 2"):
        forward(X, Y)
