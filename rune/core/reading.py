"""Malformed text: every failure while reading it is reported as one kind of error.

A parser finds most damage itself, and reports what it expected. The objects that it builds have
checks of their own, and a damaged name, size or type fails in these: here such errors are
attributed to the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from rune.errors import CheckError, RuneError

_WRONG_VALUES = (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError)
_DAMAGE = (RuneError, AssertionError, MemoryError, RecursionError, *_WRONG_VALUES)


def next_line(lines: Iterator[str]) -> str:
    """The next line. Errors: CheckError at the end of the text, also inside a generator."""
    for line in lines:
        return line
    raise CheckError("parse: cannot read a line (the text ends before)")


class reading:
    """A block in which a text is read: errors that the text causes become CheckErrors."""

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
