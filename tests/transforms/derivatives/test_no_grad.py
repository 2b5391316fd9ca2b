"""no_grad: a block whose results are constants of every derivative."""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.transforms.derivatives.linearize import linearize_flat


def scaled(x):
    with rune.no_grad():
        scale = rune.jit(lambda y: y * x)(x)
    return scale * x


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit])
def test_values_computed_in_the_block_are_constants_of_derivatives(wrap):
    assert float(rune.grad(wrap(scaled))(3.0)) == 9
    assert float(wrap(rune.grad(scaled))(3.0)) == 9
    assert float(rune.jvp(wrap(scaled), (3.0,), (1.0,))[1]) == 9


def test_it_holds_at_every_level_of_nested_derivatives():
    assert float(rune.grad(rune.grad(scaled))(3.0)) == 0


def test_values_are_the_same_and_jit_needs_no_second_trace():
    program = rune.jit(scaled)

    with rune.counting() as counts:
        inside, outside = _inside(program, 3.0), program(3.0)

    assert float(inside) == float(outside) == 27
    assert counts.traces <= 2  # one of scaled, one of the function inside it


def _inside(function, x):
    with rune.no_grad():
        return function(x)


def waves(x):
    return rnp.sin(rnp.exp(x)) * x


def stopped_waves(x):
    with rune.no_grad():
        return waves(x)


def residuals(function):
    """How many values are kept for the derivative of x + function(x)."""
    _, linear = linearize_flat(lambda x: [x + function(x)], [rnp.ones(8)], [True])
    return len(linear.residuals)


def test_no_residual_is_kept():
    assert residuals(waves) > 0
    assert residuals(stopped_waves) == 0
    np.testing.assert_array_equal(rune.grad(lambda x: (x + stopped_waves(x)).sum())(rnp.ones(8)), np.ones(8))


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
