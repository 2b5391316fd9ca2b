"""A program in pieces: code that has the bits of NumPy's functions, and NumPy functions between.

Of the sixty operations of i0, only an exponential has to be computed by NumPy.

The others form two pieces, each a call of compiled code: those before it, and those after. Sums of
floats belong to a piece if NumPy's order of summation is known (orders.py). A NumPy function gets
the results of a piece in C order. Its bits may depend on the order, so values that NumPy would have
in another order are computed by NumPy, too. What several pieces need of the same short operations
each of them computes again, which takes less time than an array that goes from one to the next.
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
from rune.core.program import Atom, Equation, Program, Var
from rune.core.staging import Stage
from rune.core.values import Value
from rune.transforms.compile.exact import is_exact_equation
from rune.transforms.compile.executables import compiled, device_for
from rune.transforms.compile.orders import contiguous_values, has_known_order, in_numpys_order
from rune.transforms.programs.straight_line import INLINED, Line, LineWriter

LEAST = 2  # equations of a compiled piece at least: its call costs as much as a NumPy function
FEW = 1 << 10  # elements of a value that is computed again rather than passed on
_SHORT = frozenset("arithmetic comparison selection conversion rounding bits movement creation identity".split())

_BEFORE = -1  # the rank of NumPy's constants
_ROUNDED_ONCE = frozenset({"sqrt", "integer_pow"})  # instructions, or one or two of them


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
    compiled_equations, varying = _compiled_equations(program), _varying_values(program)
    ranks: dict[Var, int] = {}  # even for results of compiled pieces, odd for those of NumPy
    parts: dict[int, list[Equation]] = defaultdict(list)
    for equation in program.equations:
        rank = max([ranks.get(a, 0) for a in equation.operands if isinstance(a, Var)], default=0)
        # The earliest rank that is not before its operands; compiled ones have even ranks.
        rank += rank % 2 if equation in compiled_equations else 1 - rank % 2
        if equation not in compiled_equations and varying.isdisjoint(equation.results):
            # A constant, which NumPy computes once: nothing waits for it.
            parts[_BEFORE].append(equation)
            continue
        ranks.update((v, rank) for v in equation.results)
        parts[rank].append(equation)
    return _parts_of(program, sorted(parts.items()), compiled_equations)


def _parts_of(
    program: Program, ranked_equations: Sequence[tuple[int, list[Equation]]], compiled_equations: set[Equation]
) -> list[Part]:
    """The parts in the order of their ranks."""
    shared = {e for e in compiled_equations if _is_short(e)}
    parts: list[Part] = []
    # From the last to the first: a piece returns what later parts read.
    later_atoms: set[Atom] = {*program.outputs}
    for rank, equations in reversed(ranked_equations):
        new_parts: list[Part] = [*equations]
        if rank % 2 == 0:
            piece = _piece(
                program, [v for e in equations for v in e.results if v in later_atoms], shared.union(equations)
            )
            is_worth_it = len(piece.equations) >= LEAST or len(ranked_equations) == 1
            new_parts = [piece] if is_worth_it else [*piece.equations]
        parts[:0] = new_parts
        later_atoms.update(
            a for part in new_parts for a in (part.inputs if isinstance(part, Program) else part.operands)
        )
    return parts


def _is_short(equation: Equation) -> bool:
    """Whether computing an equation again takes less time than an array that is passed on."""
    is_short = equation.primitive.family in _SHORT or equation.primitive.name in _ROUNDED_ONCE
    return is_short and all(v.type.size <= FEW for v in equation.results)


def _piece(program: Program, results: Sequence[Var], equations: set[Equation]) -> Program:
    """What these results need of the equations, as a program."""
    atoms: set[Atom] = {*results}
    body: list[Equation] = []
    for equation in reversed(program.equations):
        if equation in equations and not atoms.isdisjoint(equation.results):
            body.insert(0, equation)
            atoms.update(equation.operands)
    computed = {v for e in body for v in e.results}
    operands = dict.fromkeys(a for e in body for a in e.operands if isinstance(a, Var) and a not in computed)
    return Program(tuple(operands), tuple(body), tuple(results), name=program.name)


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


def _compiled(piece: Program) -> Callable[..., Sequence[np.ndarray]]:
    """The piece as a function of buffers."""
    # Now, and not in the first call: tiers.py asks for pieces only after many calls.
    executable = compiled(in_order(piece), device_for(None))
    assert isinstance(executable, CpuExecutable)
    executable.refine()  # a draft's entry is slow, and this piece is called often
    return executable.direct()


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
