"""rune.debug.checks: errors that name the place where an index was out of bounds or a NaN arose."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import BoundsError, NaNError

DEVICES = [d.name for d in rune.devices() if d.name != "null:0"]
WAYS = {"eager": lambda f, device: f, "jit": lambda f, device: rune.jit(f, device=device)}
X = np.arange(5, dtype=np.float32)


def scanned(x):
    return rune.scan(lambda c, i: (c, x[i + c]), 2, rnp.arange(5))[1]


def while_looped(x):
    return rune.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] + x[c[0]]), (0, 0.0))


OUTSIDE = {
    "a traced index": (lambda x, i: x[i + 4], "gather: found index 7 out of bounds (axis 0"),
    "a static index": (lambda x, i: x[7], "gather: found index 7 out of bounds (axis 0"),
    "a negative index": (lambda x, i: x[i - 12], "gather: found index -4 out of bounds (axis 0"),
    "an index array": (lambda x, i: x[rnp.array([1, 8, 9])], "gather: found index 8 out of bounds"),
    "an axis": (lambda x, i: x.reshape(1, 5)[0, i + 4], "(axis 1 of f32[1,5])"),
    "an update": (lambda x, i: x.at[i + 6].add(1.0), "scatter_add: found index 9 out of bounds"),
    "a scan": (lambda x, i: scanned(x), "gather: found index 5 out of bounds"),
    "a while loop": (lambda x, i: while_looped(x), "gather: found index 5 out of bounds"),
    "a branch": (lambda x, i: rune.cond(i > 2, lambda: x[i + 4], lambda: x[0]), "gather: found index 7 out of bounds"),
    "a gradient": (rune.grad(lambda x, i: x[i + 4] ** 2), "gather: found index 7 out of bounds"),
    "lanes": (lambda x, i: rune.vmap(lambda k: x[k])(rnp.arange(7)), "gather: found index 5 out of bounds"),
    "the first of two": (lambda x, i: x[i + 5] + x[i + 6], "gather: found index 8 out of bounds"),
}
INSIDE = {
    "an index": lambda x, i: x[i] + x[-5],
    "a mode": lambda x, i: x.at[i + 9].get(mode="clip") + x.at[i + 9].get(mode="fill"),
    "a dropped update": lambda x, i: x.at[i + 9].set(1.0, mode="drop"),
    "the other branch": lambda x, i: rune.cond(i > 9, lambda: x[7], lambda: x[i]),
    "a loop": lambda x, i: rune.scan(lambda c, k: (c + x[k], x[k]), 0.0, rnp.arange(5)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_out_of_bounds_is_named_with_its_operation_and_axis(name, way):
    function, message = OUTSIDE[name]

    with rune.debug.checks(bounds=True), pytest.raises(BoundsError) as error:
        WAYS[way](function, None)(rnp.asarray(X), 3)

    assert isinstance(error.value, IndexError)
    assert message in str(error.value)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", INSIDE)
def test_indices_that_may_be_where_they_are_change_nothing(name, way):
    function = INSIDE[name]
    expected = function(rnp.asarray(X), 3)

    with rune.debug.checks(bounds=True, nans=True):
        results = WAYS[way](function, None)(rnp.asarray(X), 3)

    for a, b in zip(rune.tree.leaves(expected), rune.tree.leaves(results)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", [OUTSIDE["a scan"][0], OUTSIDE["an update"][0]])
def test_kernels_of_every_executor_report_an_index(device, function):
    with rune.debug.checks(bounds=True), pytest.raises(BoundsError, match="out of bounds"):
        rune.jit(function, device=device)(X, 3)


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_of_every_executor_report_a_nan(device):
    with rune.debug.checks(nans=True), pytest.raises(NaNError, match=r"log: found NaN .*\[0\]"):
        rune.jit(lambda x: rnp.log(x - 1).sum(), device=device)(X)


def log_of_less(x):
    return rnp.where(x > 1, rnp.log(x - 1), 0.0)


@pytest.mark.parametrize("way", WAYS)
def test_a_nan_is_found_even_if_no_result_contains_it(way):
    with rune.debug.checks(nans=True), pytest.raises(NaNError, match="log: found NaN") as error:
        WAYS[way](log_of_less, None)(rnp.asarray(X))

    line = inspect.getsourcelines(log_of_less)[1] + 1
    assert error.value.frame is not None
    assert error.value.frame.line == line


def test_a_nan_that_is_given_is_not_made():
    x = X.copy()
    x[2] = np.nan

    with rune.debug.checks(nans=True):
        assert np.isnan(rune.jit(lambda x: (x * 2).sum())(x))


@pytest.mark.parametrize("way", WAYS)
def test_the_line_is_that_of_the_operation(way):
    def lookup(x, i):
        return x[i]

    line = inspect.getsourcelines(lookup)[1] + 1
    for _ in range(2):
        with rune.debug.checks(bounds=True), pytest.raises(BoundsError) as error:
            WAYS[way](lookup, None)(rnp.asarray(X), rnp.asarray(9))
        assert error.value.frame is not None
        assert error.value.frame.line == line


def test_checks_end_with_their_block_and_cost_one_trace():
    function = rune.jit(lambda x, i: x[i])

    with rune.counting() as counts:
        for _ in range(3):
            assert float(function(X, 9)) == 4
            with rune.debug.checks(bounds=True):
                assert float(function(X, 3)) == 3

    assert counts.traces == 2


def test_symbolic_sizes_are_bounds_too():
    function = rune.jit(lambda x, i: x[i], dims={"n": (1, 9)}, in_dims=("n", None))

    with rune.debug.checks(bounds=True):
        assert float(function(X, 4)) == 4
        with pytest.raises(BoundsError, match="found index 4 out of bounds"):
            function(X[:4], 4)


# --- conditions of loops ----------------------------------------------------------------------

CONDITIONS = {
    "an index": (
        lambda x: rune.while_loop(lambda c: (c < 8) & (x[c] < 9.0), lambda c: c + 1, 0),
        {"bounds": True},
        "gather: found index 5 out of bounds",
    ),
    "an index at once": (
        lambda x: rune.while_loop(lambda c: x[c] > 9.0, lambda c: c + 1, 7),
        {"bounds": True},
        "gather: found index 7 out of bounds",
    ),
    "a NaN": (
        lambda x: rune.while_loop(lambda c: rnp.log(c) < 9.0, lambda c: c - 1.0, x[4]),
        {"nans": True},
        "log: found NaN in its result",
    ),
    "in a loop": (
        lambda x: rune.fori_loop(0, 3, lambda i, c: rune.while_loop(lambda k: x[k + i] < 4, lambda k: k + 1, c), 0),
        {"bounds": True},
        "gather: found index 5 out of bounds",
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CONDITIONS)
def test_operations_in_the_condition_of_a_loop_are_watched(name, way):
    function, checks, message = CONDITIONS[name]
    if name == "a NaN":
        function = lambda x: CONDITIONS["a NaN"][0](x - 2.5)  # noqa: E731

    with rune.debug.checks(**checks), pytest.raises((BoundsError, NaNError)) as error:
        WAYS[way](function, None)(rnp.asarray(X))
    assert message in str(error.value)


@pytest.mark.parametrize("device", DEVICES)
def test_the_condition_is_watched_on_every_executor(device):
    function, checks, message = CONDITIONS["an index"]
    with rune.debug.checks(**checks), pytest.raises(BoundsError, match=message):
        rune.jit(function, device=device)(X)


@pytest.mark.parametrize("device", DEVICES)
def test_a_watched_loop_takes_as_many_steps_as_before(device):
    def function(x):
        def more(carry):
            return (carry[0] < 7) & (carry[1][0] < 40.0)

        return rune.while_loop(more, lambda c: (c[0] + 1, c[1] * 2.0 + x[0]), (0, x))

    for start in (0.5, 39.0, 50.0):
        x = np.full(3, start, np.float32)
        expected = rune.jit(function, device=device)(x)
        with rune.debug.checks(bounds=True, nans=True, infs=True):
            results = rune.jit(function, device=device)(x)
        for a, b in zip(expected, results):
            np.testing.assert_array_equal(a, b)


def test_settings_and_checks_are_the_same():
    with rune.debug.checks(nans=True, infs=True):
        inside = rune.config.current()
    with rune.configure(check_nans=True, check_infs=True) as settings:
        assert inside is settings
