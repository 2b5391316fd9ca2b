"""Operands of kernels with explicit loops: which ones are computed where they are read.

tests/laws/test_operands_of_loops.py checks on every executor that the loops read the elements that
the operand would have in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune import ops
from rune.backends import device_named
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.lowering.codegen.target import Target
from rune.lowering.kernels_parse import parse_program
from rune.lowering.kernels_text import program_text
from rune.lowering.plan import Copy
from rune.lowering.scatters.atomic import scatter_atomically
from rune.lowering.stages import stages
from rune.ops.memory import in_memory
from tests.support.gpus import H100
from tests.support.lowering import f32, i32, program_of, run_plan

REFERENCE = device_named("reference:0").target


def names(function: Any, *types: ArrayType, target: Target = H100) -> list[str]:
    """The kernels of a function, without their numbers."""
    program = rune.make_program(function)(*(rune.ShapeDtypeStruct(t.shape, t.dtype) for t in types))
    return [name.rpartition("_")[0] for name in stages(program, target).codes]


def added(rows: Any, places: Any, updates: Any) -> Any:
    return scatter_atomically(rows, places, updates, combine="add")


def test_a_scatter_add_of_four_million_takes_four_launches():
    run = names(lambda x, i, u: x.at[i].add(u), f32(1 << 20), i32(1 << 22), f32(1 << 22))

    assert run == ["first_marks", "mark_exponents", "sum_integers", "rounded_sums"]


def test_a_histogram_reads_no_array_of_ones():
    assert names(lambda i: rnp.zeros(1 << 20, "int32").at[i].add(1), i32(1 << 22)) == [
        "broadcast",
        "scatter_atomically",
    ]


@pytest.mark.parametrize("function", [rnp.argmax, rnp.argmin])
def test_an_argmax_of_a_computed_operand_takes_two_launches(function: Any):
    assert names(lambda x: function(rnp.exp(x) * 2), f32(1 << 24)) == ["extreme_of_tiles"] * 2


def test_a_running_sum_of_a_computed_operand_takes_three_launches():
    assert len(names(lambda x: rnp.cumsum(rnp.exp(x)), f32(1 << 22))) == len(names(rnp.cumsum, f32(1 << 22))) == 3


def test_keys_that_cannot_be_rounded_are_computed_in_each_pass():
    assert len(names(lambda x: rnp.sort(-x), f32(1 << 20))) == len(names(rnp.sort, f32(1 << 20)))


def test_keys_that_may_be_rounded_twice_in_two_ways_are_stored():
    assert names(lambda x: rnp.sort(x * 3), f32(1 << 20))[0] == "mul"


def test_an_expensive_operand_is_stored():
    def run(x: Any) -> Any:
        return rnp.argmax(rnp.sin(rnp.exp(rnp.tanh(x))))

    assert len(names(run, f32(1 << 24))) == 3


def test_columns_are_brought_into_order_before_they_are_read():
    assert names(lambda x: rnp.argmax(x.T.reshape(-1)), f32(4096, 4096))[0] == "transpose"


def test_a_value_that_is_in_memory_for_another_reader_is_read_there():
    def run(rows: Any, places: Any, updates: Any) -> Any:
        next_places = ops.add(places, 1)
        return added(rows, next_places, updates), next_places

    assert names(run, i32(50, 1), i32(70), i32(70, 1), target=REFERENCE) == ["add", "scatter_atomically"]


def test_a_value_marked_for_memory_is_stored():
    def run(rows: Any, places: Any, updates: Any) -> Any:
        return added(rows, in_memory(ops.add(places, 1)), updates)

    assert len(names(run, i32(50, 1), i32(70), i32(70, 1), target=REFERENCE)) == 2


def test_rows_that_are_changed_are_stored():
    run = names(lambda x, p, u: added(x * 2, p, u), i32(50, 1), i32(70), i32(70, 1), target=REFERENCE)

    assert run == ["mul", "scatter_atomically"]


def test_few_arrays_are_read_by_one_kernel():
    def run(rows: Any, places: Any, *updates: Any) -> Any:
        total = updates[0]
        for update in updates[1:]:
            total = ops.max(total, update)
        return added(rows, places, total)

    types = [i32(50, 1), i32(70), *[i32(70, 1)] * 40]
    lowering = stages(program_of(run, *types), REFERENCE)

    assert max(len(code.params) for code in lowering.codes.values()) <= 28


def test_a_kernel_with_computed_operands_is_read_back():
    size = symbol("n", 1, 100)
    program = program_of(lambda x, p, u: added(x, ops.add(p, 1), u), i32(9, 1), i32(size), i32(size, 1))
    lowering = stages(program, REFERENCE, check=True)

    text = program_text(lowering.kernels)

    assert program_text(parse_program(text)) == text
    assert text.count("kernel ") == 1


def test_places_that_are_computed_from_the_rows_are_those_of_before():
    """The rows are donated, so that the loops would overwrite the operand of the positions."""

    def run(x: Any, u: Any) -> Any:
        return added(x, ops.sub(9, rnp.reshape(x, (-1,))), u)

    x = np.arange(10, dtype=np.int32).reshape(10, 1)
    lowering = stages(program_of(run, i32(10, 1), i32(10, 1)), REFERENCE, (0,), check=True)
    expected = x.copy()
    np.add.at(expected, 9 - x[:, 0], x + 1)

    assert any(isinstance(step, Copy) for step in lowering.plan.steps)
    (result,) = run_plan(lowering.plan, [x, x + 1])
    np.testing.assert_array_equal(expected, result)
