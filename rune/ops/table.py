"""The primitive × rule matrix, made from the table: what each primitive has, and what it lacks.

One row per primitive. A derivative is written per argument: `linear` or `rule`, `0` for zero,
`refused` for one that is an error to ask for, `all` for one rule of all arguments. A rule that is
absent shows as `—`, so that a gap is a reviewed line of tests/architecture/rule_matrix.txt.
"""

from __future__ import annotations

from collections.abc import Iterable

from rune.core.primitive import NOT_DIFFERENTIABLE, ZERO, Joint, JvpRule, Primitive

COLUMNS = ("name", "family", "reference", "jvp", "transpose", "batch", "lowering")
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


def _lowering(primitive: Primitive) -> str:
    if primitive.expand is not None:
        return "expand"
    if primitive.lower is None:
        return ABSENT
    rule = primitive.lower
    detail = getattr(rule, "op", getattr(rule, "combine", None))
    return type(rule).__name__ + (f" {detail}" if detail else "")


def row(primitive: Primitive) -> tuple[str, ...]:
    """The cells of one primitive, in the order of COLUMNS."""
    return (
        primitive.name, primitive.family, _mark(primitive.reference), _jvp(primitive),
        _mark(primitive.transpose), _mark(primitive.batch), _lowering(primitive),
    )  # fmt: skip


def rule_matrix(primitives: Iterable[Primitive]) -> str:
    """The printed matrix, columns aligned."""
    rows = [COLUMNS, *map(row, primitives)]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(COLUMNS))]
    lines = ("  ".join(c.ljust(w) for c, w in zip(cells, widths)).rstrip() for cells in rows)
    return "\n".join(lines)
