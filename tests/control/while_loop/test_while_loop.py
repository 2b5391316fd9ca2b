"""while_loop and fori_loop: values, types, bounds; JAX's conventions; what is refused.

Expected values marked "as JAX 0.10.2" were observed there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.core.types import ArrayType
from rune.errors import ArgumentError, TransformError
from tests.control.cases import interpreted
from tests.support.arrays import array
from tests.support.close import near, same

# --- while_loop -------------------------------------------------------------------------------


@given(st.integers(0, 40), st.booleans())
def test_it_is_the_while_statement(limit: int, in_program: bool):
    n, total = 0, np.float64(0.0)
    while n * n < limit:
        n, total = n + 1, np.sqrt(total + n + 1)

    def function(limit: Any) -> Any:
        def body(state: Any) -> Any:
            n, total = state
            return n + 1, rnp.sqrt(total + (n + 1))

        return rune.while_loop(lambda s: s[0] * s[0] < limit, body, (0, array(np.float64(0.0))))

    with interpreted():
        near((np.int32(n), total), function(limit), relative=1e-14, why="f64")
    if in_program:
        near((np.int32(n), total), rune.jit(function)(limit), relative=1e-14, why="f64")


def test_a_condition_that_is_false_at_first_gives_the_first_value():
    same(np.float32(3.0), rune.while_loop(lambda x: x < 0, lambda x: x - 1, np.float32(3.0)))


def test_the_value_is_a_tree():
    result = rune.while_loop(
        lambda s: s["n"] < 3,
        lambda s: {"n": s["n"] + 1, "v": (s["v"][0] * 2, None)},
        {"n": 0, "v": (rnp.ones(2), None)},
    )

    same(np.full(2, 8, np.float32), result["v"][0])


def test_condition_and_body_close_over_different_values():
    def function(limit: Any, factor: Any) -> Any:
        return rune.while_loop(lambda x: x < limit, lambda x: x * factor, 1.0)

    same(np.float32(27.0), rune.jit(function)(20.0, 3.0))
    same(np.float32(27.0), function(rnp.asarray(20.0), rnp.asarray(3.0)))


def test_a_python_number_takes_the_dtype_that_comes_out():
    result = rune.while_loop(lambda c: c < 3, lambda c: c + 1.0, 0)

    assert result.type == ArrayType((), dtypes.f32)  # as JAX 0.10.2
    assert float(result) == 3.0


def test_the_gradient_with_respect_to_what_the_condition_reads_is_zero():
    def function(limit: Any, x: Any) -> Any:
        return rune.while_loop(lambda v: v < limit, lambda v: v * 2.0, x)

    with interpreted():
        gradient = rune.grad(function, argnums=(0, 1))(10.0, 3.0)

    same((np.float32(0.0), np.float32(4.0)), gradient)


@pytest.mark.parametrize(
    ("message", "cond_fun", "body_fun", "init"),
    [
        (r"\(i32\*\[\]\) \(one bool", lambda c: c, lambda c: c - 1, 3),
        (r"\(bool\[\]\) \(one bool", lambda c: (c < 3,), lambda c: c + 1, 3),
        (r"\(bool\[3\]\) \(one bool", lambda c: c < 3, lambda c: c + 1, np.ones(3)),
        (
            r"carry\[1\] \(f32\[2\] goes in, f32\[3\] comes out\)",
            lambda c: c[0] < 3,
            lambda c: (c[0] + 1, rnp.ones(3)),
            (0, rnp.ones(2)),
        ),
        (r"structure of the carry", lambda c: c < 3, lambda c: (c,), 0),
        (r"cannot transform int", 3, lambda c: c, 0),
    ],
)
def test_meaningless_arguments_are_refused(message: str, cond_fun: Any, body_fun: Any, init: Any):
    with pytest.raises(TransformError, match=message):
        rune.while_loop(cond_fun, body_fun, init)


# --- fori_loop --------------------------------------------------------------------------------


def polynomial(i: Any, x: Any) -> Any:
    return x * 2.0 + i


def by_hand(lower: int, upper: int, x: float) -> np.ndarray:
    for i in range(lower, upper):
        x = x * 2.0 + i
    return np.asarray(x, np.float32)


@pytest.mark.parametrize("bounds", [(0, 4), (-2, 3), (5, 3), (2, 2), (np.int8(1), 3)])
def test_python_bounds_and_traced_bounds_give_the_same_result(bounds: Any):
    lower, upper = bounds
    expected = by_hand(int(lower), int(upper), 1.0)

    same(expected, rune.fori_loop(lower, upper, polynomial, 1.0))
    same(expected, rune.jit(lambda a, b: rune.fori_loop(a, b, polynomial, 1.0))(lower, upper))


def test_python_bounds_give_a_scan_and_traced_ones_a_while():
    of_python_bounds = rune.make_program(lambda x: rune.fori_loop(0, 9, polynomial, x))(1.0)
    of_traced_bounds = rune.make_program(lambda n, x: rune.fori_loop(0, n, polynomial, x))(9, 1.0)

    assert [e.primitive.name for e in of_python_bounds.equations] == ["scan"]
    assert [e.primitive.name for e in of_traced_bounds.equations] == ["while"]


@pytest.mark.parametrize("lower", [0, np.int8(0)])
def test_the_counter_of_known_bounds_is_a_weak_integer(lower: Any):
    counter_types: list[Any] = []
    rune.fori_loop(lower, 3, lambda i, x: (counter_types.append(i.type), x)[1], 0.0)

    assert counter_types == [ArrayType((), dtypes.i32, weak=True)]  # as JAX 0.10.2


def test_the_counter_of_traced_bounds_has_their_dtype():
    counter_types: list[Any] = []

    def function(n: Any) -> Any:
        return rune.fori_loop(0, n, lambda i, x: (counter_types.append(i.type), x)[1], 0.0)

    rune.jit(function)(np.int16(3))

    assert counter_types[-1].dtype == dtypes.i16


# Counters of jax 0.10.2: known bounds are truncated to integers, traced ones are used as they are.
FLOATS = [
    ((0.0, 5.3), [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]),
    ((0.5, 5.3), [0, 1, 2, 3, 4], [0.5, 1.5, 2.5, 3.5, 4.5]),
    ((-1.7, 2.2), [-1, 0, 1], [-1.7, -0.7, 0.3, 1.3]),
    ((5.0, 1.0), [], []),
]


def _recorded(lower: Any, upper: Any) -> Any:
    """The counters in order, and how many there are."""

    def step(i: Any, state: Any) -> Any:
        counters, count = state
        return counters.at[count].set(i), count + 1

    return rune.fori_loop(lower, upper, step, (rnp.zeros(7), 0))


@pytest.mark.parametrize(("bounds", "counters_in_python", "counters_in_f32"), FLOATS)
def test_floats_are_counted_as_by_jax(bounds: Any, counters_in_python: list[float], counters_in_f32: list[float]):
    of_arrays = _recorded(*map(rnp.float32, bounds))
    lanes = rune.vmap(_recorded)(*(rnp.array([b]) for b in bounds))

    for counters, count in (_recorded(*bounds), of_arrays):
        assert int(count) == len(counters_in_python)
        same(np.array(counters_in_python, np.float32), counters[: len(counters_in_python)])
    for counters, count in (rune.jit(_recorded)(*bounds), (lanes[0][0], lanes[1][0])):
        assert int(count) == len(counters_in_f32)
        near(
            np.array(counters_in_f32, np.float32),
            counters[: len(counters_in_f32)],
            relative=1e-6,
            why="ones are added to f32",
        )


def test_the_value_of_a_loop_to_a_float_has_a_derivative():
    def sum_of_squares(start: Any) -> Any:
        return rune.fori_loop(start, start * 0.0 + 3.5, lambda i, v: v + i * i, 0.0)

    for run in (rune.grad(rune.jit(sum_of_squares)), rune.jit(rune.grad(sum_of_squares))):
        near(14.0, run(0.25), relative=1e-6, why="the sum of 2 (start + i) for i below 4, in f32")


def test_both_kinds_of_loops_are_differentiated():
    def known(x: Any) -> Any:
        return rune.fori_loop(0, 5, lambda i, v: v * x, 1.0)

    def traced(x: Any, n: Any) -> Any:
        return rune.fori_loop(0, n, lambda i, v: v * x, 1.0)

    with interpreted():
        near(80.0, rune.grad(known)(2.0), relative=1e-6, why="5 x**4")
        near(80.0, rune.grad(traced)(2.0, array(5)), relative=1e-6, why="5 x**4")


def test_unrolling_on_request_changes_no_result():
    for unroll in (1, 2, True):
        same(by_hand(0, 6, 1.0), rune.fori_loop(0, 6, polynomial, 1.0, unroll=unroll))


@pytest.mark.parametrize(
    ("message", "args", "options"),
    [
        ("length is not known", (0, np.array(3), polynomial, 1.0), {"unroll": 2}),
        (r"from i32\*\[\] to f32\*\[\]", (0, 3.5, polynomial, 1.0), {}),
        (r"from f32\*\[\] to i32\[\]", (0.0, np.array(3), polynomial, 1.0), {}),
        (r"from i32\*\[\] to i32\[2\]", (0, np.array([1, 2]), polynomial, 1.0), {}),
        (r"from f32\[2\] to f32\*\[\]", (rnp.array([1.0, 2.0]), 3.5, polynomial, 1.0), {}),
        (r"from c64\*\[\] to c64\*\[\]", (0j, 3j, polynomial, 1.0), {}),
        ("count to nan", (0.0, np.nan, polynomial, 1.0), {}),
        ("count to inf", (0.0, rnp.array(np.inf), polynomial, 1.0), {}),
    ],
)
def test_bounds_that_make_no_sense_are_refused(message: str, args: Any, options: Any):
    with pytest.raises(ArgumentError, match=message):
        rune.fori_loop(*args, **options)


def test_a_carry_that_the_body_passes_on_is_not_batched():
    def f(n: Any, table: Any) -> Any:
        return rune.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + c[2][c[0]], c[2]), (0, 0.0, table))

    table = rnp.array([3.0, 5.0, 7.0])

    on_lanes = rune.vmap(f, in_axes=(0, None), out_axes=(0, 0, None))
    for run in (on_lanes, rune.jit(on_lanes)):
        steps, total, constant = run(rnp.array([2, 0, 3]), table)

        np.testing.assert_array_equal(steps, [2, 0, 3])
        np.testing.assert_array_equal(total, [8, 0, 15])
        np.testing.assert_array_equal(constant, table)
