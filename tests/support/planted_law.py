"""A law that does not hold, for tests/test_fuzz.py; pytest collects it only when it is named."""

from __future__ import annotations

from hypothesis import Phase, given, settings
from hypothesis import strategies as st


@settings(phases=[Phase.generate])  # the example as it was drawn: what it shrinks to is one
@given(st.integers(0, 10**9))
def test_no_number_is_large(number: int):
    assert number < 1000
