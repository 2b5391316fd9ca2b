"""Values in named groups: the inputs of a program that is staged from a function.

The types of the inputs are written once, as a record with a list or a single type for each use.
The function gets the same record filled with values, so that no code counts positions:

    @dataclass(frozen=True, slots=True)
    class State(Groups[T]):
        number: T
        carry: list[T]

    def step(state: State[Value]) -> list[Value]:
        return State(add(state.number, ONE), state.carry).flat()

    program = stage_grouped(step, State(COUNTER, carry_types), "step")

Such a record serves for types, for values and for flags alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Generic, Self, TypeVar

from rune.core.program import Program
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.records import dataclass

T = TypeVar("T")  # a value, a type or a flag


@dataclass(frozen=True, slots=True)
class Groups(Generic[T]):
    """A record whose fields are single values, lists, other groups, or None for an absent group."""

    def flat(self) -> list[T]:
        """All values, in the order of the fields."""
        return [v for group in self._groups() for v in _flat(group)]

    def filled(self, values: Iterable[object]) -> Self:
        """A record of the same lengths with these values."""
        following = iter(values)
        return type(self)(*(_filled(group, following) for group in self._groups()))

    def _groups(self) -> list[object]:
        # Not `astuple`, which would copy the values.
        return [getattr(self, field.name) for field in fields(self)]


def _flat(group: object) -> list[Any]:
    if group is None:
        return []
    if isinstance(group, Groups):
        return group.flat()
    return group if isinstance(group, list) else [group]


def _filled(group: object, values: Iterator[object]) -> object:
    if group is None:
        return None
    if isinstance(group, Groups):
        return group.filled(values)
    return [next(values) for _ in group] if isinstance(group, list) else next(values)


def stage_grouped(function: Callable[[Any], Sequence[Value]], types: Groups[ArrayType], name: str) -> Program:
    """The program of a function that takes one record; its inputs have these types, in order."""
    return stage(lambda *args: function(types.filled(args)), types.flat(), name).closed()
