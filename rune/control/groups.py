"""Values in named groups: the inputs of a program that is staged from a function.

The types of the inputs are written once, as a record with a list or a single type for each use.
The function gets the same record filled with values, so nobody counts positions:

    @dataclass(frozen=True, slots=True)
    class Inputs(Groups):
        consts: list[Any]
        step: Any
        carry: list[Any]

    stage_grouped(lambda inputs: [add(inputs.step, ONE), *inputs.carry], Inputs([], COUNTER, types))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

from rune.core.program import Program
from rune.core.staging import stage


@dataclass(frozen=True, slots=True)
class Groups:
    """A record whose fields are single values, or lists of them."""

    def flat(self) -> list[Any]:
        """All values in the order of the fields."""
        groups = (getattr(self, field.name) for field in fields(self))
        return [v for group in groups for v in (group if isinstance(group, list) else [group])]

    def filled(self, values: Iterable[Any]) -> Self:
        """A record of the same lengths with these values."""
        following = iter(values)

        def fill(group: Any) -> Any:
            is_list = isinstance(group, list)
            return [next(following) for _ in group] if is_list else next(following)

        return type(self)(*(fill(getattr(self, field.name)) for field in fields(self)))


G = TypeVar("G", bound=Groups)


def stage_grouped(function: Callable[[G], list[Any]], types: G, name: str) -> Program:
    """The program of a function of one record; its inputs have these types, in order."""
    staged = stage(lambda *args: function(types.filled(args)), types.flat(), name)
    return staged.closed()
