"""Scattered sums: if each device takes only a part of a sum, each gets the sum of its part.

Before   %1 = psum %0 {'d'};  %2 = mesh_part %1 {'d'}        the gradient of a split weight
After    %2 = psum_scatter %0 {'d'}                          half the bytes

Sums over other axes are taken of the part:

Before   %1 = psum %0 {'d'};  %2 = mesh_part %1 {'m'}
After    %1 = mesh_part %0 {'m'};  %2 = psum %1 {'d'}

Invariant: the same values, for sums that nothing else reads.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from rune.core.axes import Name
from rune.core.dead_code import needed_inputs
from rune.core.program import Atom, Definitions, Equation, Program, Var
from rune.core.staging import Staged
from rune.ops.collectives import psum, psum_scatter
from rune.ops.family import reshape
from rune.transforms.sharding.reshard import mesh_part


def economical(program: Program) -> Program:
    """The program without unused equations, with sums scattered where parts are taken."""
    # Dead code goes first, since an unused reader would keep a sum, and last, since the old sums
    # are unused now.
    return _live(_scattered(_live(program)))


def economical_stage(closure: Staged) -> Staged:
    """The same for a program that a loop or branch holds, with only the captures that it needs."""
    program = economical(closure.program)
    _, used_inputs = needed_inputs(program, [True] * len(program.outputs))
    inputs = zip(program.inputs, closure.captured, used_inputs, strict=False)
    captures = [(v, value) for v, value, is_needed in inputs if is_needed]
    own_inputs = program.inputs[len(closure.captured) :]
    smaller = replace(program, inputs=(*(v for v, _ in captures), *own_inputs))
    return Staged(smaller, tuple(value for _, value in captures), closure.axes)


def _live(program: Program) -> Program:
    return needed_inputs(program, [True] * len(program.outputs))[0]


def _scattered(program: Program) -> Program:
    readers = Counter[Atom]([*(a for e in program.equations for a in e.operands), *program.outputs])
    definitions: dict[Atom, Equation] = {}
    equations: list[Equation] = []
    for equation in program.equations:
        sums = _sums_before(equation, definitions, readers)
        for new in [equation] if sums is None else _of_parts(equation, sums):
            definitions.update(dict.fromkeys(new.results, new))
            # Variables that are new here have this one reader.
            readers.update(a for a in new.operands if a not in readers)
            equations.append(new)
    return program.with_equations(equations, program.outputs)


def _sums_before(part: Equation, definitions: Definitions, readers: Counter[Atom]) -> list[Equation] | None:
    """The sums over mesh axes before a part, first the one over the axis of the part.

    Without that one the part itself is first. None if there are no sums.
    """
    if part.primitive is not mesh_part:
        return None
    sums: dict[Name, Equation] = {}
    (atom,) = part.operands
    while readers[atom] == 1 and (equation := definitions.get(atom)) is not None and equation.primitive is psum:
        name = equation.params["axis_name"]
        # A sum within groups of devices has no single axis to scatter over.
        if "groups" in equation.params or name in sums:
            break
        sums[name] = equation
        (atom,) = equation.operands
    first = sums.pop(part.params["axis_name"], None)
    if first is None and not sums:
        return None
    return [replace(first or part, operands=(atom,)), *reversed(sums.values())]


def _scatter(part: Equation, total: Equation, result: Var) -> Iterator[Equation]:
    """The equations of a sum of which each device gets its part."""
    (operand,), axis, lanes = total.operands, part.params["axis"], part.params["lanes"]
    shape = operand.type.shape
    # psum_scatter takes the parts along an axis of their own.
    block_shape = (*shape[:axis], lanes, result.type.shape[axis], *shape[axis + 1 :])
    blocks = Var(operand.type.strong().with_shape(block_shape))
    yield Equation(reshape, (operand,), {"shape": block_shape}, (blocks,), part.frame)
    scatter = {"scatter_axis": axis, "lanes": lanes, "axis_name": part.params["axis_name"]}
    yield Equation(psum_scatter, (blocks,), scatter, (result,), total.frame)


def _of_parts(part: Equation, sums: list[Equation]) -> Iterator[Equation]:
    """The equations of the first sum, scattered, or of the part; and of the other sums of it."""
    results = [part.results[0] if s is sums[-1] else Var(part.results[0].type) for s in sums]
    if sums[0].primitive is mesh_part:
        yield replace(sums[0], results=(results[0],))
    else:
        yield from _scatter(part, sums[0], results[0])
    for equation, summand, result in zip(sums[1:], results, results[1:], strict=False):
        yield replace(equation, operands=(summand,), results=(result,))
