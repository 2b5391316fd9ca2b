"""Samples of tests cover what they should, are the same in every run, and are small."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import sampling
from tests.support.sampling import (
    covering,
    each_in_turn,
    names_of_values,
    one_in,
    pairs_in,
    pairs_of_values,
    possible,
    without,
)

axes = st.lists(st.integers(1, 5), min_size=3, max_size=5)


@pytest.fixture
def of_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "IS_WHOLE", False)


def grid(sizes: list[int]) -> dict[str, list[str]]:
    """Every combination of values of axes of these sizes, by name."""
    rows = [list(map(str, row)) for row in product(*map(range, sizes))]
    return {"-".join(row): row for row in rows}


def items(test: str, rows: list[list[str]]) -> list[Any]:
    """Stand-ins for tests as pytest collects them, with what sampling reads."""
    return [
        SimpleNamespace(
            nodeid=f"{test}[{'-'.join(row)}]", callspec=SimpleNamespace(_idlist=row), get_closest_marker=lambda _: None
        )
        for row in rows
    ]


@given(axes)
def test_every_pair_of_values_is_in_a_row(sizes: list[int]):
    rows = grid(sizes)

    sample = set().union(*(pairs_in(rows[name]) for name in covering(rows)))

    assert sample == set().union(*map(pairs_in, rows.values()))


@given(axes)
def test_rows_are_few_more_than_the_two_longest_axes_need(sizes: list[int]):
    one, other = sorted(sizes)[-2:]

    assert one * other <= len(covering(grid(sizes))) <= 2 * one * other + 2


def test_every_row_of_two_axes_stays():
    assert len(covering(grid([4, 7]))) == 28


def test_rows_left_out_of_a_grid_need_not_be_covered():
    rows = {name: row for name, row in grid([3, 3, 3]).items() if row[0] != row[1]}

    pairs = {pair for name in covering(rows) for pair in combinations(rows[name][:2], 2)}

    assert pairs == {(a, b) for a, b in product("012", repeat=2) if a != b}


def test_tests_of_fewer_than_three_parameters_all_run_and_in_their_order(of_samples: None):
    tests = [
        *items("few", [[str(n), str(m)] for n in range(5) for m in range(5)]),
        *items("many", list(grid([2, 3, 4]).values())),
        *items("none", [[]]),
    ]

    sample = pairs_of_values(tests)

    assert sample == [t for t in tests if t in sample]
    assert sample[:25] == tests[:25]
    assert sample[-1] == tests[-1]
    assert 12 <= len(sample) - 26 < 24


def test_values_that_do_not_interact_occur_each_and_the_shorter_axis_evenly(of_samples: None):
    tests = [*items("many", list(grid([4, 7]).values())), *items("one", [["0"]]), *items("none", [[]])]
    for one in tests:
        one.get_closest_marker = lambda name: sampling.each_value().mark if name == "each_value" else None

    *sample, one, none = map(names_of_values, pairs_of_values(tests))

    assert (one, none) == (["0"], [])
    assert sorted(case for _, case in sample) == list("0123456")
    assert sorted(Counter(where for where, _ in sample).values()) == [1, 2, 2, 2]


def test_a_test_that_is_requested_alone_runs(of_samples: None):
    tests = items("many", list(grid([2, 3, 4]).values()))

    assert all(pairs_of_values([t]) == [t] for t in tests)


GROUP = ["wgpu", "vulkan", "opencl"]


def in_four_languages(test: str, sizes: int) -> list[Any]:
    """Tests of sizes and dtypes on four executors, three of which take turns over the sizes."""
    rows = [[str(n), dtype, device] for n in range(sizes) for dtype in "fi" for device in ("cpu", *GROUP)]
    tests = items(test, rows)
    for one, row in zip(tests, rows, strict=True):
        one.callspec.params = dict(zip(("size", "dtype", "device"), row, strict=True))
        one.get_closest_marker = lambda _: SimpleNamespace(args=("size",))
    return tests


def sizes_of(tests: list[Any]) -> dict[str, str]:
    sizes: dict[str, str] = defaultdict(str)
    for size, _, device in map(names_of_values, tests):
        sizes[device] += size
    return sizes


def test_executors_that_share_kernels_run_every_third_size_and_others_run_all(of_samples: None):
    sample = each_in_turn(in_four_languages("file::law", 5), GROUP)

    assert sizes_of(sample) == {"cpu": "0011223344", "wgpu": "0033", "vulkan": "1144", "opencl": "22"}


def test_the_interpreter_runs_every_third_size_unless_nobody_else_runs_it(of_samples: None):
    tests = in_four_languages("file::law", 5)
    by_interpreter = []
    for one in [t for t in tests if "wgpu" in t.nodeid]:
        size, dtype, _ = names_of_values(one)
        (other,) = items("file::law", [[size, dtype, "reference:0"]])
        other.callspec.params = {**one.callspec.params, "device": "reference:0"}
        other.get_closest_marker = one.get_closest_marker
        by_interpreter.append(other)

    assert sizes_of(each_in_turn([*tests, *by_interpreter], GROUP))["reference:0"] == "0033"
    assert each_in_turn(by_interpreter, GROUP) == by_interpreter


@pytest.mark.parametrize(("count", "last"), [(1, "00"), (2, "00"), (3, "22")])
def test_with_few_values_every_executor_has_one_and_every_value_an_executor(count: int, last: str, of_samples: None):
    sizes = sizes_of(each_in_turn(in_four_languages("file::law", count), GROUP))

    assert sizes["opencl"] == last
    assert set("".join(sizes[name] for name in GROUP)) == set(sizes["cpu"])


def test_combinations_of_two_parameters_are_taken_in_turn(of_samples: None):
    tests = in_four_languages("file::law", 3)
    for one in tests:
        one.get_closest_marker = lambda _: SimpleNamespace(args=("size", "dtype"))

    sample = [t for t in each_in_turn(tests, GROUP) if "cpu" not in t.nodeid]

    assert sorted(names_of_values(t)[:2] for t in sample) == [[n, dtype] for n in "012" for dtype in "fi"]


def test_tests_without_a_parameter_to_divide_take_turns_with_the_others_of_their_file(of_samples: None):
    tests = [t for number in range(3) for t in in_four_languages(f"file::law {number}", 1)]
    for one in tests:
        one.get_closest_marker = lambda _: SimpleNamespace(args=())

    sample = each_in_turn(tests, GROUP)

    cases = [(t.nodeid.split("[")[0], names_of_values(t)[1]) for t in sample if "cpu" not in t.nodeid]
    assert sorted(cases) == [(f"file::law {number}", dtype) for number in range(3) for dtype in "fi"]
    assert {name: len(values) for name, values in sizes_of(sample).items()} == {"cpu": 6, **dict.fromkeys(GROUP, 2)}


def test_a_file_of_one_such_case_runs_it_on_one_executor(of_samples: None):
    (*_, last) = tests = in_four_languages("file::law", 1)[:4]
    for one in tests:
        one.get_closest_marker = lambda _: SimpleNamespace(args=())

    assert len(each_in_turn(tests, GROUP)) == 2
    assert each_in_turn([last], GROUP) == [last]


def test_a_test_of_an_executor_without_the_others_runs(of_samples: None):
    alone = [t for t in in_four_languages("file::law", 5) if "wgpu" in t.nodeid]

    assert each_in_turn(alone, GROUP) == alone


def test_a_combination_that_could_only_be_skipped_covers_no_pair(of_samples: None):
    tests = in_four_languages("file::law", 5)
    mark = without(lambda dtype, device, **_: (dtype, device) == ("f", "wgpu")).mark
    for one in tests:
        one.get_closest_marker = lambda name: mark if name == "without" else None

    sample = pairs_of_values(possible(tests))

    assert [t for t in sample if "f-wgpu" in t.nodeid] == []
    assert {names_of_values(t)[0] for t in sample if "wgpu" in t.nodeid} == set("01234")


def test_all_tests_run_for_the_whole_suite(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sampling, "IS_WHOLE", True)
    tests = items("many", list(grid([2, 3, 4]).values()))

    assert pairs_of_values(tests) == tests
    assert len(each_in_turn(in_four_languages("file::law", 5), GROUP)) == 40
    assert one_in(3, list("abcdef")) == list("abcdef")


def test_a_sample_depends_only_on_names(of_samples: None):
    names = [f"name {k}" for k in range(64)]

    assert one_in(4, names) == [n for n in names if zlib.crc32(n.encode()) % 4 == 0]


def test_a_sample_of_some_cases_is_never_empty(of_samples: None):
    names = [n for n in map(str, range(9)) if zlib.crc32(n.encode()) % 64]

    assert one_in(64, names) == names[:1]
    assert one_in(64, []) == []
