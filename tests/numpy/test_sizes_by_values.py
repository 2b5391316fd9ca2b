"""Functions whose values determine the size of the result are differentiable at known values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import TracerArrayConversionError

X = rnp.array([0.0, 1.0, 3.0, 2.0, 0.0], rnp.float32)

# Each is the sum of cubes of the elements it reads; `roots` is the sum of squares of -b/a and 0.
SIZED: dict[str, Callable[[Any], Any]] = {
    "trim_zeros": lambda x: rnp.sum(rnp.trim_zeros(x) ** 3),
    "nonzero": lambda x: rnp.sum(x[rnp.nonzero(x)] ** 3),
    "flatnonzero": lambda x: rnp.sum(x[rnp.flatnonzero(x)] ** 3),
    "argwhere": lambda x: rnp.sum(x[rnp.argwhere(x)] ** 3),
    "where": lambda x: rnp.sum(x[rnp.where(x)] ** 3),
    "extract": lambda x: rnp.sum(rnp.extract(x > 0, x) ** 3),
    "compress": lambda x: rnp.sum(rnp.compress(x > 0, x) ** 3),
    "mask": lambda x: rnp.sum(x[x > 0] ** 3),
    "unique": lambda x: rnp.sum(rnp.unique(x) ** 3),
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: rune.grad(f)(X),
    "jacfwd": lambda f: rune.jacfwd(f)(X),
    "linearize": lambda f: rnp.stack([rune.linearize(f, X)[1](e) for e in rnp.eye(5)]),
    "vjp": lambda f: rune.vjp(f, X)[1](rnp.float32(1))[0],
}
SECOND: dict[str, Callable[[Any], Any]] = {
    "forward over reverse": lambda f: rune.jvp(rune.grad(f), (X,), (rnp.ones(5),))[1],
    "reverse over reverse": lambda f: rune.grad(lambda x: rnp.sum(rune.grad(f)(x)))(X),
    "forward over forward": lambda f: rune.jacfwd(lambda x: rune.jvp(f, (x,), (rnp.ones(5),))[1])(X),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SIZED)
def test_a_slope_is_that_of_what_was_read(name: str, way: str):
    np.testing.assert_allclose(WAYS[way](SIZED[name]), 3 * np.asarray(X) ** 2, rtol=1e-6)


@pytest.mark.parametrize("way", SECOND)
@pytest.mark.parametrize("name", SIZED)
def test_a_second_slope_is_that_of_what_was_read(name: str, way: str):
    np.testing.assert_allclose(SECOND[way](SIZED[name]), 6 * np.asarray(X), rtol=1e-6)


def test_roots_are_differentiated_past_leading_zeros():
    # The roots of a x + b, and one at 0: the sum of their squares is (b/a)**2.
    slopes = rune.grad(lambda p: rnp.sum(rnp.roots(p).real ** 2))(rnp.array([0.0, 2.0, 3.0, 0.0]))

    np.testing.assert_allclose(slopes[1:3], [-2 * 9 / 8, 2 * 3 / 4], rtol=1e-5)


@pytest.mark.parametrize("name", SIZED)
def test_a_value_that_is_not_known_sizes_nothing(name: str):
    with pytest.raises((TracerArrayConversionError, IndexError)):
        rune.jit(SIZED[name])(X)


CONSTANTS: dict[str, tuple[Callable[[], Any], list[float]]] = {
    "trim_zeros": (lambda: rnp.trim_zeros(np.array([0.0, 1.0, 3.0, 0.0])), [1.0, 3.0]),
    "trim_zeros of an array": (lambda: rnp.trim_zeros(X), [1.0, 3.0, 2.0]),
    "roots": (lambda: rnp.sort(rnp.roots(np.array([0.0, 1.0, -3.0, 2.0])).real), [1.0, 2.0]),
}


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("way", [lambda f: f, rune.jit, rune.vmap], ids=["eager", "compiled", "batched"])
def test_a_constant_is_sized_within_a_traced_function(way: Callable[[Any], Any], name: str):
    constant, expected = CONSTANTS[name]

    result = way(lambda y: constant() * y[..., None])(rnp.array([2.0, 3.0]))

    np.testing.assert_allclose(result, np.outer([2, 3], expected), rtol=1e-5)
