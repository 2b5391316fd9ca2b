"""A law that does not hold, for tests/test_fuzz.py; pytest collects it only by name."""

from __future__ import annotations

from hypothesis import Phase, given, settings
from hypothesis import strategies as st


@settings(phases=[Phase.generate])  # the example as drawn: every example shrinks to the same one
@given(st.integers(0, 10**9))
def test_no_number_is_large(number: int):
    assert number < 1000
