"""Notebooks as pages of the site: words, code and outputs, with pictures as files beside them.

A page is Markdown. HTML outputs, which are rune's own tables and drawings, stand in it as they are:
their lines have the colour of the text around them, and so go with light and dark.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NotebookPage:
    """A notebook as a page."""

    markdown: str
    pictures: Mapping[str, bytes]  # PNGs by their names


def page_of(file: Path) -> NotebookPage:
    """The page of a notebook with the outputs that it was saved with."""
    pictures: dict[str, bytes] = {}
    parts: list[str] = []
    for cell in json.loads(file.read_text("utf-8"))["cells"]:
        parts += _parts(cell, file.stem, pictures)
    return NotebookPage("\n\n".join(parts), pictures)


def _parts(cell: Json, name: str, pictures: dict[str, bytes]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield _output(output, name, pictures)


def _output(output: Json, name: str, pictures: dict[str, bytes]) -> str:
    """One output in the richest form that it has; a PNG becomes a picture."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "text/html" in data:
        return f'<div class="output">{"".join(data["text/html"])}</div>'
    if "image/png" in data:
        picture = f"{name}-{len(pictures) + 1}.png"
        pictures[picture] = base64.b64decode("".join(data["image/png"]))
        return f"![What the code above draws]({picture}){{ .output }}"
    return f'<div class="output"><pre>{html.escape("".join(data["text/plain"]).rstrip())}</pre></div>'
