"""The boundaries that transformations put between a function and the effect handlers outside.

rune/effects.py defines their meaning; here they are connected to interpreters. A program gets its
answers from inputs that are added after all others when an effect is first performed; a lane gets
an answer of its own from its number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from rune import effects
from rune.core.interpreter import Interpreter, type_of, use
from rune.core.staging import Stage, new_input
from rune.core.values import Value


def recorder(stage: Interpreter, index: Callable[[], object] | None = None) -> effects.Recorder:
    """The boundary of the program that `stage` writes. `index`: the step of a loop's body."""
    assert isinstance(stage, Stage)
    parent = stage.parent
    assert parent is not None
    # Handlers outside answer in the parent, so that their work is not written into the program.
    inputs = effects.Inputs(lambda value: new_input(stage, type_of(value)), lambda: use(parent))
    return effects.Recorder(inputs, index)


def lanes(parent: Interpreter, numbers: Callable[[], Value], join: Callable[[Value], Value]) -> effects.Each:
    """The boundary of vmap. `join` turns a value with a leading axis of lanes into a tracer."""

    # Most functions perform no effect, so the numbers are computed when the first one needs them.
    @functools.cache
    def lane() -> Value:
        # Outside the vmap, all lanes together are one array.
        with use(parent):
            return join(numbers())

    return effects.Each(lane)
