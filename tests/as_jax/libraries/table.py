"""Tries libraries on rune, by their examples and their own tests, and writes the guide's table.

    ./scripts/libraries [library...]

Without names, all libraries of libraries.toml are tried, except for own tests that take hours.
Figures that were not measured again stay in the table.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# The folder of this script is on the path.
from catalogue import LIBRARIES, VERSIONS, Library
from own_tests import fetch, known_failures, run

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent
PAGE = ROOT / "docs" / "guide" / "jax-libraries.md"
HEADER = "| library | version | examples that equal JAX's | its own tests that pass |"
RULE = "|---|---|---|---|"
UNTRIED = "| | | | not run |"
LIMIT_S = 3600


@dataclass(frozen=True)
class Row:
    """The results of a library, as the table shows them."""

    title: str
    version: str
    examples: str
    tests: str | None  # None: not run

    def text(self, before: str) -> str:
        """The text of the row, which replaces another."""
        tests = before.split("|")[4].strip() if self.tests is None else self.tests
        return f"| {self.title} | {self.version} | {self.examples} | {tests} |"


def attempt(library: Library, sources: Path, is_named: bool) -> tuple[Row, bool]:
    """Run a library's examples and own tests; its row, and whether all failures are explained."""
    examples, is_explained = run_examples(library)
    tests, is_known = (None, True) if library.only_by_name and not is_named else run_own_tests(library, sources)
    return Row(library.title, VERSIONS[library.distribution], examples, tests), is_explained and is_known


def run_examples(library: Library) -> tuple[str, bool]:
    """Count the examples that answer as jax does, in a separate process."""
    command = [sys.executable, "-m", "rune.as_jax", str(HERE / "run.py"), "compare", library.name]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
    print(process.stdout)
    count = re.search(rf"^{library.name}: (\d+ of \d+) examples$", process.stdout, re.MULTILINE)
    return count[1] if count else "does not run", process.returncode == 0


def run_own_tests(library: Library, sources: Path) -> tuple[str, bool]:
    """Count the tests of a library's sdist that pass; skipped ones do not count."""
    if not library.tests:
        return "its sdist has none", True
    folder = fetch(f"{library.distribution}=={VERSIONS[library.distribution]}", sources)
    results = run(folder, library.tests, library.variables, library.limit_s)
    unknown = results.unknown(known_failures(library.name))
    print(*(f"  not explained: {name}" for name in unknown), sep="\n")
    return f"{len(results.passes)} of {len(results.passes) + len(results.failures)}", not unknown


def write(rows: dict[str, Row]) -> None:
    """Put rows into the table of the page, by their titles."""
    before, _, table = PAGE.read_text().partition(f"{HEADER}\n{RULE}\n")
    lines = table.splitlines()
    size = next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))
    old = {line.split("|")[1].strip(): line for line in lines[:size]}
    new = old | {row.title: row.text(old.get(row.title, UNTRIED)) for row in rows.values()}
    order = [library.title for library in LIBRARIES.values() if library.title in new]
    PAGE.write_text("\n".join([before + HEADER, RULE, *(new[t] for t in order), *lines[size:]]) + "\n")


def main(names: list[str]) -> None:
    """Try the named libraries, or all; ends with 1 if a failure is not explained."""
    sources = Path(sys.prefix) / "sdists"
    outcomes = {name: attempt(LIBRARIES[name], sources, bool(names)) for name in names or LIBRARIES}
    write({name: row for name, (row, _) in outcomes.items()})
    sys.exit(not all(is_explained for _, is_explained in outcomes.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
