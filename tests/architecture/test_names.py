"""Values are named by nouns of the field: residuals, batch axes, live ranges; not `found`, `kept`.

A participle says what happened to a value, never what it is, so a reader has to look it up.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

import pytest

from tests.architecture.sources import ROOT, Source, sources

FORBIDDEN = frozenset("found made given own kept rest whole taken moved told seen left".split())

# Their synonyms, in the rooms that have been cleared of them.
SYNONYMS = frozenset("asked gone held here lost met mine said shown theirs there wanted what".split())
CLEARED = (
    *("rune/backends", "rune/core", "rune/control", "rune/sharding", "rune/transforms"),
    *("rune/lowering", "rune/lowering/build", "rune/lowering/codegen", "rune/lowering/costs"),
    *("rune/lowering/factorisations", "rune/lowering/kernel", "rune/lowering/kernelize"),
    *("rune/lowering/lanes", "rune/lowering/legalize", "rune/lowering/optimize"),
    *("rune/lowering/scalar", "rune/lowering/scatters", "rune/lowering/simplify"),
    "rune/lowering/sorting",
    *("rune/ops", "rune/optim", "rune/sparse", "rune/scipy", "rune/numpy", "rune/nn"),
    *("rune", "rune/absent", "rune/as_jax", "rune/checkify", "rune/data", "rune/dims", "rune/distributed"),
    *("rune/drawing", "rune/exporting", "rune/extend", "rune/files", "rune/lax", "rune/profiling"),
    *("rune/random", "rune/tree"),
    "tests",
)

# Names that users write, or LAPACK's: the other trees, vectors that multiply from the left, and the
# lower of two ends.
PUBLIC = {
    ("rune/tree/__init__.py", "map", "rest"),
    ("rune/tree/__init__.py", "map_with_path", "rest"),
    ("rune/ops/linalg/eig.py", "_type", "left"),
    ("rune/ops/linalg/eig.py", "_reference", "left"),
    ("rune/scipy/linalg/spectra.py", "eig", "left"),
    ("rune/lax/linalg.py", "ormqr", "left"),
    ("rune/numpy/signals.py", "interp", "left"),
    ("rune/random/inverses.py", "triangular", "left"),
}

FOLDERS = ("rune", "tests", "examples", "benchmarks", "docs", "tools")
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def bound_name(node: ast.AST) -> str | None:
    """The name that a node gives to a value, if it gives one."""
    match node:
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
        case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.ExceptHandler(name=name):
            return name
        case ast.alias(asname=name):
            return name
    return None


def bound_names(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Every parameter and every name that gets a value, with the innermost function around it."""
    pending: list[tuple[ast.AST, ast.AST]] = [(tree, tree)]
    while pending:
        node, function = pending.pop()
        if name := bound_name(node):
            yield function, name
        scope = node if isinstance(node, FUNCTIONS) else function
        pending += [(child, scope) for child in ast.iter_child_nodes(node)]


def forbidden(tree: ast.AST, words: frozenset[str] = FORBIDDEN) -> set[tuple[ast.AST, str]]:
    """The forbidden names of each function that has any."""
    return {(function, name) for function, name in bound_names(tree) if name in words}


@functools.cache
def anywhere(words: frozenset[str]) -> re.Pattern[str]:
    """Matches every text that binds one of the words: in code no word but `in` or `if` follows a
    name, as it does in prose."""
    return re.compile(rf"\b(?:{'|'.join(sorted(words))})\b(?![ \t]+(?!in\b|if\b)\w)")


def room(source: Source) -> str:
    """The folder that a file is counted in: of rune an inner one, of rune/lowering the next."""
    top, *inner = str(source).split("/")[:-1]
    depth = 0 if top != "rune" else 2 if inner[:1] == ["lowering"] else 1
    return "/".join([top, *inner[:depth]])


def offences(source: Source) -> list[str]:
    """The forbidden names of a file, each with its place."""
    words = FORBIDDEN | SYNONYMS if room(source) in CLEARED else FORBIDDEN
    if not anywhere(words).search(source.text):  # nothing to parse it for
        return []
    return [
        f"{source}:{getattr(function, 'lineno', 1)} {name}"
        for function, name in forbidden(source.tree, words)
        if (str(source), getattr(function, "name", ""), name) not in PUBLIC
    ]


def rooms() -> dict[str, list[Source]]:
    """The files of each room. Collecting these tests parses none of them."""
    by_room: dict[str, list[Source]] = {}
    for file in (file for folder in FOLDERS for file in sources(folder)):
        by_room.setdefault(room(file), []).append(file)
    return by_room


ROOMS = rooms()


# A preposition does not make a noun of a participle: `_shown_by`, `asked_of`.
PREPOSITIONS = frozenset("as at by for from in of on to with".split())
WORDS = "|".join(sorted(FORBIDDEN | SYNONYMS | PREPOSITIONS))

# Most files define no such name, and need not be parsed.
PARTICIPLE = re.compile(rf"(?:def|class) _*(?:{WORDS})(?:_+(?:{WORDS}))*_*\b", re.IGNORECASE)


def forbidden_definitions(tree: ast.AST) -> list[str]:
    """Functions and classes that are named by forbidden words and prepositions alone."""
    definitions = (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS | ast.ClassDef))
    return [node.name for node in definitions if is_forbidden(node.name)]


def is_forbidden(name: str) -> bool:
    """Whether a name has a forbidden word, and no others but prepositions."""
    words = {word for word in name.lower().split("_") if word}
    return bool(words - PREPOSITIONS) and words <= FORBIDDEN | SYNONYMS | PREPOSITIONS


@pytest.mark.parametrize(
    "code",
    [
        "def f(seen): pass",
        "seen = 1",
        "self.seen = 1",
        "import math as seen",
        "with f() as seen: pass",
        "for seen in x: pass",
        "match x:\n  case [seen, *_]: pass",
        "try: pass\nexcept E as seen: pass",
    ],
)
def test_every_way_to_name_a_value_is_detected(code: str):
    assert anywhere(frozenset({"seen"})).search(code)
    assert [name for _, name in forbidden(ast.parse(code))] == ["seen"]


def examples() -> Iterator[tuple[str, str]]:
    """The code that users read, with its place: that of pages, and the examples of docstrings."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"^```python[^\n]*\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            yield str(page.relative_to(ROOT)), block
    for source in (source for source in sources("rune") if ">>> " in source.text):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ">>> " in node.value:
                lines = re.findall(r"^ *(?:>>>|\.\.\.) ?(.*)$", node.value, re.MULTILINE)
                yield f"{source}:{node.lineno}", "\n".join(lines)


def parsed(code: str) -> ast.Module:
    """Code as a tree; an empty one if a page shows a part of a program."""
    try:
        return ast.parse(code)
    except SyntaxError:
        return ast.Module([], [])


def test_code_that_users_read_names_its_values_by_nouns():
    pages = [(place, parsed(code)) for place, code in examples()]

    assert len([tree for _, tree in pages if tree.body]) > 1500
    assert [(place, name) for place, tree in pages for _, name in forbidden(tree)] == []


@pytest.mark.parametrize("name", sorted(ROOMS))
def test_a_room_names_its_values_by_nouns(name):
    assert [offence for file in ROOMS[name] for offence in offences(file)] == []


def test_definitions_are_named_by_their_result_or_their_deed():
    code = "class Kept:\n  def _moved(self): pass\n  def at(self): pass\n  def _shown_by(self): pass"
    assert PARTICIPLE.search(code)
    assert forbidden_definitions(ast.parse(code)) == ["Kept", "_moved", "_shown_by"]
    files = [s for folder in FOLDERS for s in sources(folder) if PARTICIPLE.search(s.text)]
    definitions = {str(s): forbidden_definitions(s.tree) for s in files}

    assert {file: names for file, names in definitions.items() if names} == {}
