"""The smallest program that still fails: fewer results, fewer steps, inputs in place of steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzzing.compare import values
from tests.fuzzing.maker import Refused
from tests.fuzzing.program import Input, Program

Fails = Callable[[Program], bool]


def smallest(program: Program, seed: int, fails: Fails, seconds: float = 60.0) -> Program:
    """A failing program without failing smaller variants, or the smallest within the time limit."""
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in _smaller(program, seed):
            if time.monotonic() > end:
                break
            if size(candidate) < size(program) and fails(candidate):
                program, progress = candidate, True
                break
    return program


def size(program: Program) -> tuple[int, int, int]:
    """The measure that shrinks: the number of steps first."""
    return len(program.steps), len(program.results), len(program.inputs)


def _smaller(program: Program, seed: int) -> Iterator[Program]:
    for name in program.intermediates():
        yield program.returning([name]).needed()
    for name in program.results:
        yield program.returning([n for n in program.results if n != name] or [name]).needed()
    yield program.needed()
    yield from _with_inputs(program, seed)
    for k in range(len(program.steps)):
        yield from _without(program, k)


def _with_inputs(program: Program, seed: int) -> Iterator[Program]:
    """The value of one step becomes an argument."""
    try:
        env = values(program, program.arguments(seed))
    except Refused:
        return
    for k, step in enumerate(program.steps):
        if set(step.names) & set(program.results):
            continue
        arguments = tuple(
            Input(n, tuple(env[n].shape), env[n].dtype.name, program.inputs[0].values) for n in step.names
        )
        steps = (*program.steps[:k], *program.steps[k + 1 :])
        yield replace(program, inputs=(*program.inputs, *arguments), steps=steps).needed()


def _without(program: Program, k: int) -> Iterator[Program]:
    names = program.steps[k].names
    results = tuple(n for n in program.results if n not in names)
    steps = (*program.steps[:k], *program.steps[k + 1 :])
    read = {n for s in steps for n in s.operands}
    if results and not read & set(names):
        yield replace(program, steps=steps, results=results)
