"""The helpers of the tests can fail: comparing, accepting, and reading lowering rules.

A helper that accepts everything would make every test that uses it worthless.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rune import dtypes, ops
from rune.core.lower import Position, Source, View
from rune.core.types import ArrayType
from rune.ops.family import view_of
from tests.numpy.spelling import Case
from tests.ops.calls import Sample
from tests.ops.meanings import meaning
from tests.ops.samples import samples
from tests.support.bits import assert_same_bits
from tests.support.close import close, near, same, ulp_distance
from tests.support.expect import rewritten
from tests.support.oracle import reference
from tests.support.order import LONG, TESTS, by_case, longest_first
from tests.support.views import evaluate_position, evaluate_view


def test_the_same_bits_are_those_of_every_number_and_of_any_nan():
    x = np.array([[0.0, np.nan], [1.5, np.inf]], np.float32)
    with_other_nan = x.copy()
    with_other_nan[0, 1] = -np.nan

    assert_same_bits(x, with_other_nan)
    for other in (-x, np.nextafter(x, 2), np.where(np.isnan(x), 0, x)):
        with pytest.raises(AssertionError, match=r"of 4 elements differ, \(number, before, after\): \[\("):
            assert_same_bits(x, other)
    with pytest.raises(AssertionError, match="float64"):
        assert_same_bits(x, x.astype(np.float64))


def test_ulps_count_representable_numbers():
    one = np.array(1.0, np.float32)
    step = np.nextafter(one, np.float32(2))

    assert ulp_distance(one, step) == 1
    assert ulp_distance(np.array(0.0), np.array(-0.0)) == 1
    assert ulp_distance(np.array(np.nan), np.array(np.nan)) == 0
    assert ulp_distance(np.array(np.nan), one.astype(np.float64)) > 1e9
    assert ulp_distance(-step, one) > 1e9


@pytest.mark.parametrize("dtype", [*sorted(dtypes.FLOATING, key=str), dtypes.c64, dtypes.c128], ids=dtypes.short)
def test_single_numbers_are_as_many_ulps_apart_as_in_an_array(dtype: np.dtype):
    numbers = np.array([-448, -2, -0.5, -0.0, 0, 1e-7, 2, 448, np.nan]).astype(dtype)
    x, y = (grid.reshape(-1) for grid in np.meshgrid(numbers, numbers))

    distances = ulp_distance(x, y)

    assert (distances >= 0).all()
    assert [float(ulp_distance(np.array(a), np.array(b))) for a, b in zip(x, y)] == [*distances]


@pytest.mark.parametrize(
    "other",
    [
        np.array([1.0, 2.5]),
        np.array([1.0, 2.0], np.float32),
        np.array([[1.0, 2.0]]),
        np.array([1.0, np.nan]),
        [np.array([1.0, 2.0])],
    ],
    ids=["value", "dtype", "shape", "nan", "tree"],
)
def test_same_distinguishes_values_dtypes_shapes_and_trees(other: object):
    with pytest.raises(AssertionError):
        same(np.array([1.0, 2.0]), other)


def test_close_and_near_keep_to_their_limits():
    one = np.array(1.0, np.float32)
    steps = np.float32(1 + 3 * 2**-23)

    close(one, steps, ulps=3, why="")
    near(one, np.float32(1.001), relative=1e-2, why="")
    with pytest.raises(AssertionError):
        close(one, steps, ulps=2, why="")
    with pytest.raises(AssertionError):
        near(one, np.float32(1.1), relative=1e-2, why="")


def test_accepting_rewrites_the_expected_text_of_the_right_call():
    source = (
        'def test_a(expect):\n    expect(f(1), """\n        old\n        """)\n\n\n'
        'def test_b(expect):\n    expect(2, "kept")\n'
    )

    text = rewritten(source, {2: "new\n  lines"})

    assert '    expect(f(1), """\n        new\n          lines""")\n' in text
    assert 'expect(2, "kept")' in text
    compile(text, "test", "exec")


def test_a_wrong_index_map_is_detected():
    x = np.arange(6.0).reshape(2, 3)

    def swapped_source(indices: tuple, x: ArrayType, *, axes: tuple) -> Source:
        return view_of((indices[1] % 2, indices[0]))

    def outside(indices: tuple, x: ArrayType, *, axes: tuple) -> Source:
        return view_of((indices[0] + 1, indices[1]))

    expected = reference(ops.reverse, x, axes=(0,)).tolist()
    assert evaluate_view(ops.reverse, [x], {"axes": (0,)}).tolist() == expected
    wrong = replace(ops.reverse, lower=View(swapped_source))
    assert evaluate_view(wrong, [x], {"axes": (0,)}).tolist() != expected
    with pytest.raises(AssertionError):
        evaluate_view(replace(ops.reverse, lower=View(outside)), [x], {"axes": ()})


def test_a_wrong_position_is_detected():
    wrong = replace(ops.iota, lower=Position(lambda i, **_: i[0] + 1))

    positions = evaluate_position(wrong, {"shape": (3,), "axis": 0, "dtype": dtypes.i32})

    assert positions.tolist() != [0, 1, 2]


def test_a_primitive_of_a_new_family_must_have_samples():
    new = replace(ops.sin, name="bessel", family="special")

    with pytest.raises(AssertionError, match=r"bessel: no samples; .*tests/ops/samples.py"):
        samples(new)


def test_a_primitive_must_have_a_second_meaning():
    with pytest.raises(AssertionError, match=r"bessel: no meaning; .*tests/ops/meanings.py"):
        meaning("bessel", [], dtypes.f32, {})


def test_samples_draw_the_same_values_every_time_and_no_ties():
    sample: Sample = samples(ops.add)[0]

    assert all((a == b).all() for a, b in zip(sample.draw(), sample.draw()))
    (x,) = samples(ops.reduce_max)[0].draw()
    assert len(np.unique(x)) == x.size


@dataclass(frozen=True, eq=False)
class Item:
    """The part of a collected test that the order depends on."""

    name: str
    path: str = "a.py"
    case: Case | None = None

    @property
    def callspec(self) -> SimpleNamespace:
        return SimpleNamespace(params={"smooth": self.case})


def test_tests_of_a_case_run_where_its_first_test_in_the_file_was():
    one, other = (Case(name, lambda np: None, ()) for name in ("one", "other"))
    items: Any = [
        Item("plain"),
        Item("first", case=one),
        Item("second", case=other),
        Item("elsewhere", "b.py", one),
        Item("third", case=one),
        Item("last"),
    ]

    order = [item.name for item in by_case(items)]

    assert order == ["plain", "first", "third", "second", "elsewhere", "last"]


# --- the order of files ---------------------------------------------------------------------------


def test_the_files_listed_as_long_exist():
    assert [name for name in LONG if not (TESTS / name).is_file()] == []


def test_a_shared_run_takes_long_files_first_and_then_those_of_many_tests():
    paths = [TESTS / name for name in ("test_a.py", "test_b.py", "test_b.py", LONG[1], "test_c.py", LONG[0])]
    items: list[Any] = [SimpleNamespace(path=path) for path in paths]

    assert [items.index(item) for item in longest_first(items)] == [5, 3, 1, 1, 0, 4]


def test_the_order_of_files_does_not_depend_on_the_end_at_which_a_worker_begins():
    names = ("test_a.py", "test_b.py", LONG[1], "test_c.py", LONG[0])
    files = [[SimpleNamespace(path=TESTS / name, number=n) for n in range(2)] for name in names]
    forward: list[Any] = [item for file in files for item in file]
    backward: list[Any] = [item for file in reversed(files) for item in file]

    assert longest_first(forward) == longest_first(backward)
