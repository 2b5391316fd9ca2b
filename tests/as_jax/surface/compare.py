"""Print the names and parameters that JAX has and rune.as_jax lacks. Run by hand:

python -m tests.as_jax.surface.compare [section ...]
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from tests.as_jax.surface.listing import sections

FOLDER = Path(__file__).parent
STORED = FOLDER / "jax_0_10_2.txt"
Sections = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a function: by position, by name, and their defaults."""

    positional: tuple[str, ...]  # names, in order
    by_name: frozenset[str]
    defaults: dict[str, str]  # "..." is a value that is not compared
    any_position: bool  # *args
    any_name: bool  # **kwargs


@cache
def stored() -> Sections:
    """The sections of the stored text."""
    parts: Sections = {}
    names: dict[str, str] = {}
    for line in STORED.read_text().splitlines():
        if line.startswith("["):
            names = parts.setdefault(line[1:-1], {})
        elif line:
            name, bracket, parameters = line.partition("(")
            names[name] = bracket + parameters
    return parts


def read(text: str) -> Parameters:
    """The parameters of a line."""
    function = ast.parse(f"def f{text}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    values = [*zip(plain[::-1], arguments.defaults[::-1], strict=False)]
    values += [(a, v) for a, v in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if v is not None]
    return Parameters(
        tuple(a.arg for a in plain),
        frozenset(a.arg for a in (*arguments.args, *arguments.kwonlyargs)),
        {a.arg: ast.unparse(v) for a, v in values},
        arguments.vararg is not None,
        arguments.kwarg is not None,
    )


def missing_names(ours: Sections) -> Iterator[tuple[str, str]]:
    """Sections and names that are missing; a missing section lacks every name."""
    for title, names in stored().items():
        for name in names:
            if name not in ours.get(title, {}):
                yield title, name


def differences(ours: Sections) -> Iterator[tuple[str, str, str]]:
    """Sections, names, and how a parameter differs: `axis`, `axis: place`, `axis=None`."""
    for title, names in stored().items():
        for name, text in names.items():
            counterpart = ours.get(title, {}).get(name, "")
            if text and counterpart and not title.startswith("x: "):
                for how in _differences(read(text), read(counterpart)):
                    yield title, name, how


def _differences(of_jax: Parameters, of_rune_names: Parameters) -> Iterator[str]:
    for name in sorted(of_jax.by_name - of_rune_names.by_name):
        if not of_rune_names.any_name:
            yield name
    for place, name in enumerate(of_jax.positional):
        if place >= len(of_rune_names.positional):
            if not of_rune_names.any_position:
                yield f"{name}: no place"
        elif name in of_rune_names.positional and of_rune_names.positional[place] != name:
            yield f"{name}: place"
    for name, value in of_jax.defaults.items():
        if name in of_rune_names.by_name or name in of_rune_names.positional:
            default = of_rune_names.defaults.get(name)
            if default is None:
                yield f"{name}: no default"
            elif default != value and "..." not in (default, value):
                yield f"{name}: {default} for {value}"


def of_rune() -> Sections:
    """The sections of rune.as_jax."""
    import_module("rune.as_jax")
    warnings.simplefilter("ignore")
    return dict(sections(import_module("jax")))


def main() -> None:
    """Print missing names, section by section, and their number."""
    ours, titles = of_rune(), sys.argv[1:]
    missing = [*missing_names(ours)]
    unlike = [*differences(ours)]
    for title in stored():
        if not titles or title in titles:
            names = [n for t, n in missing if t == title]
            print(f"{title}: {len(names)} of {len(stored()[title])} missing: {' '.join(names)}")
            for _, name, how in (line for line in unlike if line[0] == title):
                print(f"    {name}: {how}")
    print(f"{len(missing)} of {sum(map(len, stored().values()))} names missing, {len(unlike)} parameters differ")


if __name__ == "__main__":
    main()
