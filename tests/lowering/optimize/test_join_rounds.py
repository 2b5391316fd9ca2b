"""Rounds that are joined, for devices whose accesses are made lane by lane."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rune.dims import Size
from rune.lowering.kernel.check import check
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import Accumulate, For, KernelCode
from rune.lowering.kernel.parse import parse
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernel.text import to_text
from rune.lowering.optimize.join_rounds import join_rounds
from tests.lowering.optimize.bodies import CPU, MESA

JOIN = join_rounds(MESA)


def rows(length: str, stride: str | None = None, loop: str = "s add= x[{stride}*i + j]") -> KernelCode:
    """Sums of rows of an array."""
    body = loop.format(stride=stride or length)
    return parse(
        f"""code f(x: read f32[4096], y: write f32[8]) sizes n in 1..64 {{
          for i in 8 grid {{
            var s: f32 = 0.0_f32
            for j in {length} serial {{ {body} }}
            store y[i] = s
          }}
        }}"""
    )


def extents(code: KernelCode) -> list[Size]:
    """The extents of the loops of a point."""
    return [s.extent for s in walk(code.body) if isinstance(s, For)][1:]


def test_rounds_that_read_neighbours_are_merged_and_their_remainder_follows(expect):
    expect(
        to_text(JOIN.run(rows("5", "6", "s add= x[{stride}*i + j] * 2.0_f32"))),
        """
        code f(x: read f32[4096], y: write f32[8]) sizes n {
          for i in 8 grid {
            x_element: f32 = x[6*i]
            x_element_2: f32 = x[6*i + 1]
            x_element_3: f32 = x[6*i + 2]
            x_element_4: f32 = x[6*i + 3]
            x_element_5: f32 = x[6*i + 4]
            var s: f32 = 0.0_f32
            s add= x_element * 2.0_f32
            s add= x_element_2 * 2.0_f32
            s add= x_element_3 * 2.0_f32
            s add= x_element_4 * 2.0_f32
            s add= x_element_5 * 2.0_f32
            y_value: f32 = s
            store y[i] = y_value
          }
        }""",
    )


@pytest.mark.parametrize(
    ("length", "stride", "rounds"), [("64", "64", [4]), ("67", "68", [4]), ("16", "16", []), ("17", "18", [])]
)
def test_sixteen_rounds_are_one_where_rows_begin_where_an_access_may(length: str, stride: str, rounds: list[int]):
    assert extents(JOIN.run(rows(length, stride))) == rounds


def test_four_rounds_are_one_where_nothing_is_a_pair():
    assert extents(JOIN.run(rows("64", "65"))) == [16]
    assert extents(JOIN.run(rows("64", "64", "s add= x[i + 8*j]"))) == [16]


def test_four_iterations_are_joined_if_neighbours_are_in_thread_memory():
    code = parse(
        """code f(y: write f32[8]) {
          for i in 8 grid {
            alloc t: f32[64] local
            for j in 64 serial { store t[j] = 1.0_f32 }
            store y[i] = t[5]
          }
        }"""
    )

    assert extents(JOIN.run(code)) == [16]


def test_a_loop_with_a_branch_stays():
    code = rows("64", loop="if index(j) < index(60 - i) {{ s add= x[{stride}*i + j] }}")

    assert extents(JOIN.run(code)) == [64]


def test_a_loop_of_symbolic_extent_stays():
    code = rows("n", "64")

    assert JOIN.run(code) is code


def test_joined_rounds_add_to_each_sum_side_by_side():
    code = parse(
        """code f(x: read f32[64], y: write f32[16]) {
          for i in 8 grid {
            var s: f32 = 0.0_f32
            var t: f32 = 0.0_f32
            for j in 2 serial {
              s add= x[8*i + j]
              t add= x[8*i + j + 2]
            }
            store y[2*i] = s
            store y[2*i + 1] = t
          }
        }"""
    )

    assert [s.name for s in walk(JOIN.run(code).body) if isinstance(s, Accumulate)] == ["s", "s", "t", "t"]


def test_sums_that_read_each_other_keep_their_order():
    code = parse(
        """code f(x: read f32[64], y: write f32[8]) {
          for i in 8 grid {
            var s: f32 = 0.0_f32
            var t: f32 = 0.0_f32
            for j in 2 serial {
              s add= x[8*i + j]
              t add= s
            }
            store y[i] = t
          }
        }"""
    )

    assert [s.name for s in walk(JOIN.run(code).body) if isinstance(s, Accumulate)] == ["s", "t", "s", "t"]


def test_a_large_body_is_joined_less_often():
    sums = "\n".join(f"s add= x[64*i + 2*j + {2 * k}]" for k in range(200))

    assert extents(JOIN.run(rows("60", loop=sums))) == [60]


@pytest.mark.parametrize(("loops", "extent"), [(1, 4), (10, 4), (11, 8), (21, 16), (41, 32), (81, 64)])
def test_loops_of_one_kernel_share_the_rounds_that_are_joined(loops: int, extent: int):
    sums = "\n".join(
        f"for k{n} in 64 serial {{{{ s add= x[64*i + k{n}] * x[64*i + k{n} + 64] }}}}" for n in range(loops)
    )

    assert set(extents(JOIN.run(rows("1", loop=sums)))) - {1} == {extent}


@pytest.mark.parametrize(("calls", "extent"), [(0, 4), (1, 8), (6, 32), (7, 64)])
def test_rounds_that_call_long_functions_are_joined_less_often(calls: int, extent: int):
    value = "exp(" * calls + "x[{stride}*i + j]" + ")" * calls

    assert extents(JOIN.run(rows("64", loop=f"s add= {value}"))) == [extent]


def test_nothing_is_joined_where_threads_wait_for_each_other():
    code = parse(
        """code f(x: read f32[512], y: write f32[512]) {
          for i in 8 grid {
            alloc row: f32[64] shared
            for t in 4 workgroup {
              for j in 16 serial { store row[16*t + j] = x[64*i + 16*t + j] }
              barrier
              for j in 16 serial { store y[64*i + 16*t + j] = row[63 - 16*t - j] }
            }
          }
        }"""
    )

    assert JOIN.run(code) is code


def test_other_devices_keep_their_loops():
    code = rows("64")

    for target in (CPU, replace(MESA, is_processor=False), replace(MESA, language="opencl")):
        assert join_rounds(target).run(code) is code


@pytest.mark.parametrize("length", [1, 2, 3, 4, 15, 16, 17, 31, 33, 47, 64])
@pytest.mark.parametrize("stride", [64, 65])
def test_every_round_is_done_once_and_in_order(length: int, stride: int):
    code = rows(str(length), str(stride), "s = (s * 0.5_f32) + x[{stride}*i + j]")
    x = np.random.default_rng(length).standard_normal(4096).astype(np.float32)
    y, result = np.zeros(8, np.float32), JOIN.run(code)

    check(result)
    interpret(result, [x, y], {"n": 1})

    expected = np.zeros(8, np.float32)
    for j in range(length):
        expected = expected * np.float32(0.5) + x[stride * np.arange(8) + j]
    np.testing.assert_array_equal(y, expected)
