"""Barriers of a subgroup: their text, where they are refused, and which races they end."""

from __future__ import annotations

import numpy as np
import pytest

from rune.errors import CheckError
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.opencl import OPENCL_C
from rune.lowering.codegen.c.render import render
from rune.lowering.codegen.wgsl.render import render as render_wgsl
from rune.lowering.kernel.check import check
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.text import parse, to_text


def passed_on(distance: int, threads: int = 64, barrier: str = "barrier, of 32") -> str:
    """Every thread reads what the thread this many places further on wrote."""
    return f"""
code f(y: write i32[{threads}]) {{
  for g in 1 grid {{
    alloc s: i32[{threads}] shared
    for t in {threads} workgroup {{
      store s[t] = i32(index(t))
      {barrier}
      store y[t] = s[{distance} + t if index({distance} + t) < {threads}_i64]
    }}
  }}
}}
"""


def neighbours(threads: int) -> str:
    """Every thread reads what another one of its subgroup wrote."""
    return passed_on(0, threads).replace("s[0 + t if index(0 + t) < 64_i64]", "s[32*(t // 32) + (t + 1) % 32]")


def test_printed_text_is_read_back():
    text = to_text(parse(passed_on(1)))

    assert "barrier, of 32" in text
    assert to_text(parse(text)) == text


def test_a_subgroup_reads_what_its_threads_wrote():
    y = np.zeros(64, np.int32)

    interpret(parse(neighbours(64)), [y])

    t = np.arange(64)
    np.testing.assert_array_equal(32 * (t // 32) + (t + 1) % 32, y)


def test_reading_what_another_subgroup_wrote_is_a_race():
    with pytest.raises(CheckError, match="a race within the subgroups"):
        interpret(parse(passed_on(1)), [np.zeros(64, np.int32)])


def test_a_barrier_of_all_ends_that_race():
    y = np.zeros(64, np.int32)

    interpret(parse(passed_on(1, barrier="barrier")), [y])

    np.testing.assert_array_equal([*range(1, 64), 0], y)


def test_without_a_barrier_neighbours_race():
    text = neighbours(64).replace("barrier, of 32", "")

    with pytest.raises(CheckError, match="a race within the workgroup"):
        interpret(parse(text), [np.zeros(64, np.int32)])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (passed_on(0, threads=48), "not by one loop of subgroups"),
        (passed_on(0, barrier="barrier, of 16"), "a barrier of 16 threads, not 32"),
        (passed_on(0, barrier="if index(t) < 5_i64 { barrier, of 32 }"), "not all threads reach together"),
    ],
)
def test_an_atomic_change_that_no_device_has_is_refused(text: str, reason: str):
    with pytest.raises(CheckError, match=reason):
        check(parse(text))


def test_cuda_waits_for_a_warp_and_others_for_all():
    code = parse(passed_on(0))

    assert "__syncwarp();" in render(code, CUDA_C).text
    assert "barrier(CLK_LOCAL_MEM_FENCE" in render(code, OPENCL_C).text
    assert "workgroupBarrier();" in render_wgsl(code).text


def test_a_loop_over_a_short_array_of_a_thread_is_written_out_by_the_compiler():
    text = """
code f(x: read f32[64], y: write f32[64]) {
  for i in 8 grid {
    alloc row: f32[8] local
    for e in 8 serial { store row[e] = x[8*i + e] }
    for e in 8 serial { store y[8*i + e] = row[e] }
  }
}
"""
    assert render(parse(text), CUDA_C).text.count("#pragma unroll") == 2
