"""Build: from kernels to loops.

The loops that result (goldens of one idea each), that every structure keeps the values, even with
remainders, and which buffers may share memory.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from rune import dtypes, ops
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.lowering.build import build, build_by_default
from rune.lowering.build import heuristics as choices
from rune.lowering.build.schedule import Schedule, Squares
from rune.lowering.build.tile_choice import rows_dividing
from rune.lowering.kernel.check import check
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import For, If, Kind
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernel.text import to_text
from rune.lowering.kernelize import kernelize
from rune.lowering.kernels_parse import parse
from rune.lowering.stages import stages
from tests.lowering import models
from tests.support.lowering import (
    PLAIN,
    agree,
    evaluate,
    f32,
    i32,
    number,
    only_kernel,
    program_of,
    random_arguments,
    run_code,
    sizes_of,
    target,
)

OPENCL = target(language="opencl")


def code_of(function, *types, device=PLAIN):
    return build_by_default(only_kernel(kernelize(program_of(function, *types), device)), device).code


def run_build(program, device, args):
    """The results of a program of one kernel, by its loops."""
    kernels = kernelize(program, device)
    kernel = only_kernel(kernels)
    code = build_by_default(kernel, device).code
    check(code)
    return run_code(code, kernels, sizes_of(program, args), args)


def hold(function, *types, device=PLAIN, **sizes):
    program = program_of(function, *types)
    args = random_arguments(program, **sizes)
    agree(evaluate(program, args), run_build(program, device, args), relative=1e-4)


# --- loops ------------------------------------------------------------------------------------


def test_axes_that_are_walked_as_one_are_one_loop(expect):
    expect(
        to_text(code_of(lambda x, y: ops.add(x, y), f32(4, 6, 4), f32(4, 6, 4))),
        """
        code add_0(x0: read f32[96], x1: read f32[96], y0: write f32[96]) aliases x0 = y0, x1 = y0 {
          for i0 in 96 grid {
            store y0[i0] = x0[i0] + x1[i0]
          }
        }""",
    )


def test_a_broadcast_keeps_its_axes_apart(expect):
    def function(x, b):
        return ops.add(x, models.columns(b, x))

    expect(
        to_text(code_of(function, f32(4, 6), f32(6))),
        """
        code add_0(x0: read f32[24], x1: read f32[6], y0: write f32[24]) aliases x0 = y0 {
          for i0 in 4 grid {
            for i1 in 6 grid {
              store y0[6*i0 + i1] = x0[6*i0 + i1] + x1[i1]
            }
          }
        }""",
    )


def test_a_row_and_its_sum_share_one_loop(expect):
    expect(
        to_text(code_of(models.softmax, f32(64, 512))),
        """
        code max_exp_sum_div_0(x0: read f32[32768], y0: write f32[32768]) aliases x0 = y0 {
          for i0 in 64 grid {
            var max1_acc: f32 = -inf_f32
            for j0 in 512 vector {
              max1_acc max= x0[512*i0 + j0]
            }
            max1: f32 = max1_acc
            alloc row2: f32[512] local
            var sum3_acc: f32 = 0.0_f32
            for j0 in 512 vector {
              store row2[j0] = exp(x0[512*i0 + j0] - max1)
              sum3_acc add= row2[j0]
            }
            sum3: f32 = sum3_acc
            for j0 in 512 vector {
              store y0[512*i0 + j0] = row2[j0] / sum3
            }
          }
        }""",
    )


def padded(x, low: int = 1, high: int = 0):
    """x with zeros around its middle axis."""
    return ops.pad(x, 0.0, low=(0, low, 0), high=(0, high, 0), interior=(0, 0, 0))


def test_a_value_that_is_stored_and_padded_needs_no_row(expect):
    def function(x):
        y = ops.exp(x)
        return y, padded(y)

    expect(
        to_text(code_of(function, f32(2, 6, 4))),
        """
        code exp_pad_0(x0: read f32[48], y0: write f32[48], y1: write f32[56]) aliases x0 = y0 {
          for i0 in 2 grid {
            for i1 in 4 grid {
              for j0 in 6 vector {
                row1: f32 = exp(x0[24*i0 + i1 + 4*j0])
                store y0[24*i0 + i1 + 4*j0] = row1
                store y1[28*i0 + i1 + 4*j0 + 4] = row1
              }
              store y1[28*i0 + i1] = 0.0_f32
            }
          }
        }""",
    )


@pytest.mark.parametrize("shape", [(2, 6, 4), (2, 2, 3), (3, 17, 1), (5, 7, 33)], ids=str)
@pytest.mark.parametrize(
    "layouts",
    [
        lambda x, y: (padded(y), y, padded(y, 0, 2)),
        lambda x, y: (y, padded(ops.mul(y, ops.neg(y)), 3, 1), padded(y)),
        lambda x, y: (ops.concatenate(ops.mul(y, y), x, y, axis=1), y),
        lambda x, y: (y, padded(ops.mul(y, x)), ops.reduce_sum(y, axes=(1,)), padded(y, 2, 2)),
    ],
)
def test_a_value_stored_in_several_layouts_is_right(layouts, shape: tuple[int, ...]):
    hold(lambda x: layouts(x, ops.exp(x)), f32(*shape))


def test_a_scan_is_a_serial_loop_with_a_running_value(expect):
    expect(
        to_text(code_of(lambda x: ops.cumsum(x, axis=1, reverse=False), f32(4, 6))),
        """
        code cumsum_0(x0: read f32[24], y0: write f32[24]) {
          for i0 in 4 grid {
            var y0_acc: f32 = 0.0_f32
            for j0 in 6 serial {
              y0_acc = y0_acc + x0[6*i0 + j0]
              store y0[6*i0 + j0] = y0_acc
            }
          }
        }""",
    )


def test_rank_0_needs_no_loop(expect):
    expect(
        to_text(code_of(lambda x: ops.exp(x), f32())),
        """
        code exp_0(x0: read f32[1], y0: write f32[1]) aliases x0 = y0 {
          store y0[0] = exp(x0[0])
        }""",
    )


def test_sums_that_need_each_other_are_separate_loops():
    program = program_of(models.layernorm, f32(64, 512), f32(512), f32(512))

    code = build_by_default(only_kernel(stages(program, PLAIN).kernels), PLAIN).code

    loops = [s for s in walk(code.body) if isinstance(s, For) and s.kind is Kind.VECTOR]
    assert len(loops) == 3


def grid(code) -> list:
    return [s.extent for s in walk(code.body) if isinstance(s, For) and s.kind is Kind.GRID]


# --- tiles ------------------------------------------------------------------------------------

AB, ABT, ATB = ((1,), (0,)), ((1,), (1,)), ((0,), (0,))


def dot(numbers):
    return lambda a, b: ops.dot_general(a, b, dimension_numbers=(numbers, ((), ())))


def shapes(numbers, m, n, k):
    a = f32(m, k) if numbers[0] == (1,) else f32(k, m)
    b = f32(k, n) if numbers[1] == (0,) else f32(n, k)
    return a, b


DOT_SIZES = [(64, 48, 32), (67, 48, 32), (65, 33, 7), (9, 70, 3), (1, 64, 16), (64, 1, 16), (3, 5, 2)]


@pytest.mark.parametrize("device", [PLAIN, OPENCL], ids=["llvm", "opencl"])
@pytest.mark.parametrize(("numbers", "size"), list(itertools.product((AB, ABT, ATB), DOT_SIZES)), ids=str)
def test_a_dot_is_right_for_any_remainder(numbers, size, device):
    hold(dot(numbers), *shapes(numbers, *size), device=device)


def test_rows_of_a_dot_are_tiled_and_the_rest_is_done_one_by_one():
    even = code_of(dot(AB), f32(64, 32), f32(32, 48))
    odd = code_of(dot(AB), f32(67, 32), f32(32, 48))

    assert grid(even) == [8, 48]
    assert grid(odd) == [9, 48]
    assert not any(isinstance(s, If) for s in walk(even.body))
    assert any(isinstance(s, If) for s in walk(odd.body))


def test_the_epilogue_of_a_tiled_dot_is_done_for_every_row():
    hold(lambda x, w, b: models.gelu_tanh(models.linear(x, w, b)), f32(70, 24), f32(24, 40), f32(40))


def test_a_dot_of_gathered_rows_is_tiled():
    dims = ops.IndexDims((1,), (0,), (0,))

    def function(table, at, w):
        rows = ops.gather(table, at, number(0), dims=dims, slice_sizes=(1, 24), mode="clip")
        return models.dot(rows, w)

    hold(function, f32(50, 24), i32(64, 1), f32(24, 40))


def test_a_dot_of_symbolic_rows_is_tiled():
    n = symbol("n", 1, 4096)

    for size in (1, 7, 8, 70):
        hold(dot(AB), ArrayType((n, 24), dtypes.f32), f32(24, 40), n=size)


@pytest.mark.parametrize(("size", "rows"), [(64, 8), (67, 8), (12, 6), (9, 3), (20, 5), (3, 3), (17, 8), (13, 1)])
def test_rows_of_a_tile_divide_the_axis_or_leave_a_small_part(size: int, rows: int):
    assert rows_dividing(size, 8) == rows


def test_columns_of_a_sum_are_read_in_several_vectors():
    code = code_of(lambda x: ops.reduce_sum(x, axes=(0,)), f32(100, 512))

    assert grid(code) == [512 // 32, 8]
    hold(lambda x: ops.reduce_sum(x, axes=(0,)), f32(100, 512))


def test_columns_of_a_batch_norm_are_right():
    def function(x):
        total = ops.expand_axes(ops.reduce_sum(ops.abs(x), axes=(0,)), x.type.shape, (0,))
        return ops.div(x, total)

    hold(function, f32(20, 1024))


def test_columns_that_vectors_do_not_divide_stay():
    assert grid(code_of(lambda x: ops.reduce_sum(x, axes=(0,)), f32(30, 515))) == [515]


TRANSPOSED = {
    "whole squares": (64, 48),
    "edges on both sides": (67, 45),
    "an edge on one side": (64, 45),
    "too small": (9, 7),
}


def squares_of(type: ArrayType):
    """The loops of a transposition in squares of 16."""
    kernels = kernelize(program_of(lambda x: ops.transpose(x, permutation=(1, 0)), type), PLAIN)
    return build(only_kernel(kernels), Schedule(squares=Squares("i0", 16)), PLAIN)


@pytest.mark.parametrize("name", TRANSPOSED)
def test_a_transposition_is_right(name: str):
    hold(lambda x: ops.exp(ops.transpose(x, permutation=(1, 0))), f32(*TRANSPOSED[name]))


def test_a_transposition_walks_squares():
    kernel, edges = (squares_of(f32(*TRANSPOSED[name])) for name in ("whole squares", "edges on both sides"))

    assert grid(kernel) == [3, 4]
    assert not any(isinstance(s, If) for s in walk(kernel.body))
    assert grid(edges) == [3, 5]
    assert any(isinstance(s, If) for s in walk(edges.body))


def test_a_transposition_of_inner_axes_walks_squares():
    hold(lambda x: ops.transpose(x, permutation=(0, 2, 1)), f32(3, 40, 33))


def test_an_unknown_language_gets_plain_loops():
    device = target(language="brainfuck")

    assert choices.choices(target(language="brainfuck")) == choices.Choices()
    assert grid(code_of(dot(AB), f32(64, 32), f32(32, 48), device=device)) == [64, 48]


# --- aliases ----------------------------------------------------------------------------------


def aliases(text: str) -> tuple[tuple[str, str], ...]:
    return build_by_default(parse(text), PLAIN).code.aliases


def test_an_output_may_overwrite_an_operand_that_is_read_at_the_same_index():
    assert aliases("""
        kernel f(x0: f32[4,5]) -> (y0: f32[4,5]) {
          for i0 in 4, i1 in 5 parallel {
            write y0[i0, i1]: exp(x0[i0, i1])
          }
        }""") == (("x0", "y0"),)


def test_not_where_another_element_is_read():
    assert (
        aliases("""
        kernel f(x0: f32[4,4]) -> (y0: f32[4,4]) {
          for i0 in 4, i1 in 4 parallel {
            write y0[i0, i1]: exp(x0[i1, i0])
          }
        }""")
        == ()
    )


def test_not_where_the_operand_is_read_after_the_write():
    assert aliases("""
        kernel f(x0: f32[4]) -> (y0: f32[4], y1: f32[4]) {
          for i0 in 4 parallel {
            write y0[i0]: exp(x0[i0])
            write y1[i0]: sin(x0[i0])
          }
        }""") == (("x0", "y1"),)


def test_not_where_a_row_is_read_for_every_element():
    assert (
        aliases("""
        kernel f(x0: f32[4,5]) -> (y0: f32[4,5]) {
          for i0 in 4, i1 in 5 parallel {
            s = sum j0 in 5: x0[i0, j0]
            write y0[i0, i1]: s
          }
        }""")
        == ()
    )


def test_a_row_that_is_read_whole_and_then_written_whole_may_be_in_place():
    assert code_of(models.softmax, f32(64, 512)).aliases == (("x0", "y0"),)


def test_not_for_elements_of_another_size():
    def function(x):
        return ops.convert(x, dtype=dtypes.f64)

    assert code_of(function, f32(8)).aliases == ()


def test_an_in_place_run_gives_the_same_values():
    code = code_of(models.softmax, f32(64, 512))
    x = np.random.default_rng(0).normal(size=64 * 512).astype(np.float32)
    apart, same = np.empty_like(x), x.copy()

    interpret(code, [x, apart])
    interpret(code, [same, same])

    np.testing.assert_array_equal(apart, same)


def test_scratch_of_a_bounded_symbolic_row_is_its_largest_size():
    n = symbol("n", 1, 300)
    code = code_of(models.softmax, ArrayType((64, n), dtypes.f32))

    assert "f32[300] local" in to_text(replace(code, aliases=()))
    hold(models.softmax, ArrayType((64, n), dtypes.f32), n=17)
