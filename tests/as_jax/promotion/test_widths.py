"""Results have the dtypes of jax 0.10.2, with either default width."""

from __future__ import annotations

import json

import pytest

from tests.as_jax.promotion.widths import ANSWERS, CALLS, dtypes_of
from tests.support.sampling import one_in

STORED = json.loads(ANSWERS.read_text())


@pytest.mark.parametrize("call", one_in(2, CALLS))
def test_a_result_is_as_wide_as_jax_makes_it(call: str):
    assert [dtypes_of(call, True), dtypes_of(call, False)] == STORED[call]


def test_every_answer_is_of_a_call():
    assert [*STORED] == CALLS
