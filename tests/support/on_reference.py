"""Programs that tests compile for the CPU run on `reference` as well, so that its checks see them.

    RUNE_TEST_REFERENCE=1 ./scripts/test tests/numpy

A race, a read of unwritten memory or an index out of bounds fails the test that compiled the
program. Programs with side effects, long loops or large arrays run on the CPU alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from rune.backends import device_named
from rune.backends.shared.callbacks import is_callback
from rune.core.program import Program
from rune.errors import HostFallbackWarning
from rune.lowering.plan import all_steps
from rune.lowering.stages import stages
from rune.transforms.compile import run
from rune.transforms.compile.executables import buffer_on, execute

LARGEST = 4000  # elements of one value
MOST_ROUNDS = 40  # of one loop
MOST_EQUATIONS = 150


@contextmanager
def interpreted_as_well() -> Iterator[None]:
    """Programs that run on the CPU inside the block run on `reference` first."""

    def both(program: Program, args: Sequence[Any], place: Any, donations: Any, schedules: Any) -> Any:
        if place.device is None and is_small(program, args):
            interpret(program, args)
        return execute(program, args, place, donations, schedules)

    with patch.object(run, "execute", both):
        yield


def is_small(program: Program, args: Sequence[Any]) -> bool:
    """Whether interpreting the program takes a moment."""
    sizes = [np.size(buffer_on(a, None)) for a in args]  # keys too
    return max(sizes, default=0) <= LARGEST and _is_brief(program)


def _is_brief(program: Program) -> bool:
    if len(program.equations) > MOST_EQUATIONS:
        return False
    for equation in program.equations:
        length = equation.params.get("length", 0)
        if equation.primitive.name == "while" or not isinstance(length, int):
            return False  # the number of rounds is not known
        if length > MOST_ROUNDS:
            return False
        known = [v.type.shape for v in equation.results if not v.type.is_symbolic]
        if any(math.prod(map(int, shape)) > LARGEST for shape in known):
            return False
        inner = [p for p in equation.params.values() if isinstance(p, Program)]
        if not all(map(_is_brief, inner)):
            return False
    return True


def interpret(program: Program, args: Sequence[Any]) -> None:
    """Run the program on `reference` without changing the counters of compilations."""
    device = device_named("reference:0")
    with warnings.catch_warnings(action="ignore", category=HostFallbackWarning):
        plan = stages(program, device.target).plan
    if any(map(is_callback, all_steps(plan))):
        return
    buffers = [np.array(buffer_on(a, None)) for a in args]
    with np.errstate(all="ignore"):
        device.backend.record(plan)(buffers)
