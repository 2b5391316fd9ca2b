"""The walk along `grad(f)(x)` in CONTRIBUTING.md: short, and true of the files that it names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_FILES, MOST_LINES = 6, 900
SECTION = "## Reading: what `grad(f)(x)` does"


def steps() -> dict[str, list[str]]:
    """The files of the table, each with the names to look for."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition(SECTION)[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(rune/\S+\.py)` \| ([^|]+) \|", section, re.MULTILINE)
    return {file: re.findall(r"`(\w+)`", names) for file, names in rows}


STEPS = steps()


def test_the_walk_is_at_most_six_files():
    assert 0 < len(STEPS) <= MOST_FILES


def test_the_walk_is_at_most_nine_hundred_lines():
    assert sum(len((ROOT / file).read_text("utf-8").splitlines()) for file in STEPS) <= MOST_LINES


@pytest.mark.parametrize("file", STEPS)
def test_a_file_defines_the_names_that_the_walk_points_to(file: str):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    definitions = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}

    assert STEPS[file]
    assert set(STEPS[file]) <= definitions
