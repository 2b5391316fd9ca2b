"""A program of a hunt as a value: arguments, and statements of Python, each of which binds names.

A statement may be a block that defines functions first. This file and its neighbours that write
programs import `jax` alone, so that programs are drawn by jax and never depend on rune.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from tests.as_jax.hunt.helpers import NAMES

NAME = re.compile(r"\bv\d+\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """Lines that bind these names, and the kind of rule that wrote them."""

    names: tuple[str, ...]
    text: str
    kind: str

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the program that the lines read, in order."""
        return tuple(n for n in dict.fromkeys(NAME.findall(self.text)) if n not in self.names)


@dataclass(frozen=True, slots=True)
class Program:
    """Arguments by name, and statements; every name that a statement binds is a result."""

    seed: int
    arguments: Mapping[str, np.ndarray]
    statements: tuple[Statement, ...]
    x64: bool

    @property
    def results(self) -> tuple[str, ...]:
        """Every name that a statement binds."""
        return tuple(name for s in self.statements for name in s.names)

    def source(self) -> str:
        """The program as a function `f` of its arguments."""
        lines = [f"    {line}" for s in self.statements for line in s.text.splitlines()]
        head = f"def f({', '.join(self.arguments)}):"
        return "\n".join([head, *lines, f"    return {', '.join(self.results)},"])


@functools.lru_cache(4096)
def compiled(source: str) -> CodeType:
    """The code of a source text."""
    return compile(source, "<program>", "exec")


def function(source: str, name: str = "f") -> Callable[..., Any]:
    """The function of this name in a source text."""
    namespace: dict[str, Any] = {**NAMES}
    exec(compiled(source), namespace)
    return namespace[name]


def bound(statement: Statement, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a statement binds, for these values of its operands."""
    namespace: dict[str, Any] = {**NAMES, **values}
    exec(compiled(statement.text), namespace)
    return {name: namespace[name] for name in statement.names}


def texts(lines: str) -> Sequence[str]:
    """The lines of a table that are neither empty nor comments."""
    return [line for line in map(str.strip, lines.splitlines()) if line and not line.startswith("#")]
