"""Docstrings of rune as Markdown.

A docstring is paragraphs, entries and examples:

    x:       what it is        ->   a row of a list: the name, and what it is
    an example with prompts    ->   a block of code, and one of what it prints
    sums      add, mean        ->   as it is, where every line has columns, or is indented
    anything else              ->   a paragraph, as the first one is in any case
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

ENTRY = re.compile(r"(?P<names>[*\w.\"]+(?:, [*\w.\"]+)*):\s+(?P<text>\S.*)")
COLUMNS = re.compile(r"\S {2,}\S")
SPECIAL = re.compile(r"([*_<\[\]#|])")  # of Markdown, outside code
INDENT = "    "  # of lines that stand apart, code or columns
PROMPTS = (">>> ", "... ", ">>>", "...")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that belong together."""

    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What one line, or several that are indented below it, say of a name."""

    names: str
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Lines with columns, or apart from the text."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """Lines of a session, with prompts."""

    lines: tuple[str, ...]


Part = Paragraph | Entry | Table | Example


def parts(docstring: str) -> list[Part]:
    """What a docstring is made of, in order.

    >>> parts("Sine.\\n\\nx:  in radians,\\n    any shape.")
    [Paragraph(text='Sine.'), Entry(names='x', text='in radians, any shape.')]
    """
    first, *blocks = re.split(r"\n\s*\n", docstring.strip("\n"))
    return [Paragraph(_joined(first.splitlines())), *(p for block in blocks for p in _of_block(block.splitlines()))]


def markdown(docstring: str) -> str:
    """A docstring as Markdown."""
    written: list[str] = []
    for kind, group in groupby(parts(docstring), type):
        if kind is Entry:
            written.append("\n".join(_row(e) for e in group if isinstance(e, Entry)))
        else:
            written += [_written(part) for part in group if not isinstance(part, Entry)]
    return "\n\n".join(written)


def _of_block(lines: Sequence[str]) -> Iterator[Part]:
    if lines and lines[0].lstrip().startswith(">>>"):
        yield Example(tuple(line.strip() if line.strip() in PROMPTS else line for line in lines))
        return
    is_aside = all(line.startswith(INDENT) for line in lines)
    if is_aside or all(COLUMNS.search(line) and not ENTRY.fullmatch(line) for line in lines):
        yield Table(tuple(lines))
        return
    pending: list[str] = []
    for line in (*lines, None):
        starts = line is None or (not line.startswith(" ") and (ENTRY.fullmatch(line) or _is_entry(pending)))
        if starts and pending:
            yield _part(pending)
            pending = []
        if line is not None:
            pending.append(line)


def _is_entry(lines: Sequence[str]) -> bool:
    return bool(lines) and ENTRY.fullmatch(lines[0]) is not None


def _part(lines: Sequence[str]) -> Paragraph | Entry:
    first = ENTRY.fullmatch(lines[0])
    return Entry(first["names"], _joined([first["text"], *lines[1:]])) if first else Paragraph(_joined(lines))


def _joined(lines: Sequence[str]) -> str:
    return " ".join(line.strip() for line in lines)


def _row(entry: Entry) -> str:
    """Parameters as code; Shapes, Types, Errors and Source are not names, and stand in bold."""
    name = f"**{entry.names}**" if entry.names[0].isupper() else f"`{entry.names}`"
    return f"- {name}: {_escaped(entry.text)}"


def _escaped(text: str) -> str:
    """Plain text as Markdown that shows it; what stands between backticks is code there, too."""
    return "`".join(part if k % 2 else SPECIAL.sub(r"\\\1", part) for k, part in enumerate(text.split("`")))


def _written(part: Paragraph | Table | Example) -> str:
    if isinstance(part, Paragraph):
        return _escaped(part.text)
    if isinstance(part, Table):
        return "\n".join(["```text", *part.lines, "```"])
    blocks = []
    for is_code, group in groupby(part.lines, lambda line: line.startswith((">>>", "..."))):
        lines = [line[4:] if is_code else line for line in group]
        blocks.append("\n".join([f"```{'python' if is_code else 'text'}", *lines, "```"]))
    return "\n".join(blocks)
