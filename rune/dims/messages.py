"""Error messages about sizes: the ranges of symbols, and which comparison cannot be decided.

Such an error names both sizes, their ranges, and how to declare what would decide it.
"""

from __future__ import annotations

from typing import Any

from rune.dims.factors import Size, Symbol, symbols, terms_of
from rune.errors import DimensionError


def ranges(*sizes: Size) -> str:
    """The declared ranges of all symbols in `sizes`, for messages: "n in 1..4096"."""
    distinct = sorted(frozenset().union(*map(symbols, sizes)), key=lambda s: s.key)
    return ", ".join(f"{s} in {s.low}..{'' if s.high is None else s.high}" for s in distinct)


class UndecidedComparison(DimensionError):
    """A comparison that depends on the values of symbols; `question` is a tuple (a, "<=", b)."""

    def __init__(self, message: str, hint: str, question: tuple[Size, str, Size]):
        super().__init__(message, hint)
        self.question = question

    def during(self, operation: str, of: str) -> None:
        """Add the operation that compares, and its operand, to the message."""
        question, _, known = self.message.removeprefix("compare: cannot decide ").partition(" (")
        self.restate(f"{operation}: cannot decide {question} for {of} ({known}")


def undecided(a: Size, sign: str, b: Size) -> UndecidedComparison:
    """The error for the comparison `a sign b`."""
    message = f"compare: cannot decide {a} {sign} {b} ({ranges(a, b)})"
    small, large = (a, b) if sign in ("<", "<=") else (b, a)
    gap = 0 if sign in ("<=", ">=") else 1
    return UndecidedComparison(message, _what_decides(small, large, gap), (a, sign, b))


def _what_decides(small: Size, large: Size, gap: int) -> str:
    """The hint for the question whether `small` is at most large - gap."""
    below, above = as_symbol(small), as_symbol(large)
    if below and above:
        most = f"{above.name} - {gap}" if gap else above.name
        return f"if it always holds, declare it: {_range(below.name, below.low, most)}"
    if below and isinstance(large, int):
        return _either(below.name, (below.low, large - gap), (large - gap + 1, below.high))
    if above and isinstance(small, int):
        return _either(above.name, (small + gap, above.high), (above.low, small + gap - 1))
    return "declare tighter bounds in dims"


def _either(name: str, one: tuple[Size | None, ...], other: tuple[Size | None, ...]) -> str:
    return f"declare what decides it: {_range(name, *one)} or {_range(name, *other)}"


def _range(name: str, *bounds: Size | str | None) -> str:
    """A declaration in Python's syntax, with symbolic sizes in quotes."""
    parts = (str(b) if isinstance(b, int | None) else f'"{b}"' for b in bounds)
    return f'dims={{"{name}": ({", ".join(parts)})}}'


def no_value(size: Any, kind: str) -> DimensionError:
    """The error for code that needs the value of a size, as float, int, range and if do."""
    message = f"{kind}: cannot make a Python {kind} of a dimension ({size}; {ranges(size)})"
    return DimensionError(message, hint=f"a size has no value while tracing; {_INSTEAD[kind]}")


_INSTEAD = {
    "truth value": "ask what its range decides, as n >= 1",
    "integer": "use it as it is, or rune.numpy.asarray(n) as a value",
    "float": "use rune.numpy.asarray(n) as a value",
    "index": "loop with rune.scan or rune.fori_loop, and make arrays with rune.numpy",
}


def as_symbol(x: Size) -> Symbol | None:
    """The symbol that x consists of, or None.

    >>> from rune.dims import symbol
    >>> n = symbol("n")
    >>> as_symbol(n).name, as_symbol(2 * n), as_symbol(3)
    ('n', None, None)
    """
    match terms_of(x):
        case ((1, (Symbol() as symbol,)),):
            return symbol
    return None
