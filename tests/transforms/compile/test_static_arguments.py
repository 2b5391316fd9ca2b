"""Arguments that jit takes by number or by name: only those that the function has."""

from __future__ import annotations

import functools
from typing import Any

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


def test_a_name_marks_an_argument_that_is_passed_by_position():
    f = rune.jit(lambda x, power: x if isinstance(power, int) else -x, static_argnames="power")

    same(np.float32(3.0), f(3.0, 2))
    same(np.float32(3.0), f(3.0, power=2))


@pytest.mark.parametrize("where", [{"static_argnames": "power"}, {"static_argnums": 1}])
def test_a_mark_before_any_number_of_arguments_holds_by_position_and_by_name(where: dict[str, Any]):
    def f(x: float, power: int = 3, *more: float) -> float:
        return x if isinstance(power, int) and not any(isinstance(m, float) for m in more) else -x

    same(np.float32(3.0), rune.jit(f, **where)(3.0, 2))
    same(np.float32(3.0), rune.jit(f, **where)(3.0, power=2))
    same(np.float32(3.0), rune.jit(f, **where)(3.0, 2, 4.0, 5.0))


def test_a_number_from_the_end_counts_all_arguments_of_a_call():
    f = rune.jit(lambda x, *more: x if isinstance(more[-1], int) else -x, static_argnums=-1)

    same(np.float32(3.0), f(3.0, 2))
    same(np.float32(3.0), f(3.0, 2.0, 2))


@pytest.mark.parametrize("number", [1, -1])
def test_a_number_marks_an_argument_that_is_passed_by_name(number: int):
    f = rune.jit(lambda x, power: x if isinstance(power, int) else -x, static_argnums=number)

    same(np.float32(3.0), f(3.0, 2))
    same(np.float32(3.0), f(3.0, power=2))


def test_numbers_and_names_together_say_all():
    f = rune.jit(lambda x, a, b: (isinstance(a, int), isinstance(b, int)), static_argnums=2, static_argnames="a")

    assert [bool(v) for v in f(1.0, 2, 3)] == [False, True]
    assert [bool(v) for v in f(1.0, a=2, b=3)] == [True, False]


def test_a_name_is_not_matched_to_a_position_by_a_misleading_signature():
    def inner(x: float, mode: str) -> float:
        return x if mode == "same" else -x

    @functools.wraps(inner)  # its signature is that of the other
    def outer(first: int, second: float, *args: object, **kwargs: object) -> float:
        return second + inner(*args, **kwargs)  # type: ignore[arg-type]

    f = rune.jit(outer, static_argnums=(0,), static_argnames="mode")

    same(np.float32(3.0), f(1, 1.0, 2.0, mode="same"))
