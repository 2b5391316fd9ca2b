"""The Python of the README and the pages runs, and prints what they show.

Every link to a file of the repository leads somewhere.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from docs.snippets import blocks, printed

ROOT = Path(__file__).parent.parent
MANY_DEVICES = ROOT / "docs" / "guide" / "many-devices.md"  # eight_devices/test_guide.py runs it
PLACEMENT = ROOT / "docs" / "guide" / "placement.md"  # sharding/test_pages.py runs it
JAX_LIBRARIES = ROOT / "docs" / "guide" / "jax-libraries.md"  # as_jax/test_libraries.py runs it
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "index.md",
    ROOT / "docs" / "architecture.md",
    ROOT / "docs" / "symbolic.md",
    ROOT / "docs" / "reverse-mode-of-while.md",
    *(p for p in (ROOT / "docs/guide").glob("*.md") if p not in (MANY_DEVICES, PLACEMENT, JAX_LIBRARIES)),
]
TEXTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_snippet_runs_and_prints_what_the_page_shows(page: Path):
    require_true(page)


def require_true(page: Path) -> None:
    """Run the snippets of a page, in order, and compare what they print."""
    names: dict[str, Any] = {}
    require_true_in(page, names)


def require_true_in(page: Path, names: dict[str, Any]) -> None:
    """... in a namespace, which they add to."""
    for number, block in enumerate(blocks(page.read_text()), 1):
        output = printed(block, f"{page.name} block {number}", names)
        assert block.shown is None or output == block.shown.strip(), f"{page.name} block {number}"


def test_every_chapter_of_the_tutorial_continues_where_the_last_one_stopped():
    names: dict[str, Any] = {}
    for chapter in sorted((ROOT / "docs" / "tutorial").glob("*.md")):
        require_true_in(chapter, names)


def test_the_readme_begins_with_an_example_of_ten_lines_and_its_output():
    first = blocks((ROOT / "README.md").read_text())[0]

    assert first.shown is not None
    assert len([x for x in first.code.splitlines() if x.strip()]) <= 10


def test_the_readme_prints_the_commands_that_exist():
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"^(\./scripts/\w+)$", text, re.M)

    assert commands == ["./scripts/digits", "./scripts/test"]
    assert all((ROOT / c).stat().st_mode & 0o111 for c in commands)


def test_continuous_integration_calls_the_second_command_as_printed():
    assert "./scripts/test" in (ROOT / ".ci" / "run").read_text().splitlines()[-1].split()


@pytest.mark.parametrize("page", TEXTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page):
    targets = LINK.findall(page.read_text())

    assert [t for t in targets if not (page.parent / t).exists()] == []


def test_every_decision_is_in_the_index():
    folder = ROOT / "docs" / "decisions"
    links = LINK.findall((folder / "README.md").read_text())

    assert sorted(links) == sorted(f.name for f in folder.glob("[0-9]*.md"))


def test_the_map_of_the_house_names_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text()
    names = [n for n in re.findall(r"`([\w./]+)`", text) if "/" in n]
    places = (ROOT, ROOT / "rune")

    assert [n for n in names if not any((p / n).exists() for p in places)] == []
    assert len(names) > 20
