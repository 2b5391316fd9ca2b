"""Single steps of schedules: the loops that each creates, and unchanged values."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops
from rune.core.types import ArrayType
from rune.errors import ArgumentError
from rune.lowering.build import Built, build
from rune.lowering.build.schedule import Schedule, parse
from rune.lowering.kernel.text import parse as parse_code
from rune.lowering.kernel.text import to_text as code_text
from rune.lowering.kernelize import kernelize
from tests.lowering.test_schedules import CASES, COPY, CPU, GPU, PRODUCT, UNITS, kernel_of, run, schedules
from tests.support.lowering import agree, evaluate, f32, only_kernel, program_of, random_arguments


def test_the_schedules_that_are_tried_have_steps_of_every_kind():
    names = ("transpose", "distances", "convolution", "product of bf16")
    kernels = [kernel_of(CASES[name][0], *CASES[name][1]) for name in names]
    candidates = [s for k in kernels for device in (UNITS, CPU) for s in schedules(k, device)]

    assert all(any(getattr(s, f.name) is not None for s in candidates) for f in fields(Schedule))


@pytest.mark.parametrize(
    "text",
    [
        "parts(4)",
        "parts(8)",
        "parts(2, lanes=4)",
        "rows(i0=2)",
        "vectors(2, lanes=1) rows(i0=2)",
        "order(i1, i0)",
        "order(i1, i0) parts(4) rows(i1=3)",
    ],
)
def test_each_step_keeps_the_values_of_distances(text: str):
    function, types, _ = CASES["distances"]
    program = program_of(function, *types)
    kernel = only_kernel(kernelize(program, GPU))
    args = random_arguments(program)
    variant = Built(parse(text), build(kernel, parse(text), GPU))

    agree(evaluate(program, args), run(variant, program, GPU, args), relative=1e-5)


def test_vectors_of_strided_neighbours_keep_every_value(expect):
    program = program_of(ops.add, f32(3, 8), f32(3, 8))
    kernel, schedule = only_kernel(kernelize(program, GPU)), parse("vectors(4, lanes=2, neighbours=2)")
    args = random_arguments(program)
    code = build(kernel, schedule, GPU)

    agree(evaluate(program, args), run(Built(schedule, code), program, GPU, args), relative=0)
    expect(
        "\n".join(line.strip() for line in code_text(code).splitlines() if "store" in line or "grid" in line),
        """
        for i0 in 3 grid {
        for i0_lane in 2 grid {
        store y0[8*i0 + 2*i0_lane] = y0_value
        store y0[8*i0 + 2*i0_lane + 1] = y0_value_2
        store y0[8*i0 + 2*i0_lane + 4] = y0_value_3
        store y0[8*i0 + 2*i0_lane + 5] = y0_value_4
        """,
    )


def test_parts_of_whole_numbers_are_the_same_bits():
    program = program_of(lambda x: ops.reduce_sum(x, axes=(1,)), ArrayType((5, 131), dtypes.i32))
    kernel, schedule = only_kernel(kernelize(program, GPU)), parse("parts(8)")
    args = [np.random.default_rng(0).integers(-(2**31), 2**31, (5, 131)).astype(np.int32)]
    (total,) = run(Built(schedule, build(kernel, schedule, GPU)), program, GPU, args)

    np.testing.assert_array_equal(total, args[0].sum(1, dtype=np.int32))


def test_an_order_puts_other_points_side_by_side(expect):
    expect(
        code_text(build(COPY, parse("order(i1, i0)"), GPU)),
        """
        code add_0(x0: read f32[48], y0: write f32[48]) {
          for i1 in 8 grid {
            for i0 in 6 grid {
              store y0[8*i0 + i1] = x0[i0 + 6*i1] + 0.0_f32
            }
          }
        }""",
    )


def test_a_sum_in_parts_has_a_loop_and_one_for_the_remainder(expect):
    kernel = kernel_of(lambda x: ops.reduce_sum(x, axes=(1,)), f32(3, 18))

    expect(
        code_text(build(kernel, parse("parts(4)"), GPU)),
        """
        code sum_0(x0: read f32[54], y0: write f32[3]) {
          for i0 in 3 grid {
            var sum1_p0_acc: f32 = 0.0_f32
            var sum1_p1_acc: f32 = 0.0_f32
            var sum1_p2_acc: f32 = 0.0_f32
            var sum1_p3_acc: f32 = 0.0_f32
            for j0 in 4 vector {
              sum1_p0_acc add= x0[18*i0 + 4*j0]
              sum1_p1_acc add= x0[18*i0 + 4*j0 + 1]
              sum1_p2_acc add= x0[18*i0 + 4*j0 + 2]
              sum1_p3_acc add= x0[18*i0 + 4*j0 + 3]
            }
            sum1_p0: f32 = sum1_p0_acc
            sum1_p1: f32 = sum1_p1_acc
            sum1_p2: f32 = sum1_p2_acc
            sum1_p3: f32 = sum1_p3_acc
            var sum1_p4_acc: f32 = 0.0_f32
            for j0_end in 2 vector {
              sum1_p4_acc add= x0[18*i0 + j0_end + 16]
            }
            sum1_p4: f32 = sum1_p4_acc
            sum1: f32 = ((sum1_p0 + sum1_p1) + (sum1_p2 + sum1_p3)) + sum1_p4
            store y0[i0] = sum1
          }
        }""",
    )


def test_parts_in_lanes_have_a_loop_of_lanes_around_the_others(expect):
    kernel = kernel_of(lambda x: ops.reduce_sum(x, axes=(1,)), f32(3, 32))

    expect(
        code_text(build(kernel, parse("parts(2, lanes=4)"), GPU)),
        """
        code sum_0(x0: read f32[96], y0: write f32[3]) {
          for i0 in 3 grid {
            var sum1_p0_acc: f32 = 0.0_f32
            var sum1_p1_acc: f32 = 0.0_f32
            for j0_lane in 4 serial {
              for j0 in 4 vector {
                sum1_p0_acc add= x0[32*i0 + 8*j0 + j0_lane]
                sum1_p1_acc add= x0[32*i0 + 8*j0 + j0_lane + 4]
              }
            }
            sum1_p0: f32 = sum1_p0_acc
            sum1_p1: f32 = sum1_p1_acc
            sum1: f32 = sum1_p0 + sum1_p1
            store y0[i0] = sum1
          }
        }""",
    )


@pytest.mark.parametrize(
    ("text", "loop_names"), [("lanes(i0)", "i1, j0"), ("lanes(i1)", "i0, j0"), ("lanes(inner)", "i0, i1")]
)
def test_the_kernel_text_names_the_loops_that_are_not_vectorised(text: str, loop_names: str):
    head = code_text(build(PRODUCT, parse(text), CPU)).splitlines()[0]

    assert head.endswith(f" ordered {loop_names} {{")
    assert code_text(parse_code(code_text(build(PRODUCT, parse(text), CPU)))).splitlines()[0] == head


def test_the_lanes_of_a_missing_axis_are_refused_with_the_names_of_the_axes_in_scope():
    with pytest.raises(
        ArgumentError, match=r"cannot apply lanes\(i5\) to dot_0 \(it is not one of i0 in 12, i1 in 6, or inner\)"
    ):
        build(PRODUCT, parse("lanes(i5)"), CPU)


def test_rows_share_their_loops(expect):
    function, types, _ = CASES["windows"]

    expect(
        code_text(build(kernel_of(function, *types), parse("rows(i0=2)"), GPU)),
        """
        code max_0(x0: read f32[216], y0: write f32[36]) {
          for i0 in 2 grid {
            for i1 in 9 grid {
              var max1_r0_acc: f32 = -inf_f32
              var max1_r1_acc: f32 = -inf_f32
              for j0 in 2 serial {
                for j1 in 3 vector {
                  max1_r0_acc max= x0[108*i0 + 3*i1 + 27*j0 + j1]
                  max1_r1_acc max= x0[108*i0 + 3*i1 + 27*j0 + j1 + 54]
                }
              }
              max1_r0: f32 = max1_r0_acc
              max1_r1: f32 = max1_r1_acc
              store y0[18*i0 + i1] = max1_r0
              store y0[18*i0 + i1 + 9] = max1_r1
            }
          }
        }""",
    )


@pytest.mark.parametrize("way", ["", "order(i1, i0)", "parts(2, lanes=4)", "vectors(2, lanes=1)", "rows(i0=2)"])
@pytest.mark.parametrize("lanes", ["lanes(i0)", "lanes(i1)", "lanes(inner)"])
def test_native_code_in_other_lanes_computes_the_same(way: str, lanes: str):
    x, y = np.random.default_rng(0).normal(size=(2, 18, 37)).astype(np.float32)
    schedule = {"sum_0": f"{way} {lanes}"}
    distances = rune.jit(lambda x, y: rnp.sum(rnp.square(x[:, None] - y[None]), axis=-1), schedule=schedule)
    reference = np.square(x[:, None].astype(float) - y[None]).sum(-1)

    np.testing.assert_allclose(distances(x, y), reference, rtol=1e-5)
