"""Records of devices have the documented units, and match devices by the names of drivers."""

from __future__ import annotations

import pytest

from rune import dtypes
from rune.lowering.costs import DeviceRecord, record_of
from rune.lowering.costs.table import A100, GPUS, H100, L4, MI300X, PROCESSOR, RTX_4090, RX_7900_XTX
from tests.lowering.costs.kernels import target

EVERY = (*GPUS, PROCESSOR)
NAMED = [pytest.param(record, id=record.name) for record in EVERY]


@pytest.mark.parametrize("record", NAMED)
def test_memory_bandwidth_is_between_10_gigabytes_and_10_terabytes_a_second(record: DeviceRecord):
    assert 1e10 < record.memory_rate < 1e13


@pytest.mark.parametrize("record", NAMED)
def test_caches_grow_and_slow_down_on_the_way_to_memory(record: DeviceRecord):
    capacities = [c.capacity_bytes if c.is_shared else c.capacity_bytes * record.units for c in record.caches]
    rates = [*(c.rate for c in record.caches), record.memory_rate]
    latencies = [*(c.latency_cycles for c in record.caches), record.memory_latency_cycles]

    assert capacities == sorted(capacities)
    assert rates == sorted(rates, reverse=True)
    assert latencies == sorted(latencies)


@pytest.mark.parametrize("record", NAMED)
def test_a_launch_takes_microseconds(record: DeviceRecord):
    assert 500 <= record.launch_ns <= 100_000


@pytest.mark.parametrize("record", NAMED)
def test_matrix_units_are_at_least_as_fast_as_other_units(record: DeviceRecord):
    for dtype, peak in record.matrix_flops.items():
        if dtype in (dtypes.f16, dtypes.bf16):
            assert 1.01 * peak >= record.flops(dtype)  # published numbers are rounded


@pytest.mark.parametrize("record", NAMED)
def test_sectors_make_up_lines(record: DeviceRecord):
    assert record.line_bytes % record.sector_bytes == 0
    assert record.sector_bytes in (32, 64)


# Peaks of f32 in TFLOP/s as data sheets have them, at their highest clocks.
@pytest.mark.parametrize(
    ("record", "peak"), [(H100, 66.9), (A100, 19.5), (L4, 30.3), (RTX_4090, 82.6), (MI300X, 163.4), (RX_7900_XTX, 61.4)]
)
def test_operations_of_all_units_come_near_the_published_peak(record: DeviceRecord, peak: float):
    assert 0.85 * peak <= record.flops(dtypes.f32) / 1e12 <= 1.01 * peak


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("NVIDIA H100 80GB HBM3, compute capability 9.0", "H100 SXM"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "GeForce RTX 4090"),
        ("AMD Instinct MI300X", "Instinct MI300X"),
        ("Apple M1", "Apple M1, 8 cores"),
        ("Mali-G710", "Mali-G710, 7 cores"),
    ],
)
def test_a_device_is_recognized_by_the_description_of_its_driver(description: str, name: str):
    assert record_of(target(language="spirv", description=description)).name == name


def test_a_cuda_device_has_the_units_that_its_driver_counts():
    assert record_of(target(cores=66)).units == 66


def test_a_processor_with_narrow_vectors_computes_less_in_a_cycle():
    wide, narrow = (record_of(target("llvm", 2, vector_bytes)) for vector_bytes in (64, 16))

    assert wide.rate(dtypes.f32) == 4 * narrow.rate(dtypes.f32)


def test_integers_of_64_bits_take_two_words():
    assert H100.rate(dtypes.i64) == H100.rate(dtypes.i32) / 2


def test_narrow_floats_without_units_are_computed_as_f32():
    assert PROCESSOR.rate(dtypes.f8_e4m3) == PROCESSOR.rate(dtypes.f32)
