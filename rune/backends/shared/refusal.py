"""Source that a compiler refuses, as a user reads it.

The message has the compiler's own words with the line they are about, then the function around
that line, numbered, the line marked by `>`. What the driver adds (files, addresses, options) is
left out.
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
_AROUND = 20  # lines shown before and after a marked one in a long function
_MOST = 400  # lines shown where the compiler names none


def refusal(action: str, source: str, report: str) -> CompileError:
    """The error for `source`, about which a compiler says `report`.

    action: how the message starts, "cpu: cannot compile f".
    """
    remarks = list(_REMARK.finditer(report))
    lines = source.splitlines()
    said = [_said(r) for r in remarks] or [_first_words(report)]
    marked = {int(r["line"]) for r in remarks} or _quoted(report, lines)
    marked &= set(range(1, len(lines) + 1))
    return CompileError(
        f"{action} ({'; '.join(dict.fromkeys(said))})\n{_listing(lines, marked)}",
        hint="rune wrote this source: the fault is rune's own; the error's `source` has all of it",
        source=source,
    )


def _said(remark: re.Match[str]) -> str:
    column = f", column {remark['column']}" if remark["column"] else ""
    return f"line {remark['line']}{column}: {remark['words'].strip()}"


def _first_words(report: str) -> str:
    return next((line.strip() for line in report.splitlines() if line.strip()), "no reason given")


def _quoted(report: str, lines: list[str]) -> set[int]:
    """The lines of the source that the report repeats, as LLVM's verifier does."""
    said = {line.strip() for line in report.splitlines() if line.strip()}
    return {number for number, line in enumerate(lines, 1) if line.strip() in said}


def _listing(lines: list[str], marked: set[int]) -> str:
    shown = sorted({n for m in marked for n in _around(lines, m)})
    shown = shown or list(range(1, len(lines) + 1))[:_MOST]
    rows: list[str] = []
    before = shown[0] - 1 if shown else 0
    for number in shown:
        if number != before + 1:
            rows.append("  ...")
        rows.append(f"{'>' if number in marked else ' '}{number:4}  {lines[number - 1]}")
        before = number
    return "\n".join(rows)


def _around(lines: list[str], marked: int) -> Iterable[int]:
    """The block of lines without a blank one that holds the marked line, or what is near it."""
    first = last = marked
    while first > 1 and lines[first - 2].strip() and marked - first < _AROUND:
        first -= 1
    while last < len(lines) and lines[last].strip() and last - marked < _AROUND:
        last += 1
    return range(first, last + 1)
