"""The check for traced values that are kept after their transformation: it fires, and is silent.

With `rune.configure(check_leaks=True)` the error comes when the transformation ends, and names the
variable that keeps the value; without it nothing happens until the value is used.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune.errors import EscapedTracerError
from tests.support.arrays import array
from tests.support.close import near, same

X = array([1.0, 2.0, 3.0])
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "jit": lambda f: rune.jit(f)(X),
    "grad": lambda f: rune.grad(lambda x: f(x).sum())(X),
    "jvp": lambda f: rune.jvp(f, (X,), (X,)),
    "vmap": lambda f: rune.vmap(f)(X),
    "checkpoint": lambda f: rune.grad(lambda x: rune.checkpoint(f)(x).sum())(X),
    "scan": lambda f: rune.scan(lambda c, x: (c, f(x)), 0.0, X),
    "make_program": lambda f: rune.make_program(f)(X),
    "eval_shape": lambda f: rune.eval_shape(f, X),
}
kept_by_the_module: list[Any] = []
pytestmark = pytest.mark.usefixtures("small_heap")


@pytest.fixture(autouse=True)
def _checked() -> Iterator[None]:
    with rune.configure(check_leaks=True):
        yield
    kept_by_the_module.clear()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_value_kept_in_a_variable_is_found_and_the_variable_named(name: str):
    values = []

    with pytest.raises(EscapedTracerError, match=r"found a traced value .* \(in values of test_leaks"):
        TRANSFORMS[name](lambda x: values.append(x) or x * 2.0)


@pytest.fixture
def _modules_seen() -> Iterator[None]:
    """The collector sees what conftest.py has hidden from it, modules among it."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("_modules_seen")
def test_a_value_kept_by_a_module_is_found():
    with pytest.raises(EscapedTracerError, match=r"in kept_by_the_module of"):
        rune.jit(lambda x: kept_by_the_module.append(x) or x)(X)


class Model:
    """Something with attributes."""

    state: Any = None


HIDING: dict[str, Callable[[Any, Any], Any]] = {
    "an attribute": lambda box, x: setattr(box, "state", x),
    "a dict in a list": lambda box, x: setattr(box, "state", [{"x": x}]),
    "a closure": lambda box, x: setattr(box, "state", lambda: x),
    "a tuple in a set of attributes": lambda box, x: box.__dict__.update(other=(x, 1)),
}


@pytest.mark.parametrize("name", HIDING)
def test_a_value_is_found_through_containers(name: str):
    box = Model()

    with pytest.raises(EscapedTracerError, match=r"\(in box of test_leaks"):
        rune.jit(lambda x: (HIDING[name](box, x), x * 2.0)[1])(X)


def test_the_line_where_the_value_was_made_is_shown():
    values: list[Any] = []

    def function(x: Any) -> Any:
        y = rnp.sin(x)  # here
        values.append(y)
        return y

    with pytest.raises(EscapedTracerError, match="# here"):
        rune.jit(function)(X)


FINE: dict[str, Callable[[], Any]] = {
    "nested": lambda: rune.jit(rune.grad(rune.jit(lambda x: rune.vmap(lambda y: rnp.sin(y) * x.sum())(x).sum())))(X),
    "aux": lambda: rune.grad(lambda x: (x.sum(), {"y": x}), has_aux=True)(X),
    "vjp": lambda: rune.vjp(rnp.sin, X)[1](X),
    "linearize": lambda: rune.linearize(rnp.sin, X)[1](X),
    "hessian": lambda: rune.hessian(lambda x: (x**3).sum())(X),
    "loops": lambda: rune.jit(rune.grad(lambda x: rune.fori_loop(0, 3, lambda i, c: rnp.sin(c), x).sum()))(X),
    "a value of the outer trace": lambda: rune.jit(lambda x: [y := rnp.sin(x), rune.grad(lambda v: (v * y).sum())(x)])(
        X
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_a_returned_value_is_not_a_leak(name: str):
    FINE[name]()


def test_a_list_that_is_emptied_in_time_does_not_leak():
    values: list[Any] = []

    def function(x: Any) -> Any:
        values.append(x * 2.0)
        return values.pop()

    same(rnp.ones(3) * 2.0, rune.jit(function)(rnp.ones(3)))


def test_an_error_of_the_user_s_is_not_hidden_by_the_check():
    values: list[Any] = []

    with pytest.raises(ZeroDivisionError):
        rune.jit(lambda x: values.append(x) or 1 / 0)(X)


def test_without_the_check_a_leak_is_found_when_it_is_used():
    values: list[Any] = []

    with rune.configure(check_leaks=False):
        rune.jit(lambda x: values.append(x) or x)(X)
    with pytest.raises(EscapedTracerError, match="after its transformation ended"):
        rnp.sin(values[0])


def test_switching_the_check_on_traces_again_so_that_it_sees_something():
    values: list[Any] = []
    f = rune.jit(lambda x: values.append(x) or x)

    with rune.configure(check_leaks=False):
        near(X, f(X), relative=0, why="exact")
    with pytest.raises(EscapedTracerError):
        f(X)
