"""Functions that the C family lacks, or defines differently from kernel/scalar.py, as C text.

A program that mentions `rune_mod` gets that function.
"""

from __future__ import annotations

import re

from rune.lowering.codegen.c.dialect import Dialect

_INDEX = {
    "divisor": "(T a) { return a == 0 ? 1 : a; }",
    "floordiv": "(T a, T b) { const T q = a / b; return q - (a % b != 0 && (a < 0) != (b < 0)); }",
    "mod": "(T a, T b) { const T r = a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; }",
}


def helper(name: str, dialect: Dialect) -> str:
    """The C text of one helper function."""
    if name in dialect.helpers:
        return dialect.helpers[name]
    text = re.sub(r"\bT\b", dialect.index_type, _INDEX[name.removeprefix("rune_")])
    return f"{dialect.function}{dialect.index_type} {name}{text}"
