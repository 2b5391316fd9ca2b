"""Cotangents of consts that a step reads at some places: written into their sums.

Before   a step:  ct = scatter_add(zeros, i, u);  sum' = sum + ct       makes and reads whole arrays
After    a step:  sum' = scatter_add(sum, i, u)                         changes the elements at i

A loop that reads a row of a table in each step has such cotangents. With whole arrays each step of
its gradient would take the time of the whole table. Windows (`dynamic_slice`) are alike. Where a
step calls a jitted function or a checkpoint that yields such an array, the call yields i and u.

The cotangent of a carry that a step reads or writes at some places is treated alike.

Invariant: the same sums, in another order. The sum of a const starts from 0.0 and so is never -0.0,
and adding zeros would change no element; in the cotangent of a carry a -0.0 may stay -0.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rune.core.dead_code import prune
from rune.core.evaluate import restaged
from rune.core.higher import called_once
from rune.core.interpreter import type_of
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Atom, Definitions, Equation, Literal, Program, map_programs
from rune.core.staging import Stage
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.ops import add, broadcast, dynamic_slice, dynamic_update_slice, scatter_add
from rune.ops.family import zeros_of
from rune.records import dataclass
from rune.transforms.checkpoint.checkpoint import checkpoint_primitive
from rune.transforms.compile.jit_primitive import jit_primitive

WRITES = (scatter_add, dynamic_update_slice)
CALLS = (jit_primitive, checkpoint_primitive)


@dataclass(frozen=True, slots=True)
class Summand:
    """What is added to a sum: an array by `add`, or elements by a write at places.

    operands: how many values of the program it takes
    """

    primitive: Primitive
    params: Mapping[str, object]
    operands: int

    def added_to(self, total: Value, values: Iterator[Value]) -> Value:
        """The sum with this summand, whose operands are the next values."""
        operands = [next(values) for _ in range(self.operands)]
        if self.primitive is not dynamic_update_slice:
            return self.primitive(total, *operands, **self.params)
        window, *starts = operands
        before = dynamic_slice(total, *starts, sizes=type_of(window).shape)
        return dynamic_update_slice(total, add(before, window), *starts)


@dataclass(frozen=True, slots=True)
class Summands:
    """The summands of the first results of a program, which yields their operands in their place.

    types: of these results
    """

    program: Program
    types: tuple[ArrayType, ...]
    of_results: tuple[tuple[Summand, ...], ...]

    @property
    def have_writes(self) -> bool:
        """Whether some result is not one array alone."""
        return any(summand.primitive in WRITES for summands in self.of_results for summand in summands)

    def added(self, sums: Sequence[Value | None], outputs: Sequence[Value]) -> list[Value]:
        """The sums with their summands, whose operands lead the outputs; then the other outputs.

        None: a sum of its summands alone
        """
        values = iter(outputs)
        totals = []
        for total, type_, (first, *others) in zip(sums, self.types, self.of_results, strict=True):
            if total is None and first.primitive is add:
                total = next(values)
            else:
                total = first.added_to(zeros_of(type_) if total is None else total, values)
            for summand in others:
                total = summand.added_to(total, values)
            totals.append(total)
        return [*totals, *values]


@per_program
def summands(program: Program, count: int) -> Summands:
    """The first `count` results of a program taken apart where writes into zeros are added up."""
    program = _opened(program)
    results = program.outputs[:count]
    terms = [_terms(result, program.definitions) for result in results]
    operands = [atom for of_result in terms for _, atoms in of_result for atom in atoms]
    outputs = (*operands, *program.outputs[count:])
    small, _ = prune(replace(program, outputs=outputs), [True] * len(outputs))
    of_results = tuple(tuple(summand for summand, _ in of_result) for of_result in terms)
    return Summands(replace(small, inputs=program.inputs), tuple(r.type for r in results), of_results)


def _terms(result: Atom, definitions: Definitions) -> list[tuple[Summand, tuple[Atom, ...]]]:
    """The terms of a sum, writes last; the sum as one array if none of them is a write."""
    arrays, writes, pending = [], [], [result]
    while pending:
        atom = pending.pop()
        equation = definitions.get(atom)
        if equation is not None and equation.primitive is add and _is_of_equals(equation):
            pending += reversed(equation.operands)
        elif equation is not None and _is_write_into_zeros(equation, definitions):
            operands = equation.operands[1:]
            writes.append((Summand(equation.primitive, equation.params, len(operands)), operands))
        else:
            arrays.append(atom)
    arrays = arrays if writes else [result]
    return [*((Summand(add, {}, 1), (atom,)) for atom in arrays), *writes]


def _is_of_equals(equation: Equation) -> bool:
    """Whether an addition repeats neither of its operands."""
    return all(atom.type == equation.results[0].type for atom in equation.operands)


def _is_write_into_zeros(equation: Equation, definitions: Definitions) -> bool:
    source = definitions.get(equation.operands[0]) if equation.primitive in WRITES else None
    constant = source.operands[0] if source is not None and source.primitive is broadcast else None
    return isinstance(constant, Literal) and not constant.value.any()


# --- calls ------------------------------------------------------------------------------------


class _Opened(Stage):
    """Writes a program again, with writes into zeros behind the calls that yielded their arrays."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> object:
        """The equation itself, or a call of smaller results and the writes of these."""
        callee = called_once(primitive, args, params) if primitive in CALLS else None
        parts = None if callee is None else summands(callee, len(callee.outputs))
        if parts is None or not parts.have_writes:
            return self.write(primitive, args, params)
        outputs = self.write(primitive, args, map_programs(params, lambda _: parts.program))
        return parts.added([None] * len(parts.types), outputs)


def _opened(program: Program) -> Program:
    """The program without calls that yield writes into zeros."""
    has_calls = any(e.primitive in CALLS for e in program.equations)
    return restaged(program, _Opened(None)) if has_calls else program
