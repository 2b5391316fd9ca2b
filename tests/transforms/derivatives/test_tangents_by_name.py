"""Tangents and cotangents that are not arrays are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune.errors import TransformError

X = rnp.array(1.0)
WAYS: dict[str, Callable[[Any], Any]] = {
    "jvp": lambda t: rune.jvp(rnp.sin, (X,), (t,)),
    "jvp of jit": lambda t: rune.jvp(rune.jit(rnp.sin), (X,), (t,)),
    "linearize": lambda t: rune.linearize(rnp.sin, X)[1](t),
    "vjp": lambda t: rune.vjp(rnp.sin, X)[1](t),
    "linear_transpose": lambda t: rune.linear_transpose(lambda x: 2 * x, X)(t),
}


@pytest.mark.parametrize("tangent", ["a", object(), b"x", range(2)], ids=lambda t: type(t).__name__)
@pytest.mark.parametrize("way", WAYS)
def test_a_tangent_that_is_not_an_array_is_refused(way: str, tangent: object):
    kind = type(tangent).__name__

    with pytest.raises(TransformError, match=rf"{way.split()[0]}: cannot use {kind} as a \w*tangent"):
        WAYS[way](tangent)
