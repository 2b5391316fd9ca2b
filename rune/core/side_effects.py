"""Side effects: equations that do something besides giving values.

Such an equation stays whoever reads its results, and happens once: it is neither dropped nor
merged with an equal one. Those that are ordered happen in the order of the program; the others in
any order. An equation that holds programs has the effects of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from rune.core.primitive import Effect
from rune.core.program import Equation, Program, subprograms

_known: WeakKeyDictionary[Program, Effect | None] = WeakKeyDictionary()


def program_effect(program: Program) -> Effect | None:
    """The strongest effect of a program's equations; remembered for as long as it lives."""
    pending = [program]
    while pending:
        found = pending[-1]
        inner = {p for e in found.equations for p in subprograms(e)}
        unknown = [p for p in inner if p not in _known]
        if unknown and found not in _known:
            pending += unknown
            continue
        _known[found] = strongest(map(effect_of, found.equations))
        pending.pop()
    return _known[program]


def effect_of(equation: Equation) -> Effect | None:
    """The effect of an equation and of the programs that it holds."""
    rule = equation.primitive.effect
    own = None if rule is None else rule(**equation.params)
    held = subprograms(equation)
    return strongest((own, *map(program_effect, held))) if held else own


def strongest(effects: Iterable[Effect | None]) -> Effect | None:
    """Ordered, if one is; else unordered, if one is."""
    found = set(effects)
    return next((e for e in (Effect.ORDERED, Effect.UNORDERED) if e in found), None)
