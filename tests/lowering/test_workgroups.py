"""Workgroups and barriers: the threads of a group share a point, and wait where they must.

Values are those of one thread for every shape; the interpreter finds a race if any barrier is
removed, and none if all are there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import rune.numpy as rnp
from rune import dtypes, ops
from rune.core.types import ArrayType
from rune.dims import Size, symbol
from rune.errors import CheckError
from rune.lowering.build import build_by_default
from rune.lowering.build.barriers import insert_barriers
from rune.lowering.kernel.check import check
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import Barrier, For, KernelCode, Kind
from rune.lowering.kernel.rewrite import Body, map_stmts, walk
from rune.lowering.kernel.text import parse, to_text
from rune.lowering.kernelize import kernelize
from tests.lowering import models
from tests.lowering.test_build import hold
from tests.support.lowering import f32, i32, only_kernel, program_of, target

GPU = replace(
    target(language="opencl"), threads_per_workgroup=256, shared_bytes=1 << 15
)  # points are few up to 16 for each of 8 processors
PROCESSOR = replace(GPU, is_processor=True)
N = symbol("n", 1, 5000)


def total(x):
    return ops.reduce_sum(x, axes=tuple(range(x.type.ndim)))


def columns(reduce):
    return lambda x: reduce(x, axes=(0,))


def rows(op):
    return lambda x: op(x, axes=(1,))


SHARED = {
    "sum of all": (total, [f32(8, 4096)]),
    "sum of a prime number": (total, [f32(4099)]),
    "sum of three axes": (total, [f32(3, 5, 70)]),
    "parts of a total of two axes": (
        lambda x: ops.div(x, ops.expand_axes(total(x), x.type.shape, (0, 1))),
        [f32(30, 41)],
    ),
    "sums of columns": (lambda x: ops.reduce_sum(x, axes=(0,)), [f32(700, 3)]),
    "largest of halves": (rows(ops.reduce_max), [ArrayType((3, 1000), dtypes.f16)]),
    "largest": (rows(ops.reduce_max), [f32(4, 600)]),
    "where the largest is": (lambda x: ops.argmax(x, axis=1, dtype=dtypes.i32), [f32(4, 600)]),
    "softmax": (models.softmax, [f32(4, 1024)]),
    "softmax of an odd length": (models.softmax, [f32(4, 1001)]),
    "log-softmax": (models.log_softmax, [f32(4, 1001)]),
    "layer norm": (models.layernorm, [f32(4, 700), f32(700), f32(700)]),
    "dot of vectors": (
        lambda a, b: ops.dot_general(a, b, dimension_numbers=(((0,), (0,)), ((), ()))),
        [f32(3000), f32(3000)],
    ),
}


def code_of(function, types, device=GPU) -> KernelCode:
    return build_by_default(only_kernel(kernelize(program_of(function, *types), device)), device).code


def threads(code: KernelCode) -> list[Size]:
    return [s.extent for s in walk(code.body) if isinstance(s, For) and s.kind is Kind.WORKGROUP]


def barriers(code: KernelCode) -> int:
    return sum(isinstance(s, Barrier) for s in walk(code.body))


# --- sharing a point ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHARED)
def test_the_threads_of_a_group_compute_what_one_thread_computes(name):
    function, types = SHARED[name]

    assert threads(code_of(function, types)) == [128]
    hold(function, *types, device=GPU)


@pytest.mark.parametrize("n", [1, 5, 128, 129, 4999])
def test_a_symbolic_length_is_divided_for_all_its_values(n):
    hold(models.softmax, f32(2, N), device=GPU, n=n)


@pytest.mark.parametrize(("length", "count"), [(4, []), (8, [2]), (100, [16]), (512, [128])])
def test_there_are_fewer_threads_where_there_is_less_to_do(length, count):
    assert threads(code_of(rows(ops.reduce_sum), [f32(4, length)])) == count


def test_many_points_stay_with_one_thread_each():
    assert threads(code_of(rows(ops.reduce_sum), [f32(4096, 512)], PROCESSOR)) == []
    assert threads(code_of(columns(ops.reduce_sum), [f32(512, 1 << 14)])) == []


def test_the_threads_of_a_gpu_share_rows_however_many_there_are():
    assert threads(code_of(rows(ops.reduce_sum), [f32(4096, 512)])) == [128]
    assert threads(code_of(models.softmax, [f32(4096, 512)])) == [128]


@pytest.mark.parametrize("length", [1, 3, 16, 67, 130, 259])
def test_many_shared_rows_of_any_length_are_right(length):
    hold(models.softmax, f32(131, length), device=GPU)
    hold(rows(ops.reduce_max), f32(131, length), device=GPU)
    hold(columns(ops.reduce_sum), f32(length, 131), device=GPU)


def test_a_tile_of_a_product_with_a_transposed_matrix_is_not_shared():
    def function(a, b):
        return ops.dot_general(a, b, dimension_numbers=(((1,), (1,)), ((), ())))

    kernel = only_kernel(kernelize(program_of(function, f32(512, 64), f32(512, 64)), GPU))

    assert build_by_default(kernel, GPU).schedule.share is None


def test_a_point_with_ordered_loops_is_computed_by_one_thread():
    assert threads(code_of(lambda x: ops.cumsum(x, axis=1, reverse=False), [f32(4, 512)])) == []


def test_rows_that_shared_memory_cannot_hold_stay_with_one_thread():
    device = replace(GPU, shared_bytes=1 << 10)

    assert threads(code_of(models.softmax, [f32(4, 1024)], device)) == []
    hold(models.softmax, f32(4, 1024), device=device)


def test_the_threads_of_a_group_share_a_reduction(expect):
    device = replace(GPU, threads_per_workgroup=4)
    expect(
        to_text(code_of(rows(ops.reduce_max), [f32(2, 18)], device)),
        """
        code max_0(x0: read f32[36], y0: write f32[2]) {
          for i0 in 2 grid {
            alloc max1_parts: f32[4] shared
            for thread in 4 workgroup {
              var max1_acc: f32 = -inf_f32
              for j0_round in 5 serial {
                if index(4*j0_round + thread) < 18_i64 {
                  max1_acc max= x0[18*i0 + 4*j0_round + thread]
                }
              }
              store max1_parts[thread] = max1_acc
              barrier
              max1_of_0: f32 = max1_parts[0]
              max1_of_1: f32 = max1_parts[1]
              max1_of_2: f32 = max1_parts[2]
              max1_of_3: f32 = max1_parts[3]
              max1: f32 = max(max(max1_of_0, max1_of_1), max(max1_of_2, max1_of_3))
              if index(thread) < 1_i64 {
                store y0[i0] = max1
              }
            }
          }
        }""",
    )


# --- barriers -----------------------------------------------------------------------------------


def without(code: KernelCode, number: int | None = None) -> KernelCode:
    """The code without one of its barriers, or without any."""
    numbers = itertools.count()

    def drop(stmt) -> Body:
        is_it = isinstance(stmt, Barrier) and (number is None or next(numbers) == number)
        return () if is_it else (stmt,)

    return replace(code, body=map_stmts(drop, code.body))


def run(code: KernelCode, pair: tuple[str, str] | None = None) -> None:
    """Interpret the code, with two buffers in one memory."""
    generator = np.random.default_rng(0)
    data = {p.name: generator.uniform(1, 2, p.size).astype(p.dtype) for p in code.params}
    if pair is not None:
        source, output = pair
        data[output] = data[source].view(data[output].dtype)
    interpret(code, list(data.values()))


@pytest.mark.parametrize("name", SHARED)
def test_every_missing_barrier_is_found_as_a_race(name):
    code = code_of(*SHARED[name])

    run(code)
    assert barriers(code) > 0
    for number in range(barriers(code)):
        with pytest.raises(CheckError, match="a race within the workgroup"):
            run(without(code, number))


def steps_of_rows(x, count, last):
    """Rows that go on while no element is large, with the number of their steps."""
    goes_on = rnp.logical_and(count < 2, rnp.logical_not(rnp.any(x > 8, axis=1)))
    return rnp.where(goes_on[:, None], rnp.sin(x), x), rnp.where(goes_on, rnp.where(goes_on, count, last) + 1, count)


COUNTED = {"steps of rows": (steps_of_rows, [f32(4, 600), i32(4), i32(4)])}


@pytest.mark.parametrize("name", [*SHARED, *COUNTED])
def test_threads_do_not_race_where_an_output_lies_in_the_memory_of_any_input(name):
    function, types = (SHARED | COUNTED)[name]
    code = code_of(function, types)

    for pair in code.aliases:
        run(code, pair)


def test_an_output_may_lie_in_one_of_two_inputs_that_all_threads_read():
    code = code_of(*COUNTED["steps of rows"])

    assert threads(code) == [128]
    assert [source for source, output in code.aliases if output == "y1"] == ["x1", "x2"]


@pytest.mark.parametrize("name", SHARED)
def test_the_analysis_finds_all_barriers_and_then_adds_none(name):
    code = code_of(*SHARED[name])
    loops = [s for s in walk(code.body) if isinstance(s, For) and s.kind is Kind.SERIAL]

    assert insert_barriers(without(code), loops) == code
    assert insert_barriers(code, loops) == code


TILES = """
code tiles(x: read f32[64], y: write f32[8]) {
  alloc tile: f32[8] shared
  for t in 8 workgroup {
    var acc: f32 = 0.0_f32
    for k in 8 serial {
      store tile[t] = x[8*k + t]
      acc add= tile[-t + 7]
    }
    store y[t] = acc
  }
}
"""
OWN = """
code own(x: read f32[64], y: write f32[64]) {
  alloc tile: f32[64] shared
  for t in 8 workgroup {
    for k in 8 serial {
      store tile[8*k + t] = x[8*k + t]
    }
    for j in 8 serial {
      store y[8*j + t] = tile[8*j + t]
    }
  }
}
"""
NEIGHBOURS = """
code neighbours(x: read f32[8], y: readwrite f32[8]) {
  for t in 8 workgroup {
    store y[t] = x[t]
    a: f32 = y[-t + 7]
    store y[t] = a
  }
}
"""
OVERLAPPING = """
code overlapping(x: read f32[64], y: write f32[16]) {
  alloc tile: f32[16] shared
  for t in 8 workgroup {
    for k in 8 serial {
      store tile[k + t] = x[8*k + t]
    }
    store y[t] = tile[t]
  }
}
"""


def barrier_lines(text: str) -> Iterator[str]:
    """The line after each barrier."""
    lines = to_text(insert_barriers(parse(text))).splitlines()
    return (b.strip() for a, b in itertools.pairwise(lines) if a.strip() == "barrier")


def test_a_tile_that_is_filled_again_waits_twice_in_each_round():
    assert list(barrier_lines(TILES)) == ["store tile[t] = x[8*k + t]", "acc add= tile[-t + 7]"]
    run(insert_barriers(parse(TILES)))


def test_threads_that_read_back_what_they_wrote_themselves_do_not_wait():
    assert barriers(insert_barriers(parse(OWN))) == 0
    run(parse(OWN))


def test_threads_wait_for_each_other_in_global_memory_too():
    assert list(barrier_lines(NEIGHBOURS)) == ["a: f32 = y[-t + 7]", "store y[t] = a"]
    run(insert_barriers(parse(NEIGHBOURS)))


def test_a_conflict_within_one_statement_of_a_loop_is_separated_between_its_rounds():
    code = insert_barriers(parse(OVERLAPPING))

    check(code)
    run(code)


def test_a_conflict_that_no_barrier_can_separate_is_an_error():
    text = NEIGHBOURS.replace("store y[t] = a", "store y[t] = y[-t + 7]")

    with pytest.raises(CheckError, match="cannot separate threads within one statement"):
        insert_barriers(parse(text))


def test_code_without_a_workgroup_stays_unchanged():
    code = code_of(rows(ops.reduce_sum), [f32(4096, 512)], PROCESSOR)

    assert insert_barriers(code) is code
