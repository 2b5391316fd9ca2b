"""The default schedules of kernels on a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune.numpy as rnp
from rune import dtypes, lax, ops
from rune.core.types import ArrayType
from rune.lowering.build import build_by_default
from rune.lowering.build.schedule import Merge, Order, Schedule
from rune.lowering.codegen.target import Target, natively
from tests.lowering.test_build import AB, ABT, ATB, dot
from tests.lowering.test_schedules import GPU, PROCESSOR, UNITS, kernel_of, of
from tests.support.lowering import f32

LARGE = replace(GPU, cores=132)
MESA = replace(LARGE, language="spirv", is_processor=True, subgroup_threads=8, cores=2)
LINES = replace(MESA, native=natively(shuffle=[dtypes.f32], line=[dtypes.f32]))
M16 = 1 << 24


def default(function: Any, *types: ArrayType, device: Target = LARGE) -> Schedule:
    return build_by_default(kernel_of(function, *types, device=device), device).schedule


def test_a_large_product_has_the_largest_tiles_of_shared_memory():
    assert str(default(dot(AB), f32(4096, 4096), f32(4096, 4096))) == "tile(i0=8, i1=8) stage(i0=16, i1=16, j0=16)"


def test_a_product_of_few_points_has_smaller_tiles_so_that_more_threads_work():
    small = default(dot(AB), f32(128, 120), f32(120, 512))

    assert small.tile is not None
    assert 512 * 128 // (small.tile.rows * small.tile.columns) >= 64 * 132


def test_doubles_have_half_the_sums_in_a_thread():
    tile = default(dot(AB), of(dtypes.f64, 4096, 4096), of(dtypes.f64, 4096, 4096)).tile

    assert tile is not None
    assert tile.rows * tile.columns <= 32


def test_the_points_of_all_images_are_one_axis_of_a_convolution():
    images, weights = f32(32, 64, 30, 30), f32(64, 64, 3, 3)
    schedule = default(lambda x, w: lax.conv(x, w, (1, 1), "VALID"), images, weights)

    assert schedule.order == Order(("i1", "i0", "i2", "i3"))
    assert schedule.merge == Merge("i0")
    assert schedule.tile is not None
    assert schedule.tile.row_axis == "i1"


@pytest.mark.parametrize("types", [(f32(31, 64), f32(64, 64)), (f32(64, 64), f32(64, 31)), (f32(64, 31), f32(31, 64))])
def test_a_product_that_uses_its_operands_seldom_needs_no_shared_memory(types: tuple[ArrayType, ArrayType]):
    assert default(dot(AB), *types).stage is None


def test_a_transposition_is_turned_in_shared_memory():
    assert str(default(lambda x: ops.transpose(x, permutation=(1, 0)) * 2.0, f32(64, 100))) == "turn(i0=32)"
    assert str(default(lambda x: ops.transpose(x, permutation=(1, 0)) * 2.0, f32(64, 31))) == "plain"


def test_columns_are_summed_by_threads_that_are_neighbours():
    assert str(default(lambda x: ops.reduce_sum(x, axes=(0,)), f32(256, 64))) == "share(512, points=32, across)"
    assert str(default(lambda x: ops.reduce_sum(x, axes=(1,)), f32(64, 256))) == "share(64)"


def test_a_cpu_behind_a_driver_has_no_use_for_shared_memory():
    processor = replace(LARGE, is_processor=True)

    assert default(dot(AB), f32(512, 512), f32(512, 512), device=processor).stage is None


@pytest.mark.parametrize(
    ("function", "types", "schedule"),
    [
        (dot(AB), (f32(512, 512), f32(512, 512)), "tile(i0=32, i1=4)"),
        # 132 points do not fill subgroups, which read rows together; 28 divides the rows evenly.
        (dot(AB), (f32(784, 64), f32(64, 528)), "tile(i0=28, i1=2)"),
        # An inner loop of three rounds.
        (lambda x, w: lax.conv(x, w, (1, 1), "VALID"), (f32(8, 32, 30, 30), f32(32, 32, 3, 3)), "tile(i1=16, i3=2)"),
        (ops.add, (f32(M16), f32(M16)), "vectors(4, lanes=1)"),
        (lambda x: ops.reduce_sum(x, axes=(0,)), (f32(4096, 1024),), "vectors(16, lanes=1)"),
        (lambda x: ops.reduce_sum(x, axes=(1,)), (f32(4096, 1024),), "plain"),
        (lambda x: ops.transpose(x, permutation=(1, 0)) * 2.0, (f32(512, 512),), "squares(i0=8)"),
    ],
)
def test_the_schedule_makes_few_accesses_where_each_is_made_lane_by_lane(
    function: Any, types: tuple[ArrayType, ...], schedule: str
):
    assert str(default(function, *types, device=MESA)) == schedule


@pytest.mark.parametrize(
    ("type", "axis", "schedule"),
    [
        (f32(4096, 1024), 1, "share(8, registers)"),
        (f32(32, 2040), 1, "share(8, registers)"),
        (f32(31, 2040), 1, "share(128)"),
        (f32(3, 1536), 1, "share(8, registers)"),
        (f32(4096, 1000), 1, "share(8, registers)"),
        (f32(4096, 1001), 1, "plain"),
        (f32(4096, 248), 1, "plain"),
        (f32(4096, 8200), 1, "plain"),  # more than threads can hold, and no whole lines
        (f32(70_000, 1024), 1, "plain"),  # more groups than one dimension of a launch has
        (of(dtypes.f16, 4096, 1024), 1, "plain"),
        (f32(4096, 1024), 0, "vectors(16, lanes=1)"),
    ],
)
def test_where_a_subgroup_reads_lines_it_has_a_row(type: ArrayType, axis: int, schedule: str):
    assert str(default(lambda x: ops.reduce_sum(x, axes=(axis,)), type, device=LINES)) == schedule


@pytest.mark.parametrize(
    ("function", "types", "schedule"),
    [
        (ops.add, (f32(1 << 20), f32(1 << 20)), "vectors(32, lanes=8, neighbours=2)"),
        (ops.exp, (f32(4096, 256),), "vectors(32, lanes=8, neighbours=2)"),
        (ops.exp, (f32(4097, 272),), "vectors(4, lanes=1)"),  # rows of whole lines, but not of sixteen
        (ops.add, (f32((1 << 20) - 256), f32((1 << 20) - 256)), "vectors(4, lanes=1)"),  # too few
        (ops.add, (f32(1 << 25), f32(1 << 25)), "vectors(4, lanes=1)"),  # too many groups for a launch
        (ops.exp, (of(dtypes.f16, 1 << 20),), "vectors(8, lanes=1)"),
    ],
)
def test_points_read_many_lines_where_there_are_many(function: Any, types: tuple[ArrayType, ...], schedule: str):
    assert str(default(function, *types, device=LINES)) == schedule


def test_a_row_that_is_written_is_read_in_pairs():
    function, pairs = (lambda x: x - rnp.sum(x, axis=1, keepdims=True)), "share(8, lanes=2, registers)"

    assert str(default(function, f32(4096, 1024), device=LINES)) == pairs
    assert str(default(function, f32(4096, 1000), device=LINES)) == "share(8, registers)"


@pytest.mark.parametrize(("function", "schedule"), [(ops.exp, "share(8, registers)"), (ops.sin, "plain")])
def test_a_row_is_not_written_out_where_its_functions_are_long(function: Any, schedule: str):
    assert str(default(lambda x: ops.reduce_sum(function(x), axes=(1,)), f32(4096, 1024), device=LINES)) == schedule


@pytest.mark.parametrize(
    ("type", "schedule"),
    [
        (f32(2048, 512), "vectors(4, lanes=1) rows(i0=16)"),
        (f32(96, 48), "vectors(4, lanes=1) rows(i0=16)"),
        (f32(40, 512), "rows(i0=64)"),
        (f32(40, 96), "rows(i0=32)"),
        (f32(24, 16), "rows(i0=16)"),
        (f32(100, 512), "squares(i0=8)"),
        (f32(2048, 500), "squares(i0=8)"),
        (of(dtypes.f16, 2048, 512), "squares(i0=8)"),
    ],
)
def test_where_subgroups_read_lines_a_transposition_reads_columns_and_writes_rows(type: ArrayType, schedule: str):
    assert str(default(lambda x: ops.transpose(x, permutation=(1, 0)) * 2, type, device=LINES)) == schedule


@pytest.mark.parametrize("numbers", [AB, ATB, ABT])
@pytest.mark.parametrize("dtype", [dtypes.f16, dtypes.bf16])
def test_a_large_product_of_halves_uses_matrix_units_if_the_device_has_them(dtype: np.dtype, numbers: Any):
    device = replace(UNITS, cores=132, shared_bytes=227 << 10)
    schedule = default(dot(numbers), of(dtype, 4096, 4096), of(dtype, 4096, 4096), device=device)

    assert str(schedule) == "tile(i0=64, i1=64) stage(i0=2, i1=4, j0=32) units(16, 8, 16)"


def test_a_product_of_f32_has_no_units_for_halves():
    assert default(dot(AB), f32(4096, 4096), f32(4096, 4096), device=replace(UNITS, cores=132)).units is None


def test_panels_are_fetched_ahead_on_devices_with_asynchronous_copies():
    device = replace(UNITS, cores=132, shared_bytes=227 << 10)
    schedule = default(dot(AB), f32(4096, 4096), f32(4096, 4096), device=device)

    assert str(schedule) == "tile(i0=8, i1=8) stage(i0=16, i1=16, j0=16, twice)"


def test_panels_are_not_fetched_ahead_where_the_last_round_is_shorter():
    device = replace(UNITS, cores=132, shared_bytes=227 << 10)
    stage = default(dot(AB), f32(4096, 4099), f32(4099, 4096), device=device).stage

    assert stage is not None
    assert not stage.twice


# --- where accesses are wide -----------------------------------------------------------------


CUDA = replace(UNITS, cores=132, shared_bytes=227 << 10)


def rms_norm(x: Any, scale: Any) -> Any:
    return x * lax.rsqrt(rnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


@pytest.mark.parametrize(
    ("function", "types", "schedule"),
    [
        (ops.add, (f32(M16), f32(M16)), "vectors(4, lanes=1)"),
        (ops.add, (of(dtypes.bf16, M16), of(dtypes.bf16, M16)), "vectors(8, lanes=1)"),
        (ops.add, (of(dtypes.f64, M16), of(dtypes.f64, M16)), "vectors(2, lanes=1)"),
        (ops.add, (f32(M16 - 1), f32(M16 - 1)), "plain"),
        (ops.add, (f32(1 << 12), f32(1 << 12)), "plain"),
        (lambda x: x[1:] + x[:-1], (f32(M16 + 1),), "plain"),
        (rms_norm, (f32(4096, 4096), f32(4096)), "share(256, lanes=4, registers)"),
        (rms_norm, (f32(4096, 4099), f32(4099)), "share(128)"),
        (lambda x: rnp.sum(x, axis=1), (f32(65536, 256),), "rows(i0=4) share(128, lanes=4, points=4)"),
        (lambda x: rnp.sum(x, axis=1), (f32(4096, 256),), "share(128, lanes=4, points=4)"),
        (lambda x: rnp.sum(x, axis=1), (f32(65537, 256),), "share(32, lanes=4)"),
        (lambda x: rnp.sum(x, axis=1), (f32(256, 256, 256),), "vectors(4, lanes=1) share(512, points=32, across)"),
    ],
)
def test_threads_of_a_gpu_read_neighbours_at_once_if_there_are_any(function: Any, types: Any, schedule: str):
    assert str(default(function, *types, device=CUDA)) == schedule


# --- on a processor behind OpenCL -------------------------------------------------------------


def sum_of(axis: int) -> Any:
    return lambda x: rnp.sum(x, axis=axis)


@pytest.mark.parametrize(("columns", "schedule"), [(7, "plain"), (8, "parts(2)"), (17, "parts(4)"), (999, "parts(8)")])
def test_a_sum_of_a_row_is_in_as_many_parts_as_have_four_rounds(columns: int, schedule: str):
    assert str(default(sum_of(1), f32(1000, columns), device=PROCESSOR)) == schedule


def test_a_sum_of_columns_is_one_of_eight_neighbours_at_a_point():
    assert str(default(sum_of(0), f32(1000, 1000), device=PROCESSOR)) == "vectors(8, lanes=1)"


def test_a_sum_of_integers_is_left_to_the_compiler():
    assert str(default(sum_of(1), of(dtypes.i32, 1000, 1000), device=PROCESSOR)) == "plain"


def test_a_sum_of_distant_neighbours_stays_unchanged():
    assert str(default(lambda x: rnp.sum(x[:, ::2], axis=1), f32(1000, 998), device=PROCESSOR)) == "plain"
