"""The pages of example programs: the code that they show, and the output."""

from __future__ import annotations

import re
from pathlib import Path

PROGRAMS = Path(__file__).parents[2] / "docs" / "programs"
_CODE = re.compile(r'^```python title="([^"]+)"\n(.*?)^```$', re.M | re.S)
_PRINTED = re.compile(r"^```sh\n.*?^```\n```text\n(.*?)^```$", re.M | re.S)


def shown_code(page: Path) -> list[tuple[str, str]]:
    """(file, code) of the pieces of programs on a page."""
    return _CODE.findall(page.read_text())


def shown_output(page: str) -> str:
    """The output of the first command, as a page shows it."""
    match = _PRINTED.search((PROGRAMS / f"{page}.md").read_text())
    assert match, f"{page}.md shows no command with its output"
    return match[1]


def words(text: str, lines: int | None = None) -> list[str]:
    """The words of the first lines without numbers, whose last digits differ between processors."""
    return re.sub(r"[-+]?\d[\d.,e+-]*", "#", "\n".join(text.splitlines()[:lines])).split()
