"""The derivative rule of decompositions that have none."""

from __future__ import annotations

from rune.core.primitive import Rule
from rune.errors import TransformError


def refused(name: str, why: str, hint: str | None = None) -> Rule:
    """A whole-equation rule that raises TransformError."""

    def rule(*_: object) -> None:
        raise TransformError(f"jvp: cannot differentiate {name} ({why})", hint)

    return rule
