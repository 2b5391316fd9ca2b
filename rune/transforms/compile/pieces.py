"""A program in pieces: code that has the bits of NumPy's functions, and NumPy functions between.

Of the sixty operations of i0, only an exponential has to be computed by NumPy.

The others form two pieces, each a call of compiled code: those before it, and those after. Sums of
floats belong to a piece if NumPy's order of summation is known (orders.py). A NumPy function gets
the results of a piece in C order. Its bits may depend on the order, so values that NumPy would have
in another order are computed by NumPy, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from rune.backends.cpu.run import CpuExecutable
from rune.core.evaluate import eval_program, restaged
from rune.core.higher import called_once
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program, Var
from rune.core.staging import Stage
from rune.core.values import Value
from rune.errors import LayoutError
from rune.transforms.compile.exact import is_exact_equation
from rune.transforms.compile.executables import compiled, device_for
from rune.transforms.compile.orders import contiguous_values, has_known_order, in_numpys_order
from rune.transforms.programs.straight_line import INLINED, Line, LineWriter

LEAST = 2  # equations of a compiled piece at least: its call costs as much as a NumPy function


Part: TypeAlias = Program | Equation


def line_of(program: Program, parts: Sequence[Part]) -> Line | None:
    """The parts of a program on its buffers; None if NumPy's functions cannot compute one."""
    writer = LineWriter()
    inputs = [writer.slot(v) for v in program.inputs]
    for part in parts:
        if isinstance(part, Program):
            writer.add(_compiled(part), part.inputs, part.outputs)
        elif not writer.can_write(part):
            return None
    return writer.line(inputs, program.outputs)


def flat(program: Program) -> Program:
    """The program with calls of functions with custom rules inlined."""
    return restaged(program, _Inline(None))


def in_order(program: Program) -> Program:
    """The program, whose sums of floats are written in NumPy's order."""
    return restaged(program, _InOrder(None))


def pieces_of(program: Program) -> list[Part]:
    """The pieces of a flat program, and between them the equations that NumPy computes."""
    compiled_equations = _compiled_equations(program)
    ranks: dict[Var, int] = {}  # even for results of compiled pieces, odd for those of NumPy
    parts: dict[int, list[Equation]] = defaultdict(list)
    for equation in program.equations:
        rank = max([ranks.get(a, 0) for a in equation.operands if isinstance(a, Var)], default=0)
        # The earliest rank that is not before its operands, of the parity of what computes it.
        rank += rank % 2 if equation in compiled_equations else 1 - rank % 2
        ranks.update((v, rank) for v in equation.results)
        parts[rank].append(equation)
    ranked_parts = sorted(parts.items())
    pieces: list[Part] = []
    for number, (rank, equations) in enumerate(ranked_parts):
        if rank % 2 or (len(equations) < LEAST and len(ranked_parts) > 1):
            pieces += equations
        else:
            later_equations = [e for _, group in ranked_parts[number + 1 :] for e in group]
            pieces.append(_piece(program, equations, later_equations))
    return pieces


def _compiled_equations(program: Program) -> set[Equation]:
    """The values that compiled code computes to the bit, except some that NumPy's functions read.

    Those have to be in C order, and depend on an input: constants are computed once.
    """
    plain, varying = contiguous_values(program), _varying_values(program)
    skipped_equations, read = set[Equation](), set[Var]()
    # Last to first: whether code may compute a value depends on its readers.
    for equation in reversed(program.equations):
        is_exact = is_exact_equation(equation) or has_known_order(equation, plain)
        if not is_exact or any(v in read and not (v in plain and v in varying) for v in equation.results):
            skipped_equations.add(equation)
            read.update(a for a in equation.operands if isinstance(a, Var))
    return set(program.equations) - skipped_equations


def _varying_values(program: Program) -> set[Var]:
    """The values that depend on an input."""
    varying = set(program.inputs)
    for equation in program.equations:
        if not varying.isdisjoint(equation.operands):
            varying.update(equation.results)
    return varying


def _piece(program: Program, equations: Sequence[Equation], later_equations: Sequence[Equation]) -> Program:
    """These equations as a program; its results are the values that later equations read."""
    results = dict.fromkeys(v for e in equations for v in e.results)
    operands = dict.fromkeys(a for e in equations for a in e.operands if isinstance(a, Var) and a not in results)
    later_atoms = {*program.outputs, *(a for e in later_equations for a in e.operands)}
    return Program(tuple(operands), tuple(equations), tuple(v for v in results if v in later_atoms), name=program.name)


def _compiled(piece: Program) -> Callable[..., Sequence[np.ndarray]]:
    """The piece as a function of buffers."""
    # Now, and not in the first call: tiers.py asks for pieces only after many calls.
    executable = compiled(in_order(piece), device_for(None))
    assert isinstance(executable, CpuExecutable)
    executable.refine()  # a draft's entry is slow, and this piece is called often
    run = executable.direct()

    def call(*buffers: np.ndarray) -> Sequence[np.ndarray]:
        try:
            return run(*buffers)
        except LayoutError:  # the result of a NumPy function may be a view
            # Not those of rank 0, which would get an axis.
            return run(*[np.ascontiguousarray(x) if x.ndim else x for x in buffers])

    return call


class _Inline(Stage):
    """Inlines calls of functions with custom rules."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> object:
        """Write, or inline."""
        inner_program = called_once(primitive, args, params) if primitive.name in INLINED else None
        return self.write(primitive, args, params) if inner_program is None else eval_program(inner_program, args)


class _InOrder(Stage):
    """Writes sums and products of floats in NumPy's order."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> object:
        """Write, or add up."""
        ordered_sum = in_numpys_order(primitive, args[0], params) if args else None
        return self.write(primitive, args, params) if ordered_sum is None else ordered_sum
