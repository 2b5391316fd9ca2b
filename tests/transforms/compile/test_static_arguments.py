"""Arguments that jit is told of by number or by name: only those that a function can be given."""

from __future__ import annotations

import numpy as np
import pytest

import rune
from rune.errors import ArgumentError
from tests.support.close import same


@pytest.mark.parametrize("where", ["static_argnums", "donate_argnums"])
@pytest.mark.parametrize("number", [1, -2])
def test_a_number_that_no_argument_has_is_refused(where: str, number: int):
    with pytest.raises(ArgumentError, match=rf"jit: cannot take argument {number} .*takes x"):
        rune.jit(lambda x: x, **{where: number})  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["static_argnames", "donate_argnames"])
def test_a_name_that_no_argument_has_is_refused(where: str):
    with pytest.raises(ArgumentError, match=r"jit: cannot take argument 'typo' .*takes x"):
        rune.jit(lambda x: x, **{where: "typo"})  # type: ignore[arg-type]


def test_a_function_of_any_arguments_has_every_number_and_name():
    @rune.jit(static_argnames="mode", donate_argnums=7)
    def f(*xs: float, **more: str) -> float:
        return xs[7] if more["mode"] == "last" else xs[0]

    same(np.float32(7.0), f(*map(float, range(8)), mode="last"))


def test_a_function_without_arguments_has_no_number():
    with pytest.raises(ArgumentError, match=r"cannot take argument 0 .*takes none"):
        rune.jit(lambda: 1.0, static_argnums=0)
