"""Tables of numbers as text: the same numbers as literals, whatever the layout of the lines."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.number_tables import numbers, quotient, rows

LITERALS = st.lists(st.floats(allow_nan=False), max_size=9)


@given(LITERALS)
def test_numbers_are_those_of_the_literals_to_the_bit(values):
    text = "\n   ".join(map(repr, values))

    assert list(map(float.hex, numbers(text))) == list(map(float.hex, values))


def test_a_number_of_more_digits_than_a_double_holds_is_rounded_as_a_literal_is():
    assert numbers("0.995657163025808080735527280689003") == (0.995657163025808080735527280689003,)
    assert numbers("2.2250738585072014e-308") == (sys.float_info.min,)


def test_rows_have_lengths_of_their_own_and_may_be_empty():
    table = """
        ;
        1.0 ;
        2.0 3.0
        4.0
    """

    assert rows(table) == ((), (1.0,), (2.0, 3.0, 4.0))


def test_a_slash_divides_two_polynomials():
    assert quotient("1.0 -2.0 / 3.0") == ((1.0, -2.0), (3.0,))


def test_a_quotient_of_three_polynomials_is_refused():
    with pytest.raises(ValueError, match="too many values"):
        quotient("1.0 / 2.0 / 3.0")
