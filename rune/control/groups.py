"""Values in named groups: the inputs of a program that is staged from a function.

The types of the inputs are written once, as a record with a list or a single type for each use.
The function gets the same record filled with values, so nobody counts positions:

    @dataclass(frozen=True, slots=True)
    class State(Groups):
        number: Any
        carry: list[Any]

    def step(state: State) -> list[Any]:
        return State(add(state.number, ONE), state.carry).flat()

    program = stage_grouped(step, State(COUNTER, carry_types), "step")

Such a record serves for types, for values and for flags alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

from rune.core.program import Program
from rune.core.staging import stage


@dataclass(frozen=True, slots=True)
class Groups:
    """A record whose fields are single values, lists, other groups, or None for an absent group."""

    def flat(self) -> list[Any]:
        """All values in the order of the fields."""
        return [v for group in self._groups() for v in _flat(group)]

    def filled(self, values: Iterable[Any]) -> Self:
        """A record of the same lengths with these values."""
        following = iter(values)
        return type(self)(*(_filled(group, following) for group in self._groups()))

    def _groups(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]


def _flat(group: Any) -> list[Any]:
    if group is None:
        return []
    if isinstance(group, Groups):
        return group.flat()
    return group if isinstance(group, list) else [group]


def _filled(group: Any, values: Iterator[Any]) -> Any:
    if group is None:
        return None
    if isinstance(group, Groups):
        return group.filled(values)
    return [next(values) for _ in group] if isinstance(group, list) else next(values)


G = TypeVar("G", bound=Groups)


def stage_grouped(function: Callable[[G], list[Any]], types: G, name: str) -> Program:
    """The program of a function of one record; its inputs have these types, in order."""
    staged = stage(lambda *args: function(types.filled(args)), types.flat(), name)
    return staged.closed()
