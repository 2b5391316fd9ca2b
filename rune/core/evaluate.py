"""Evaluation of programs: equations are bound one by one, so that evaluation can be traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rune.core.interpreter import bind, type_of
from rune.core.program import Atom, Literal, Program, Var
from rune.core.sizes import match_sizes, params_with_sizes
from rune.core.staging import Stage, Staged, trace_program
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, in_copied_context, set_line


def last_uses(program: Program) -> Mapping[Var, int]:
    """The number of the last equation that reads each variable; outputs are never dead."""
    last: dict[Var, int] = {}
    for number, equation in enumerate(program.equations):
        for atom in equation.operands:
            if isinstance(atom, Var):
                last[atom] = number
    for atom in program.outputs:
        if isinstance(atom, Var):
            last[atom] = len(program.equations)
    return last


def _sizes(program: Program, args: Sequence[Value]) -> Mapping[str, Size]:
    input_types = program.input_types
    if not any(t.is_symbolic for t in input_types):
        return {}
    action = f"{program.name}: cannot evaluate"
    return match_sizes(input_types, [type_of(a) for a in args], action)


def eval_program(program: Program, args: Sequence[Any]) -> list[Any]:
    """The outputs of `program` on `args`, in the current context; values are freed when dead.

    The arguments decide its symbolic sizes.

    Errors: ArgumentError when the number of arguments is wrong.
    """
    if len(args) != len(program.inputs):
        raise ArgumentError(
            f"eval_program: cannot evaluate {program.name} ({len(args)} arguments for {len(program.inputs)} inputs)"
        )
    return in_copied_context(_evaluate, program, args)


def _evaluate(program: Program, args: Sequence[Value]) -> list[Value]:
    env: dict[Var, Value] = dict(program.constants)
    env.update(zip(program.inputs, args, strict=True))
    last = last_uses(program)

    def read(atom: Atom) -> Value:
        return atom.value if isinstance(atom, Literal) else env[atom]

    sizes = _sizes(program, args)
    for number, equation in enumerate(program.equations):
        params = params_with_sizes(equation.params, sizes)
        set_line(equation.frame)
        if equation.primitive.multiple_results:
            results = bind(equation.primitive, *map(read, equation.operands), **params)
        else:
            operands = [a.operand if isinstance(a, Literal) else env[a] for a in equation.operands]
            results = (bind(equation.primitive, *operands, **params),)
        env.update((v, r) for v, r in zip(equation.results, results, strict=True) if v in last)
        for atom in equation.operands:
            if isinstance(atom, Var) and last[atom] == number:
                env.pop(atom, None)
    return [read(atom) for atom in program.outputs]


def restaged(program: Program, stage: Stage) -> Program:
    """The program staged again: a stage may replace each equation by others, or drop it."""
    return written_by(stage, program).closed()


def written_by(stage: Stage, program: Program) -> Staged:
    """The program as a stage writes it, and the values that the stage captured."""
    return trace_program(stage, lambda *xs: eval_program(program, xs), program.input_types, program.name)
