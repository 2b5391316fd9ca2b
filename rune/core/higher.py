"""Higher-order primitives: their equations hold programs, and describe as data how these run.

    %2 = jit %0, %1 {program=p}                p once, on %0 and %1
    %3 = cond %0, %1, %2 {branches=(p, q)}     p and q as branches, on %1 and %2
    %2 = while %0, %1 {condition=p, body=q}    p and q in a loop, on %0 and %1 at first

A pass that walks programs uses `calls`, or `equations_within` for all equations at once, and needs
no primitive's parameters. The rules, besides those of any primitive:

    calls(*args, **params) -> tuple[Calls, ...]     the programs that the parameters hold
    interpret(evaluate, *args, **params) -> list    the meaning, in terms of a function that
                                        evaluates programs: evaluate(program, args) -> list
    partial_equation(interpreter, args, unknown, params) -> list    the results, with the known part
                                        computed and the unknown part written down
    series(interpreter, args, params) -> list    the results on Taylor series
                                        (derivatives/series.py); without the rule each order
                                        applies the jvp once more
    keeping(equation, keeps) -> Replay | None   the equation split by the values inside that a
                                        checkpoint saves (transforms/checkpoint/saved_values.py)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any, TypeVar

from rune.core.memo import per_program
from rune.core.primitive import Direct, Primitive, Rule
from rune.core.program import Equation, Program, map_programs
from rune.records import dataclass, replace

R = TypeVar("R")


class Runs(Enum):
    """How an equation runs a program that it holds."""

    ONCE = "once"  # on all operands in order; its results are those of the equation
    BRANCH = "branch"  # at most once
    LOOP = "loop"  # any number of times
    EACH = "each"  # once on every device, on its blocks of the operands
    NEVER = "never"  # only a derivative runs it


@dataclass(frozen=True, slots=True)
class Calls:
    """A program that an equation runs.

    operands: for each input the operand that is its value, or its first value; None for an input
              that is not an operand, such as a row of an array or the number of the step.
    binds:    the named axes that the equation defines inside the program.
    """

    program: Program
    operands: tuple[Any, ...]
    runs: Runs
    binds: frozenset[Hashable] = frozenset()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HigherOrder(Direct):
    """An operation whose equations hold programs."""

    calls: Rule = field(kw_only=True)
    interpret: Rule | None = None
    partial_equation: Rule | None = None
    keeping: Rule | None = None
    series: Rule | None = None


def calls(primitive: Primitive, args: Sequence[object], params: Mapping[str, object]) -> tuple[Calls, ...]:
    """How an equation of these operands and parameters runs the programs that it holds."""
    return primitive.calls(*args, **params) if isinstance(primitive, HigherOrder) else ()


def called_once(primitive: Primitive, args: Sequence[object], params: Mapping[str, object]) -> Program | None:
    """The program that such an equation runs once, on its own operands: it has the same meaning."""
    once = (c.program for c in calls(primitive, args, params) if c.runs is Runs.ONCE)
    return next(once, None)


def subprograms(equation: Equation) -> tuple[Program, ...]:
    """The programs that an equation holds."""
    program_calls = equation_calls(equation)
    return tuple(c.program for c in program_calls) if program_calls else ()


def equation_calls(equation: Equation) -> tuple[Calls, ...]:
    """How an equation runs the programs that it holds."""
    primitive = equation.primitive
    return primitive.calls(*equation.operands, **equation.params) if isinstance(primitive, HigherOrder) else ()


def programs_within(*programs: Program) -> Iterator[Program]:
    """The programs and all that their equations hold, at any depth, each once; outer ones first."""
    # A stack and not recursion: programs may be nested deeply.
    pending, visited_programs = [*programs], set[Program]()
    while pending:
        program = pending.pop()
        if program not in visited_programs:
            visited_programs.add(program)
            yield program
            pending += (p for e in program.equations for p in subprograms(e))


def equations_within(*programs: Program) -> Iterator[Equation]:
    """The equations of the programs, and of all programs that these hold."""
    return (e for p in programs_within(*programs) for e in p.equations)


def inner_first(answer: Callable[[Program], R]) -> Callable[[Program], R]:
    """Memoise an answer about programs that follows from those about the programs they hold.

    Inner programs are answered first, so that deep nests need no deep recursion.
    """
    remembered = per_program(answer)

    @functools.wraps(answer)
    def answered(program: Program) -> R:
        pending = [] if answer in program.derived else [program]
        while pending:
            inner = [p for e in pending[-1].equations for p in subprograms(e) if answer not in p.derived]
            pending += inner
            if not inner:
                remembered(pending.pop())
        return remembered(program)

    return answered


def equation_program(equation: Equation) -> Program | None:
    """The program that an equation runs once, on its own operands: it has the same meaning."""
    return called_once(equation.primitive, equation.operands, equation.params)


def map_subprograms(program: Program, change: Callable[[Program], Program]) -> Program:
    """The program with `change` applied to the programs it holds; itself if none differs."""

    # Most programs hold none, and passes ask this of each, round after round.
    if not [e for e in program.equations if isinstance(e.primitive, HigherOrder)]:
        return program

    def equation(e: Equation) -> Equation:
        if not isinstance(e.primitive, HigherOrder):
            return e
        params = map_programs(e.params, change)
        return e if params is e.params else replace(e, params=params)

    body = tuple(map(equation, program.equations))
    same = all(a is b for a, b in zip(body, program.equations))
    return program if same else program.with_equations(body, program.outputs)
