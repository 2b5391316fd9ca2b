"""Dots that call a library: which ones, how operands are read, and unchanged values.

A transposed or reshaped operand is read where it lies; any other order is packed by a kernel.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from rune import dtypes, ops
from rune.core.check import check_program
from rune.core.types import ArrayType
from rune.lowering.kernelize import cost, kernelize
from rune.lowering.kernelize.routines import route_dots
from rune.lowering.kernels import Invoke, Routine
from tests.support.lowering import (
    PLAIN,
    WITH_DOT,
    agree,
    evaluate,
    f32,
    i32,
    program_of,
    random_arguments,
    run_kernel_program,
)


def steps(function, *types) -> Any:
    """The steps, after holding the kernels against the program."""
    program = program_of(function, *types)
    kernels = kernelize(program, WITH_DOT)
    args = random_arguments(program)
    agree(evaluate(program, args), run_kernel_program(kernels, args), relative=1e-4)
    return kernels.steps


def flags(function, *types) -> tuple[bool, bool]:
    """(trans_a, trans_b) of the only step."""
    (step,) = steps(function, *types)
    parameters = dict(step.parameters)
    return parameters["trans_a"], parameters["trans_b"]


def dot(numbers):
    return lambda a, b: ops.dot_general(a, b, dimension_numbers=numbers)


@pytest.mark.parametrize(("ca", "cb"), list(itertools.product((0, 1), (0, 1))))
def test_either_axis_may_be_contracted_without_a_copy(ca: int, cb: int):
    a = f32(64, 96) if ca == 1 else f32(96, 64)
    b = f32(96, 80) if cb == 0 else f32(80, 96)

    assert flags(dot((((ca,), (cb,)), ((), ()))), a, b) == (ca == 0, cb == 1)


def test_transposed_and_reshaped_operands_are_read_without_a_copy():
    def function(a, b):
        operand = ops.transpose(ops.reshape(a, shape=(96, 64)), permutation=(1, 0))
        return ops.dot_general(operand, b, dimension_numbers=(((1,), (0,)), ((), ())))

    assert flags(function, f32(2, 48, 64), f32(96, 80)) == (True, False)


def test_one_row_after_a_moved_axis_of_one_is_read_in_place():
    def function(a, b):
        row = ops.reshape(ops.transpose(a, permutation=(0, 2, 1, 3)), shape=(1, 128))
        return ops.dot_general(row, b, dimension_numbers=(((1,), (1,)), ((), ())))

    assert flags(function, f32(1, 4, 1, 32), f32(200, 128)) == (False, True)


def test_leading_axes_of_the_first_operand_are_rows():
    (step,) = steps(dot((((2,), (0,)), ((), ()))), f32(4, 16, 96), f32(96, 80))

    assert dict(step.parameters)["m"] == 64


def test_batch_axes_that_lead_need_no_copy():
    numbers = (((3,), (3,)), ((0, 1), (0, 1)))

    (step,) = steps(dot(numbers), f32(2, 3, 32, 64), f32(2, 3, 32, 64))

    assert dict(step.parameters) == {"batch": 6, "m": 32, "n": 32, "k": 64, "trans_a": False, "trans_b": True}


def test_batch_axes_inside_are_packed_by_a_kernel():
    numbers = (((3,), (3,)), ((0, 2), (0, 2)))  # [batch, length, heads, depth]

    step_list = steps(dot(numbers), f32(2, 32, 3, 64), f32(2, 32, 3, 64))

    assert [type(s) for s in step_list] == [Invoke, Invoke, Routine]


def test_several_contracted_axes_are_one():
    (step,) = steps(dot((((1, 2), (0, 1)), ((), ()))), f32(64, 8, 12), f32(8, 12, 80))

    assert dict(step.parameters)["k"] == 96


def test_a_slice_is_packed():
    def function(a, b):
        part = ops.slice_(a, start=(0, 3), limit=(64, 99), stride=(1, 1))
        return ops.dot_general(part, b, dimension_numbers=(((1,), (0,)), ((), ())))

    assert [type(s) for s in steps(function, f32(64, 100), f32(96, 80))] == [Invoke, Routine]


def test_half_types_go_through_f32():
    bf16 = ArrayType((64, 64), dtypes.bf16)
    program = program_of(dot((((1,), (0,)), ((), ()))), bf16, bf16)

    kernels = kernelize(program, WITH_DOT)

    call = next(s for s in kernels.steps if isinstance(s, Routine))
    assert {v.type.dtype for v in (*call.operands, *call.results)} == {dtypes.f32}
    assert kernels.output_types[0].dtype == dtypes.bf16
    args = random_arguments(program)
    agree(evaluate(program, args), run_kernel_program(kernels, args), relative=1e-2)


@pytest.mark.parametrize("type_of", [i32, lambda *s: ArrayType(s, dtypes.c64)], ids=["i32", "c64"])
def test_other_types_are_generated(type_of):
    program = program_of(dot((((1,), (0,)), ((), ()))), type_of(64, 64), type_of(64, 64))

    assert all(isinstance(s, Invoke) for s in kernelize(program, WITH_DOT).steps)


def test_small_dots_are_generated():
    side = int(np.cbrt(cost.DOT_ROUTINE_WORK)) - 1
    program = program_of(dot((((1,), (0,)), ((), ()))), f32(side, side), f32(side, side))

    assert all(isinstance(s, Invoke) for s in kernelize(program, WITH_DOT).steps)


@pytest.mark.parametrize(
    ("m", "k", "n", "is_called"),
    [
        (20_000, 3, 3, False),
        (20_000, 8, 8, False),
        (3, 3, 20_000, False),
        (20_000, 9, 9, True),
        (20_000, 2, 64, True),
        (500, 500, 1, False),
        (1, 500, 500, False),
        (100, 100, 2, True),
        (20_000, 16, 1, False),
        (20_000, 5, 1, False),
        # Little work is left to the routine.
        (2_000, 16, 1, True),
        (1, 5_000, 100, False),
        # One core would add up such columns.
        (1, 70_000, 100, True),
        (100, 5_000, 1, False),
    ],
)
def test_products_of_vectors_and_of_thin_matrices_are_generated(m: int, k: int, n: int, is_called: bool):
    kernels = kernelize(program_of(dot((((1,), (0,)), ((), ()))), f32(m, k), f32(k, n)), WITH_DOT)

    assert any(isinstance(step, Routine) for step in kernels.steps) == is_called


def test_routing_fires_only_for_targets_that_have_the_routine():
    program = program_of(dot((((1,), (0,)), ((), ()))), f32(64, 64), f32(64, 64))

    assert route_dots(program, PLAIN) is program
    with_routine = route_dots(program, WITH_DOT)
    check_program(with_routine)
    assert [e.primitive.name for e in with_routine.equations] == ["routine_dot"]
