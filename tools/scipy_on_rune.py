"""SciPy's own array-API tests, run on rune's arrays and boxes.

    python tools/scipy_on_rune.py signal stats            every test of these modules
    python tools/scipy_on_rune.py --cases 2 special       at most two cases of each test
    python tools/scipy_on_rune.py --on strict signal      the same tests on array-api-strict

SciPy's tests ask a fixture `xp` for the namespace to compute with; the fixture is given the one
that `x.__array_namespace__()` names, with 64-bit defaults. A test is skipped where SciPy skips
every backend that it does not name, and array-api-strict as well. What follows a `--` goes to
pytest, --junitxml=FILE for example. SciPy's files are not changed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import rune
import rune.numpy as rnp

RUNE, STRICT = "rune.numpy.mutable", "array_api_strict"


@dataclass(frozen=True)
class Runs:
    """A plug-in of pytest: how many cases of a test are run, all of them when None."""

    cases: int | None

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Of every test keep some cases, spread over all."""
        if self.cases is not None:
            items[:] = spread(items, self.cases)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Say at once what failed and where: a whole module takes long."""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            where = f"{Path(crash.path).name}:{crash.lineno}: {crash.message}" if crash else ""
            print(f"\nFAILED {report.nodeid} {where[:600]}", flush=True)


class OnRune(Runs):
    """... and rune answers for `xp`."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Where SciPy's fixture has strict, put rune."""
        for fixture in metafunc._arg2fixturedefs.get("xp", ()):
            if fixture.params and [p.id for p in fixture.params] == [STRICT]:
                fixture.params = (introduced(),)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Any:
        """SciPy's tests count on 64-bit defaults."""
        with rune.enable_x64():
            return (yield)


def introduced() -> Any:
    """rune's namespace as a parameter of SciPy's fixture, its name made known to SciPy's marks."""
    marks: Any = import_module("scipy.conftest")
    if RUNE not in marks.xp_known_backends:
        marks.xp_known_backends.add(RUNE)
        marks._backends_kwargs_from_request = _as_strict(marks._backends_kwargs_from_request)
    xp = rnp.zeros(0).__array_namespace__()
    return pytest.param(xp, id=RUNE, marks=pytest.mark.array_api_backends)


def _as_strict(marked: Any) -> Any:
    """SciPy's reasons to skip a backend, without those for rune from which strict is excepted."""

    def reasons(*args: Any, **kwargs: Any) -> dict[str, str]:
        skips = marked(*args, **kwargs)
        return skips if STRICT in skips else {k: v for k, v in skips.items() if k != RUNE}

    return reasons


def spread(items: list[Any], count: int) -> list[Any]:
    """At most `count` cases of each test, at equal distances."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[item.path, item.cls, item.originalname].append(item)
    return [i for g in groups.values() for i in g[:: max(1, len(g) // count)][:count]]


def arguments() -> tuple[argparse.Namespace, list[str]]:
    """What was asked for, and what is pytest's."""
    ours, _, theirs = " ".join(sys.argv[1:]).partition(" -- ")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modules", nargs="+", help="modules of scipy, or files of its tests")
    parser.add_argument("--cases", type=int, help="at most so many cases of a test")
    parser.add_argument("--on", choices=("rune", "strict"), default="rune")
    return parser.parse_args(ours.split()), theirs.split()


def main() -> int:
    asked, theirs = arguments()
    os.environ["SCIPY_ARRAY_API"] = json.dumps([STRICT])  # read when SciPy is imported
    home = Path(import_module("scipy").__file__ or "").parent
    os.chdir(home.parent)
    paths = [str(home / module) for module in asked.modules]
    plugin = OnRune(asked.cases) if asked.on == "rune" else Runs(asked.cases)
    brief = ["-p", "no:cacheprovider", "-q", "--tb=short", "--no-header", "--no-summary", "-W", "ignore"]
    return pytest.main([*brief, "-m", "array_api_backends", *paths, *theirs], plugins=[plugin])


if __name__ == "__main__":
    sys.exit(main())
