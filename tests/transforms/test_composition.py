"""Transformations in every order: the same derivative, whatever jit, vmap, jvp and grad surround.

Each transformation is lifted to a map of scalar functions, so that every order has a meaning that
can be written down: `lanes` turns f into x -> f(x) + f(2x) + f(3x), the derivatives turn f into
f'. A derivative outside `lanes` multiplies the k-th term by k.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
from rune import ops
from tests.support.arrays import array
from tests.support.close import near
from tests.support.examples import COMPILING

Scalar = Callable[[Any], Any]
LANES = array(np.array([1.0, 2.0, 3.0]))


def function(x: Any) -> Any:
    return ops.sin(x) * x


def by_jvp(f: Scalar) -> Scalar:
    return lambda x: rune.jvp(f, (x,), (ops.add(x * 0.0, np.float64(1)),))[1]


def by_linearize(f: Scalar) -> Scalar:
    return lambda x: rune.linearize(f, x)[1](ops.add(x * 0.0, np.float64(1)))


def by_jacfwd(f: Scalar) -> Scalar:
    return lambda x: rune.jacfwd(f)(x)


def lanes(f: Scalar) -> Scalar:
    return lambda x: rune.vmap(lambda k: f(k * x))(LANES).sum()


DERIVATIVES: dict[str, Any] = {"grad": rune.grad, "jvp": by_jvp, "linearize": by_linearize, "jacfwd": by_jacfwd}
ALL: dict[str, Any] = {"jit": rune.jit, "vmap": lanes, **DERIVATIVES}


def derivative(order: int, x: float) -> float:
    """The derivative of sin(x) x: x sin(x + nπ/2) + n sin(x + (n-1)π/2)."""
    return x * math.sin(x + order * math.pi / 2) + order * math.sin(x + (order - 1) * math.pi / 2)


def expected(names: tuple[str, ...], x: float) -> np.ndarray:
    """The function transformed by `names`, outermost first: a sum of w f⁽ⁿ⁾(s x)."""
    terms = [(1.0, 1.0, 0)]
    for name in reversed(names):
        if name in DERIVATIVES:
            terms = [(w * s, s, n + 1) for w, s, n in terms]
        if name == "vmap":
            terms = [(w, s * k, n) for w, s, n in terms for k in (1.0, 2.0, 3.0)]
    return np.array(sum(w * derivative(n, s * x) for w, s, n in terms))


def composed(names: tuple[str, ...]) -> Scalar:
    """The transformations applied, the last name innermost."""
    derivative = function
    for name in reversed(names):
        derivative = ALL[name](derivative)
    return derivative


ORDERS = list(itertools.permutations(("jit", "grad", "vmap", "jvp")))


@pytest.mark.parametrize("names", ORDERS, ids="-".join)
def test_all_orders_of_four_transformations_agree(names: tuple[str, ...]):
    x = 0.7

    result = composed(names)(array(np.float64(x)))

    near(expected(names, x), result, relative=1e-12, why="f64")


@pytest.mark.parametrize("names", ORDERS, ids="-".join)
def test_all_orders_are_computed_by_compiled_code_where_jit_is_outside(names: tuple[str, ...]):
    x = array(np.float64(0.7))
    program = rune.jit(composed(names))

    with rune.counting() as first:
        program(x)
    with rune.counting() as second:
        program(x)

    assert (first.compiles, first.runs) == (1, 1)
    assert (second.traces, second.compiles, second.runs) == (0, 0, 1)


@given(st.lists(st.sampled_from(sorted(ALL)), max_size=4), st.floats(0.1, 1.0))
def test_any_chain_of_transformations_agrees(names: list[str], x: float):
    result = composed(tuple(names))(array(np.float64(x)))

    near(expected(tuple(names), x), result, relative=1e-9, why="f64, sums of powers of 3")


@COMPILING
@given(st.lists(st.sampled_from(sorted(ALL)), min_size=1, max_size=4), st.data())
def test_putting_jit_anywhere_changes_nothing(names: list[str], data: st.DataObject):
    chain = list(names)
    chain.insert(data.draw(st.integers(0, len(chain))), "jit")
    x = array(np.float64(0.3))

    near(composed(tuple(names))(x), composed(tuple(chain))(x), relative=1e-9, why="f64")


def test_vmap_of_jvp_equals_jvp_of_vmap():
    x, v = LANES, array(np.array([0.5, -1.0, 2.0]))

    inside = rune.vmap(lambda a, b: rune.jvp(function, (a,), (b,))[1])(x, v)
    outside = rune.jvp(rune.vmap(function), (x,), (v,))[1]

    near(inside, outside, relative=1e-15, why="the same operations")


def test_a_chain_of_jits_compiles_once():
    f = function
    for _ in range(5):
        f = rune.jit(f)

    with rune.counting() as counts:
        f(array(np.float64(0.5)))

    assert (counts.traces, counts.compiles, counts.runs) == (5, 1, 1)
