"""Tables of names that another library has and rune has not, with the reasons, and their pages.

A table is a dict: a reason and the names that it is given for, in one string. A page has a section
for each table.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from rune.absent import Table


def listed(table: Table) -> set[str]:
    """All names of a table."""
    return {name for names in table.values() for name in names.split()}


def page(title: str, introduction: str, sections: Mapping[str, Table]) -> str:
    """The text of a page."""
    return "\n\n".join(_parts(title, introduction, sections))


def _parts(title: str, introduction: str, sections: Mapping[str, Table]) -> Iterator[str]:
    yield f"# {title}"
    yield introduction
    for heading, table in sections.items():
        yield f"## {heading}"
        yield "\n".join(_item(reason, names) for reason, names in table.items())


def _item(reason: str, names: str) -> str:
    shown = ", ".join(f"`{n}`" for n in sorted(names.split()))
    return textwrap.fill(f"- *{reason}* {shown}", 100, subsequent_indent="  ", break_on_hyphens=False)
