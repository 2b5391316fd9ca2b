"""Lists split and joined by flags: what is split joins again, and only as many values as fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.core.lists import merge, nonzero_flags, nonzeros, omit, parts, pick, scatter, union

FLAGS = st.lists(st.booleans(), max_size=9)


@given(FLAGS)
def test_flagged_values_and_the_others_merge_into_the_list(flags: list[bool]):
    values = list(range(len(flags)))

    assert merge(flags, pick(values, flags), omit(values, flags)) == values


@given(FLAGS)
def test_scattered_values_are_the_nonzeros_of_the_result(flags: list[bool]):
    values = list(range(sum(flags)))
    result = scatter(values, flags)

    assert nonzeros(result) == values
    assert nonzero_flags(result) == tuple(flags)


@given(FLAGS, FLAGS)
def test_a_list_is_cut_at_the_counts(first: list[bool], second: list[bool]):
    assert parts([*first, *second, 7], len(first), len(second)) == [first, second, [7]]


def test_a_position_is_in_the_union_if_any_list_flags_it():
    assert union((True, False, False), (False, False, True)) == (True, False, True)


@pytest.mark.parametrize("select", [pick, omit])
def test_another_number_of_flags_than_values_is_an_error(select):
    with pytest.raises(ValueError, match="zip"):
        select([1, 2, 3], [True, False])
