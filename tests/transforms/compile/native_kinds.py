"""Kinds of calls that native code makes, and how tests see that it does."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import tree
from tests.support.arrays import array
from tests.support.work import calls

X = array([0.5, 1.0, 2.0])
Y = array([[1.0, 2.0, 3.0]])
Pair = namedtuple("Pair", "a b")


@tree.register_dataclass
@dataclass
class Layer:
    w: Any
    b: Any


def is_native(call: Callable[[], Any]) -> bool:
    """Whether a call runs no function of Python's."""
    return calls(call) == calls(lambda: None)


def warm(f: Any, *args: Any, **kwargs: Any) -> Any:
    """The function after two calls: the second one describes its kind."""
    f(*args, **kwargs)
    f(*args, **kwargs)
    return f


def leaves_of(values: Any) -> list[Any]:
    return [np.asarray(x) for x in tree.leaves(values)]


W = {"w": X, "b": (Y, [X, None])}
KINDS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], dict[str, Any]]] = {
    "arrays": (lambda a, b: a + b, (X, Y), {}, {}),
    "one array twice": (lambda a, b: a * b, (X, X), {}, {}),
    "no arguments": (lambda: rnp.arange(3), (), {}, {}),
    "rank 0": (lambda a: a + 1.0, (array(2.0),), {}, {}),
    "empty": (lambda a: a + 1.0, (array(np.zeros((0, 3), np.float32)),), {}, {}),
    "large": (lambda a: a + 1.0, (array(np.ones((1 << 19,), np.float32)),), {}, {}),
    "with an arena": (lambda a: rnp.sin(rnp.sum(a @ a.T, 1)) @ a, (array(np.eye(9, 9)),), {}, {}),
    "a tree": (lambda p, x: tree.map(lambda leaf: leaf * x, p), (W, X), {}, {}),
    "a tuple": (lambda p: (p[1], p[0] + 1.0), ((X, Y),), {}, {}),
    "None": (lambda a, b: (a, b), (X, None), {}, {}),
    "no results": (lambda a: (), (X,), {}, {}),
    "no result": (lambda a: None, (X,), {}, {}),
    "empty results": (lambda a: {"x": [], "y": {}, "z": ((), a)}, (X,), {}, {}),
    "a float": (lambda a, s: a * s, (X, 0.1), {}, {}),
    "a whole number": (lambda a, s: a * s, (X, -3), {}, {}),
    "a truth value": (lambda a, s: rnp.where(s, a, -a), (X, True), {}, {}),
    "numbers alone": (lambda a, b, c: (a, b, c), (1.5, 2, False), {}, {}),
    "NumPy's arrays": (lambda a, b: a @ b, (np.eye(3, dtype=np.float32), X), {}, {}),
    "names": (lambda a, b, c: a * 2.0 + b - c, (X,), {"c": Y, "b": X}, {}),
    "names alone": (lambda b, a: a - b, (), {"b": X, "a": Y}, {}),
    "static": (lambda a, k: a * k, (X, 3), {}, {"static_argnums": 1}),
    "static in front": (lambda k, a: a * len(k), ("abc", X), {}, {"static_argnums": 0}),
    "static by name": (lambda a, k: a * k, (X,), {"k": 7}, {"static_argnames": "k"}),
    "symbolic": (lambda a: a * a.shape[0], (X,), {}, {"dims": {"n": (1, 9)}}),
    "a device": (lambda a: a + 1.0, (X,), {}, {"device": "cpu:0"}),
    "a bf16": (lambda a: a * 2, (array(np.ones(3), rune.dtypes.bf16),), {}, {}),
    "complex arrays": (lambda a: a * 2, (array(np.ones(3) * 1j, np.complex64),), {}, {}),
    "doubles": (lambda a: a * 2.0, (array(np.ones(3)),), {}, {}),
    "a namedtuple made": (lambda a, b: Pair(a, b), (X, Y), {}, {}),
    "a dataclass made": (lambda a, b: [Layer(a, b), a], (X, Y), {}, {}),
    "a captured array": (lambda a: a + Y, (X,), {}, {}),
}
kinds = pytest.mark.parametrize("kind", KINDS)
