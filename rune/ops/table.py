"""The primitive × rule matrix, made from the table: the rules that each primitive has and lacks.

One row per primitive. A derivative is written per argument: `linear` or `rule`, `0` for zero,
`refused` where requesting it is an error, `all` for one rule of all arguments, `equation` for a
rule that rewrites the equation and its programs. The meaning is a function of NumPy arrays,
`programs`: that of the programs that the equation holds, or `run`: what eager evaluation does. A
rule that is absent prints as `—`, so that a gap is a reviewed line of
tests/architecture/rule_matrix.txt.

    batch        the rule for lanes; `lanes` for a collective, which also works along the lanes
    partial      how partial evaluation splits the equation; without a rule, whole or not at all
    unused       how results that nothing reads are dropped from the equation
    keeping      how a checkpoint around the equation keeps values inside it
    lowering     the kernel code, or `expand` into other primitives
"""

from __future__ import annotations

from collections.abc import Iterable

from rune.core.higher import HigherOrder
from rune.core.primitive import NOT_DIFFERENTIABLE, ZERO, Collective, Direct, Joint, JvpRule, Primitive

COLUMNS = ("name", "family", "meaning", "jvp", "transpose", "batch", "partial", "unused", "keeping", "lowering")
ABSENT = "—"


def _mark(rule: object) -> str:
    return ABSENT if rule is None else "yes"


def _jvp_mark(rule: JvpRule) -> str:
    if rule is ZERO:
        return "0"
    return "refused" if isinstance(rule, NOT_DIFFERENTIABLE) else "rule"


def _jvp(primitive: Primitive) -> str:
    if primitive.jvp_equation is not None:
        return "equation"
    if primitive.jvp is None:
        return ABSENT
    if isinstance(primitive.jvp, Joint):
        return "all"
    return " ".join(map(_jvp_mark, primitive.jvp)) or "none"


def _meaning(primitive: Primitive) -> str:
    if isinstance(primitive, HigherOrder) and primitive.interpret is not None:
        return "programs"
    if isinstance(primitive, Direct) and primitive.run is not None and primitive.reference is None:
        return "run"
    return _mark(primitive.reference)


def _lowering(primitive: Primitive) -> str:
    if primitive.expand is not None:
        return "expand"
    if primitive.lower is None:
        return ABSENT
    lowering = primitive.lower
    detail = getattr(lowering, "op", getattr(lowering, "combine", None))
    return type(lowering).__name__ + (f" {detail}" if detail else "")


def row(primitive: Primitive) -> tuple[str, ...]:
    """The cells of one primitive, in the order of COLUMNS."""
    return (
        primitive.name,
        primitive.family,
        _meaning(primitive),
        _jvp(primitive),
        _mark(primitive.transpose),
        "lanes" if isinstance(primitive, Collective) else _mark(primitive.batch),
        _mark(primitive.partial_equation if isinstance(primitive, HigherOrder) else None),
        _mark(primitive.dead_code),
        _mark(primitive.keeping if isinstance(primitive, HigherOrder) else None),
        _lowering(primitive),
    )


def rule_matrix(primitives: Iterable[Primitive]) -> str:
    """The printed matrix, columns aligned."""
    rows = [COLUMNS, *map(row, primitives)]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(COLUMNS))]
    lines = ("  ".join(c.ljust(w) for c, w in zip(cells, widths)).rstrip() for cells in rows)
    return "\n".join(lines)
