"""A property of a program and all programs in it is computed once for each program."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune.core import axes, side_effects
from rune.core.program import Equation, Program


def nested(depth: int) -> Callable[[Any], Any]:
    """Loops within loops."""
    if depth == 0:
        return lambda x: rnp.sin(x) * 2
    return lambda x: rune.lax.fori_loop(0, 3, lambda _, c: nested(depth - 1)(c), x)


@pytest.mark.parametrize(
    ("room", "ask"), [(side_effects, side_effects.program_effect), (axes, axes.free_axes)], ids=["effects", "axes"]
)
def test_answers_about_a_program_are_cached(
    room: ModuleType, ask: Callable[[Program], object], monkeypatch: pytest.MonkeyPatch
):
    program = rune.make_program(nested(5))(1.0)
    answer, looks = ask(program), list[Equation]()

    def recorded_subprograms(equation: Equation) -> tuple[Program, ...]:
        looks.append(equation)
        return subprograms(equation)

    subprograms = room.subprograms
    monkeypatch.setattr(room, "subprograms", recorded_subprograms)

    assert ask(program) == answer
    assert looks == []
