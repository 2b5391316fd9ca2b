"""Side effects: equations that do more than compute values.

Such an equation runs exactly once, even if nothing reads its results: it is neither dropped nor
merged with an equal one. Ordered effects happen in the order of the program, others in any order.
An equation that holds programs has their effects.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from rune.core.higher import subprograms
from rune.core.primitive import Effect
from rune.core.program import Equation, Program

_known: WeakKeyDictionary[Program, Effect | None] = WeakKeyDictionary()


def program_effect(program: Program) -> Effect | None:
    """The strongest effect of the equations of a program; cached for the program's life."""
    # A stack and not recursion: programs may be nested deeply.
    pending = [] if program in _known else [program]
    while pending:
        current = pending[-1]
        inner = {p for e in current.equations for p in subprograms(e)}
        unknown = [p for p in inner if p not in _known]
        if unknown and current not in _known:
            pending += unknown
            continue
        _known[current] = strongest(map(effect_of, current.equations))
        pending.pop()
    return _known[program]


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
