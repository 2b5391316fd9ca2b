"""custom_root: what its three functions close over may be differentiated, by any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.errors import ArgumentError
from tests.support.close import near


def newton(f: Any, x: Any) -> Any:
    return lax.fori_loop(0, 20, lambda i, v: v - f(v) / (2 * v), x)


# √a, with `a` closed over by the residual and by each of the others in turn.
ROOTS: dict[str, Callable[[Any], Any]] = {
    "residual": lambda a: lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0)),
    "guess": lambda a: lax.custom_root(lambda x: x * x - a, a, newton, lambda g, y: y / g(1.0)),
    "solve": lambda a: lax.custom_root(lambda x: x * x - a, 1.0, lambda f, x: rnp.sqrt(a), lambda g, y: y / g(1.0)),
    "tangent_solve": lambda a: lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / (2 * rnp.sqrt(a))),
}
# What each does to √x at 4, whose derivatives are 1/4 and -1/32.
WAYS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "value": (lambda f: f, 2.0),
    "jit": (rune.jit, 2.0),
    "vmap": (lambda f: lambda a: rune.vmap(f)(rnp.stack([a, a])), [2.0, 2.0]),
    "grad": (rune.grad, 0.25),
    "jacfwd": (rune.jacfwd, 0.25),
    "second": (lambda f: rune.grad(rune.grad(f)), -1 / 32),
    "jit of grad": (lambda f: rune.jit(rune.grad(f)), 0.25),
    "grad of jit": (lambda f: rune.grad(rune.jit(f)), 0.25),
    "vmap of grad": (lambda f: lambda a: rune.vmap(rune.grad(f))(rnp.stack([a, a])), [0.25, 0.25]),
    "grad of vmap": (lambda f: rune.grad(lambda a: rune.vmap(f)(rnp.stack([a, a])).sum()), 0.5),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", ROOTS)
def test_the_root_can_be_differentiated_in_values_that_the_functions_close_over(place: str, way: str):
    transform, expected = WAYS[way]

    result = transform(ROOTS[place])(np.float32(4.0))

    near(np.array(expected, np.float32), result, relative=1e-6, why="f32")


@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_a_root_in_64_bits_has_derivatives_in_64_bits(shape: tuple[int, ...]):
    a = rnp.full(shape, 4.0, "float64")

    _, tangent = rune.jvp(lambda a: lax.custom_root(lambda x: x * x - a, a, newton, _divided), (a,), (a,))

    near(np.full(shape, 1.0), tangent, relative=1e-14, why="f64")


def _divided(linear: Any, y: Any) -> Any:
    return y / linear(rnp.ones_like(y))


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_auxiliary_values_are_constants_of_any_dtype(wrap: Any):
    key, wide = rune.random.key(3), np.float64(1 / 3)

    def root(a: Any) -> Any:
        def solve(f: Any, x: Any) -> Any:
            return newton(f, x), {"key": key, "wide": rnp.asarray(wide, "float64"), "count": np.int8(7)}

        return lax.custom_root(lambda x: x * x - a, 1.0, solve, lambda g, y: y / g(1.0), has_aux=True)

    slope, aux = wrap(rune.grad(root, has_aux=True))(np.float32(4.0))

    near(np.float32(0.25), slope, relative=1e-6, why="f32")
    assert (aux["key"] == key, float(aux["wide"]), aux["count"].dtype) == (True, 1 / 3, np.int8)


def test_a_value_that_the_solver_closes_over_does_not_move_the_root():
    def root(a: Any) -> Any:
        return lax.custom_root(lambda x: x * x - 9.0, 1.0, lambda f, x: newton(f, x + a), lambda g, y: y / g(1.0))

    near(np.float32(3.0), root(4.0), relative=1e-6, why="f32")
    assert float(rune.grad(root)(4.0)) == 0.0


@pytest.mark.parametrize("f", [lambda x: (x, x), lambda x: {"x": x}, lambda x: rnp.stack([x, x])])
@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_a_residual_that_is_not_like_x_is_refused(f: Any, wrap: Any):
    with pytest.raises(ArgumentError, match=r"custom_root: cannot find where f is 0 \(x is .* of shapes \[\(\)\], f"):
        wrap(lambda x: lax.custom_root(f, x, lambda f, x: x, lambda g, y: y))(1.0)
