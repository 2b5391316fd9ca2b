"""Rows aligned for matrix units: which products get them, at what cost, and unchanged values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rune import dtypes, ops
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import Fetch, MatrixProduct, Store
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernelize.align_rows import align_rows
from rune.lowering.stages import stages
from rune.ops.memory import in_memory
from tests.lowering.test_build import AB, ABT, ATB, dot
from tests.lowering.test_schedule_defaults import of
from tests.lowering.test_teams import TEAMS
from tests.support.lowering import agree, evaluate, f32, program_of, random_arguments

OPEN = ArrayType((4096, symbol("n", 1, 8192)), dtypes.bf16)
ONE = replace(TEAMS, cores=1)  # on which small products pay, too
LAYOUTS = {
    "rows along the sum and across": (AB, (263, 269), (269, 271)),
    "rows along the sum": (ABT, (263, 269), (271, 269)),
    "rows across the sum": (ATB, (269, 263), (269, 271)),
}


def aligned(function: Any, *types: ArrayType, target: Target = TEAMS) -> tuple[Program, Program]:
    program = program_of(function, *types)
    return program, align_rows(program, target)


def dot_types(program: Program) -> list[list[tuple]]:
    return [[a.type.shape for a in e.operands] for e in program.equations if e.primitive is ops.dot_general]


def copies(program: Program) -> int:
    return sum(e.primitive is in_memory for e in program.equations)


def holds(program: Program, rewrite: Program) -> None:
    args = random_arguments(program)
    agree(evaluate(program, args), evaluate(rewrite, args), relative=2.0**-7)


@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f16], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_product_of_odd_matrices_stays_the_same(layout: str, dtype: np.dtype):
    numbers, first, second = LAYOUTS[layout]

    program, rewrite = aligned(dot(numbers), of(dtype, *first), of(dtype, *second), target=ONE)

    assert all(shape[-1] % 8 == 0 for shapes in dot_types(rewrite) for shape in shapes)
    assert rewrite.output_types == program.output_types
    holds(program, rewrite)


def test_a_batch_of_odd_matrices_stays_the_same():
    def function(a: Any, b: Any) -> Any:
        return ops.dot_general(a, b, dimension_numbers=(((2,), (1,)), ((0,), (0,))))

    program, rewrite = aligned(function, of(dtypes.bf16, 3, 263, 269), of(dtypes.bf16, 3, 269, 271), target=ONE)

    assert dot_types(rewrite) == [[(3, 263, 320), (3, 320, 320)]]
    holds(program, rewrite)


def test_the_rows_of_a_transposed_operand_are_those_of_its_memory():
    def function(a: Any, b: Any) -> Any:
        return dot(AB)(a, b.T)

    program, rewrite = aligned(function, of(dtypes.bf16, 263, 280), of(dtypes.bf16, 271, 280), target=ONE)
    assert copies(rewrite) == 0

    program, rewrite = aligned(function, of(dtypes.bf16, 263, 269), of(dtypes.bf16, 271, 269), target=ONE)
    copy_shapes = [e.results[0].type.shape for e in rewrite.equations if e.primitive is in_memory]
    assert copy_shapes == [(263, 320), (271, 320)]
    holds(program, rewrite)


def test_axes_that_are_walked_as_one_need_no_alignment_of_their_own():
    def function(a: Any, b: Any) -> Any:
        return ops.dot_general(a, b, dimension_numbers=(((1, 2), (0, 1)), ((), ())))

    _, rewrite = aligned(function, of(dtypes.bf16, 264, 64, 3), of(dtypes.bf16, 64, 3, 264), target=ONE)

    assert copies(rewrite) == 0


def test_two_products_of_one_operand_share_its_copy():
    def function(a: Any, b: Any, c: Any) -> Any:
        return [dot(ABT)(a, b), dot(ABT)(a, c)]

    _, rewrite = aligned(function, *[of(dtypes.bf16, n, 269) for n in (263, 280, 272)], target=ONE)

    assert len(dot_types(rewrite)) == 2
    assert copies(rewrite) == 3


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.0], ids=str)
def test_a_special_value_reaches_only_its_own_row(value: float):
    program, rewrite = aligned(dot(AB), of(dtypes.bf16, 263, 269), of(dtypes.bf16, 269, 271), target=ONE)
    a, b = random_arguments(program)
    a = np.asarray(a).copy()
    a[262, 268] = ml_dtypes.bfloat16(value)

    before, after = (np.asarray(evaluate(p, [a, b])[0], np.float32) for p in (program, rewrite))

    np.testing.assert_allclose(after, before, rtol=2.0**-7, atol=2.0**-7)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (of(dtypes.bf16, 513, 513), of(dtypes.bf16, 513, 513)),  # copies would take as long
        (of(dtypes.bf16, 4099, 4104), of(dtypes.bf16, 4104, 4096)),
        (f32(4099, 4099), f32(4099, 4099)),
        (OPEN, OPEN.with_shape((*OPEN.shape[::-1],))),
    ],
    ids=["small", "whole pieces", "not units", "open size"],
)
def test_a_product_that_gains_nothing_is_not_changed(a: ArrayType, b: ArrayType):
    program, rewrite = aligned(dot(AB), a, b)

    assert rewrite.equations == program.equations


def test_a_sum_over_a_vocabulary_uses_matrix_units_and_no_registers():
    program = program_of(dot(AB), of(dtypes.bf16, 8192, 50_257), of(dtypes.bf16, 50_257, 768))

    codes = stages(program, TEAMS).codes
    (code,) = (c for c in codes.values() if any(isinstance(s, MatrixProduct) for s in walk(c.body)))

    panels = {s.target for s in walk(code.body) if isinstance(s, Fetch)}
    assert panels
    assert not any(isinstance(s, Store) and s.buffer in panels for s in walk(code.body))
