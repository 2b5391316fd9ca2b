"""associative_scan: all prefixes of any associative function, along any axis, from either end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import dims, dtypes
from rune.core.types import ArrayType
from rune.errors import ArgumentError, AxisError, TransformError
from tests.support.close import near, same

_ONES = rnp.ones(5)


class Span(NamedTuple):
    """The least and the greatest of some numbers."""

    low: Any
    high: Any


@given(st.integers(0, 17), st.integers(-2, 1), st.booleans())
def test_sums_are_cumulative_sums(count: int, axis: int, reverse: bool):
    shape = [3, 3]
    shape[axis] = count
    x = np.random.default_rng(count).integers(-9, 9, shape).astype(np.int32)

    prefixes = rune.associative_scan(rnp.add, rnp.asarray(x), reverse=reverse, axis=axis)

    forward = np.flip(x, axis) if reverse else x
    expected = np.cumsum(forward, axis).astype(np.int32)
    same(np.flip(expected, axis) if reverse else expected, prefixes)


@given(st.integers(1, 9))
def test_a_function_of_trees_that_does_not_commute_keeps_its_order(count: int):
    rng = np.random.default_rng(count)
    a, b = rng.normal(size=(2, count, 2)).astype(np.float32)

    def then(first: Any, second: Any) -> Any:
        # x -> a x + b, one after the other
        return {"a": first["a"] * second["a"], "b": first["b"] * second["a"] + second["b"]}

    prefixes = rune.associative_scan(then, {"a": rnp.asarray(a), "b": rnp.asarray(b)})

    x, y = np.ones((count, 2)), np.zeros((count, 2))
    for i in range(count):
        before = (x[i - 1], y[i - 1]) if i else (np.ones(2), np.zeros(2))
        x[i], y[i] = before[0] * a[i], before[1] * a[i] + b[i]
    near({"a": x, "b": y}, prefixes, relative=1e-4, absolute=1e-5, why="f32, other order")


def test_matrices_are_multiplied_in_order():
    x = np.random.default_rng(0).normal(size=(5, 2, 2)).astype(np.float32)

    prefixes = rune.associative_scan(rnp.matmul, rnp.asarray(x))

    expected = [x[0]]
    for m in x[1:]:
        expected.append(expected[-1] @ m)
    near(np.stack(expected), prefixes, relative=1e-4, absolute=1e-5, why="f32, other order")


def test_the_function_is_applied_logarithmically_often():
    calls: list[int] = []

    def counted(a: Any, b: Any) -> Any:
        calls.append(a.shape[0])
        return a + b

    rune.associative_scan(counted, rnp.arange(1000))

    assert len(calls) <= 2 * 10
    assert sum(calls) <= 2 * 1000


@pytest.mark.parametrize(
    ("error", "message", "args"),
    [
        (AxisError, "cannot find axis 0", (rnp.add, rnp.ones(()))),
        (AxisError, r"5 slices of elems\[0\] with 4 of elems\[1\]", (lambda a, b: a, (rnp.ones(5), rnp.ones(4)))),
        (TransformError, "cannot transform int", (3, rnp.ones(5))),
        (TransformError, "another structure", (lambda a, b: (a, b), rnp.ones(5))),
        (TransformError, "another structure", (lambda a, b: {"y": a["x"]}, {"x": rnp.ones(5)})),
        (TransformError, "another structure", (lambda a, b: ((a[0], a[1][0]), a[1][1]), (_ONES, (_ONES, _ONES)))),
    ],
)
def test_meaningless_arguments_are_refused(error: Any, message: str, args: Any):
    with pytest.raises(error, match=message):
        rune.associative_scan(*args)


@pytest.mark.parametrize("result", [tuple, list])
def test_a_plain_container_stands_for_that_of_the_elements(result: Any):
    x = Span(rnp.arange(7), rnp.arange(7)[::-1])

    low, high = spans = rune.associative_scan(
        lambda a, b: result((rnp.minimum(a.low, b.low), rnp.maximum(a.high, b.high))), x
    )

    assert type(spans) is Span
    same(np.zeros(7, np.int32), low)
    same(np.full(7, 6, np.int32), high)


def test_a_symbolic_size_points_to_scan():
    rows = ArrayType((dims.symbol("n", 1, 9),), dtypes.f32)

    with pytest.raises(ArgumentError, match=r"symbolic size \(n\)\nhint: use rune.scan"):
        rune.make_program(lambda x: rune.associative_scan(rnp.add, x))(rows)
