"""Operands of large products that are stored first: which ones, the cost, and unchanged values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import MatrixProduct
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernelize.feed_products import feed_products
from rune.lowering.stages import stages
from rune.ops.memory import in_memory
from tests.lowering.test_build import AB, ABT, ATB, dot
from tests.lowering.test_schedule_defaults import of
from tests.lowering.test_teams import TEAMS
from tests.support.lowering import agree, evaluate, f32, i32, program_of, random_arguments

ONE = replace(TEAMS, cores=1)  # on which small products pay, too
BF16 = dtypes.bf16


def fed(function: Any, *types: ArrayType, target: Target = ONE) -> tuple[Program, Program]:
    program = program_of(function, *types)
    return program, feed_products(program, target)


def copies(program: Program) -> list[tuple]:
    return [e.results[0].type.shape for e in program.equations if e.primitive is in_memory]


def holds(program: Program, rewrite: Program) -> None:
    assert rewrite.output_types == program.output_types
    args = random_arguments(program)
    agree(evaluate(program, args), evaluate(rewrite, args), relative=2.0**-7)


@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f16], ids=str)
@pytest.mark.parametrize(
    ("numbers", "first", "second"),
    [(AB, (131, 257), (257, 67)), (ABT, (131, 257), (67, 257)), (ATB, (257, 131), (257, 67))],
)
def test_a_computed_factor_is_materialized(numbers: Any, first: tuple, second: tuple, dtype: np.dtype):
    def function(a: Any, b: Any) -> Any:
        return dot(numbers)(ops.mul(a, np.asarray(0.5).astype(dtype)), b)

    program, rewrite = fed(function, of(dtype, *first), of(dtype, *second))

    assert copies(rewrite) == [first]
    holds(program, rewrite)


def test_a_factor_rounded_from_f32_is_materialized():
    def function(a: Any, b: Any) -> Any:
        return dot(AB)(ops.convert(a, dtype=BF16), b)

    program, rewrite = fed(function, f32(131, 257), of(BF16, 257, 67))

    assert copies(rewrite) == [(131, 257)]
    holds(program, rewrite)


def test_an_operand_in_memory_of_any_order_is_not_copied():
    _, rewrite = fed(lambda a, b: dot(AB)(a.T, b), of(BF16, 257, 131), of(BF16, 257, 67))
    assert copies(rewrite) == []
    _, rewrite = fed(lambda a, b: dot(AB)(dot(AB)(a, b), a), of(BF16, 257, 257), of(BF16, 257, 257))
    assert copies(rewrite) == []


def test_heads_that_are_joined_to_rows_are_copied():
    def function(a: Any, b: Any) -> Any:
        rows = ops.reshape(ops.transpose(a, permutation=(1, 0, 2)), shape=(131, 4 * 48))
        return dot(AB)(rows, b)

    program, rewrite = fed(function, of(BF16, 4, 131, 48), of(BF16, 192, 67))

    assert copies(rewrite) == [(131, 192)]
    holds(program, rewrite)


def test_two_products_share_a_factor():
    def function(a: Any, b: Any) -> Any:
        factor = ops.tanh(a)
        return dot(AB)(factor, b), dot(ATB)(factor, factor)

    program, rewrite = fed(function, of(BF16, 131, 257), of(BF16, 257, 67))

    assert copies(rewrite) == [(131, 257)]
    holds(program, rewrite)


@pytest.mark.parametrize(
    ("rows", "sums", "columns", "count"),
    [
        (15, 4096, 4096, 0),
        (16, 4096, 4096, 1),
        (4096, 15, 4096, 0),
        (4096, 16, 4096, 1),
        (4096, 4096, 15, 0),
        (17, 17, 17, 0),
    ],
)
def test_few_rows_columns_or_products_are_not_worth_it(rows: int, sums: int, columns: int, count: int):
    _, rewrite = fed(lambda a, b: dot(AB)(ops.neg(a), b), of(BF16, rows, sums), of(BF16, sums, columns))

    assert len(copies(rewrite)) == count


def test_only_products_of_halves_on_devices_with_units_ask_for_it():
    def function(a: Any, b: Any) -> Any:
        return dot(AB)(ops.neg(a), b)

    assert copies(fed(function, f32(257, 257), f32(257, 257))[1]) == []
    bare = replace(ONE, native=frozenset())
    assert copies(fed(function, of(BF16, 257, 257), of(BF16, 257, 257), target=bare)[1]) == []


def of_window(x: Any, b: Any, i: Any) -> Any:
    return dot(AB)(ops.dynamic_slice(x, i, np.int32(0), sizes=(130, 257)), b)


def of_rows(x: Any, b: Any, i: Any) -> Any:
    return dot(AB)(rune.numpy.take(x, i, axis=0, mode="clip"), b)


@pytest.mark.parametrize(("function", "index"), [(of_window, i32()), (of_rows, i32(130))])
def test_a_slice_at_a_position_read_from_memory_is_copied(function: Any, index: ArrayType):
    program, rewrite = fed(function, f32(999, 257), f32(257, 67), index)

    assert copies(rewrite) == [(130, 257)]
    holds(program, rewrite)


@pytest.mark.parametrize("rows", [1, 15])
def test_few_rows_of_a_window_are_read_in_place(rows: int):
    def function(x: Any, b: Any, i: Any) -> Any:
        return dot(AB)(ops.dynamic_slice(x, i, np.int32(0), sizes=(rows, 4097)), b)

    assert copies(fed(function, f32(999, 4097), f32(4097, 4097), i32())[1]) == []


def test_windows_that_are_known_are_read_in_place():
    def function(x: Any, b: Any) -> Any:
        return dot(AB)(ops.slice_(x, start=(3, 0), limit=(133, 257), stride=(1, 1)), b)

    assert copies(fed(function, f32(999, 257), f32(257, 67))[1]) == []


def gated(x: Any, gate: Any, up: Any, down: Any) -> Any:
    hidden = ops.mul(ops.logistic(dot(AB)(x, gate)), dot(AB)(x, up))
    return dot(AB)(hidden, down)


def test_a_gated_network_multiplies_on_units_throughout():
    types = [of(BF16, *shape) for shape in ((512, 256), (256, 1024), (256, 1024), (1024, 256))]
    lowering = stages(program_of(gated, *types), TEAMS)

    on_units = [any(isinstance(s, MatrixProduct) for s in walk(code.body)) for code in lowering.codes.values()]
    assert on_units.count(True) == 3
