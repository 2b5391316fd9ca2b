"""Times, bytes and tables as human-readable text."""

from __future__ import annotations

import math
from collections.abc import Sequence

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_BYTES = (("GiB", 30), ("MiB", 20), ("KiB", 10))


def time_text(seconds: float) -> str:
    """A time as human-readable text.

    >>> time_text(0.0012), time_text(7e-8)
    ('1.20 ms', '70 ns')
    """
    if math.isnan(seconds):
        return "unknown"
    for unit, name in _TIMES:
        if seconds >= unit:
            return f"{seconds / unit:.2f} {name}"
    return f"{seconds * 1e9:.0f} ns"


def bytes_text(size: int) -> str:
    """A number of bytes as human-readable text.

    >>> bytes_text(1000), bytes_text(37888), bytes_text(3 << 20)
    ('1000 B', '37 KiB', '3 MiB')
    """
    for unit, power in _BYTES:
        if size >= 1 << power:
            return f"{size / (1 << power):.3g} {unit}"
    return f"{size} B"


def counted(number: object, noun: str) -> str:
    """A number, possibly a symbolic size, with its noun in singular or plural.

    >>> counted(1, "copy"), counted(2, "copy"), counted(0, "trace"), counted(5, "live array")
    ('1 copy', '2 copies', '0 traces', '5 live arrays')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The lines of a table; the first and last column align left, those between align right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if k in (0, last) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
