"""What errors say of sizes: the ranges of symbols, and which comparison nobody can decide.

Such an error names both sizes, their ranges, and how to declare what would decide it.
"""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

from rune.dims.factors import Symbol, symbols, terms_of
from rune.errors import ArgumentError, DimensionError

if TYPE_CHECKING:
    from rune.dims.algebra import Size


def ranges(*sizes: Size) -> str:
    """The declared ranges of all symbols in `sizes`, for messages: "n in 1..4096"."""
    found = sorted(frozenset().union(*map(symbols, sizes)), key=lambda s: s.key)
    return ", ".join(f"{s} in {s.low}..{'' if s.high is None else s.high}" for s in found)


class UndecidedComparison(DimensionError):
    """A comparison whose answer depends on the values of symbols: `question`, as (a, "<=", b)."""

    def __init__(self, message: str, hint: str, question: tuple[Size, str, Size]):
        super().__init__(message, hint)
        self.question = question

    def during(self, operation: str, of: str) -> None:
        """Name the operation that asked, and of what."""
        question, _, known = self.message.removeprefix("compare: cannot decide ").partition(" (")
        self.restate(f"{operation}: cannot decide {question} for {of} ({known}")


def undecided(a: Size, sign: str, b: Size) -> UndecidedComparison:
    """The error for the comparison `a sign b`."""
    message = f"compare: cannot decide {a} {sign} {b} ({ranges(a, b)})"
    small, large = map(as_symbol, (a, b) if sign in ("<", "<=") else (b, a))
    hint = "declare tighter bounds in dims"
    if small and large:
        most = large.name if sign in ("<=", ">=") else f"{large.name} - 1"
        hint = f'if it always holds, declare it: dims={{"{small.name}": ({small.low}, "{most}")}}'
    return UndecidedComparison(message, hint, (a, sign, b))


def no_number(size: Any, other: Any) -> Any:
    """What an operator of a size answers to something that is no integer: numbers are refused."""
    if not isinstance(other, Number):
        return NotImplemented  # so that an array may answer
    message = f"dimension: cannot compute with {size} and {other} (sizes are whole numbers)"
    raise ArgumentError(message, hint="divide by //, or use rune.numpy.asarray(size) as a value")


def as_symbol(x: Size) -> Symbol | None:
    """The symbol that x is by itself, or None.

    >>> from rune.dims import symbol
    >>> n = symbol("n")
    >>> as_symbol(n).name, as_symbol(2 * n), as_symbol(3)
    ('n', None, None)
    """
    match terms_of(x):
        case ((1, (Symbol() as found,)),):
            return found
    return None
