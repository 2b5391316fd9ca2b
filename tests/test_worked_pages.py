"""The worked pages: examples that run, programs as they are, notebooks with their outputs.

The output of programs for many devices and for data is compared where they run:
sharding/test_examples.py, data/test_examples.py.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("mkdocs", reason="docs/site.py needs MkDocs")

from docs.example_pictures import FOLDER, PICTURES
from docs.notebooks import NOTEBOOKS, page_of
from docs.site import page_about
from tests.support.program_pages import PROGRAMS, shown_code, shown_output, words
from tests.test_readme import require_true

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted(p for p in FOLDER.glob("*.md") if p.stem != "index")
PAGES = sorted(PROGRAMS.glob("*.md"))


# --- examples that run on their page --------------------------------------------------------------


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda p: p.stem)
def test_a_worked_example_runs_and_prints_what_its_page_shows(page: Path):
    require_true(page)


def test_every_worked_example_has_a_picture_that_can_be_drawn_again():
    assert [p.stem for p in EXAMPLES] == sorted(PICTURES)
    assert [p.stem for p in EXAMPLES if f"]({p.stem}.png)" not in p.read_text()] == []


def test_the_index_lists_every_worked_page():
    index = (FOLDER / "index.md").read_text()
    links = [(FOLDER / link).resolve() for link in re.findall(r"\]\(([^)]+)\)", index)]

    assert [p for p in [*EXAMPLES, *PAGES, *NOTEBOOKS] if p.resolve() not in links] == []


# --- programs -------------------------------------------------------------------------------------


def _is_program(file: Path) -> bool:
    return "__main__" in file.read_text()


def test_every_program_has_a_page():
    # The README and a notebook cover the digits.
    programs = {f for f in (ROOT / "examples").glob("*.py") if _is_program(f) and f.stem != "digits"}

    assert [f.name for f in sorted(programs) if page_about(f) is None] == []
    assert len(programs) > 7


def _definitions(file: Path) -> set[str]:
    """The code of all functions, classes and assignments of a file, from its margin."""
    text = file.read_text()
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.ClassDef | ast.Assign)]
    return {_code(text, node) for node in nodes}


def _code(text: str, node: ast.FunctionDef | ast.ClassDef | ast.Assign) -> str:
    decorators = [] if isinstance(node, ast.Assign) else [d.lineno for d in node.decorator_list]
    assert node.end_lineno is not None
    return textwrap.dedent("\n".join(text.splitlines()[min([node.lineno, *decorators]) - 1 : node.end_lineno]))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_code_on_the_page_of_a_program_is_the_programs(page: Path):
    pieces = shown_code(page)

    assert pieces
    for file, code in pieces:
        known = _definitions(ROOT / file)
        for piece in _paragraphs(code):
            assert piece in known, f"{page.name}: not in {file}\n{piece}"


def _paragraphs(code: str) -> list[str]:
    """The statements at the margin of a piece of code."""
    nodes = ast.parse(code).body
    assert all(isinstance(n, ast.FunctionDef | ast.ClassDef | ast.Assign) for n in nodes)
    return [_code(code, n) for n in nodes]  # type: ignore[arg-type]


def test_decoding_prints_what_its_page_shows():
    command = [sys.executable, str(ROOT / "examples" / "decode.py")]
    process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    assert words(process.stdout) == words(shown_output("decode"))


# --- notebooks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda f: f.stem)
def test_the_page_of_a_notebook_has_all_its_words_code_and_pictures(file: Path):
    page = page_of(file)
    cells = nbformat.read(file, as_version=4).cells
    outputs = [o for c in cells if c.cell_type == "code" for o in c.outputs]

    assert [c.source for c in cells if c.source not in page.markdown] == []
    htmls = [o.data["text/html"] for o in outputs if "text/html" in o.get("data", {})]
    assert [h for h in htmls if h not in page.markdown] == []
    pngs = [o for o in outputs if "image/png" in o.get("data", {})]
    assert len(pngs) == len(page.pictures) == page.markdown.count("![")
    assert all(picture.startswith(b"\x89PNG") for picture in page.pictures.values())
    assert page.markdown.count('class="output"') + page.markdown.count("{ .output }") == len(outputs)
