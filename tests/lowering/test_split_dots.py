"""Long dots with few results are split: which ones, into which parts, and with the same sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, lax, ops
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.lowering.costs import cost
from rune.lowering.kernelize.split_dots import split_dots
from rune.lowering.simplify.eliminate_dead import eliminate_dead
from rune.lowering.stages import stages
from tests.lowering.test_build import AB, ABT, ATB, dot
from tests.support.gpus import H100
from tests.support.lowering import agree, evaluate, f32, program_of, random_arguments, run_plan, target

GPU = replace(target(language="cuda"), cores=132, threads_per_workgroup=1024, shared_bytes=48 << 10)
PROCESSOR = replace(GPU, is_processor=True)


def split(function: Any, *types: ArrayType, device: Any = GPU) -> tuple[Program, Program]:
    program = program_of(function, *types)
    return program, split_dots(program, device)


def dot_shapes(program: Program) -> list[tuple]:
    return [e.results[0].type.shape for e in program.equations if e.primitive is ops.dot_general]


def holds(program: Program, rewrite: Program, relative: float = 1e-4) -> None:
    args = random_arguments(program)
    agree(evaluate(program, args), evaluate(rewrite, args), relative=relative)


@pytest.mark.parametrize("numbers", [AB, ABT, ATB], ids=str)
def test_a_long_sum_of_few_results_is_done_in_parts_that_are_a_batch(numbers: Any):
    a = f32(65_536, 32) if numbers is ATB else f32(32, 65_536)
    b = f32(40, 65_536) if numbers is ABT else f32(65_536, 40)
    program, rewrite = split(dot(numbers), a, b)

    ((parts, *results),) = dot_shapes(rewrite)
    assert results == [32, 40]
    assert parts >= 16
    holds(program, rewrite)


def test_a_batch_stays_in_front_of_the_parts():
    def function(a: Any, b: Any) -> Any:
        return ops.dot_general(a, b, dimension_numbers=(((1,), (2,)), ((2,), (0,))))

    program, rewrite = split(function, f32(32, 8_192, 3), f32(3, 33, 8_192))

    ((batch, parts, *results),) = dot_shapes(rewrite)
    assert (batch, results) == (3, [32, 33])
    assert parts > 1
    holds(program, rewrite)


def test_the_last_part_of_a_prime_length_is_shorter():
    program, rewrite = split(dot(AB), f32(32, 65_537), f32(65_537, 33))

    ((parts, *results),) = dot_shapes(rewrite)
    assert results == [32, 33]
    assert parts >= 4
    assert 65_537 % parts
    holds(program, rewrite)


@pytest.mark.parametrize("length", [4_096, 4_099, 8_191])
def test_the_loops_of_all_parts_add_up_to_the_whole_product(length: int):
    program = program_of(dot(AB), f32(33, length), f32(length, 35))
    args = random_arguments(program)
    plan = stages(program, GPU, check=True).plan

    assert len(plan.kernels) > 1
    agree(evaluate(program, args), run_plan(plan, args), relative=1e-3)


def test_the_gradient_of_the_weights_of_a_convolution_is_summed_over_parts_of_the_batch():
    def function(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("CNHW", "IOHW", "CNHW"))

    program, rewrite = split(function, f32(32, 16, 30, 30), f32(32, 32, 28, 28))

    assert len(dot_shapes(rewrite)[0]) == len(dot_shapes(program)[0]) + 1


@pytest.mark.parametrize("dtype", [dtypes.f16, dtypes.bf16], ids=dtypes.short)
def test_half_types_are_added_up_in_f32_from_end_to_end(dtype: np.dtype):
    types = ArrayType((32, 8_192), dtype), ArrayType((8_192, 32), dtype)
    program, rewrite = split(dot(AB), *types)

    (reduction,) = (e for e in rewrite.equations if e.primitive is ops.reduce_sum)
    assert reduction.operands[0].type.dtype == dtypes.f32
    assert rewrite.output_types == program.output_types
    holds(program, rewrite, relative=1e-2)


def test_integers_wrap_in_the_same_way():
    types = ArrayType((32, 8_192), dtypes.i32), ArrayType((8_192, 32), dtypes.i32)
    program, rewrite = split(dot(AB), *types)
    args = [np.full(t.shape, 2**20 + 7, np.int32) for t in types]

    assert dot_shapes(rewrite) != dot_shapes(program)
    np.testing.assert_array_equal(evaluate(program, args)[0], evaluate(rewrite, args)[0])


@pytest.mark.parametrize(
    ("types", "device"),
    [
        ((f32(4_096, 4_096), f32(4_096, 4_096)), GPU),  # many groups
        ((f32(128, 120), f32(120, 512)), GPU),  # short sums
        ((f32(8, 65_536), f32(65_536, 64)), GPU),  # rows for no tile
        ((f32(64, 65_536), f32(65_536, 64)), PROCESSOR),
        ((f32(64, 65_536), f32(65_536, 64)), target()),
    ],
)
def test_other_products_stay_one(types: tuple[ArrayType, ArrayType], device: Any):
    program, rewrite = split(dot(AB), *types, device=device)

    assert eliminate_dead(rewrite).equations == eliminate_dead(program).equations


def test_splitting_an_empty_batch_keeps_the_output_types():
    def function(a: Any, b: Any) -> Any:
        return ops.dot_general(a, b, dimension_numbers=(((2,), (1,)), ((0,), (0,))))

    program, rewrite = split(function, f32(0, 32, 8_192), f32(0, 8_192, 33))

    assert rewrite.output_types == program.output_types
    holds(program, rewrite)


def test_the_parts_of_a_sum_over_several_axes_are_those_that_fill_a_device():
    def function(a: Any, b: Any) -> Any:
        return ops.dot_general(a, b, dimension_numbers=(((0, 2, 3), (0, 2, 3)), ((), ())))

    _, rewrite = split(function, f32(32, 64, 28, 28), f32(32, 576, 28, 28))
    ((parts, *_),) = dot_shapes(rewrite)

    # Nine tiles of 64 x 64, and two groups for each of 132 processors.
    assert 2 * 132 * 0.9 <= 9 * parts <= 2 * 132


def test_a_sum_of_open_size_stays_one():
    k = symbol("k", 1, 1 << 20)

    assert len(dot_shapes(split(dot(AB), ArrayType((64, k), dtypes.f32), ArrayType((k, 64), dtypes.f32))[1])[0]) == 2


IMAGES, FILTERS = f32(32, 64, 28, 28), f32(64, 64, 3, 3)


@pytest.mark.parametrize(
    ("function", "types"),
    [(dot(AB), (f32(64, 65_536), f32(65_536, 64))), (lambda x, y: weight_gradient(x, y, FILTERS), (IMAGES, IMAGES))],
    ids=["64 x 65536 x 64", "the gradient of a convolution's weights"],
)
def test_the_parts_of_a_long_sum_are_two_groups_for_each_multiprocessor(function: Any, types: tuple[ArrayType, ...]):
    codes = stages(program_of(function, *types), H100).codes

    costs = {name: cost(code, H100) for name, code in codes.items()}
    (product,) = (c for name, c in costs.items() if name.startswith("dot"))
    assert product.groups >= 2 * H100.cores


def test_threads_of_a_group_add_up_the_parts_in_one_kernel():
    codes = stages(program_of(dot(AB), f32(64, 65_536), f32(65_536, 64)), H100).codes

    assert [name.rpartition("_")[0] for name in codes] == ["dot", "sum"]


def weight_gradient(x: Any, y: Any, filters: ArrayType) -> Any:
    """The gradient with respect to the filters, from a cotangent y."""
    zeros = rune.numpy.zeros(filters.shape, filters.dtype)
    return rune.vjp(lambda w: lax.conv_general_dilated(x, w, (1, 1), "SAME"), zeros)[1](y)[0]
