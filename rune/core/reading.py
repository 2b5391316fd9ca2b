"""Malformed text: whatever goes wrong while it is read is reported as one error.

A parser finds most damage itself, and says what it wanted. What it builds has laws of its own, and
a name, a size or a type that damage has changed breaks them somewhere else: there this says that it
was the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from rune.errors import CheckError, RuneError

_DAMAGE = (
    RuneError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
)


def next_line(lines: Iterator[str]) -> str:
    """The next line. Errors: CheckError at the end of the text, also inside a generator."""
    for line in lines:
        return line
    raise CheckError("parse: cannot read a line (the text ends before)")


class reading:
    """Inside the block a text is read: an error that it causes is a CheckError of the parser's."""

    __slots__ = ("subject",)

    def __init__(self, subject: str):
        self.subject = subject

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, _DAMAGE) and not isinstance(error, CheckError):
            lines = str(error).splitlines()
            why = f": {lines[0]}" if lines else ""
            raise CheckError(
                f"parse: cannot read {self.subject} ({type(error).__name__}{why})",
                hint="it is not a text that rune printed, or it was changed",
            ) from error
