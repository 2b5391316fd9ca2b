"""One program, one answer: compiled code on every executor present, against the oracle.

Whole numbers agree bit for bit, floats within rounding; every stage of the lowering is checked on
the way, and every plan by the executor that computes nothing. Absent executors are listed, with
the reason, at the end of the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
from rune import dtypes
from rune.core.evaluate import eval_program
from rune.core.program import Program
from tests.support.arrays import array
from tests.support.close import near, same
from tests.support.examples import COMPILING
from tests.support.oracle import by_reference
from tests.support.sampling import in_turn
from tests.support.strategies import ANY, SMOOTH, WHOLE, arguments, concrete, programs

pytestmark = in_turn()

COMPUTING = [d.name for d in rune.devices() if d.target.backend != "null"]
on_every_executor = pytest.mark.parametrize("device", COMPUTING)


def compiled(program: Program, device: str) -> Any:
    """The program as a jitted function, every stage checked."""
    return rune.jit(lambda *xs: eval_program(program, xs), device=device)


def test_the_executors_without_a_driver_are_always_available():
    assert {"cpu:0", "reference:0", "null:0"} <= {d.name for d in rune.devices()}


@on_every_executor
@COMPILING
@given(data=st.data())
def test_compiled_floats_agree_with_the_oracle(device: str, data: st.DataObject):
    program = data.draw(programs(SMOOTH, dtypes.f32))
    args = data.draw(arguments(program))

    with rune.configure(check_stages=True):
        outputs = compiled(program, device)(*args)

    expected = [np.asarray(o) for o in by_reference(program, args)]
    near(expected, [np.asarray(o) for o in outputs], relative=1e-3, why="f32 through a few steps")


@on_every_executor
@COMPILING
@given(data=st.data())
def test_compiled_whole_numbers_and_bools_agree_with_the_oracle_bit_for_bit(device: str, data: st.DataObject):
    program = data.draw(programs(WHOLE, dtypes.i32))
    args = data.draw(arguments(program))

    with rune.configure(check_stages=True):
        outputs = compiled(program, device)(*args)

    same(list(map(np.asarray, by_reference(program, args))), list(map(np.asarray, outputs)))


@on_every_executor
@COMPILING
@given(data=st.data())
def test_compiled_programs_of_any_kind_agree_on_dtypes_and_shapes(device: str, data: st.DataObject):
    program = data.draw(programs(ANY, dtypes.f32))
    args = data.draw(arguments(program))

    with rune.configure(check_stages=True):
        outputs = compiled(program, device)(*args)

    assert [o.type for o in outputs] == [t.strong() for t in program.output_types]


@COMPILING
@given(st.data())
def test_every_plan_is_accepted_by_the_executor_that_computes_nothing(data: st.DataObject):
    program = data.draw(programs(ANY, dtypes.f32))
    args = data.draw(arguments(program))

    outputs = compiled(program, "null:0")(*args)

    assert [o.shape for o in outputs] == [t.shape for t in program.output_types]


@COMPILING
@given(st.data(), st.integers(1, 9))
def test_a_symbolic_batch_computes_what_every_size_computes(data: st.DataObject, size: int):
    program = data.draw(programs(SMOOTH, dtypes.f32, input_kinds=(), max_steps=3))
    rng = np.random.default_rng(11)
    args = [array(np.stack([np.asarray(concrete(t, rng)) for _ in range(size)])) for t in program.input_types]

    def lanes(*xs: Any) -> Any:
        return rune.vmap(lambda *x: eval_program(program, x))(*xs)

    pattern = tuple("n" for _ in args)
    with rune.configure(check_stages=True):
        outputs = rune.jit(lanes, dims={"n": (1, 9)}, in_dims=pattern)(*args)

    near(
        [np.asarray(o) for o in lanes(*args)],
        [np.asarray(o) for o in outputs],
        relative=1e-3,
        why="f32 through a few steps",
    )


@on_every_executor
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_literal_zero_is_a_number_like_any_other(device: str, dtype: str):
    x = np.array([np.nan, np.inf, -1, -0.0, 0.0], dtype)

    def zeros(x: Any) -> Any:
        return x * 0.0, x * -0.0, x + 0.0, x - 0.0, 0.0 - x, 0.0 / x

    with np.errstate(all="ignore"):
        expected = zeros(x)
    for a, b in zip(expected, rune.jit(zeros, device=device)(x), strict=True):
        second = np.asarray(b)
        np.testing.assert_array_equal(a, second)
        np.testing.assert_array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(second[~np.isnan(a)]))
