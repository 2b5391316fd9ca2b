"""An interrupt may arrive at any step, and leaves no variable of the context set.

A hook that the interpreter calls between steps raises KeyboardInterrupt at each step in turn, as a
signal handler would. The steps are those of the code that sets context variables, and with
RUNE_TEST_WHOLE=1 those of the whole package.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune import context
from rune.core import interpreter
from tests.support.sampling import IS_WHOLE

PACKAGE = os.path.dirname(rune.__file__)
FILES = (contextlib.__file__, PACKAGE)
METHODS = {"put", "reset", "run", "set"}  # of variables and contexts
X = rnp.arange(3.0)


@rune.checkpoint
def square(x: Any) -> Any:
    """A program that an equation holds."""
    return x * x


TRANSFORMED: dict[str, Callable[[], Any]] = {
    "grad": lambda: rune.grad(lambda x: x * x)(3.0),
    "vjp": lambda: rune.vjp(square, X)[1](X),
    "jvp": lambda: rune.jvp(square, (X,), (X,)),
    "vmap of grad": lambda: rune.vmap(rune.grad(lambda x: x * x))(X),
    "make_program": lambda: rune.make_program(lambda x: square(x) + 1)(X),
    "named axis": lambda: rune.vmap(lambda x: rune.lax.psum(x, "i"), axis_name="i")(X),
}


def surroundings() -> tuple[object, dict[type, object]]:
    """The context variables of the test."""
    return interpreter._current.get(None), dict(context._entries.get())


@functools.cache
def is_watched(code: CodeType) -> bool:
    """Whether an interrupt may arrive in this code: in the package's, where variables are set."""
    sets_variables = IS_WHOLE or METHODS & set(code.co_names)
    return code.co_filename.startswith(FILES) and bool(sets_variables)


def interrupted(run: Callable[[], Any], step: int) -> bool:
    """Whether `run` reached this step, where it was interrupted."""
    steps = iter(range(step + 1))

    def at_step(frame: FrameType, event: str, _: Any) -> Any:
        if not is_watched(frame.f_code):
            return None
        # The beginning of a line is that of an instruction, at which nothing else has happened.
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event != "return" and next(steps, None) == step:
            raise KeyboardInterrupt
        return at_step

    before = sys.gettrace()
    try:
        sys.settrace(at_step)
        run()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return next(steps, None) is None


# Python discards what is raised while a generator is closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", TRANSFORMED)
def test_an_interrupt_at_any_step_leaves_the_context_as_it_was(name: str):
    run = TRANSFORMED[name]
    run()
    before = surroundings()
    interruptible_steps = itertools.takewhile(lambda step: interrupted(run, step), itertools.count())

    steps = 0
    for steps in interruptible_steps:
        assert surroundings() == before, f"at step {steps}"
    assert steps > 10
