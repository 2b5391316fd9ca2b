"""Every name of jax 0.10.2 that exists here has an expression with a stored answer, or a reason."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.as_jax.surface.coverage import untested
from tests.as_jax.surface.without_answers import REASONS

TESTS = Path(__file__).parent.parent.parent


@cache
def dotted() -> frozenset[str]:
    return frozenset(f"{title}.{name}" for title, name in untested())


def test_a_name_has_a_stored_answer_or_a_reason():
    assert sorted(dotted()) == sorted(name for names in REASONS.values() for name in names.split())


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason[0])
def test_the_file_that_a_reason_cites_mentions_its_names(reason: tuple[str, str]):
    words = set(re.findall(r"\w+", (TESTS / reason[1]).read_text()))

    assert [name for name in REASONS[reason].split() if name.rpartition(".")[2] not in words] == []
