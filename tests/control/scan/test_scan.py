"""scan and map: values, carries, lengths, directions; JAX's conventions; what is refused.

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
from rune import dims, dtypes
from rune.core.types import ArrayType
from rune.errors import ArgumentError, AxisError, TracerIntegerConversionError, TransformError
from tests.control.cases import interpreted
from tests.support.arrays import array
from tests.support.close import near, same


def running(c: Any, x: Any) -> Any:
    return c + x, c


# --- values -----------------------------------------------------------------------------------


@given(st.integers(0, 6), st.booleans(), st.sampled_from([0, 1, 2, 3, True]), st.booleans())
def test_it_is_the_loop_over_rows(length: int, reverse: bool, unroll: Any, in_program: bool):
    xs = np.random.default_rng(length).normal(size=(length, 3))
    c, ys = np.ones(3), np.zeros((length, 3))
    for t in reversed(range(length)) if reverse else range(length):
        c = np.tanh(c * 0.5 + xs[t])
        ys[t] = 2.0 * c

    def function(init: Any, rows: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = rnp.tanh(c * 0.5 + x)
            return c, 2.0 * c

        return rune.scan(step, init, rows, reverse=reverse, unroll=unroll)

    with interpreted():
        near((c, ys), function(array(np.ones(3)), array(xs)), relative=1e-13, why="f64")
    if in_program:
        result = rune.jit(function)(array(np.ones(3)), array(xs))
        near((c, ys), result, relative=1e-12, why="f64, another polynomial")


def test_the_stacked_results_of_a_reversed_scan_have_the_order_of_the_rows():
    # As JAX 0.10.2.
    result = rune.scan(running, 0.0, rnp.arange(4.0), reverse=True)

    same((np.float32(6), np.array([6, 5, 3, 0], np.float32)), result)


def test_carry_and_rows_are_trees_and_none_is_one():
    def step(c: Any, x: Any) -> Any:
        assert c["none"] is None
        return {"a": c["a"] + x["n"], "none": None}, {"b": (c["a"], None)}

    rows = {"n": rnp.arange(3), "nothing": None}
    carry, ys = rune.scan(step, {"a": 10, "none": None}, rows)

    assert carry["none"] is None
    assert ys["b"][1] is None
    same(np.int32(13), carry["a"])
    same(np.array([10, 10, 11], np.int32), ys["b"][0])


def test_without_rows_the_length_counts():
    result = rune.scan(lambda c, x: (c * 2, x), 1, None, length=5)

    assert result[1] is None
    same(np.int32(32), result[0])


def test_without_a_carry_it_maps():
    carry, ys = rune.scan(lambda c, x: (c, x * 2), None, rnp.arange(3))

    assert carry is None
    same(np.array([0, 2, 4], np.int32), ys)


def test_no_steps_give_the_first_carry_and_empty_results():
    carry, ys = rune.scan(lambda c, x: (c + x, (c, x[None])), 1.5, rnp.ones((0,)))

    same(np.float32(1.5), carry)
    same((np.ones(0, np.float32), np.ones((0, 1), np.float32)), ys)


def test_the_length_may_be_given_together_with_the_rows():
    same(np.float32(6), rune.scan(running, 0.0, rnp.arange(4.0), length=4)[0])


def test_closed_over_arrays_and_traced_values_are_seen():
    scale = rnp.asarray([1.0, 2.0])

    def function(x: Any) -> Any:
        return rune.scan(lambda c, _: (c * scale + x, None), rnp.zeros(2), None, length=3)[0]

    near(np.array([3.0, 14.0], np.float32), function(rnp.asarray([1.0, 2.0])), relative=0, why="")
    near(function(rnp.ones(2)), rune.jit(function)(rnp.ones(2)), relative=0, why="exact")


def test_a_body_may_return_what_it_closes_over_and_what_it_is_given():
    table = rnp.arange(2.0)

    carry, ys = rune.scan(lambda c, x: (x, (table, 7)), 0.0, rnp.ones(3))

    same(np.float32(1.0), carry)
    same((np.array([[0, 1]] * 3, np.float32), np.array([7] * 3, np.int32)), ys)


# --- types ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("init", "rows", "dtype"),
    [
        (0, [1.0, 2.0], dtypes.f32),
        (0, np.ones(2, np.int8), dtypes.i8),
        (0.0, np.ones(2, np.float16), dtypes.f16),
        (True, [True, False], dtypes.bool_),
    ],
)
def test_a_python_number_takes_the_dtype_that_comes_out(init: Any, rows: Any, dtype: np.dtype):
    def step(c: Any, x: Any) -> Any:
        return (c | x if dtype == dtypes.bool_ else c + x), c

    carry, ys = rune.scan(step, init, rnp.asarray(rows))

    assert carry.dtype == ys.dtype == dtype  # as JAX 0.10.2


def test_a_weak_carry_stays_weak_without_a_strong_operand():
    carry, _ = rune.scan(lambda c, _: (c * 2.0, None), 1.0, None, length=3)

    assert carry.type == ArrayType((), dtypes.f32, weak=True)  # as JAX 0.10.2


def test_a_carry_becomes_weak_if_the_body_returns_a_python_number():
    carry, carries = rune.scan(lambda c, _: (1.0, c), np.float32(0), None, length=3)

    # As JAX 0.10.2: the body receives a strong value, and the loop returns what the body returned.
    assert rune.typeof(carry) == ArrayType((), dtypes.f32, weak=True)
    assert rune.typeof(carries) == ArrayType((3,), dtypes.f32)


def test_types_that_promote_one_after_the_other_settle():
    # b takes f32 from a only after a has taken it from the rows.
    def step(c: Any, x: Any) -> Any:
        a, b = c
        return (a + x, b + a), None

    (a, b), _ = rune.scan(step, (0, 0), rnp.arange(3.0))

    same((np.float32(3.0), np.float32(1.0)), (a, b))


# --- lengths ----------------------------------------------------------------------------------


def test_a_symbolic_number_of_rows_gives_one_program():
    @rune.jit(dims={"n": (0, 64)})
    def function(xs: Any) -> Any:
        return rune.scan(running, 0.0, xs)

    with rune.counting() as counts:
        for n in (3, 5, 0, 64):
            xs = np.arange(n, dtype=np.float32)
            before = np.concatenate([[0.0], np.cumsum(xs)]).astype(np.float32)
            near((before[-1], before[:-1]), function(xs), relative=1e-6, why="f32")
    assert (counts.traces, counts.compiles) == (1, 1)


def test_gradient_and_lanes_with_a_symbolic_number_of_rows():
    def loss(w: Any, xs: Any) -> Any:
        last, ys = rune.scan(lambda c, x: (rnp.tanh(c * w + x), c), rnp.zeros(2), xs)
        return (last * last).sum() + ys.sum()

    gradient = rune.grad(loss, argnums=(0, 1))
    symbolic = rune.jit(gradient, dims={"n": (1, 64)}, in_dims=(None, "n,_"))
    lanes = rune.jit(rune.vmap(gradient, in_axes=(None, 0)), dims={"b": (1, 9), "n": (1, 64)}, in_dims=(None, "b,n,_"))
    rng = np.random.default_rng(0)
    w = rng.normal(size=2).astype(np.float32)
    with rune.counting() as counts:
        for b, n in ((2, 3), (3, 7)):
            xs = rng.normal(size=(b, n, 2)).astype(np.float32)
            rows = [gradient(w, x) for x in xs]
            near(rows[0], symbolic(w, xs[0]), relative=1e-5, why="f32")
            expected = [np.stack([np.asarray(r[i]) for r in rows]) for i in (0, 1)]
            near(expected, list(lanes(w, xs)), relative=1e-5, absolute=1e-6, why="f32")
    assert counts.traces == 2


def test_a_size_may_be_the_length():
    @rune.jit(dims={"n": (1, 64)})
    def function(xs: Any) -> Any:
        length = rune.scan(lambda c, _: (c + 1, None), 0, None, length=xs.shape[0])[0]
        return length, rune.fori_loop(0, xs.shape[0], lambda i, c: c + xs[i], 0.0)

    for n in (3, 5):
        result = function(np.ones(n, np.float32))
        same((np.int32(n), np.float32(n)), result)


def test_a_body_may_use_a_size_that_none_of_its_values_has():
    def function(x: Any, seed: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            return c + rnp.ones(x.shape[0]).sum(), None

        return rune.scan(step, seed, None, length=3)[0]

    symbolic = rune.jit(function, dims={"n": (1, 64)}, in_dims=("n", None))
    slope = rune.jit(rune.grad(function, argnums=1), dims={"n": (1, 64)}, in_dims=("n", None))
    for n in (2, 5):
        same(np.float32(3 * n), symbolic(np.ones(n, np.float32), 0.0))
        same(np.float32(1), slope(np.ones(n, np.float32), 0.0))


def test_types_stand_in_for_arrays_of_symbolic_size(expect: Any):
    n = dims.symbol("n", 1, 64)
    rows = ArrayType((n, 2), dtypes.f32)

    expect(
        rune.make_program(lambda xs: rune.scan(running, rnp.zeros(2), xs)[0])(rows),
        """
        program lambda(%0: f32[n,2]) where n in 1..64 {
          %1: f32[2] = broadcast 0.0: f32[] {axes=(), shape=(2,)}
          %2: f32[2], %3: f32[n,2] = scan %1, %0 {body=program running(%0: f32[2], %1: f32[2]) {
            %2: f32[2] = add %0, %1
            return %2, %0
          }, carries=1, consts=0, length=n, reverse=false, unroll=1}
          return %2
        }""",
    )


# --- map --------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 1, 3, 7, 9])
def test_map_equals_the_loop_for_any_batch_size(batch_size: int | None):
    xs = np.arange(14, dtype=np.float32).reshape(7, 2)

    result = rune.map(lambda x: {"s": x.sum(), "x": x * 2}, rnp.asarray(xs), batch_size=batch_size)

    same({"s": xs.sum(1), "x": xs * 2}, result)


def test_map_of_trees_of_no_rows():
    result = rune.map(lambda x: x["a"] + x["b"], {"a": rnp.ones((0, 2)), "b": rnp.ones((0, 2))})

    same(np.ones((0, 2), np.float32), result)


# --- what is refused --------------------------------------------------------------------------


def test_a_carry_that_changes_its_shape_names_the_leaf():
    with pytest.raises(TransformError, match=r"carry\['h'\] \(f32\[3\] goes in, f32\[4\] comes"):
        rune.scan(lambda c, _: ({"h": rnp.ones(4)}, None), {"h": rnp.ones(3)}, None, length=2)


def test_a_strong_carry_that_changes_its_dtype_is_refused():
    with pytest.raises(TransformError, match=r"carry \(i32\[\] goes in, f32\[\] comes out\)"):
        rune.scan(lambda c, x: (c + x, None), np.int32(0), rnp.ones(3))


def test_a_carry_of_another_structure_names_the_place():
    with pytest.raises(TransformError, match=r"carry\['h'\] goes in but does not come out"):
        rune.scan(lambda c, _: ({"g": c["h"]}, None), {"h": rnp.ones(3)}, None, length=2)


@pytest.mark.parametrize(
    ("error", "message", "args", "options"),
    [
        (ArgumentError, "a pair", (lambda c, x: c, rnp.ones(3), None), {"length": 3}),
        (AxisError, "3 rows of xs.0. and 4 of xs.1.", (running, 0.0, (rnp.ones(3), rnp.ones(4))), {}),
        (AxisError, "it has no rows", (running, 0.0, rnp.ones(())), {}),
        (AxisError, "3 rows of xs and 4 of length", (running, 0.0, rnp.ones(3)), {"length": 4}),
        (ArgumentError, "number of steps", (running, 0.0, None), {}),
        (ArgumentError, "-1 steps", (running, 0.0, None), {"length": -1}),
        (ArgumentError, "float as length", (running, 0.0, None), {"length": 2.0}),
        (ArgumentError, "write out -1", (running, 0.0, rnp.ones(3)), {"unroll": -1}),
        (ArgumentError, "str as an array", (lambda c, x: (c, "y"), 0.0, rnp.ones(3)), {}),
    ],
)
def test_meaningless_arguments_are_refused(error: Any, message: str, args: Any, options: Any):
    with pytest.raises(error, match=message):
        rune.scan(*args, **options)


def test_a_traced_length_points_to_while_loop():
    with pytest.raises(TracerIntegerConversionError, match="while_loop"):
        rune.jit(lambda n: rune.scan(lambda c, _: (c, None), 0, None, length=n))(3)
