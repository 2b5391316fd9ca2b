"""Runs a library's own tests, from its sdist, on rune; failures are compared with a list.

`failures/<library>.txt` has a line for each test known to fail, `module.Class::test  # why`;
a name may end in `*`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).parent
KINDS = ("passed", "failed", "skipped")
SEVERITY = ("skipped", "passed", "failed")


@dataclass(frozen=True)
class Results:
    """The outcome of a library's own tests, by name."""

    passes: tuple[str, ...]
    failures: tuple[str, ...]
    skips: tuple[str, ...]

    def unknown(self, known: dict[str, str]) -> list[str]:
        """The failures without an explanation."""
        return [name for name in self.failures if not any(_is_named(name, k) for k in known)]


def _is_named(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def known_failures(library: str) -> dict[str, str]:
    """Patterns of the tests that fail, each with its reason."""
    file = HERE / "failures" / f"{library}.txt"
    if not file.exists():
        return {}
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, _, reason in (line.partition("  # ") for line in lines)}


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
            # By an attribute: the argument `filter` is unknown to Python 3.11.2.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            archive.extractall(folder)
        (folder / top).rename(target)
    return target


def run(sources: Path, folders: tuple[str, ...], variables: Mapping[str, str], limit_s: float) -> Results:
    """Run the tests in these folders of an unpacked sdist, with `import jax` giving rune.

    Each file has a process of its own: some set devices or flags before anything else is done. One
    that does not end within the limit counts as a single failure, `<file>::ends`.
    """
    (sources.parent / "pytest.ini").touch()  # of an sdist without settings; they would be rune's
    environment = {**os.environ, **variables}
    return merged([_run_file(sources, file, environment, limit_s) for file in files(sources, folders)])


def files(sources: Path, folders: tuple[str, ...]) -> list[Path]:
    """The files with tests in these folders, which may also be files, in order."""
    paths = [path for folder in folders for path in _modules(sources / folder)]
    return sorted(path for path in paths if path.name.startswith("test_") or path.name.endswith("_test.py"))


def _modules(path: Path) -> Iterable[Path]:
    return path.rglob("*.py") if path.is_dir() else [path]


def _run_file(sources: Path, file: Path, environment: Mapping[str, str], limit_s: float) -> dict[str, str]:
    name = ".".join(file.relative_to(sources).with_suffix("").parts)
    report = sources.parent / "reports" / sources.name / f"{name}.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "--tb=line", f"--rootdir={sources}", f"--junitxml={report}"]
    command = [sys.executable, "-m", "rune.as_jax", "-m", "pytest", *options, str(file)]
    try:
        subprocess.run(command, cwd=sources, env=environment, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return {f"{name}::ends": "failed"}
    return read(report) if report.exists() else {f"{name}::reports": "failed"}


def merged(reports: Iterable[Mapping[str, str]]) -> Results:
    """The results of several files."""
    outcomes = {name: outcome for report in reports for name, outcome in report.items()}
    names = {kind: tuple(n for n, outcome in outcomes.items() if outcome == kind) for kind in KINDS}
    return Results(*names.values())


def read(report: Path) -> dict[str, str]:
    """The outcome of each test in a JUnit report of pytest: the worst of its parts."""
    outcomes: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        outcomes[name] = max(outcomes.get(name, SEVERITY[0]), _outcome(case), key=SEVERITY.index)
    return outcomes


def _outcome(case: ElementTree.Element) -> str:
    if case.find("skipped") is not None:
        return "skipped"
    return "passed" if case.find("failure") is None and case.find("error") is None else "failed"
