"""Side effects: equations that do more than compute values.

Such an equation runs exactly once, even if nothing reads its results: it is neither dropped nor
merged with an equal one. Ordered effects happen in the order of the program, others in any order.
An equation that holds programs has their effects.
"""

from __future__ import annotations

from collections.abc import Iterable

from rune.core.higher import inner_first, subprograms
from rune.core.primitive import Effect
from rune.core.program import Equation, Program


@inner_first
def program_effect(program: Program) -> Effect | None:
    """The strongest effect of the equations of a program."""
    return strongest(map(effect_of, program.equations))


def effect_of(equation: Equation) -> Effect | None:
    """The effect of an equation and of the programs that it holds."""
    rule = equation.primitive.effect
    direct = None if rule is None else rule(**equation.params)
    programs = subprograms(equation)
    return strongest((direct, *map(program_effect, programs))) if programs else direct


def strongest(effects: Iterable[Effect | None]) -> Effect | None:
    """Ordered if any effect is; otherwise unordered if there is any effect."""
    present = set(effects)
    return next((e for e in (Effect.ORDERED, Effect.UNORDERED) if e in present), None)
