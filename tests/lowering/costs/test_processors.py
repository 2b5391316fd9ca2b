"""Costs of a processor: strided elements, squares, sums that wait or spill from registers."""

from __future__ import annotations

import pytest

import rune
from rune.lowering.costs import Cost, cost, record_of
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.stages import stages
from tests.lowering.costs.kernels import kernel, target

PROCESSOR = target("llvm", 1, 64)  # 16 lanes of f32


def on_core(body: str, params: str) -> Cost:
    """The cost of a kernel on a core with vectors of 64 bytes."""
    return cost(kernel(body, params), PROCESSOR)


def requests(index: str, n: int = 2048) -> float:
    """Seconds of the load units to read x at an index, for n points of 16 lanes."""
    params = f"x: read f32[{64 * n}], y: write f32[{n}]"
    return on_core(f"for i in {n} grid {{ store y[i] = x[{index}] }}", params).parts["requests"]


@pytest.mark.parametrize("step", [2, 3, 4])
def test_elements_a_few_apart_take_a_few_vectors_and_not_an_access_for_each_lane(step: int):
    assert requests("i") < requests(f"{step}*i") < 0.75 * requests("5*i")


def test_elements_farther_apart_take_more_vectors():
    assert requests("2*i") < requests("3*i") < requests("4*i")


def test_one_element_for_all_lanes_is_one_access_as_neighbours_are():
    assert requests("7") <= requests("i")


def transposed(schedule: str) -> KernelCode:
    """A transposition of 1500 x 1100 by a schedule."""
    program = rune.make_program(lambda x: x.T + 1)(rune.ShapeDtypeStruct((1500, 1100), "f32"))
    (name,) = stages(program, PROCESSOR).kernels.kernels
    (code,) = stages(program, PROCESSOR, schedules={name: schedule}).plan.kernels.values()
    return code


BOTH_ARRAYS = 2 * 4 * 1500 * 1100  # bytes


def test_a_transposition_in_squares_reads_each_line_about_once():
    assert cost(transposed("plain"), PROCESSOR).bytes_through["L2"] < 1.25 * BOTH_ARRAYS
    # Lanes in order do not use squares: each of them reads another line.
    assert cost(transposed("lanes(i0)"), PROCESSOR).bytes_through["L2"] > 5 * BOTH_ARRAYS


def test_other_compilers_for_processors_do_not_use_squares():
    opencl = target("opencl", 1, 64)

    assert cost(transposed("plain"), opencl, record_of(PROCESSOR)).bytes_through["L2"] > 5 * BOTH_ARRAYS


def sums(count: int, rounds: int) -> Cost:
    """The cost of adding up this many columns of 16 over this many rounds, in one vector each."""
    names = [f"s{k}" for k in range(count)]
    first = " ".join(f"var {name}: f32 = 0.0_f32" for name in names)
    additions = " ".join(f"{name} add= x[16*{count}*k + {16 * c} + i]" for c, name in enumerate(names))
    last = " ".join(f"store y[{16 * c} + i] = {name}" for c, name in enumerate(names))
    params = f"x: read f32[{16 * count * rounds}], y: write f32[{16 * count}]"
    return on_core(f"for i in 16 grid {{ {first} for k in {rounds} serial {{ {additions} }} {last} }}", params)


def test_additions_to_one_sum_wait_for_each_other_and_those_to_several_do_not():
    assert sums(4, 1000).parts["sums"] == pytest.approx(sums(1, 1000).parts["sums"])
    assert 3 * sums(4, 1000).seconds < 4 * sums(1, 4000).seconds


def test_a_sum_along_the_lanes_has_several_vectors_of_partial_sums():
    body = "for i in 64 grid {{ var s: f32 = 0.0_f32 for k in 4096 {kind} {{ s add= x[4096*i + k] }} store y[i] = s }}"
    params = "x: read f32[262144], y: write f32[64]"

    # 16 lanes, in four vectors.
    in_lanes = on_core(body.format(kind="vector"), params).parts["sums"]
    assert in_lanes == pytest.approx(64 * 4096 / 16 * 4 / 4 / 2.5e9)


def parts(count: int) -> Cost:
    """The cost of adding up the columns of 2,048 x 1,024, this many rows at a time."""
    names = [f"s{k}" for k in range(count)]
    first = " ".join(f"var {name}: f32 = 0.0_f32" for name in names)
    additions = " ".join(f"{name} add= x[{1024 * count}*k + {1024 * c} + i]" for c, name in enumerate(names))
    body = f"for i in 1024 grid {{ {first} for k in {2048 // count} serial {{ {additions} }} store y[i] = s0 + s1 }}"
    return on_core(body, "x: read f32[2097152], y: write f32[1024]")


def test_sums_of_vectors_in_several_registers_need_as_many_registers():
    # Vectors are four registers wide: 16 of them do not fit 32 registers, but 4 do.
    assert parts(16).parts["requests"] > 1.5 * parts(4).parts["requests"]


def lines(apart: int) -> float:
    """Seconds of the last cache for eight vectors per round, this many elements apart."""
    loads = [f"store y[128*i + j + {apart * k}] = x[128*i + j + {apart * k}]" for k in range(128 // apart)]
    body = f"for i in 131072 grid {{ for j in {apart} grid {{ {' '.join(loads)} }} }}"
    return on_core(body, "x: read f32[16777216], y: write f32[16777216]").parts["L3"]


def test_reading_every_other_line_is_slower_than_adjacent_lines():
    assert lines(16) < lines(32)
