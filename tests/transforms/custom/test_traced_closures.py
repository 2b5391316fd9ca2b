"""Custom rules that close over a traced value, in loops, branches and jitted functions.

The stored gradients are those of jax 0.10.2: jitted ones of loops, and eager ones of branches and
jitted functions, which it fails to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from tests.support.close import close

X = np.array([1.0, 2.0, 3.0], np.float32)


def waved(y: Any) -> Callable[[Any], Any]:
    """z ↦ z sin(y cos z), whose rules for cotangents close over y."""
    factor = lambda z: rnp.cos(z) * y  # noqa: E731
    function = rune.custom_vjp(lambda z: z * rnp.sin(factor(z)))
    function.defvjp(lambda z: (factor(z), (z, factor(z))), lambda res, ct: (ct * res[1] + res[0],))
    return function


def pushed(y: Any) -> Callable[[Any], Any]:
    """z ↦ z sin(y z), whose rule for tangents closes over y: slope 3 y."""
    function = rune.custom_jvp(lambda z: z * rnp.sin(z * y))
    function.defjvp(lambda p, t: (p[0] * y, t[0] * y * 3))
    return function


def scanned(g: Callable[[Any], Any], z: Any) -> Any:
    return lax.scan(lambda c, _: (g(c) * 0.1, c), z, None, length=2)[0].sum()


def looped(g: Callable[[Any], Any], z: Any) -> Any:
    return lax.fori_loop(0, 2, lambda _, c: g(c) * 0.1, z).sum()


WRAPS: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "a scan": (scanned, [1.0743, 1.9784, 3.003]),
    "a loop": (looped, [1.0743, 1.9784, 3.003]),
    "a checkpoint": (lambda g, z: rune.checkpoint(lambda z: scanned(g, z))(z), [1.0743, 1.9784, 3.003]),
    "a branch": (lambda g, z: lax.cond(z.sum() > 0, g, lambda v: v, z).sum(), [2.6209, 0.7516, 0.03]),
    "a jitted function": (lambda g, z: rune.jit(g)(z).sum(), [2.6209, 0.7516, 0.03]),
}


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_rule_for_cotangents_closes_over_a_traced_value(wrap: str):
    function, expected = WRAPS[wrap]
    eager = lambda x, y: rune.grad(lambda z: function(waved(y), z))(x)  # noqa: E731
    compiled = rune.jit(eager)

    # The second compiled call is of the same trace.
    for gradient in (eager, compiled, compiled, rune.jit(compiled)):
        np.testing.assert_allclose(gradient(X, 3.0), expected, rtol=0, atol=6e-5)  # four digits are stored


def test_a_rule_for_tangents_closes_over_a_traced_value():
    gradient = rune.jit(lambda x, y: rune.grad(lambda z: scanned(pushed(y), z))(x))

    for y, slope in ((3.0, 0.81), (4.0, 1.44)):
        close(gradient(X, y), np.full(3, slope, np.float32), ulps=4, why="products in another order")


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_gradient_may_be_differentiated_again(wrap: str):
    def total(x: Any, y: Any) -> Any:
        return rune.jit(lambda x, y: rune.grad(lambda z: WRAPS[wrap][0](waved(y), z))(x))(x, y).sum()

    second = rune.jit(rune.grad(total))(X, 3.0)

    with rune.enable_x64(True):
        steps = np.eye(3) * 1e-6
        differences = [(float(total(X + s, 3.0)) - float(total(X - s, 3.0))) / 2e-6 for s in steps]
    np.testing.assert_allclose(second, differences, rtol=1e-4, atol=1e-4)


def test_a_rule_closes_over_a_value_with_lanes():
    gradient = rune.jit(rune.vmap(lambda x, y: rune.grad(lambda z: scanned(pushed(y), z))(x), (None, 0)))

    close(
        gradient(X, np.array([3, 4], np.float32))[:, 0],
        np.array([0.81, 1.44], np.float32),
        ulps=4,
        why="products in another order",
    )


def test_a_rule_within_a_step_closes_over_the_carry():
    def step(c: Any, x: Any) -> tuple[Any, Any]:
        return rune.grad(lambda z: scanned(pushed(c.sum()), z))(c) * x, c

    carry = rune.jit(lambda x: lax.scan(step, x, rnp.ones(2))[0])(X)

    sums = [6.0, 3 * 0.09 * 36]  # a step gives (3 * 0.1 * the sum of the carry)**2 in each place
    close(carry, np.full(3, 0.09 * sums[1] ** 2, np.float32), ulps=8, why="products in another order")
