"""The table of elementwise functions: each namespace has the names of its rows."""

from __future__ import annotations

import pytest

import rune.numpy as rnp
from rune import lax
from rune.ops.elementwise_table import ROWS

DOCUMENTED = [function for space in (rnp, lax) for function in vars(space).values() if callable(function)]


@pytest.mark.parametrize("name", ROWS)
def test_the_sentence_of_a_row_begins_the_docstring_of_its_functions(name):
    row = ROWS[name]

    users = [f for f in DOCUMENTED if (f.__doc__ or "").startswith(f"{row.sentence}\n")]

    assert users, f"no public function shows the row {name}"
    assert all(f"({row.arguments})" in (f.__doc__ or "") for f in users)


def test_no_two_functions_have_the_same_sentence():
    assert len({row.sentence for row in ROWS.values()}) == len(ROWS)
