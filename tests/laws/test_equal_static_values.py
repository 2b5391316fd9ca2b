"""Static values that Python calls equal are different values: 1, 1.0 and True, or 0.0 and -0.0.

A cache that compared them by == alone would answer for one with the program of the other. Each law
asks for a value after its equal ones, in every way in which a Python value reaches a program.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import extend
from rune.core.value_keys import Parameters, value_key

GROUPS: dict[str, tuple[Any, ...]] = {
    "ones": (1, 1.0, True, 1 + 0j, np.float32(1), np.int32(1)),
    "zeros": (0.0, -0.0, 0, False),
    "complex zeros": (0j, complex(0.0, -0.0), complex(-0.0, 0.0)),
    "NumPy's zeros": (np.float32(0.0), np.float32(-0.0), np.float64(-0.0)),
    "tuples": ((1, 0.0), (1.0, 0.0), (1, -0.0), (True, 0.0)),
    "nested tuples": (("a", (0.0,)), ("a", (-0.0,))),
    "sets": (frozenset({1}), frozenset({1.0}), frozenset({True})),
}
TEXTS = {repr(value): float(number) for number, value in enumerate(v for group in GROUPS.values() for v in group)}
X = rnp.zeros(2)


def number(value: object) -> float:
    """A number for each value, which no two of them share."""
    return TEXTS[repr(value)]


def by_jit(jit: Callable[..., Any] = rune.jit) -> Callable[[Any], Any]:
    function = jit(lambda x, value: x + number(value), static_argnums=1)
    return lambda value: function(X, value)


def by_name() -> Callable[[Any], Any]:
    function = rune.jit(lambda x, *, value: x + number(value), static_argnames="value")
    return lambda value: function(X, value=value)


def by_operation(transform: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[[Any], Any]:
    operation = extend.primitive(
        "coded",
        types=lambda x, *, value: x,
        meaning=lambda x, *, value: x + np.float32(number(value)),
        batch=extend.leading,
    )
    return lambda value: transform(lambda x: operation(x, value=value))(X)


def by_operation_with_expansion() -> Callable[[Any], Any]:
    operation = extend.primitive("expanded", expand=lambda x, *, value: x + number(value))
    return lambda value: rune.jit(lambda x: operation(x, value=value))(X)


def by_custom_rule() -> Callable[[Any], Any]:
    function = rune.custom_jvp(lambda value, x: x + number(value), nondiff_argnums=(0,))
    function.defjvp(lambda value, primals, tangents: (function(value, *primals), tangents[0] * number(value)))
    return lambda value: rune.jit(rune.grad(lambda x: function(value, x)))(0.0) + X


WAYS: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "a static argument of jit": by_jit,
    "a static argument by name": by_name,
    "a parameter of an operation": lambda: by_operation(lambda f: f),
    "a parameter in a jit": lambda: by_operation(rune.jit),
    "a parameter under vmap": lambda: by_operation(rune.vmap),
    "a parameter of an expansion": by_operation_with_expansion,
    "an argument of a custom rule": by_custom_rule,
}


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("way", WAYS)
def test_equal_values_of_other_types_or_signs_are_other_values(way: str, group: str):
    call = WAYS[way]()

    answers = [float(np.asarray(call(value))[0]) for value in GROUPS[group]]

    assert answers == [number(value) for value in GROUPS[group]]


def test_two_equal_but_different_parameters_in_one_program_stay_two():
    operation = extend.primitive(
        "signed", types=lambda x, *, value: x, meaning=lambda x, *, value: np.copysign(x, np.float32(value))
    )

    plus, minus = rune.jit(lambda x: (operation(x, value=0.0), operation(x, value=-0.0)))(rnp.ones(2))

    assert [*np.asarray(plus)] == [1, 1]
    assert [*np.asarray(minus)] == [-1, -1]


@pytest.mark.parametrize("value", [1, 0.0, float("nan"), (1, (2.0,)), frozenset({1, 2}), np.float32(3), "a", None])
def test_a_value_has_the_key_of_its_copy(value: Any):
    copy = pickle.loads(pickle.dumps(value))

    assert value_key(value) == value_key(copy)
    assert hash(Parameters([("v", value)])) == hash(Parameters([("v", copy)]))
    assert Parameters([("v", value)]) == Parameters([("v", copy)])
