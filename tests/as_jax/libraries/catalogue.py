"""The libraries that rune is tried on, from libraries.toml; prints what pip must install for them.

    python tests/as_jax/libraries/catalogue.py > requirements.txt
    pip install --no-deps -r requirements.txt

With names, for these only; `sample` means those whose examples run in every run of the tests."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent / "libraries.toml"
LIMIT_S = 1800


@dataclass(frozen=True)
class Library:
    """A library: its names, what installs it, and which folders of its sdist have tests."""

    name: str
    package: str
    title: str
    distribution: str
    needs: tuple[str, ...]  # libraries of this file, or distributions
    is_in_sample: bool
    tests: tuple[str, ...]
    only_by_name: bool  # its own tests run only where it is named
    variables: Mapping[str, str]  # of the environment that its tests need
    limit_s: int  # for one file of its tests


def _read() -> tuple[dict[str, Library], dict[str, str]]:
    tables = tomllib.loads(FILE.read_text())
    versions = tables.pop("versions")
    return {name: _library(name, table) for name, table in tables.items()}, versions


def _library(name: str, table: dict) -> Library:
    distribution = table.get("distribution", name.replace("_", "-"))
    needs, tests = tuple(table["needs"]), tuple(table.get("tests", ()))
    package = table.get("package", name)
    return Library(
        name,
        package,
        table["title"],
        distribution,
        needs,
        table.get("sample", False),
        tests,
        table.get("only_by_name", False),
        table.get("variables", {}),
        table.get("limit_s", LIMIT_S),
    )


LIBRARIES, VERSIONS = _read()
SAMPLE = tuple(name for name, library in LIBRARIES.items() if library.is_in_sample)


def requirements(names: Iterable[str]) -> list[str]:
    """The distributions that these libraries depend on, each with its version."""
    return sorted({f"{distribution}=={VERSIONS[distribution]}" for name in names for distribution in _closure(name)})


def _closure(name: str) -> Iterator[str]:
    library = LIBRARIES.get(name)
    if library is None:
        yield name
        return
    yield library.distribution
    for need in library.needs:
        yield from _closure(need)


if __name__ == "__main__":
    print("\n".join(requirements(SAMPLE if sys.argv[1:] == ["sample"] else sys.argv[1:] or LIBRARIES)))
