"""The collectives of one device's plan, as values (talk.py finds them in a plan)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from rune.core.types import ArrayType
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.lowering.meetings import CollectiveCall


@dataclass(frozen=True, slots=True)
class Message:
    """A collective, and the types of its operands in the program."""

    call: CollectiveCall
    operands: tuple[ArrayType, ...]

    @property
    def axis_name(self) -> Hashable:
        """The axis along which its devices are."""
        return self.call.axis_name

    @property
    def types(self) -> str:
        """The operands' types, as text for errors."""
        return ", ".join(f"{t.dtype}{list(t.shape)}" for t in self.operands)

    def __str__(self) -> str:
        return str(self.call)


@dataclass(frozen=True, slots=True)
class Talk:
    """The messages of a plan, and the axes along which it queries its place."""

    messages: tuple[Message, ...]
    axes: tuple[Hashable, ...]
    is_native: bool  # no other Python function is called


SILENT = Talk((), (), True)
