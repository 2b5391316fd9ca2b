"""Changes in place: scatters and window updates write what changes, and copy only when they must.

A value that dies is changed where it lies, and so is a donated argument; anything else is copied
first. The choice depends on sizes alone; small arrays are copied by the kernel itself.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import dtypes, ops
from rune.lowering.kernel.nodes import For
from rune.lowering.kernelize import cost
from rune.lowering.pipeline import stages
from tests.lowering import models
from tests.support.lowering import (
    WITH_DOT,
    agree,
    evaluate,
    f32,
    i32,
    number,
    program_of,
    random_arguments,
    run_kernel_program,
    run_plan,
)
from tests.support.random_programs import random_program

ROWS = ops.IndexDims((1,), (0,), (0,))


def scatter(x, at, u):
    return ops.scatter_add(x, at, u, dims=ROWS, slice_sizes=(1, 64), mode="fill")


def kinds(plan) -> list[str]:
    return [type(s).__name__ for s in plan.steps]


def hold(function, *types, donated=()):
    program = program_of(function, *types)
    plan = stages(program, WITH_DOT, donated, check=True).plan
    args = random_arguments(program)
    agree(evaluate(program, args), run_plan(plan, args), relative=1e-4)
    return plan


def test_a_large_scatter_copies_its_operand_and_changes_the_copy():
    plan = hold(scatter, f32(512, 64), i32(8, 1), f32(8, 64))

    assert kinds(plan) == ["Copy", "Launch"]


def test_a_scatter_into_a_value_that_dies_changes_it_in_place():
    def function(x, at, u):
        return scatter(ops.exp(x), at, u)

    plan = hold(function, f32(512, 64), i32(8, 1), f32(8, 64))

    assert kinds(plan) == ["Launch", "Launch"]
    assert plan.arena_bytes == 0


def test_a_scatter_into_a_value_that_is_needed_later_copies_it():
    def function(x, at, u):
        y = ops.exp(x)
        return ops.mul(scatter(y, at, u), y), models.softmax(y)

    assert "Copy" in kinds(hold(function, f32(512, 64), i32(8, 1), f32(8, 64)))


def test_a_scatter_into_a_donated_argument_is_in_place():
    plan = hold(scatter, f32(512, 64), i32(8, 1), f32(8, 64), donated=(0,))

    assert plan.donations == ((0, 0),)


def test_a_small_window_is_written_alone():
    def function(cache, new, start):
        return ops.dynamic_update_slice(cache, new, start, number(0, dtypes.i32))

    plan = hold(function, f32(512, 64), f32(1, 64), i32(), donated=(0,))

    (kernel,) = plan.kernels.values()
    assert kinds(plan) == ["Copy", "Launch"]
    assert plan.donations == ((0, 0),)
    (loop,) = kernel.body
    assert isinstance(loop, For)
    assert loop.extent == 64


@pytest.mark.parametrize(("rows", "in_place"), [(32, True), (8, False)], ids=["of many rows", "of few"])
def test_a_row_of_a_small_array_is_written_alone_where_it_is_a_tiny_part(rows: int, in_place: bool):
    def function(x, row, k):
        return ops.dynamic_update_slice(x, row, k, number(0, dtypes.i32))

    plan = hold(function, f32(rows, 512), f32(1, 512), i32(), donated=(0,))

    (kernel,) = plan.kernels.values()
    (loop, *_) = kernel.body
    assert isinstance(loop, For)
    assert ((0, 0) in plan.donations and loop.extent == 512) == in_place


def test_updates_of_one_cache_follow_each_other_in_place():
    def function(cache, a, b):
        zero = number(0, dtypes.i32)
        once = ops.dynamic_update_slice(cache, a, number(3, dtypes.i32), zero)
        return ops.dynamic_update_slice(once, b, number(4, dtypes.i32), zero)

    plan = hold(function, f32(512, 64), f32(1, 64), f32(2, 64))

    assert kinds(plan) == ["Copy", "Launch", "Launch"]
    assert plan.arena_bytes == 0


@given(st.integers(0, 1 << 20))
def test_random_programs_may_change_everything_in_place(seed: int):
    program = random_program(seed, length=20)
    args = random_arguments(program, seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "IN_PLACE", 1)
        patch.setattr(cost, "WINDOW_SHARE", 1)
        lowered = stages(program, WITH_DOT, check=True)

    agree(evaluate(program, args), run_kernel_program(lowered.kernels, args), relative=1e-4)
    agree(evaluate(program, args), run_plan(lowered.plan, args), relative=1e-4)
