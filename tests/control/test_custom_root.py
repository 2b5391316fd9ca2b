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


# What the residual, the solver and the tangent solver close over beside p: nothing of it has a
# derivative, and all of it is traced where the program around the root is. The root is 2 p.
CONSTANTS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "an integer": (lambda k: k, np.uint8(2)),
    "a truth value": (lambda k: rnp.where(k, 2.0, 5.0), np.bool_(True)),
    "an index": (lambda k: rnp.arange(4.0)[k], np.int32(2)),
    "bits of a key": (lambda k: 2 + 0 * rune.random.normal(rune.random.key(k)), np.uint32(7)),
}
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "jit": rune.jit,
    "checkpoint": rune.checkpoint,
    "map": lambda f: lambda p, k: lax.map(lambda q: f(p, q), k[None])[0],
    "cond": lambda f: lambda p, k: lax.cond(k > 0, f, f, p, k),
}
SLOPES: dict[str, Callable[[Any], Any]] = {
    "grad": rune.grad,
    "jit of grad": lambda f: rune.jit(rune.grad(f)),
    "jacfwd": rune.jacfwd,
    "lanes": lambda f: lambda p, k: rune.vmap(rune.grad(f))(p[None], k[None])[0],
}


@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("constant", CONSTANTS)
def test_programs_with_a_root_are_differentiated_whatever_its_functions_close_over(
    constant: str, program: str, slope: str
):
    factor, k = CONSTANTS[constant]

    def root(p: Any, k: Any) -> Any:
        return lax.custom_root(
            lambda x: (x - factor(k) * p) * factor(k), p, lambda f, x: factor(k) * p, lambda g, y: y / factor(k)
        )

    result = SLOPES[slope](PROGRAMS[program](root))(rnp.asarray(3.0), rnp.asarray(k))

    np.testing.assert_allclose(result, 2.0, rtol=1e-6)
