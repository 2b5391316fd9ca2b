"""Cotangents of consts that a step reads at some places: written into their sums.

Before   a step:  ct = scatter_add(zeros, i, u);  sum' = sum + ct       makes and reads whole arrays
After    a step:  sum' = scatter_add(sum, i, u)                         changes the elements at i

A loop that reads a row of a table in each step has such cotangents. With whole arrays each step of
its gradient would take the time of the whole table. Windows (`dynamic_slice`) are alike.

Invariant: the same sums, in another order. A sum starts from 0.0 and so is never -0.0: what is not
written stays what adding zeros to it would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rune.core.dead_code import prune
from rune.core.primitive import Primitive
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.core.values import Value
from rune.ops import add, broadcast, dynamic_slice, dynamic_update_slice, scatter_add
from rune.records import dataclass
from rune.transforms.programs.memo import per_program


@dataclass(frozen=True, slots=True)
class Summand:
    """What is added to a sum: an array by `add`, or elements by a write at places.

    operands: how many values of the program it takes
    """

    primitive: Primitive
    params: Mapping[str, Any]
    operands: int

    def added_to(self, total: Value, operands: Sequence[Value]) -> Value:
        """The sum with this summand."""
        if self.primitive is not dynamic_update_slice:
            return self.primitive(total, *operands, **self.params)
        window, *starts = operands
        sizes = window.shape
        return dynamic_update_slice(total, add(dynamic_slice(total, *starts, sizes=sizes), window), *starts)


@dataclass(frozen=True, slots=True)
class Summands:
    """The summands of some results of a program, which yields their operands in place of them."""

    program: Program
    of_results: tuple[tuple[Summand, ...], ...]

    def added(self, sums: Sequence[Value], outputs: Sequence[Value]) -> list[Value]:
        """The sums with their summands, whose operands lead the outputs; then the other outputs."""
        values = iter(outputs)
        totals = []
        for total, summands in zip(sums, self.of_results, strict=True):
            for summand in summands:
                total = summand.added_to(total, [next(values) for _ in range(summand.operands)])
            totals.append(total)
        return [*totals, *values]


@per_program
def summands(program: Program, count: int) -> Summands:
    """The first `count` results of a program taken apart where writes into zeros are added up."""
    producers = {v: e for e in program.equations for v in e.results}
    of_results, operands = [], []
    for result in program.outputs[:count]:
        terms = _terms(result, producers)
        of_results.append(tuple(summand for summand, _ in terms))
        operands += [atom for _, atoms in terms for atom in atoms]
    outputs = (*operands, *program.outputs[count:])
    small, _ = prune(replace(program, outputs=outputs), [True] * len(outputs))
    return Summands(replace(small, inputs=program.inputs), tuple(of_results))


def _terms(result: Atom, producers: Mapping[Var, Equation]) -> list[tuple[Summand, tuple[Atom, ...]]]:
    """The terms of a sum, writes last; the sum as one array if none of them is a write."""
    arrays, writes, pending = [], [], [result]
    while pending:
        atom = pending.pop()
        equation = producers.get(atom) if isinstance(atom, Var) else None
        if equation is not None and equation.primitive is add and _is_of_equals(equation):
            pending += reversed(equation.operands)
        elif equation is not None and _is_write_into_zeros(equation, producers):
            operands = equation.operands[1:]
            writes.append((Summand(equation.primitive, equation.params, len(operands)), operands))
        else:
            arrays.append(atom)
    arrays = arrays if writes else [result]
    return [*((Summand(add, {}, 1), (atom,)) for atom in arrays), *writes]


def _is_of_equals(equation: Equation) -> bool:
    """Whether an addition repeats neither of its operands."""
    return all(atom.type == equation.results[0].type for atom in equation.operands)


def _is_write_into_zeros(equation: Equation, producers: Mapping[Var, Equation]) -> bool:
    array = equation.operands[0]
    if equation.primitive not in (scatter_add, dynamic_update_slice) or not isinstance(array, Var):
        return False
    source = producers.get(array)
    constant = source.operands[0] if source is not None and source.primitive is broadcast else None
    return isinstance(constant, Literal) and not constant.value.any()
