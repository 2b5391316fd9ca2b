"""Accesses: neighbours are read before the computation and written after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import rune.numpy as rnp
from rune import dtypes, ops
from rune.core.types import ArrayType
from rune.lowering.build import build
from rune.lowering.build.accesses import apart
from rune.lowering.build.schedule import parse
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.render import render
from rune.lowering.kernel import text as kernel_text
from rune.lowering.kernel.nodes import For, KernelCode, Let, Store
from rune.lowering.kernel.rewrite import Body
from rune.lowering.kernel.text import to_text
from rune.lowering.stages import optimised
from tests.lowering.test_schedules import GPU, kernel_of, of
from tests.support.lowering import f32

CUDA = replace(GPU, language="cuda")


def parsed(text: str) -> Body:
    """The statements of a point of a kernel of x and y."""
    (loop,) = kernel_text.parse(f"code f(x: read f32[8], y: readwrite f32[8]) {{ {text} }}").body
    assert isinstance(loop, For)
    return loop.body


def code(schedule: str, function: Any, *types: ArrayType) -> KernelCode:
    return build(kernel_of(function, *types, device=CUDA), parse(schedule), CUDA)


def text(schedule: str, function: Any, *types: ArrayType) -> str:
    return render(optimised(code(schedule, function, *types), CUDA), CUDA_C).text


def test_neighbours_are_read_first_and_written_last(expect):
    expect(
        to_text(code("vectors(2, lanes=1)", lambda x, y: x * y, f32(6), f32(6))),
        """
        code mul_0(x0: read f32[6], x1: read f32[6], y0: write f32[6]) aliases x0 = y0, x1 = y0 {
          for i0 in 3 grid {
            x1_element: f32 = x1[2*i0]
            x1_element_2: f32 = x1[2*i0 + 1]
            x0_element: f32 = x0[2*i0]
            x0_element_2: f32 = x0[2*i0 + 1]
            y0_value: f32 = x0_element * x1_element
            y0_value_2: f32 = x0_element_2 * x1_element_2
            store y0[2*i0] = y0_value
            store y0[2*i0 + 1] = y0_value_2
          }
        }""",
    )


def test_four_neighbours_are_one_access_of_each_array():
    lines = text("vectors(4, lanes=1)", lambda x, y: ops.tanh(x) * y + x, f32(64), f32(64)).splitlines()

    assert sum("*(const float4*)" in line for line in lines) == 2
    assert sum("make_float4(" in line for line in lines) == 1


def test_bits_of_truth_are_written_four_at_a_time():
    assert "make_uchar4(" in text("vectors(4, lanes=1)", lambda x, y: x < y, f32(64), f32(64))


def test_halves_that_are_copied_keep_their_bits():
    source = text("vectors(4, lanes=1)", lambda x: rnp.broadcast_to(x, (3, 64)), of(dtypes.bf16, 64))

    assert "rune_bf16" not in source


def test_elements_at_loaded_positions_are_read_after_the_positions(expect):
    expect(
        to_text(code("vectors(2, lanes=1)", lambda x, i: x[i] * 2.0, f32(6, 4), of(dtypes.i32, 3))),
        """
        code mul_0(x0: read i32[3], x1: read f32[24], y0: write f32[12]) {
          for i0 in 3 grid {
            for i1 in 2 grid {
              g1: i64 in 0..5 = min(max(i64(select(x0[i0] < 0_i32, x0[i0] + 6_i32, x0[i0])), 0_i64), 5_i64)
              x1_element: f32 = x1[4*g1 + 2*i1]
              x1_element_2: f32 = x1[4*g1 + 2*i1 + 1]
              y0_value: f32 = x1_element * 2.0_f32
              y0_value_2: f32 = x1_element_2 * 2.0_f32
              store y0[4*i0 + 2*i1] = y0_value
              store y0[4*i0 + 2*i1 + 1] = y0_value_2
            }
          }
        }""",
    )


def test_an_array_that_is_written_in_between_is_not_read_before():
    body = parsed("for i in 4 grid { a: f32 = y[2*i] store y[2*i] = a + x[2*i] store y[2*i + 1] = a + y[2*i + 1] }")

    assert [type(s) for s in apart(body, set())] == [Let, Store, Store]


@pytest.mark.parametrize("threads", [2, 8])
def test_rows_in_registers_are_read_once(threads: int):
    def norm(x: Any) -> Any:
        mean = ops.reduce_sum(x * x, axes=(1,))
        return x / ops.expand_axes(mean, x.type.shape, (1,))

    lines = text(f"share({threads}, lanes=4, registers)", norm, f32(3, 32)).splitlines()

    assert sum("*(const float4*)&x0" in line for line in lines) == 32 // (4 * threads)
    assert sum("x0[" in line for line in lines) == 32 // (4 * threads)


def test_neighbours_are_written_side_by_side():
    body = parsed("for i in 2 grid { store y[4*i] = x[0] store y[4*i + 2] = x[1] store y[4*i + 1] = x[2] }")

    assert [str(s.index) for s in apart(body, set()) if isinstance(s, Store)] == ["4*i", "4*i + 1", "4*i + 2"]


def test_writes_that_may_be_of_one_element_keep_their_order():
    body = parsed("for i in 2 grid { store y[i + 1] = x[0] store y[i*i] = x[1] store y[i] = x[2] }")

    assert [str(s.index) for s in apart(body, set()) if isinstance(s, Store)] == ["i + 1", "i*i", "i"]
