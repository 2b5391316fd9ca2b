"""Tables of names that another library has and rune lacks, with the reasons, and their page.

A table is a dict from a reason to the names it applies to, in one string. The page has a chapter
for each library, with a section for each table; the test of a library compares it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rune.absent import Table
from tests.support.expect import expect_file

PAGE = Path(__file__).parent.parent.parent / "docs" / "guide" / "missing.md"


def listed(table: Table) -> set[str]:
    """All names of a table."""
    return {name for names in table.values() for name in names.split()}


def expect_chapter(config: pytest.Config, text: str) -> None:
    """Compare a chapter with that of the page; with --accept write it there."""
    title, page = text.splitlines()[0], PAGE.read_text()
    before, after = re.split(rf"^{re.escape(title)}$.*?(?=^## |\Z)", page, maxsplit=1, flags=re.M | re.S)
    end = "\n\n" if after else "\n"
    expect_file(config, PAGE, before + text.rstrip("\n") + end + after)


def chapter(title: str, introduction: str, sections: Mapping[str, Table]) -> str:
    """The text of a chapter."""
    return "\n\n".join(_parts(title, introduction, sections))


def _parts(title: str, introduction: str, sections: Mapping[str, Table]) -> Iterator[str]:
    yield f"## {title}"
    yield introduction
    for heading, table in sections.items():
        yield f"### {heading}"
        yield "\n".join(_item(reason, names) for reason, names in table.items())


def _item(reason: str, names: str) -> str:
    listing = ", ".join(f"`{n}`" for n in sorted(names.split()))
    return textwrap.fill(f"- *{reason}* {listing}", 100, subsequent_indent="  ", break_on_hyphens=False)
