"""Hoist from loops: compute before a loop what is costly and the same in every step.

Before   loop %w, %h { body: %e = exp %w;  %n = mul %e, %h;  return %n }
After    %e = exp %w;  loop %w, %e, %h { body: %n = mul %e, %h;  return %n }

An equation of a body is the same in every step if it depends only on the loop's constants. It is
costly if it sums, contracts, scans or loops, or is an expensive scalar operation; views and cheap
arithmetic stay, since they cost less than the memory that would hold their results.

Invariant: a loop computes the same, even a loop of no steps, as equations have no effects.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.core.lower import Contraction, Cumulative, Reduction, Scalar, Scatter
from rune.core.program import Atom, Equation, Program, Var
from rune.lowering.kernelize import cost
from rune.lowering.passes import Pass
from rune.ops.branch import is_control
from rune.ops.loop import LoopParams, loop
from rune.records import replace

COSTLY = 6  # the cost of a scalar operation from which it is hoisted
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
    body = form.body
    same: set[Var] = set(_consts(form))
    candidates: list[Equation] = []
    for e in body.equations:
        if e.operands and all(a in same for a in e.operands if isinstance(a, Var)):
            same.update(e.results)
            candidates.append(e)
    reads: set[Var] = set()
    invariants: list[Equation] = []
    for e in reversed(candidates):
        # Cheap equations move only where a costly one that moves needs them.
        if _is_costly(e) or not reads.isdisjoint(e.results):
            invariants.append(e)
            reads.update(a for a in e.operands if isinstance(a, Var))
    return tuple(reversed(invariants))


def _consts(form: LoopParams) -> Sequence[Var]:
    # Input 0 is the counter, then come constants, then carries.
    return form.body.inputs[1 : 1 + form.consts]


def _is_costly(equation: Equation) -> bool:
    match equation.primitive.lower:
        case Scalar(op=op):
            return cost.operation(op) >= COSTLY
        case lower:
            return isinstance(lower, _COSTLY_FORMS) or is_control(equation)


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
