"""Hoist from loops: compute before a loop what is costly and the same in every step.

Before   loop %w, %h { body: %e = exp %w;  %n = mul %e, %h;  return %n }
After    %e = exp %w;  loop %w, %e, %h { body: %n = mul %e, %h;  return %n }

An equation of a body is the same in every step if it depends only on the loop's constants. It is
costly if it sums, contracts, scans or loops, or is an expensive scalar operation. Cheap arithmetic
is costly where a product or an inner loop would store its result in every step, and where several
operations become one read; where its result has more bytes than what it reads, or only a part
of it is read, it stays, as views do.

Invariant: a loop computes the same, even a loop of no steps, as equations have no effects.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rune.core.lower import (
    ByRoutine,
    Contraction,
    Convert,
    Cumulative,
    Host,
    Library,
    Reduction,
    Routine,
    Scalar,
    Scatter,
    View,
)
from rune.core.program import Atom, Equation, Program, Var
from rune.core.types import ArrayType
from rune.lowering.kernelize import cost
from rune.lowering.passes import Pass
from rune.ops.branch import is_control
from rune.ops.loop import LoopParams, loop
from rune.records import replace

COSTLY = 6  # the cost of a scalar operation from which it is hoisted
CHAIN = 3  # the cost of cheap operations in a row from which they are hoisted together
LEAST_BYTES = 1 << 10  # of a result of cheap arithmetic; below, a kernel more costs more
UNLIMITED_BYTES = 1 << 62
_ARITHMETIC = (Scalar, Convert)
_COSTLY_FORMS = (Reduction, Contraction, Cumulative, Scatter)


def hoist_loops(program: Program) -> Program:
    """The program with costly invariant equations in front of its loops."""
    body: list[Equation] = []
    for equation in program.equations:
        invariants = _invariants(equation) if equation.primitive is loop else ()
        if invariants:
            before, equation = _move(equation, invariants)
            body += before
        body.append(equation)
    if len(body) == len(program.equations):
        return program
    return program.with_equations(body, program.outputs)


def _invariants(equation: Equation) -> tuple[Equation, ...]:
    """The equations of a loop's body that go before it, in order."""
    form = LoopParams.of(equation)
    candidates = _candidates(form.body, _consts(form))
    if not candidates:
        return ()
    costly = _costly(form.body, _consts(form), candidates)
    reads: set[Var] = set()
    invariants: list[Equation] = []
    for e in reversed(candidates):
        # Cheap equations move only where a costly one that moves needs them.
        if e in costly or not reads.isdisjoint(e.results):
            invariants.append(e)
            reads.update(a for a in e.operands if isinstance(a, Var))
    return tuple(reversed(invariants))


def _candidates(body: Program, consts: Sequence[Var]) -> list[Equation]:
    """The equations that depend only on the loop's constants."""
    same: set[Var] = set(consts)
    candidates: list[Equation] = []
    for e in body.equations:
        if e.operands and all(a in same for a in e.operands if isinstance(a, Var)):
            same.update(e.results)
            candidates.append(e)
    return candidates


def _costly(body: Program, consts: Sequence[Var], candidates: Sequence[Equation]) -> set[Equation]:
    """Those of the candidates that are costly, alone or with the arithmetic before them."""
    readers = _readers(body)
    arithmetic = {e for e in candidates if isinstance(e.primitive.lower, _ARITHMETIC)}
    # For each value the cost of an element since memory was last read, and the bytes read there.
    costs: dict[Atom, int] = {}
    bytes_read: dict[Atom, int] = {v: _bytes(v.type) for v in consts}
    costly: set[Equation] = set()
    for e in candidates:
        operation = _operation(e)
        chain = operation + sum(costs.get(a, 0) for a in e.operands)
        source = max((bytes_read.get(a, 0) for a in e.operands), default=0)
        others = [(r, i) for r, i in readers.get(e.results[0], ()) if r not in arithmetic]
        least = min((_least_chain(r, i, e) for r, i in others), default=COSTLY)
        fits = LEAST_BYTES <= _bytes(e.results[0].type) <= source
        if operation >= COSTLY or (e in arithmetic and fits and chain >= least):
            costly.add(e)
            chain, source = 0, UNLIMITED_BYTES
        for v in e.results:
            costs[v], bytes_read[v] = min(chain, cost.UNLIMITED), min(source, _bytes(v.type))
    return costly


def _readers(body: Program) -> dict[Atom, list[tuple[Equation, int]]]:
    readers: dict[Atom, list[tuple[Equation, int]]] = {}
    for e in body.equations:
        for i, a in enumerate(e.operands):
            readers.setdefault(a, []).append((e, i))
    return readers


def _least_chain(reader: Equation, operand: int, equation: Equation) -> float:
    """The least cost of a chain of arithmetic that is computed before the loop for this reader."""
    match reader.primitive.lower:
        case Contraction() | Host() | Library() | Routine() | ByRoutine():
            return 1  # stored in every step otherwise
        case View() if operand == 0 and _elements(reader) < _elements(equation):
            return math.inf  # a step reads, and so computes, a part alone
        case _ if is_control(reader):
            return 1 if reader.primitive is not loop or operand < LoopParams.of(reader).consts else math.inf
        case _:
            return CHAIN


def _elements(equation: Equation) -> int:
    return cost.count(equation.results[0].type.shape)


def _bytes(kind: ArrayType) -> int:
    return cost.count(kind.shape) * kind.dtype.itemsize


def _consts(form: LoopParams) -> Sequence[Var]:
    # Input 0 is the counter, then come constants, then carries.
    return form.body.inputs[1 : 1 + form.consts]


def _operation(equation: Equation) -> int:
    """The cost of one element, in vectorised additions; COSTLY for anything beyond arithmetic."""
    match equation.primitive.lower:
        case Scalar(op=op):
            return cost.operation(op)
        case Convert():
            return 1
        case lower:
            return COSTLY if isinstance(lower, _COSTLY_FORMS) or is_control(equation) else 0


def _move(equation: Equation, invariants: Sequence[Equation]) -> tuple[list[Equation], Equation]:
    """The hoisted equations, rewritten to come before the loop, and the loop without them."""
    form = LoopParams.of(equation)
    body, condition, consts = form.body, form.condition, form.consts
    outside: dict[Atom, Atom] = dict(zip(_consts(form), equation.operands))
    before: list[Equation] = []
    for e in invariants:
        # New Vars, because a Var belongs to one program.
        results = tuple(Var(v.type) for v in e.results)
        outside.update(zip(e.results, results, strict=True))
        operands = tuple(outside.get(a, a) for a in e.operands)
        before.append(replace(e, operands=operands, results=results))
    # Values read only by other hoisted equations need not enter the loop.
    values = _read_behind(body, invariants)
    remaining = [e for e in body.equations if e not in set(invariants)]
    smaller = replace(
        form,
        consts=consts + len(values),
        body=replace(body.with_equations(remaining, body.outputs), inputs=_insert(body, consts, values)),
        # The condition takes the same constants in the same order, whether it reads them or not.
        condition=condition and replace(condition, inputs=_insert(condition, consts, [Var(v.type) for v in values])),
    )
    loop = replace(
        equation,
        operands=(*equation.operands[:consts], *(outside[v] for v in values), *equation.operands[consts:]),
        params=smaller.params(),
    )
    return before, loop


def _read_behind(body: Program, invariants: Sequence[Equation]) -> list[Var]:
    """The hoisted values that the remaining body reads."""
    outside = set(invariants)
    read = {a for e in body.equations if e not in outside for a in e.operands}
    read.update(body.outputs)
    return [v for e in invariants for v in e.results if v in read]


def _insert(program: Program, consts: int, new: Sequence[Var]) -> tuple[Var, ...]:
    """The inputs of a program with new constants after the first `consts`."""
    inputs = program.inputs
    return (*inputs[: 1 + consts], *new, *inputs[1 + consts :])


PASS = Pass("hoist-loops", "compute before a loop what is the same in its steps", hoist_loops)
