"""no_grad: a block whose results are constants of every derivative."""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp


def scaled(x):
    with rune.no_grad():
        scale = rune.jit(lambda y: y * x)(x)
    return scale * x


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit])
def test_what_is_computed_in_the_block_is_a_constant_of_derivatives(wrap):
    assert float(rune.grad(wrap(scaled))(3.0)) == 9
    assert float(wrap(rune.grad(scaled))(3.0)) == 9
    assert float(rune.jvp(wrap(scaled), (3.0,), (1.0,))[1]) == 9


def test_it_holds_at_every_level_of_nested_derivatives():
    assert float(rune.grad(rune.grad(scaled))(3.0)) == 0


def test_values_are_the_same_and_jit_needs_no_second_trace():
    jitted = rune.jit(scaled)

    with rune.counting() as seen:
        inside, outside = _inside(jitted, 3.0), jitted(3.0)

    assert float(inside) == float(outside) == 27
    assert seen.traces <= 2  # one of scaled, one of the function inside it


def _inside(function, x):
    with rune.no_grad():
        return function(x)


def test_no_residual_is_kept():
    def loss(x):
        with rune.no_grad():
            y = rnp.sin(rnp.exp(x)) * x
        return (x + y).sum()

    residuals = rune.vjp(loss, rnp.ones(8))[1]

    assert "sin" not in str(residuals)
    np.testing.assert_array_equal(residuals(rnp.float32(1.0))[0], np.ones(8))


def test_derivatives_of_other_things_are_taken_inside_the_block():
    def loss(x):
        with rune.no_grad():
            slope = rune.grad(lambda y: y**3)(x)
        return slope * x

    assert float(rune.grad(loss)(2.0)) == 12


def test_a_draw_of_lanes_is_the_same_inside_the_block():
    def lane(x):
        with rune.no_grad():
            return x + rune.random.uniform()

    with rune.random.seed(0):
        inside = rune.vmap(lane)(rnp.zeros(3))
    with rune.random.seed(0):
        outside = rune.vmap(lambda x: x + rune.random.uniform())(rnp.zeros(3))

    np.testing.assert_array_equal(inside, outside)
