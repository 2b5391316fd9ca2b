"""Functions that the C family lacks, or defines otherwise than kernel/scalar.py, as C text.

A kernel that mentions `rune_mod` gets that function, and those that it mentions itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rune.lowering.codegen.c.dialect import Dialect

_INDEX = {
    "divisor": "(T a) { return a == 0 ? 1 : a; }",
    "floordiv": "(T a, T b) { const T q = a / b; return q - (a % b != 0 && (a < 0) != (b < 0)); }",
    "mod": "(T a, T b) { const T r = a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; }",
}


def needed(text: str, dialect: Dialect, defined: Collection[str]) -> dict[str, str]:
    """The helper functions that the text mentions but for `defined`, each after those it uses."""
    helpers: dict[str, str] = {}
    pending = [(name, False) for name in reversed(_mentioned(text)) if name not in defined]
    while pending:
        name, ready = pending.pop()
        if name in helpers:
            continue
        source = helper(name, dialect)
        if ready:
            helpers[name] = source
            continue
        inner = [n for n in _mentioned(source) if n != name and n not in helpers]
        pending += [(name, True), *((n, False) for n in inner)]
    return helpers


def _mentioned(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\brune_\w+", text)))


def helper(name: str, dialect: Dialect) -> str:
    """The C text of one helper function."""
    if name in dialect.helpers:
        return dialect.helpers[name]
    text = re.sub(r"\bT\b", dialect.index_type, _INDEX[name.removeprefix("rune_")])
    return f"{dialect.function}{dialect.index_type} {name}{text}"
