"""The error for source that a compiler refuses.

The message has the compiler's own words with the line that they concern, then the function around
that line, with line numbers, the line marked by `>`. The driver's additions (files, addresses,
options) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rune.errors import CompileError

# `<string>:4:20: error: words`, `error: file.cl:4:20: words`, `file(4): error: words`
_REMARK = re.compile(
    r"^(?=.*\berror\b)(?:error:\s*)?[^\s:(]*?[:(](?P<line>\d+)(?:[:,](?P<column>\d+))?\)?:\s*"
    r"(?:fatal )?(?:error:\s*)?(?P<words>.+)$",
    re.MULTILINE,
)
_AROUND = 20  # lines to list before and after a marked one in a long function
_MOST = 400  # lines to list where the compiler names none


def refusal(action: str, source: str, report: str) -> CompileError:
    """The error for `source`, for which a compiler printed `report`.

    action: how the message starts, "cpu: cannot compile f".
    """
    remarks = list(_REMARK.finditer(report))
    lines = source.splitlines()
    reasons = [_remark_text(r) for r in remarks] or [_first_words(report)]
    error_lines = {int(r["line"]) for r in remarks} or _quoted(report, lines)
    error_lines &= set(range(1, len(lines) + 1))
    return CompileError(
        f"{action} ({'; '.join(dict.fromkeys(reasons))})\n{_listing(lines, error_lines)}",
        hint="rune wrote this source: the fault is rune's own; the error's `source` has all of it",
        source=source,
    )


def _remark_text(remark: re.Match[str]) -> str:
    column = f", column {remark['column']}" if remark["column"] else ""
    return f"line {remark['line']}{column}: {remark['words'].strip()}"


def _first_words(report: str) -> str:
    return next((line.strip() for line in report.splitlines() if line.strip()), "no reason given")


def _quoted(report: str, lines: list[str]) -> set[int]:
    """The lines of the source that the report repeats, as LLVM's verifier does."""
    report_lines = {line.strip() for line in report.splitlines() if line.strip()}
    return {number for number, line in enumerate(lines, 1) if line.strip() in report_lines}


def _listing(lines: list[str], error_lines: set[int]) -> str:
    numbers = sorted({n for m in error_lines for n in _around(lines, m)})
    numbers = numbers or list(range(1, len(lines) + 1))[:_MOST]
    rows: list[str] = []
    before = numbers[0] - 1 if numbers else 0
    for number in numbers:
        if number != before + 1:
            rows.append("  ...")
        rows.append(f"{'>' if number in error_lines else ' '}{number:4}  {lines[number - 1]}")
        before = number
    return "\n".join(rows)


def _around(lines: list[str], error_line: int) -> Iterable[int]:
    """The lines between the blank lines around a marked one, at most _AROUND on either side."""
    first = last = error_line
    while first > 1 and lines[first - 2].strip() and error_line - first < _AROUND:
        first -= 1
    while last < len(lines) and lines[last].strip() and last - error_line < _AROUND:
        last += 1
    return range(first, last + 1)
