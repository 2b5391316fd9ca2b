"""cond and switch: which branch runs, what they may return, what is refused.

Expected values marked "as JAX 0.10.2" were observed there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.core.types import ArrayType
from rune.errors import ArgumentError, TransformError
from tests.support.arrays import array
from tests.support.close import same

BOTH_WAYS = pytest.mark.parametrize("in_program", [False, True], ids=["eager", "jit"])


def run(function: Any, in_program: bool, *args: Any) -> Any:
    return (rune.jit(function) if in_program else function)(*args)


# --- which branch -----------------------------------------------------------------------------


@BOTH_WAYS
@pytest.mark.parametrize(
    ("pred", "expected"),
    [(True, 1), (False, 2), (np.True_, 1), (3, 1), (0, 2), (-0.0, 2), (2.5, 1), (np.nan, 1), (np.int8(0), 2)],
)
def test_a_number_is_true_unless_it_is_zero(pred: Any, expected: int, in_program: bool):
    # As JAX 0.10.2.
    result = run(lambda p: rune.cond(p, lambda: 1, lambda: 2), in_program, pred)

    same(np.int32(expected), result)


@BOTH_WAYS
@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (0, 10),
        (1, 20),
        (2, 30),
        (-7, 10),
        (9, 30),
        (np.uint32(2**32 - 1), 30),
        (np.int64(2**40), 30),
        (np.int64(-(2**40)), 10),
        (np.uint8(200), 30),
    ],
)
def test_an_index_out_of_range_means_the_nearest_branch(index: Any, expected: int, in_program: bool):
    function = lambda i: rune.switch(i, [lambda: 10, lambda: 20, lambda: 30])  # noqa: E731

    same(np.int32(expected), run(function, in_program, array(index) if index is not int else index))


@BOTH_WAYS
def test_operands_are_trees_and_are_given_to_either_branch(in_program: bool):
    def function(p: Any, a: Any, b: Any) -> Any:
        return rune.cond(p, lambda a, b: {"r": a["x"] + b}, lambda a, b: {"r": a["x"] - b}, a, b)

    for p, expected in ((True, 5), (False, 1)):
        same({"r": np.int32(expected)}, run(function, in_program, p, {"x": 3, "none": None}, 2))


def test_branches_may_take_nothing_and_close_over_what_they_need():
    x, y = rnp.ones(2), rnp.zeros(2)

    same(np.ones(2, np.float32), rune.cond(True, lambda: x, lambda: y))
    same(np.zeros(2, np.float32), rune.cond(False, lambda: x, lambda: y))


def test_an_operand_may_be_given_by_name():
    assert rune.cond(True, lambda x: x, lambda x: -x, operand=3.0) == 3.0
    assert rune.cond(True, lambda x: 1, lambda x: 2, operand=None) == 1


def test_a_single_branch_is_called():
    assert rune.switch(5, [lambda x: x], 3.0) == 3.0  # as JAX 0.10.2


def test_only_the_chosen_branch_runs():
    def forever(x: Any) -> Any:
        return rune.while_loop(lambda v: v == v, lambda v: v, x)

    assert rune.cond(False, forever, lambda x: x + 1, 1) == 2


def test_a_function_used_in_several_places_is_traced_once():
    calls = []

    def function(x: Any) -> Any:
        calls.append(x)
        return x * 2.0

    assert rune.cond(False, function, function, 3.0) == 6.0
    assert rune.switch(2, [function, lambda x: x, function], 3.0) == 6.0
    assert len(calls) == 2


def test_a_branch_may_return_its_operands_and_constants():
    result = rune.cond(False, lambda x: (x, 1), lambda x: (x, 2), rnp.ones(2))

    same((np.ones(2, np.float32), np.int32(2)), result)


def test_branches_without_results():
    assert rune.cond(True, lambda x: None, lambda x: None, 1.0) is None


def test_a_predicate_that_is_traced_chooses_at_run_time():
    function = rune.jit(lambda x: rune.cond(x.sum() > 0, rnp.sin, rnp.cos, x))

    for x in (np.ones(2, np.float32), -np.ones(2, np.float32)):
        near_value = np.sin(x) if x.sum() > 0 else np.cos(x)
        np.testing.assert_allclose(np.asarray(function(x)), near_value, rtol=1e-6)


# --- types ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weak", ["sw", "ws", "sws", "wss", "ssw", "wsw"])
def test_a_result_is_as_weak_as_that_of_the_first_branch(weak: str):
    # As JAX 0.10.2; the first branch of cond is false_fun.
    branches = [(lambda: 1.0) if w == "w" else (lambda: np.float32(1.0)) for w in weak]
    choose = (lambda *b: rune.cond(True, *reversed(b))) if len(weak) == 2 else (lambda *b: rune.switch(1, b))

    assert choose(*branches).type == ArrayType((), dtypes.f32, weak=weak[0] == "w")


def test_results_that_are_weak_in_every_branch_are_weak():
    assert rune.cond(True, lambda: 1, lambda: 2).type == ArrayType((), dtypes.i32, weak=True)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (1, 2.0, r"result is f32\*\[\] from false_fun, i32\*\[\] from true_fun"),
        (1, np.float32(2), r"result is f32\[\] from false_fun, i32\*\[\] from true_fun"),
        (True, 1, r"i32\*\[\] from false_fun, bool\[\] from true_fun"),
        ({"a": rnp.ones(2)}, {"a": rnp.ones(3)}, r"result\['a'\] is f32\[3\] from false_fun"),
        ({"a": 1}, {"b": 1}, r"result\['b'\] comes from false_fun but not from true_fun"),
        ((1, 2), [1, 2], r"\[\*, \*\] comes from false_fun, \(\*, \*\) from true_fun"),
        (1, None, r"result comes|None comes"),
    ],
)
def test_branches_that_differ_say_where(a: Any, b: Any, message: str):
    # JAX 0.10.2 refuses the same ones: dtypes are not promoted between branches.
    with pytest.raises(TransformError, match=message):
        rune.cond(True, lambda: a, lambda: b)


def test_a_leaf_opposite_a_container_is_reported_with_both():
    with pytest.raises(TransformError, match=r"a single value comes from f.*, \(\*, \*\) from t"):
        rune.cond(True, lambda x: (x, x), lambda x: x, 1.0)


def test_switch_names_the_branch_that_differs():
    with pytest.raises(TransformError, match=r"branches\[0\], f32\*\[\] from branches\[2\]"):
        rune.switch(0, [lambda: 1, lambda: 2, lambda: 3.0])


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pred", "message"),
    [
        (np.array([True]), r"bool\[1\] as pred"),
        (1j, r"c64\*\[\] as pred"),
        ("a", "str as an array"),
        ((True,), "tuple as pred"),
        (None, "NoneType as pred"),
    ],
)
def test_a_value_that_is_not_a_predicate_is_refused(pred: Any, message: str):
    with pytest.raises(ArgumentError, match=message):
        rune.cond(pred, lambda: 1, lambda: 2)


@pytest.mark.parametrize("index", [1.0, True, np.array([1]), "one"])
def test_an_index_that_is_not_an_integer_is_refused(index: Any):
    with pytest.raises(ArgumentError, match="switch: cannot take"):
        rune.switch(index, [lambda: 1, lambda: 2])


def test_checks_of_a_branch_without_results_are_made_in_its_lanes():
    def checked(x: Any) -> None:
        return rune.cond(x > 1.0, lambda: rune.checkify.check(x < 2.0, "large"), lambda: None)

    for lanes, is_fine in (([0.0, 1.5], True), ([0.0, 2.5], False)):
        error, _ = rune.checkify.checkify(rune.vmap(checked))(np.array(lanes, np.float32))
        assert (error.get() is None) == is_fine


def test_mismatched_results_are_named_in_the_same_way_while_a_reference_is_alive():
    reference = rune.new_ref(1.0)

    with pytest.raises(TransformError, match=r"\(result\['a'\] is i32\*\[\] from false_fun"):
        rune.cond(True, lambda: {"a": 1.0}, lambda: {"a": 1})
    with pytest.raises(TransformError, match=r"\(\(\*, \*\) comes from false_fun, a single value from true_fun\)"):
        rune.cond(True, lambda: 1.0, lambda: (1.0, 2.0))
    assert reference[...] == 1.0


def test_a_branch_that_is_not_a_function_is_refused():
    no_function: Any = 3
    with pytest.raises(TransformError, match="cond: cannot transform int"):
        rune.cond(True, no_function, lambda: 2)
    with pytest.raises(TransformError, match="switch: cannot transform int"):
        rune.switch(0, [lambda: 2, no_function])
    with pytest.raises(ArgumentError, match="no branches"):
        rune.switch(0, [])


def test_an_operand_that_every_branch_passes_on_is_not_batched():
    branches = [lambda b, s: (b, s + 1, s), lambda b, s: (b, s, s), lambda b, s: (b, b, b)]
    lanes, scale, rows = rnp.array([0, 2, 1]), rnp.array(5.0), rnp.arange(3.0)

    def chosen(i: Any, b: Any, s: Any) -> Any:
        return rune.switch(i, branches, b, s)

    lanes_of_chosen = rune.vmap(chosen, in_axes=(0, None, 0), out_axes=(None, 0, 0))
    for run in (lanes_of_chosen, rune.jit(lanes_of_chosen)):
        constant, second, third = run(lanes, scale, rows)

        np.testing.assert_array_equal(constant, 5.0)
        np.testing.assert_array_equal(second, [1, 5, 2])
        np.testing.assert_array_equal(third, [0, 5, 2])


def test_an_operand_that_every_branch_passes_on_gets_the_derivatives_of_all_lanes():
    def total(b: Any) -> Any:
        outs = rune.vmap(lambda i: rune.cond(i > 0, lambda v: (v, v * v), lambda v: (v, v), b))(rnp.arange(3))
        return outs[0].sum() + outs[1].sum()

    np.testing.assert_array_equal(rune.grad(total)(3.0), 3 + 1 + 2 * 6)
