"""The Python of written pages: blocks of code, and what they print.

All ```python blocks of a page run in order, in one namespace. A ```text block right after one shows
what it printed.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of Python, and the output shown for it, if any."""

    code: str
    shown: str | None


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page."""
    return [Block(code, shown or None) for code, shown in BLOCK.findall(text)]


def printed(block: Block, title: str, names: dict[str, Any]) -> str:
    """What a block prints in a namespace, which it adds to."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(block.code, title, "exec"), names)
    return output.getvalue().strip()


def namespace(pages: list[Path]) -> Mapping[str, Any]:
    """The names that pages which go on from each other have made at the end."""
    names: dict[str, Any] = {}
    for page in pages:
        for number, block in enumerate(blocks(page.read_text()), 1):
            printed(block, f"{page.name} block {number}", names)
    return names
