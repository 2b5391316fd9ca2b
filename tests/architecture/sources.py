"""The package's own source as data: files, their syntax trees, what each imports.

Trees of all files together are four million objects and 900 MB, so none is held: answers that are
needed more than once are cached instead.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Source:
    """One file."""

    path: Path

    @property
    def name(self) -> str:
        """The module's dotted name, `rune.ops` for a room's door."""
        parts = list(self.path.relative_to(ROOT).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def tree(self) -> ast.Module:
        """The tree, parsed again if another file was parsed in between."""
        return _parsed(self)

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))


@functools.lru_cache(maxsize=1)
def _parsed(source: Source) -> ast.Module:
    return ast.parse(source.text)


@functools.cache
def sources(folder: str = "rune") -> tuple[Source, ...]:
    """All Python files below a folder of the repository."""
    return tuple(Source(p) for p in sorted((ROOT / folder).rglob("*.py")))


@dataclass(frozen=True)
class Import:
    """One import: the module or name, and the line."""

    target: str
    line: int
    inside_function: bool
    for_types_only: bool


@dataclass(frozen=True)
class Statement:
    """A statement and the nodes that enclose it."""

    node: ast.stmt
    inside_function: bool
    for_types_only: bool


def statements(source: Source) -> Iterator[Statement]:
    """Every statement of a file, nested ones too; expressions are not looked into."""
    pending: list[tuple[ast.AST, bool, bool]] = [(source.tree, False, False)]
    while pending:
        node, inside, types = pending.pop()
        if isinstance(node, ast.stmt):
            yield Statement(node, inside, types)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            in_type_block = types or (name == "body" and _is_type_checking(node))
            pending += [(child, inside, in_type_block) for child in getattr(node, name, ())]


@functools.cache
def imports(source: Source) -> tuple[Import, ...]:
    """Every import, those in functions and those for type checkers marked."""
    return tuple(_imports(source))


def _imports(source: Source) -> Iterator[Import]:
    for s in statements(source):
        node, inside, types = s.node, s.inside_function, s.for_types_only
        if isinstance(node, ast.Import):
            yield from (Import(a.name, node.lineno, inside, types) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(source, node)
            yield from (Import(f"{base}.{a.name}", node.lineno, inside, types) for a in node.names)


@dataclass(frozen=True)
class LateLoad:
    """A module loaded by name at run time; the name is "" if it is computed."""

    target: str
    line: int


@functools.cache
def late_loads(source: Source) -> tuple[LateLoad, ...]:
    """Every module that is loaded by its name, and every look at `sys.modules`."""
    return tuple(_late_loads(source)) if _LATE.search(source.text) else ()


def _late_loads(source: Source) -> Iterator[LateLoad]:
    names = {node.value: _text(node.slice) for node in ast.walk(source.tree) if isinstance(node, ast.Subscript)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _LOADERS:
            yield LateLoad(_text(node.args[0]), node.lineno)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.modules":
            yield LateLoad(names.get(node, ""), node.lineno)


_LATE = re.compile(r"import_module|locks\.load|locks\.late_module|sys\.modules")  # a file without it is not parsed
_LOADERS = {"import_module", "importlib.import_module", "locks.load", "_locks.load", "locks.late_module"}


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _absolute(source: Source, node: ast.ImportFrom) -> str:
    assert node.level == 0, f"{source}:{node.lineno}: write the full name instead of dots"
    return node.module or ""


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def module_of(target: str, known: frozenset[str]) -> str:
    """The module that an import target names or is a member of."""
    while target and target not in known:
        target = target.rpartition(".")[0]
    return target
