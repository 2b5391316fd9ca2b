"""Narrow: compute before broadcasting instead of after.

Before   %1: f32[8,512] = broadcast %0 {axes=(0,)};  %2: f32[8,512] = div %1, 512.0
After    %1: f32[8] = div %0, 512.0;  %2: f32[8,512] = broadcast %1 {axes=(0,)}

If all ranked operands of an elementwise equation are broadcast along the same axes from one smaller
shape, the equation is computed in that shape; rank-0 operands stay as they are.

Invariant: every value keeps its bits.  Cost: linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Mapping

from rune.core.lower import Bitcast, Convert, Scalar
from rune.core.program import Atom, Equation, Program, Var
from rune.core.types import Shape
from rune.dims import product
from rune.lowering.passes import Pass
from rune.lowering.simplify.fold_constants import type_of_result
from rune.ops.family import broadcast
from rune.records import replace

ELEMENTWISE = (Scalar, Convert, Bitcast)
Spread = tuple[Shape, Shape, tuple[int, ...]]  # from one shape to another, along axes


def narrow(program: Program) -> Program:
    """The program with elementwise equations moved in front of the broadcasts they read."""
    broadcasts: dict[Var, Equation] = {}
    body: list[Equation] = []
    for equation in program.equations:
        replacement = _narrowed(equation, broadcasts)
        body += replacement
        # New broadcasts are recorded too, so a chain of elementwise equations narrows step by step.
        if replacement[-1].primitive is broadcast:
            broadcasts[replacement[-1].results[0]] = replacement[-1]
    # A narrowed equation becomes two, so equal lengths mean that nothing happened.
    same = len(body) == len(program.equations)
    return program if same else program.with_equations(body, program.outputs)


def _narrowed(equation: Equation, broadcasts: Mapping[Var, Equation]) -> list[Equation]:
    """The equation on small operands, and the broadcast of its result; or the equation itself."""
    if not isinstance(equation.primitive.lower, ELEMENTWISE):
        return [equation]
    spread = _common_spread(equation, broadcasts)
    if spread is None:
        return [equation]
    source, shape, axes = spread
    operands = tuple(_behind(a, broadcasts) for a in equation.operands)
    result = equation.results[0]
    small = replace(equation, operands=operands, results=(Var(result.type.with_shape(source)),))
    if type_of_result(small) is not small.results[0].type:
        return [equation]
    params = {"shape": shape, "axes": axes}
    return [small, Equation(broadcast, small.results, params, (result,), equation.frame)]


def _common_spread(equation: Equation, broadcasts: Mapping[Var, Equation]) -> Spread | None:
    """The broadcast that all ranked operands share, if there is one and it adds elements."""
    spreads: set[Spread] = set()
    for atom in equation.operands:
        if not atom.type.shape:
            continue
        inner = broadcasts.get(atom) if isinstance(atom, Var) else None
        if inner is None:
            return None
        spreads.add((inner.operands[0].type.shape, atom.type.shape, inner.params["axes"]))
    if len(spreads) != 1:
        return None
    (spread,) = spreads
    # A broadcast that only adds axes of size 1 repeats nothing, so narrowing would not save work.
    return spread if product(spread[0]) != product(spread[1]) else None


def _behind(atom: Atom, broadcasts: Mapping[Var, Equation]) -> Atom:
    return broadcasts[atom].operands[0] if isinstance(atom, Var) and atom.type.shape else atom


PASS = Pass("narrow", "compute before broadcasting", narrow)
