"""Functions that the C family lacks, or defines otherwise than kernel/scalar.py, as C text.

A kernel that mentions `rune_mod` gets that function, and those that it mentions itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np

from rune import dtypes
from rune.lowering.codegen.dialect import Dialect
from rune.lowering.kernel.scalar import bit_width

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
    base_name = name.removeprefix("rune_")
    if base_name in _INDEX:
        text = re.sub(r"\bT\b", dialect.index_type, _INDEX[base_name])
        return f"{dialect.function}{dialect.index_type} {name}{text}"
    source, target = (dtypes.FROM_SHORT[x] for x in base_name.split("_")[1:])
    return _saturating_cast(name, source, target, dialect)


def _saturating_cast(name: str, source: np.dtype, target: np.dtype, dialect: Dialect) -> str:
    s, t = dialect.scalars[source], dialect.scalars[target]
    signed = target in dtypes.SIGNED
    bits = bit_width(target) - signed
    high = f"({t.register})(((({dialect.scalars[dtypes.u64].register})1 << {bits - 1}) - 1) * 2 + 1)"
    low = f"({t.register})(-{high} - 1)" if signed else f"({t.register})0"
    above, below = f"{2.0**bits!r}{s.suffix}", f"{-(2.0**bits) if signed else 0.0!r}{s.suffix}"
    return (
        f"{dialect.function}{t.register} {name}({s.register} a) {{\n"
        f"  return a != a ? ({t.register})0 : a >= {above} ? {high}\n"
        f"    : a <= {below} ? {low} : ({t.register})a;\n"
        "}"
    )
