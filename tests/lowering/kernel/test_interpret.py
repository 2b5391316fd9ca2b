"""The interpreter: what kernel code means, in NumPy terms, and every fault that it finds.

Loops may run at once or one iteration at a time: the answer is the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import CheckError
from rune.lowering.kernel import interpret as interpreter
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.text import parse
from tests.lowering.kernel.examples import example
from tests.lowering.kernel.random_code import random_code, random_inputs
from tests.support.close import close, same

rng = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def run(name: str, inputs: Sequence[np.ndarray], out: np.ndarray, **sizes: int) -> np.ndarray:
    interpret(example(name), [*inputs, out], sizes)
    return out


# --- values -----------------------------------------------------------------------------------


def test_elementwise_code_computes_each_element():
    x = normal(100)

    y = run("elementwise", [np.abs(x)], np.empty_like(x), n=100)

    assert (y >= 0).all()
    assert (y <= np.abs(x)).all()


def test_softmax_with_scratch_agrees_with_numpy():
    x = normal(30, 64)
    e = np.exp(x - x.max(1, keepdims=True))

    y = run("softmax", [x], np.empty_like(x), n=30)

    close(e / e.sum(1, keepdims=True), y, ulps=4, why="the order of the sum")


def test_dot_agrees_with_numpy():
    a, b = normal(18, 12), normal(12, 10)

    c = run("dot", [a, b], np.empty((18, 10), np.float32))

    np.testing.assert_allclose(c, a.astype(np.float64) @ b, atol=1e-5)


def test_a_guarded_load_gives_zero_where_the_guard_fails():
    x = normal(8)

    same(np.pad(x, 2), run("pad", [x], np.empty(12, np.float32)))


def test_an_integer_let_is_an_index():
    x, k = normal(10), np.array([3, -5, 99, 0], np.int32)

    same(x[[3, 0, 9, 0]], run("gather", [x, k], np.empty(4, np.float32), n=4))


def test_an_update_accumulates_over_repeated_indices():
    k, u = np.array([1, 1, 20, -1, 3, 1], np.int32), np.arange(6, dtype=np.float32)

    y = run("scatter", [k, u], np.ones(10, np.float32), n=6)

    same(np.array([1, 7, 1, 5, 1, 1, 1, 1, 1, 1], np.float32), y)


def test_a_carried_var_runs_in_order():
    x = rng.integers(-9, 9, (6, 10)).astype(np.int32)

    same(np.cumsum(x, 1, dtype=np.int32), run("cumsum", [x], np.empty_like(x)))


def test_threads_see_what_others_stored_before_the_barrier():
    x = normal(4, 8)

    same(x[:, ::-1].copy(), run("workgroup", [x], np.empty_like(x)))


def test_four_grid_axes_move_the_data():
    x = rng.normal(size=(2, 3, 4, 5))

    same(np.transpose(x).copy(), run("four_axes", [x], np.empty((5, 4, 3, 2))))


def test_a_loop_with_an_extent_that_depends_on_an_outer_loop():
    text = """
    code f(y: write i32[6]) {
      for i in 6 grid {
        var s: i32 = 0_i32
        for j in i serial { s add= i32(index(j)) }
        store y[i] = s
      }
    }"""
    y = np.empty(6, np.int32)

    interpret(parse(text), [y])

    assert y.tolist() == [0, 0, 1, 3, 6, 10]


def test_the_last_of_several_stores_to_one_element_wins():
    text = """
    code f(y: write i32[3]) {
      for i in 4 serial { for j in 5 serial { store y[(i + j) % 3] = i32(index(10*i + j)) } }
    }"""
    y, expected = np.empty(3, np.int32), np.empty(3, np.int32)
    for i in range(4):
        for j in range(5):
            expected[(i + j) % 3] = 10 * i + j

    interpret(parse(text), [y])

    same(expected, y)


def test_an_empty_grid_stores_nothing():
    same(np.empty(0, np.float32), run("elementwise", [normal(0)], np.empty(0, np.float32), n=0))


@given(st.integers(0, 10**6), st.sampled_from([1, 7, 64]))
def test_loops_at_once_and_one_by_one_agree_bit_for_bit(seed, lanes):
    at_once, one_by_one = random_inputs(seed), random_inputs(seed)
    interpret(random_code(seed), at_once)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "LANES", lanes)
        interpret(random_code(seed), one_by_one)

    same(at_once[2], one_by_one[2])


def test_a_declared_alias_is_one_memory():
    text = """
    code f(x: read f32[n], y: write f32[n]) sizes n in 1.. aliases x = y {
      for i in n grid { store y[i] = x[i] * 2.0_f32 }
    }"""
    x = normal(5)
    expected = x * 2

    interpret(parse(text), [x, x], {"n": 5})

    same(expected, x)


# --- faults -----------------------------------------------------------------------------------

HEAD = "code f(x: read f32[8], y: write f32[8]) sizes n in 1..100"


def fault(body: str, head: str = HEAD, n: int = 8) -> str:
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    with pytest.raises(CheckError, match="interpret: cannot") as error:
        interpret(parse(f"{head} {{ {body} }}"), [x, y], {"n": n})
    return str(error.value).splitlines()[0]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("for i in n grid { store y[0] = x[i] }", "cannot load x in kernel f (index 8 of 8, at i=8)"),
        ("for i in 3 serial { store y[i - 1] = 0.0_f32 }", "store y in kernel f (index -1 of 8"),
        ("for i in 8 grid { store y[i] = x[i - 1 if index(i) >= 0_i64] }", "index -1 of 8, at i=0"),
        ("alloc e: f32[4] local store y[0] = e[4]", "cannot load e in kernel f (index 4 of 4)"),
    ],
)
def test_an_access_out_of_bounds_is_found_with_its_place(body, reason):
    assert reason in fault(body, n=9)


@pytest.mark.parametrize(
    "body",
    [
        "alloc e: f32[4] local store e[0] = 1.0_f32 store y[0] = e[1]",
        "store y[0] = y[1]",
        "update y[0] add= 1.0_f32",
        "for i in 4 grid { alloc e: f32[2] local store e[i % 2] = 1.0_f32 store y[i] = e[0] }",
    ],
)
def test_a_read_of_unwritten_memory_is_detected(body):
    assert "nothing has written" in fault(body)


@pytest.mark.parametrize(
    "body",
    [
        "for i in 8 grid { store y[0] = x[i] }",
        "for i in 8 grid { store y[i//2] = x[i] }",
        "for i in 4 grid { store y[2*i] = x[i] store y[2*i + 1] = y[2*((i + 1) % 4)] }",
    ],
)
def test_two_grid_points_on_one_element_are_a_race(body):
    assert "a race within the grid" in fault(body)


@pytest.mark.parametrize("where", ["tile", "y"])
def test_threads_that_do_not_wait_are_a_race(where):
    store = f"store {where}[t] = x[t] " + "{barrier}" + f" z: f32 = {where}[-t + 7]"
    body = f"alloc tile: f32[8] shared for t in 8 workgroup {{ {store} }}"

    assert "a race within the workgroup" in fault(body.replace("{barrier}", ""))
    interpret(
        parse(f"{HEAD} {{ {body.replace('{barrier}', 'barrier')} }}"),
        [np.zeros(8, np.float32), np.zeros(8, np.float32)],
        {"n": 1},
    )


@pytest.mark.parametrize(
    "body",
    [
        "for j in 4 vector { store y[j//2] = x[j] }",
        "alloc e: f32[8] local for j in 8 serial { store e[j] = 1.0_f32 } "
        "for j in 4 vector { store e[j + 1] = e[j] + 1.0_f32 }",
    ],
)
def test_dependent_iterations_of_a_vector_loop_are_a_race(body):
    assert "a race within the vector" in fault(body)


def test_threads_that_only_read_one_element_do_not_race():
    text = f"{HEAD} {{ for i in 8 grid {{ store y[i] = x[0] }} }}"

    interpret(parse(text), [np.ones(8, np.float32), np.zeros(8, np.float32)], {"n": 1})


def test_an_index_symbol_outside_its_declared_bounds_is_found():
    message = fault("k: i32 in 0..3 = 5_i32 store y[k] = 1.0_f32")

    assert "cannot bind k in kernel f (5 is not in 0..3)" in message


X, Y = np.zeros(8, np.float32), np.zeros(8, np.float32)


@pytest.mark.parametrize(
    ("buffers", "sizes", "reason"),
    [
        ([X, X], {"n": 1}, "x and y share memory"),
        ([X, Y[:7]], {"n": 1}, r"y is float32\[8\]"),
        ([X.astype(np.float64), Y], {"n": 1}, r"not float64\[8\]"),
        ([np.zeros(16, np.float32)[::2], Y], {"n": 1}, "x is an array that is not contiguous"),
        ([X], {"n": 1}, "1 buffers for 2"),
        ([X, Y], {}, r"no size \['n'\]"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(buffers, sizes, reason):
    code = parse(f"{HEAD} {{ for i in 8 grid {{ store y[i] = x[i] }} }}")

    with pytest.raises(CheckError, match=reason):
        interpret(code, buffers, sizes)
