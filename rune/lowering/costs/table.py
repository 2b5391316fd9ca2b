"""Records of devices that rune has not measured, from what their makers publish.

Units, clocks, operations, matrix products, memory, registers and shared memory come from data
sheets and architecture papers. No data sheet says how much of a peak a kernel reaches, nor how long
loads and launches take: the records take REACHABLE of the peak of memory, and LAUNCH_NS for a
launch. The rates and latencies of caches are assumptions, after public measurements of an H100.
rune has measured none of these numbers.
"""

from __future__ import annotations

from dataclasses import replace

from rune import dtypes
from rune.lowering.costs.records import Cache, DeviceRecord

REACHABLE = 0.9  # of the peak of memory: 3.0 of 3.35 TB/s on an H100
LAUNCH_NS = 3_500.0  # of a kernel in a graph; assumed to be the same elsewhere
KB, MB = 1 << 10, 1 << 20

_f16, _bf16, _f32, _f64, _i8, _i32 = dtypes.f16, dtypes.bf16, dtypes.f32, dtypes.f64, dtypes.i8, dtypes.i32
_f8 = dtypes.f8_e4m3


def _matrix(halves: float, tf32: float = 0.0, i8: float = 0.0, f8: float = 0.0, f64: float = 0.0) -> dict:
    """The peaks of matrix units, given in TFLOP/s, that are not 0; f32 stands for tf32."""
    peaks = {_f16: halves, _bf16: halves, _f32: tf32, _i8: i8, _f8: f8, _f64: f64}
    return {dtype: 1e12 * peak for dtype, peak in peaks.items() if peak}


# Base records; the record of a GPU replaces what differs.
_NVIDIA = DeviceRecord(
    name="NVIDIA",
    units=1,
    clock_hz=1e9,
    subgroup_threads=32,
    unit_threads=2048,
    unit_groups=32,
    unit_registers=65_536,
    thread_registers=255,
    shared_bytes=64 * KB,
    shared_cycle_bytes=128,
    banks=32,
    cycle_requests=1.0,
    cycle_lines=4.0,
    cycle_instructions=4.0,
    operations={_f32: 128, _f64: 2, _f16: 128, _bf16: 128, _i32: 64},
    special_operations=16.0,
    matrix_flops={},
    line_bytes=128,
    sector_bytes=32,
    unit_cycle_bytes=64.0,
    caches=(),
    memory_rate=1e11,
    memory_latency_cycles=600.0,
    launch_ns=LAUNCH_NS,
    source="NVIDIA's data sheet and architecture paper",
)


def _caches(unit_bytes: int, unit_rate: float, *levels: tuple[str, int, float, float]) -> tuple[Cache, ...]:
    """A first level for each unit, and levels that all units share: name, bytes, B/s, cycles."""
    return (Cache("L1", unit_bytes, False, unit_rate, 35.0), *(Cache(n, size, True, r, c) for n, size, r, c in levels))


def _of_nvidia(unit_bytes: int, unit_rate: float, second: tuple[str, int, float, float]) -> tuple[Cache, ...]:
    """A first level that includes the shared memory of groups, and a second."""
    first, *others = _caches(unit_bytes, unit_rate, second)
    return (replace(first, holds_shared=True), *others)


H100 = replace(
    _NVIDIA,
    name="H100 SXM",
    units=132,
    clock_hz=1.755e9,
    shared_bytes=228 * KB,
    operations={_f32: 128, _f64: 64, _f16: 256, _bf16: 256, _i32: 64},
    matrix_flops=_matrix(989.4, tf32=494.7, i8=1979.0, f8=1979.0, f64=66.9),
    # Products of four subgroups together reach the full peak (arXiv:2402.13499, "mma" and "wgmma").
    matrix_share=0.63,
    caches=_of_nvidia(256 * KB, 29.6e12, ("L2", 50 * MB, 5.5e12, 270.0)),
    memory_rate=REACHABLE * 3.35e12,
)
A100 = replace(
    _NVIDIA,
    name="A100 SXM 80GB",
    units=108,
    clock_hz=1.41e9,
    shared_bytes=164 * KB,
    operations={_f32: 64, _f64: 32, _f16: 256, _bf16: 128, _i32: 64},
    matrix_flops=_matrix(312.0, tf32=156.0, i8=624.0, f64=19.5),
    caches=_of_nvidia(192 * KB, 19.5e12, ("L2", 40 * MB, 4.0e12, 200.0)),
    memory_rate=REACHABLE * 2.039e12,
)
_ADA = replace(_NVIDIA, unit_threads=1536, unit_groups=24, shared_bytes=100 * KB)
L4 = replace(
    _ADA,
    name="L4",
    units=58,
    clock_hz=2.04e9,
    matrix_flops=_matrix(121.0, tf32=60.0, i8=242.0, f8=242.0),
    caches=_of_nvidia(128 * KB, 15.1e12, ("L2", 48 * MB, 1.5e12, 270.0)),
    memory_rate=REACHABLE * 300e9,
)
RTX_4090 = replace(
    _ADA,
    name="GeForce RTX 4090",
    units=128,
    clock_hz=2.52e9,
    matrix_flops=_matrix(165.2, tf32=82.6, i8=660.6, f8=330.3),
    caches=_of_nvidia(128 * KB, 41.3e12, ("L2", 72 * MB, 4.5e12, 270.0)),
    memory_rate=REACHABLE * 1.008e12,
)

# --- others -----------------------------------------------------------------------------------

MI300X = replace(
    _NVIDIA,
    name="Instinct MI300X",
    units=304,
    clock_hz=2.1e9,
    subgroup_threads=64,
    unit_registers=131_072,
    thread_registers=512,
    operations={_f32: 128, _f64: 64, _f16: 256, _bf16: 128, _i32: 64},
    matrix_flops=_matrix(1307.4, tf32=653.7, i8=2614.9, f8=2614.9, f64=163.4),
    sector_bytes=64,
    # Eight dies have an L2 of 4 MB each, and share what AMD calls the Infinity Cache.
    caches=_caches(32 * KB, 40.8e12, ("L2", 32 * MB, 20e12, 250.0), ("Infinity Cache", 256 * MB, 17.2e12, 500.0)),
    memory_rate=REACHABLE * 5.3e12,
    memory_latency_cycles=800.0,
    source="AMD's data sheet and CDNA 3 paper",
)
RX_7900_XTX = replace(
    _NVIDIA,
    name="Radeon RX 7900 XTX",
    units=96,
    clock_hz=2.5e9,
    unit_threads=1024,
    unit_registers=98_304,
    thread_registers=256,
    operations={_f32: 128, _f64: 4, _f16: 256, _bf16: 128, _i32: 64},
    matrix_flops=_matrix(122.8, i8=122.8),
    sector_bytes=64,
    caches=_caches(32 * KB, 30e12, ("L2", 6 * MB, 5e12, 250.0), ("Infinity Cache", 96 * MB, 3.5e12, 450.0)),
    memory_rate=REACHABLE * 960e9,
    source="AMD's data sheet and RDNA 3 paper",
)
_INTEL = replace(_NVIDIA, subgroup_threads=16, line_bytes=64, sector_bytes=64, cycle_instructions=16.0)
ARC_A770 = replace(
    _INTEL,
    name="Arc A770",
    units=32,
    clock_hz=2.1e9,
    unit_registers=131_072,
    thread_registers=128,
    shared_bytes=128 * KB,
    operations={_f32: 128, _f64: 2, _f16: 256, _bf16: 128, _i32: 128},
    special_operations=32.0,
    matrix_flops=_matrix(137.6, i8=275.0),
    caches=_caches(64 * KB, 8.6e12, ("L2", 16 * MB, 1.5e12, 300.0)),
    memory_rate=REACHABLE * 560e9,
    source="Intel's data sheet and Xe-HPG paper",
)
IRIS_XE = replace(
    _INTEL,
    name="Iris Xe, 96 units",
    units=6,
    clock_hz=1.3e9,
    unit_threads=1792,
    unit_registers=114_688,
    thread_registers=128,
    shared_bytes=128 * KB,
    operations={_f32: 128, _f64: 2, _f16: 256, _bf16: 128, _i32: 128},
    special_operations=32.0,
    caches=_caches(64 * KB, 1e12, ("L3", 3840 * KB, 2.5e11, 250.0)),
    memory_rate=REACHABLE * 68.2e9,
    launch_ns=5_000.0,
    source="Intel's guide to optimisation for GPUs, Xe-LP; memory of LPDDR4x-4267",
)
APPLE_M1 = replace(
    _NVIDIA,
    name="Apple M1, 8 cores",
    units=8,
    clock_hz=1.278e9,
    unit_threads=1024,
    shared_bytes=32 * KB,
    operations={_f32: 128, _f64: 2, _f16: 128, _bf16: 128, _i32: 128},
    caches=_caches(8 * KB, 1.3e12, ("L2", 8 * MB, 4e11, 300.0)),
    memory_rate=REACHABLE * 68.2e9,
    launch_ns=5_000.0,
    source="Apple's data sheet; what it lacks by public measurements",
)
_MOBILE = replace(_NVIDIA, unit_registers=0, thread_registers=128, line_bytes=64, sector_bytes=64, launch_ns=20_000.0)
ADRENO_740 = replace(
    _MOBILE,
    name="Adreno 740",
    units=6,
    clock_hz=0.68e9,
    subgroup_threads=64,
    unit_threads=1024,
    shared_bytes=32 * KB,
    operations={_f32: 256, _f64: 2, _f16: 512, _bf16: 256, _i32: 128},
    caches=_caches(2 * KB, 1e12, ("L2", 1 * MB, 2e11, 250.0)),
    memory_rate=REACHABLE * 67.2e9,
    source="Snapdragon 8 Gen 2's data sheet; Qualcomm publishes no units: by public measurements",
)
MALI_G710 = replace(
    _MOBILE,
    name="Mali-G710, 7 cores",
    units=7,
    clock_hz=0.848e9,
    subgroup_threads=16,
    unit_threads=1024,
    shared_bytes=32 * KB,
    operations={_f32: 64, _f64: 2, _f16: 128, _bf16: 64, _i32: 64},
    caches=_caches(16 * KB, 4e11, ("L2", 2 * MB, 2e11, 250.0)),
    memory_rate=REACHABLE * 51.2e9,
    source="Arm's GPU data sheet; clock and memory of Google's Tensor G2",
)

# A core of a server, with vectors of 64 bytes: two multiply-adds in a cycle, two loads.
PROCESSOR = DeviceRecord(
    name="processor",
    units=1,
    clock_hz=2.5e9,
    subgroup_threads=1,
    unit_threads=1,
    unit_groups=1,
    unit_registers=0,
    thread_registers=32,
    shared_bytes=32 * KB,
    shared_cycle_bytes=128,
    banks=1,
    cycle_requests=2.0,
    cycle_lines=2.0,
    cycle_instructions=4.0,
    operations={_f32: 32, _f64: 16, _f16: 16, _bf16: 16, _i32: 32},
    special_operations=4.0,
    matrix_flops={},
    line_bytes=64,
    sector_bytes=64,
    unit_cycle_bytes=32.0,
    caches=(
        Cache("L1", 32 * KB, False, 3.2e11, 5.0, sets=64),
        Cache("L2", 1 * MB, False, 8e10, 14.0, sets=1024),
        Cache("L3", 32 * MB, True, 6e10, 60.0),
    ),
    memory_rate=2e10,
    memory_latency_cycles=250.0,
    launch_ns=1_000.0,
    source="a generic core of a server",
    start_lines=1.0,
)

GPUS = (H100, A100, L4, RTX_4090, MI300X, RX_7900_XTX, ARC_A770, IRIS_XE, APPLE_M1, ADRENO_740, MALI_G710)
