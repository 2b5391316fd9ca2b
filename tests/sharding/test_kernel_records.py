"""Records of devices from measurements: what was measured replaces the table, and only that."""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.lowering.costs import cost, record_of
from rune.lowering.kernel.text import parse
from rune.transforms.placement.curves import Curve
from rune.transforms.placement.kernel_records import kernel_record
from rune.transforms.placement.records import Speed
from tests.lowering.costs.kernels import target
from tests.support.close import near

MB = 1 << 20
PROCESSOR = target("llvm", cores=2, vector_bytes=32)
# 2 GB/s beyond 64 MB, 20 GB/s in the second cache of two cores; 100 GFLOP/s.
STREAMS = Curve(((4096, 1e-6), (1 * MB, 1e-6 + MB / 20e9), (64 * MB, 0.032), (128 * MB, 0.064)))
SPEED = Speed("cpu:0", "a test", 2e-6, 5e-7, Curve(((1e6, 1e-5), (1e9, 1e-2))), STREAMS, 1e9)
RECORD = kernel_record(SPEED, PROCESSOR)


def test_memory_is_as_fast_as_the_longest_stream():
    near(np.float64(128 * MB / 0.064), np.float64(RECORD.memory_rate), relative=1e-9, why="a quotient")


def test_a_cache_is_as_fast_as_a_stream_that_fills_half_of_it():
    near(np.float64(20e9), np.float64(RECORD.caches[1].rate), relative=1e-6, why="half of two caches of 1 MB")


def test_no_cache_is_slower_than_the_next_level():
    rates = [*(c.rate for c in RECORD.caches), RECORD.memory_rate]

    assert rates == sorted(rates, reverse=True)


def test_arithmetic_is_that_of_products():
    near(np.float64(1e11), np.float64(RECORD.flops(dtypes.f32)), relative=1e-9, why="of all cores")


def test_wide_floats_keep_their_share_of_the_arithmetic():
    table = record_of(PROCESSOR)

    ratio = RECORD.rate(dtypes.f64) / RECORD.rate(dtypes.f32)
    assert ratio == table.rate(dtypes.f64) / table.rate(dtypes.f32)


def test_a_launch_adds_one_step_to_a_program():
    assert RECORD.launch_ns == 500


def test_figures_that_were_not_measured_come_from_the_table():
    table = record_of(PROCESSOR)

    assert (RECORD.units, RECORD.line_bytes, RECORD.clock_hz) == (table.units, table.line_bytes, table.clock_hz)


def test_kernels_are_judged_by_a_measured_record():
    size = 64 * MB
    params = f"x: read f32[{size}], y: write f32[{size}]"
    code = parse(f"code f({params}) {{ for i in {size} grid {{ store y[i] = x[i] }} }}")

    result = cost(code, PROCESSOR, RECORD)
    assert result.bound == "memory"
    starts = 2 * RECORD.start_lines * RECORD.line_bytes  # each buffer is one run of lines
    assert result.parts["memory"] == (2 * 4 * size + starts) / RECORD.memory_rate
