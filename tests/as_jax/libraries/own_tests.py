"""A library's own tests, out of its sdist, run on rune; failures are held against a list.

`failures/<library>.txt` has a line for each test known to fail, `module.Class::test  # why`;
a name may end in `*`.
"""

from __future__ import annotations

import fnmatch
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).parent
LIMIT_S = 3 * 3600


@dataclass(frozen=True)
class Results:
    """How a library's own tests ended, by their names."""

    passes: tuple[str, ...]
    failures: tuple[str, ...]
    skips: tuple[str, ...]

    def unknown(self, known: dict[str, str]) -> list[str]:
        """The failures that nobody has explained."""
        return [name for name in self.failures if not any(fnmatch.fnmatch(name, k) for k in known)]


def known_failures(library: str) -> dict[str, str]:
    """Patterns of the tests that fail, each with its reason."""
    file = HERE / "failures" / f"{library}.txt"
    if not file.exists():
        return {}
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return {name.strip(): why.strip() for name, _, why in (line.partition("  # ") for line in lines)}


def fetch(requirement: str, folder: Path) -> Path:
    """Download and unpack the sdist of `name==version`; its folder."""
    name, _, version = requirement.partition("==")
    target = folder / f"{name.replace('-', '_')}-{version}"
    if not target.exists():
        archives = folder / "archives" / name
        options = [
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-binary",
            ":all:",
            "--dest",
            str(archives),
        ]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, requirement], check=True)
        with tarfile.open(next(archives.glob("*.tar.gz"))) as archive:
            top = archive.getnames()[0].split("/")[0]
            archive.extractall(folder, filter="data")
        (folder / top).rename(target)
    return target


def run(sources: Path, folders: tuple[str, ...], variables: Mapping[str, str]) -> Results:
    """Run the tests in these folders of an unpacked sdist, with `import jax` giving rune."""
    report = sources.with_suffix(".xml")
    options = ["-q", "-p", "no:cacheprovider", "--tb=line", f"--junitxml={report}"]
    tests = [str(sources / folder) for folder in folders]
    command = [sys.executable, "-m", "rune.as_jax", "-m", "pytest", *options, *tests]
    subprocess.run(command, cwd=sources, env={**os.environ, **variables}, timeout=LIMIT_S, check=False)
    return read(report)


def read(report: Path) -> Results:
    """The results in a report of pytest's, as JUnit writes them."""
    outcomes: dict[str, list[str]] = {"passed": [], "failed": [], "skipped": []}
    for case in ElementTree.parse(report).iter("testcase"):
        outcomes[_outcome(case)].append(f"{case.get('classname')}::{case.get('name')}")
    return Results(*(tuple(names) for names in outcomes.values()))


def _outcome(case: ElementTree.Element) -> str:
    if case.find("skipped") is not None:
        return "skipped"
    return "passed" if case.find("failure") is None and case.find("error") is None else "failed"
