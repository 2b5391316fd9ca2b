"""Frames: the addresses of one plan's arguments, results and arena while native code runs it.

Values   in registers, of a plan within another: an alternating carry is a pointer that changes
Words    in memory: of @run, and of steps in functions of their own (steps.py)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.records import dataclass


class Frame(Protocol):
    """The addresses of one plan's arguments, results and arena."""

    def argument(self, number: int) -> Value:
        """The address of an argument."""
        ...

    def result(self, number: int) -> Value:
        """The address of a result."""
        ...

    def arena(self) -> Value:
        """The address of the arena."""
        ...


@dataclass(frozen=True, slots=True)
class Values:
    """A frame in registers, of a plan within another."""

    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    base: Value

    def argument(self, number: int) -> Value:
        """The address of an argument."""
        return self.arguments[number]

    def result(self, number: int) -> Value:
        """The address of a result."""
        return self.results[number]

    def arena(self) -> Value:
        """The address of the arena."""
        return self.base


@dataclass(frozen=True, slots=True)
class Words:
    """A frame in memory, which does not change while a function reads it."""

    words: Value
    shape: tuple[int, int]  # how many arguments and results
    is_inner: bool = False  # of a loop or branch, where an argument may be a result

    def argument(self, number: int) -> Value:
        """The address of an argument."""
        return read(self.words, "ptr", number)

    def result(self, number: int) -> Value:
        """The address of a result."""
        return read(self.words, "ptr", self.shape[0] + number)

    def arena(self) -> Value:
        """The address of the arena."""
        return read(self.words, "ptr", sum(self.shape))


def word(words: Value, number: int) -> Value:
    return words.writer.item(words, "i64", number)


def read(words: Value, type: str, number: int) -> Value:
    """A word that never changes: `emit` reads it once, where it is first used."""
    return words.writer.emit(type, f"load {type}, ptr {word(words, number).text}")


def in_memory(writer: Writer, values: Sequence[Value]) -> Value:
    """Words on the stack with these values."""
    # At least two, so that the type is an array, however few values there are.
    words = writer.allocate("i64", max(2, len(values)))
    for k, value in enumerate(values):
        writer.store(value, word(words, k))
    return words


def in_turn(writer: Writer, first: Value, second: Value, before: str, last: str) -> tuple[Value, Value]:
    """Two pointers that are swapped in every step of a loop."""
    current, following = (Value(writer, "ptr", f"%{writer.name(stem)}") for stem in ("now", "then"))
    for value, start, other in ((current, first, following), (following, second, current)):
        incoming = f"[ {start.text}, %{before} ], [ {other.text}, %{last} ]"
        writer.do(f"{value.text} = phi ptr {incoming}")
    return current, following
