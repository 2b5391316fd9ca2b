"""Simplify algebra: rewrite equations by laws that hold bit for bit.

Before   %1 = mul %0, 1.0;  %2 = neg %1;  %3 = neg %2;  return %3       After   return %0
Before   %1 = transpose %0 {(1,0)};  %2 = transpose %1 {(1,0)}           After   %0

scalar_laws.py and view_laws.py have the laws. A law may only answer with a value of the same type,
including weakness; an answer of another type is ignored.

Invariant: every value keeps its bits (a NaN may change its payload).
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from rune.core.program import Atom, Definitions, Equation, Program, Var, substitute
from rune.core.types import ArrayType
from rune.lowering.passes import Pass
from rune.lowering.simplify.fold_constants import resolved, type_of_result
from rune.lowering.simplify.scalar_laws import SCALAR_LAWS, Answer, Site
from rune.lowering.simplify.view_laws import laws_of

ROUNDS = 8  # most laws applied to one equation; each makes it smaller, so few are needed


def simplify_algebra(program: Program) -> Program:
    """The program with every law applied once, from inputs to outputs."""
    definitions: dict[Atom, Equation] = {}
    replacements: dict[Var, Atom] = {}
    body: list[Equation] = []
    for equation in program.equations:
        new_equation = _rewrite(resolved(equation, replacements), definitions)
        if isinstance(new_equation, Equation):
            body.append(new_equation)
            definitions.update((v, new_equation) for v in new_equation.results)
        else:
            replacements[equation.results[0]] = new_equation
    if not replacements and all(a is b for a, b in zip(body, program.equations)):
        return program
    return substitute(program, replacements, body)


def _rewrite(equation: Equation, definitions: Definitions) -> Atom | Equation:
    """The equation or atom to which the laws lead; each answer is simplified again."""
    for _ in range(ROUNDS):
        answer = _first_answer(equation, definitions)
        if not isinstance(answer, Equation):
            return equation if answer is None else answer
        equation = answer
    return equation


def _first_answer(equation: Equation, definitions: Definitions) -> Answer:
    """The answer of the first law that applies and keeps the type."""
    primitive = equation.primitive
    site = Site(equation, definitions)
    # `is` suffices below because types are interned.
    for law in (*SCALAR_LAWS.get(primitive, ()), *laws_of(primitive)):
        answer = law(site)
        if answer is not None and _type(answer) is equation.results[0].type:
            return answer
    return None


def _type(answer: Answer) -> ArrayType | None:
    if not isinstance(answer, Equation):
        return None if answer is None else answer.type
    return type_of_result(answer)


PASS = Pass("simplify-algebra", "rewrite by laws that hold bit for bit", simplify_algebra)
