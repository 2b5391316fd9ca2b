"""Scans in parts: which scans are split, into what, and that results do not change.

Claims, in reading order: a long scan on a device with threads becomes parts whose ends are scanned
again; a short one is not split, nor is one of many rows (of fewer rows where lines are read), or on
a device without threads; integers are the same bit for bit on every executor, forwards and
backwards, for every combination; half types are summed in f32 throughout; one plan serves every
size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.lowering.codegen.target import natively
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.split_scans import split_scans
from rune.lowering.stages import stages
from tests.support.arrays import array
from tests.support.close import near
from tests.support.lowering import PLAIN, f32, program_of
from tests.support.sampling import each_value, in_turn

THREADS = replace(PLAIN, threads_per_workgroup=64, cores=2)
LINES = replace(THREADS, native=natively(line=[dtypes.f32]))
ENOUGH = cost.SCAN_ROWS * THREADS.cores
DEVICES = [d.name for d in rune.devices() if d.target.threads_per_workgroup > 1]
DEVICES = [name for name in DEVICES if not name.startswith("null")]
each_device = pytest.mark.parametrize("device", DEVICES)
each_scan = pytest.mark.parametrize("scan", [ops.cumsum, ops.cumprod, ops.cummax, ops.cummin], ids=lambda p: p.name)
LONG = cost.LONG_SCAN * cost.SCAN_PART + 7  # of which the ends are scanned in parts, too


def cumsum(x: Any) -> Any:
    return ops.cumsum(x, axis=0, reverse=False)


def along_rows(x: Any) -> Any:
    return ops.cumsum(x, axis=1, reverse=False)


def test_a_long_scan_becomes_parts_and_a_scan_of_their_ends(expect: Any):
    program = split_scans(program_of(cumsum, f32(2048)), THREADS)

    expect(
        program,
        """
        program f(%0: f32[2048]) {
          %1: f32[64,32] = split_axis %0, 0.0: f32[] {axis=0, size=32}
          %2: f32[64,32] = cumsum %1 {axis=1, reverse=false}
          %3: f32[64,1] = slice %2 {limit=(64, 32), start=(0, 31), stride=(1, 1)}
          %4: f32[64] = reshape %3 {shape=(64,)}
          %5: f32[64] = pad %4, 0.0: f32[] {high=(-1,), interior=(0,), low=(1,)}
          %6: f32[64] = cumsum %5 {axis=0, reverse=false}
          %7: f32[64,32] = broadcast %6 {axes=(0,), shape=(64, 32)}
          %8: f32[64,32] = add %7, %2
          %9: f32[2048] = join_axis %8 {axis=0, size=2048}
          return %9
        }""",
    )


def kernels_of(*shape: int) -> int:
    kernels = stages(program_of(cumsum, f32(*shape)), THREADS).kernels
    return len(kernels.steps)


def test_parts_their_ends_and_the_sums_of_both_are_a_kernel_each():
    assert kernels_of(2048) == 3
    assert kernels_of(LONG) == 5


def test_where_rows_are_read_by_lines_parts_are_added_up_before_they_are_scanned(expect: Any):
    expect(
        split_scans(program_of(cumsum, f32(cost.LONG_SUMMED_SCAN)), LINES),
        """
        program f(%0: f32[262144]) {
          %1: f32[512,512] = split_axis %0, 0.0: f32[] {axis=0, size=512}
          %2: f32[512] = reduce_sum %1 {axes=(1,)}
          %3: f32[512] = pad %2, 0.0: f32[] {high=(-1,), interior=(0,), low=(1,)}
          %4: f32[512] = cumsum %3 {axis=0, reverse=false}
          %5: f32[512,1] = slice %1 {limit=(512, 1), start=(0, 0), stride=(1, 1)}
          %6: f32[512] = reshape %5 {shape=(512,)}
          %7: f32[512] = add %4, %6
          %8: f32[512,512] = broadcast %7 {axes=(0,), shape=(512, 512)}
          %9: i32[512,512] = iota {axis=1, dtype=i32, shape=(512, 512)}
          %10: bool[512,512] = eq %9, 0: i32[]
          %11: f32[512,512] = select %10, %8, %1
          %12: f32[512,512] = cumsum %11 {axis=1, reverse=false}
          %13: f32[262144] = join_axis %12 {axis=0, size=262144}
          return %13
        }""",
    )
    short = program_of(cumsum, f32(2048))
    assert str(split_scans(short, LINES)) == str(split_scans(short, THREADS))


@pytest.mark.parametrize(("rows", "is_summed"), [(1, False), (2, False), (3, True)])
def test_rows_are_added_up_first_where_all_of_them_have_enough_elements(rows: int, is_summed: bool):
    program = program_of(along_rows, f32(rows, cost.LONG_SUMMED_SCAN // 2 - rows))

    names = [e.primitive.name for e in split_scans(program, LINES).equations]

    assert ("reduce_sum" in names) == is_summed


@pytest.mark.parametrize(("rows", "stays"), [(ENOUGH - 1, False), (ENOUGH, True)])
def test_fewer_rows_are_enough_where_they_are_read_by_lines(rows: int, stays: bool):
    program = program_of(along_rows, f32(rows, 2053))

    assert (split_scans(program, LINES).equations == program.equations) == stays
    assert split_scans(program, THREADS).equations != program.equations


def test_rows_with_loops_in_their_elements_are_still_cut():
    program = program_of(lambda x: along_rows(ops.rem(x, x)), f32(ENOUGH, 2039))

    assert str(split_scans(program, LINES)) == str(split_scans(program, THREADS))


def test_along_another_axis_lines_change_nothing():
    program = program_of(cumsum, f32(2053, ENOUGH))

    assert str(split_scans(program, LINES)) == str(split_scans(program, THREADS))
    assert split_scans(program, LINES).equations != program.equations


@pytest.mark.parametrize("shape", [(cost.LONG_SCAN - 1,), (2048, cost.SCAN_POINTS * 2)])
def test_a_scan_that_is_short_or_has_many_rows_is_not_split(shape: tuple[int, ...]):
    program = program_of(cumsum, f32(*shape))

    assert split_scans(program, THREADS).equations == program.equations


def test_a_processor_without_threads_scans_from_end_to_end():
    program = program_of(cumsum, f32(LONG))

    assert split_scans(program, PLAIN) is program


def scanned(scan: Primitive, x: np.ndarray, axis: int, reverse: bool, device: str) -> np.ndarray:
    program = rune.jit(lambda v: scan(v, axis=axis, reverse=reverse), device=device)
    return np.asarray(program(x))


@each_value()
@in_turn()
@each_device
@each_scan
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((2051,), 0), ((3, 1024), 1), ((1500, 2), 0)])
def test_integers_are_scanned_to_the_bit(
    scan: Primitive, shape: tuple[int, ...], axis: int, reverse: bool, device: str
):
    x = np.random.default_rng(0).integers(-1000, 1000, shape, np.int32)

    assert scan.reference is not None
    expected = scan.reference(x, axis=axis, reverse=reverse)

    np.testing.assert_array_equal(expected, scanned(scan, x, axis, reverse, device))


@in_turn()
@each_device
def test_the_ends_of_many_parts_are_scanned_in_parts(device: str):
    x = np.arange(LONG, dtype=np.int32)

    np.testing.assert_array_equal(np.cumsum(x), scanned(ops.cumsum, x, 0, False, device))


@each_value()
@in_turn()
@each_device
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(2, cost.LONG_SUMMED_SCAN + 5), (3, 87_383), (131, 2053)])
def test_parts_of_rows_begin_with_the_total_of_those_before_them(shape: tuple[int, int], reverse: bool, device: str):
    x = np.random.default_rng(0).integers(-1000, 1000, shape, np.int32)

    assert ops.cumsum.reference is not None
    expected = ops.cumsum.reference(x, axis=1, reverse=reverse)

    np.testing.assert_array_equal(expected, scanned(ops.cumsum, x, 1, reverse, device))


@in_turn()
@each_device
def test_a_nan_reaches_everything_after_it(device: str):
    x = np.ones(3000, np.float32)
    x[1500] = np.nan

    maxima = scanned(ops.cummax, x, 0, False, device)

    assert np.isnan(maxima[1500:]).all()
    assert (maxima[:1500] == 1).all()


@in_turn()
@each_device
def test_half_types_are_summed_in_f32_from_end_to_end(device: str):
    x = array(np.full(4096, 1.0), dtypes.bf16)
    if dtypes.bf16 not in {d.name: d for d in rune.devices()}[device].target.program_dtypes:
        pytest.skip("no bf16 there")

    sums = rune.jit(cumsum, device=device)(x)

    # One after another in bf16, ones stop adding up at 256.
    near(np.arange(1.0, 4097.0), sums.astype("f32"), relative=2**-8, why="one rounding to bf16")


def test_one_plan_covers_every_size():
    program = rune.jit(cumsum, device="reference:0", dims={"n": (1, 1 << 16)})

    for size in (5, 2000):
        x = np.arange(size, dtype=np.int32)
        np.testing.assert_array_equal(np.cumsum(x), program(x))
    assert program.cache_size() == 1


def test_a_reader_of_a_scan_is_fused_into_its_last_step():
    kernels = stages(program_of(lambda x: ops.exp(cumsum(x)), f32(2048)), THREADS).kernels

    assert len(kernels.steps) == 3


def test_a_type_of_parts_is_the_type_of_the_whole():
    program = split_scans(program_of(cumsum, f32(2051)), THREADS)

    assert program.output_types == (ArrayType((2051,), dtypes.f32),)
