"""One of several programs, chosen at run time: what `cond` becomes when a program is lowered.

It has no derivatives and no batch rule: they were taken of the `cond` before it was lowered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rune.core.dead_code import narrowed, needed_inputs, with_inputs_picked
from rune.core.evaluate import eval_program
from rune.core.higher import Calls, HigherOrder, Runs
from rune.core.interpreter import type_of
from rune.core.program import Equation, Program
from rune.core.staging import Staged
from rune.core.values import Value
from rune.ops.loop import captured_by_all, loop, stage_within

if TYPE_CHECKING:
    from rune.array import Array


def _run_branch(number: Value, *args: Value, branches: tuple[Program, ...]) -> list[Value]:
    index = min(max(int(np.asarray(number)), 0), len(branches) - 1)
    return eval_program(branches[index], args)


def _branch_dead_code(used_results: Sequence[bool], equation: Equation) -> Equation:
    """The branch without results that nothing reads, and without operands that no program then
    reads.
    """
    slices = [needed_inputs(b, used_results) for b in equation.params["branches"]]
    live_inputs = [any(column) for column in zip(*(flags for _, flags in slices), strict=True)]
    branches = tuple(with_inputs_picked(program, live_inputs) for program, _ in slices)
    return narrowed(equation, (True, *live_inputs), used_results, branches=branches)


def branch_calls(number: Value, *operands: Value, branches: tuple[Program, ...]) -> tuple[Calls, ...]:
    """Each program runs at most once, on the operands that follow the branch number."""
    return tuple(Calls(b, operands, Runs.BRANCH) for b in branches)


branch = HigherOrder(
    "branch",
    "control",
    lambda *types, branches: branches[0].output_types,
    calls=branch_calls,
    multiple_results=True,
    run=_run_branch,
    dead_code=_branch_dead_code,
)


def cond_as_branch(number: Value, *operands: Value, branches: tuple[Program, ...]) -> list[Array]:
    """The branch equation for a `cond`; the program itself if its number is known or it is the only
    one.
    """
    if len(branches) == 1:
        return eval_program(branches[0], operands)
    if isinstance(number, np.ndarray):
        return eval_program(branches[min(max(int(number), 0), len(branches) - 1)], operands)
    return _bind_branch(number, operands, {f"branch{k}": program for k, program in enumerate(branches)})


def apart_as_branch(*operands: Value, program: Program) -> list[Array]:
    """A branch without an alternative: a step of its own, which runs once all its operands are
    computed, so that nothing within it is merged with equal values outside.
    """
    return _bind_branch(np.int32(0), operands, {program.name: program})


def _bind_branch(number: Value, operands: Sequence[Value], branches: Mapping[str, Program]) -> list[Array]:
    types = [type_of(x) for x in operands]
    staged = [stage_within(lambda *xs, p=p: eval_program(p, xs), types, name) for name, p in branches.items()]
    return bind_branch(number, operands, staged)


def bind_branch(number: Value, operands: Sequence[Value], branches: Sequence[Staged]) -> list[Array]:
    """The branch equation of these programs; values that they capture become operands too."""
    captures = [x for b in branches for x in b.captured]
    return branch(number, *captures, *operands, branches=tuple(captured_by_all(branches)))


def is_control(equation: Equation) -> bool:
    """True for the equations that become loops and branches of the plan."""
    return equation.primitive in (loop, branch)
