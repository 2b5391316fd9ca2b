"""List the `raise` statements of rune that no test reaches.

    python tools/unreached_raises.py [PYTEST ARGUMENTS]      e.g. -n 2 --dist loadfile tests

Copies the sources, puts a note before each `raise` of the package, runs the tests on the copy, and
prints each statement without a note. Subprocesses of tests note too: Python imports sitecustomize.
tests/architecture/test_raises.py says why those that are left cannot be reached.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LEFT_BEHIND = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache")

# Imported by every Python of the run; a note is a line in a file of the process.
CUSTOMIZE = """
import os, sys, types

def note(number, seen=set()):
    if number not in seen:
        seen.add(number)
        with open(os.path.join(os.environ["RAISE_NOTES"], str(os.getpid())), "a") as file:
            file.write(f"{number}\\n")

sys.modules["raise_notes"] = types.SimpleNamespace(note=note)
"""
# One expression, so that it stands on the line of the statement; a Python with -I has no notes.
NOTE = '(_notes := __import__("sys").modules.get("raise_notes")) and _notes.note({}); '


class Site(NamedTuple):
    """A `raise`: its file below the root, its line, its text."""

    path: str
    line: int
    text: str


def raises(tree: ast.AST) -> list[ast.Raise]:
    """The statements, last first, so that a change moves none of those to come."""
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    return sorted(statements, key=lambda node: (node.lineno, node.col_offset), reverse=True)


def with_notes(path: Path, name: str, first: int) -> Iterator[Site]:
    """Put a note before each `raise` of a file; numbers begin at `first`."""
    source = path.read_text()
    lines = [line.encode() for line in source.split("\n")]  # columns of the tree count bytes
    for number, node in enumerate(raises(ast.parse(source)), first):
        line, column = lines[node.lineno - 1], node.col_offset
        lines[node.lineno - 1] = line[:column] + NOTE.format(number).encode() + line[column:]
        yield Site(name, node.lineno, ast.unparse(node))
    path.write_text("\n".join(line.decode() for line in lines))


def annotated(root: Path) -> list[Site]:
    """All sites of the package below a root, with notes put before them."""
    sites: list[Site] = []
    for path in sorted((root / "rune").rglob("*.py")):
        sites += with_notes(path, str(path.relative_to(root)), len(sites))
    return sites


def notes_of(command: list[str], root: Path, work: Path) -> set[int]:
    """Run the tests of the copy; the numbers of the sites that were reached."""
    notes, customize = work / "notes", work / "customize"
    notes.mkdir()
    customize.mkdir()
    (customize / "sitecustomize.py").write_text(CUSTOMIZE)
    path = os.pathsep.join((str(customize), str(root)))
    subprocess.run(command, cwd=root, env={**os.environ, "PYTHONPATH": path, "RAISE_NOTES": str(notes)}, check=False)
    return {int(line) for file in notes.iterdir() for line in file.read_text().split()}


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "rune"
        shutil.copytree(ROOT, root, ignore=LEFT_BEHIND)
        sites = annotated(root)
        reached = notes_of([sys.executable, "-m", "pytest", "-q", *arguments], root, Path(folder))
    for number, site in sorted(enumerate(sites), key=lambda entry: entry[1]):
        if number not in reached:
            print(f"{site.path}:{site.line}: {site.text}")
    print(f"{len(reached)} of {len(sites)} reached")


if __name__ == "__main__":
    main(sys.argv[1:])
