"""The boundaries that transformations put between a function and the effect handlers outside.

rune/effects.py has what they mean; here they meet interpreters. A program's answers come from
inputs that are made when they are first asked for, behind all others; a lane's from its number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rune import dtypes, effects
from rune.core.interpreter import Interpreter, type_of, use
from rune.core.staging import Stage
from rune.ops import iota


def recorder(stage: Interpreter, index: Callable[[], Any] | None = None) -> effects.Recorder:
    """The boundary of the program that `stage` writes. `index`: the step of a loop's body."""
    assert isinstance(stage, Stage)
    parent = stage.parent
    assert parent is not None
    return effects.Recorder(
        lambda value: stage.new_input(type_of(value)), lambda: use(parent), index
    )


def lanes(parent: Interpreter, size: Any, join: Callable[[Any], Any]) -> effects.Each:
    """The boundary of vmap. `join` makes a batched value of one with a leading axis of lanes."""

    @functools.cache
    def lane() -> Any:
        with use(parent):
            return join(iota(shape=(size,), axis=0, dtype=dtypes.u32))

    return effects.Each(lane)
