"""Changes in place: scatters and window updates whose result is their first operand, changed.

That pays where the array is large, or where it is an argument (perhaps changed before) of which a
tiny part is written. A chain of changes is walked once, from its first array on.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from rune.core.lower import Scatter
from rune.core.program import Atom, Definitions, Equation, Var
from rune.lowering.kernelize import cost
from rune.ops.loop import put_row
from rune.ops.windows import dynamic_update_slice
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Changes:
    """The scatters, and the updates of small windows, that change an array in place."""

    scatters: frozenset[Equation]
    windows: frozenset[Equation]

    def is_tiny(self, equation: Equation) -> bool:
        """Whether an equation changes a tiny part of an array."""
        if not (equation in self.scatters or equation in self.windows) or not isinstance(equation.operands[0], Var):
            return False
        return _is_tiny_part(_update(equation), cost.count(equation.results[0].type.shape), 0)

    def results(self, values: Container[Var], definitions: Definitions) -> frozenset[Var]:
        """The stored values that are operand 0, changed; a window needs its array in memory."""
        arrays = {e.results[0]: e.operands[0] for e in (*self.scatters, *self.windows) if e.results[0] in values}
        return frozenset(
            result
            for result, array in arrays.items()
            if isinstance(array, Var)
            and (definitions[result] in self.scatters or array in values or array not in definitions)
        )


def changes_of(equations: Iterable[Equation], definitions: Definitions) -> Changes:
    """The changes in place among equations in order, which `definitions` defines."""
    scatters: set[Equation] = set()
    windows: set[Equation] = set()
    arguments: set[Var] = set()  # after changes in place
    for equation in equations:
        if isinstance(equation.primitive.lower, Scatter):
            changes, is_change = scatters, _is_scatter_in_place
        elif equation.primitive in (put_row, dynamic_update_slice):
            changes, is_change = windows, _is_small_window
        else:
            continue
        array = equation.operands[0]
        is_argument = isinstance(array, Var) and (array in arguments or array not in definitions)
        if is_change(equation, is_argument):
            changes.add(equation)
            if is_argument:
                arguments.add(equation.results[0])
    return Changes(frozenset(scatters), frozenset(windows))


def _is_scatter_in_place(equation: Equation, is_argument: bool) -> bool:
    array = cost.count(equation.results[0].type.shape)
    return array >= cost.IN_PLACE or (is_argument and _is_tiny_part(_update(equation), array, cost.SMALLEST_ARGUMENT))


def _is_small_window(equation: Equation, is_argument: bool) -> bool:
    # The row of a scan's results: however long a row is, the others are not to be copied.
    if equation.primitive is put_row:
        return True
    operand, window = equation.operands[:2]
    array = cost.count(operand.type.shape)
    if array < cost.IN_PLACE:
        return _is_tiny_part(window, array, cost.SMALLEST_ARGUMENT if is_argument else cost.SMALLEST_IN_PLACE)
    return array >= cost.WINDOW_SHARE * cost.count(window.type.shape) > 0


def _update(equation: Equation) -> Atom:
    lower = equation.primitive.lower
    return equation.operands[lower.updates if isinstance(lower, Scatter) else 1]


def _is_tiny_part(part: Atom, array: int, smallest: int) -> bool:
    return array >= max(smallest, cost.TINY_SHARE * cost.count(part.type.shape)) and cost.count(part.type.shape) > 0


__all__ = ["Changes", "changes_of"]
