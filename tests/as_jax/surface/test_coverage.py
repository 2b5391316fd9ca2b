"""Every name of jax 0.10.2 that is there has an expression with a stored answer, or a reason."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

from tests.as_jax.surface.coverage import untested
from tests.as_jax.surface.without_answers import REASONS

PATTERNS = [pattern for patterns in REASONS.values() for pattern in patterns.split()]


@cache
def dotted() -> list[str]:
    return [f"{title}.{name}" for title, name in untested()]


def test_a_name_has_a_stored_answer_or_a_reason():
    assert [name for name in dotted() if not any(fnmatchcase(name, p) for p in PATTERNS)] == []


def test_every_reason_is_one_of_a_name_without_an_answer():
    assert [p for p in PATTERNS if not any(fnmatchcase(name, p) for name in dotted())] == []
