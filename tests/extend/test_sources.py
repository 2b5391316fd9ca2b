"""Kernels in a device's own language. The oracle is NumPy.

OpenCL C runs on PoCL in every run of the tests; CUDA C where there is a device, and on the emulated
driver by RUNE_TEST_CUDA_EMULATOR=1 and `-k cuda` (tests/cuda_emulator runs that file so).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import extend
from rune.errors import ArgumentError, CompileError, DeviceError, MissingRule

DEVICES = [d.name for d in rune.devices() if d.name in ("opencl:0", "cuda:0")]
OTHERS = [d.name for d in rune.devices() if d.name in ("cpu:0", "vulkan:0", "wgpu:0")]
devices = pytest.mark.parametrize("device", DEVICES)
ways = pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])

SCALE = {
    "cuda": """
__global__ void __launch_bounds__(64) scale(const float* __restrict__ x, float* y, long long n, float factor) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}""",
    "opencl": """
__kernel void scale(__global const float *x, __global float *y, long n, float factor) {
  const long i = get_global_id(0);
  if (i < n) y[i] = factor * x[i];
}""",
}
# Blocks of 8 by 8 threads, which share memory; pairs of floats are complex numbers.
TURN = {
    "cuda": """
extern "C" __global__ void turn(const float2* in, float2* out, int rows, int columns) {
  extern __shared__ float2 tile[];
  int column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  if (row < rows && column < columns) tile[threadIdx.y * 9 + threadIdx.x] = in[row * columns + column];
  __syncthreads();
  column = blockIdx.y * 8 + threadIdx.x;
  row = blockIdx.x * 8 + threadIdx.y;
  if (row < columns && column < rows) out[row * rows + column] = tile[threadIdx.x * 9 + threadIdx.y];
}""",
    "opencl": """
__kernel void turn(__global const float2 *in, __global float2 *out, int rows, int columns, __local float2 *tile) {
  int column = get_group_id(0) * 8 + get_local_id(0), row = get_group_id(1) * 8 + get_local_id(1);
  if (row < rows && column < columns) tile[get_local_id(1) * 9 + get_local_id(0)] = in[row * columns + column];
  barrier(CLK_LOCAL_MEM_FENCE);
  column = get_group_id(1) * 8 + get_local_id(0);
  row = get_group_id(0) * 8 + get_local_id(1);
  if (row < columns && column < rows) out[row * rows + column] = tile[get_local_id(0) * 9 + get_local_id(1)];
}""",
}
BOTH = {
    "cuda": "__global__ void both(const int* x, const float* y, float* sum, int* twice) "
    "{ *sum = *x + *y; *twice = 2 * *x; }",
    "opencl": "__kernel void both(__global const int *x, __global const float *y, __global float *sum, "
    "__global int *twice) { *sum = *x + *y; *twice = 2 * *x; }",
}


def elements(x: Any) -> Any:
    """The number of elements of a type, which may not be known yet."""
    return rune.dims.product(x.shape)


def sources(texts: dict[str, str], entry: str, launch: Any, sizes: Any = lambda *_, **__: ()) -> list[extend.Source]:
    return [extend.Source(language, text, entry, launch, sizes) for language, text in texts.items()]


def in_blocks(x: Any, *, factor: float) -> extend.Launch:
    return extend.Launch(-(-elements(x) // 64), 64)


scale_sources = sources(SCALE, "scale", in_blocks, lambda x, *, factor: (elements(x), float(factor)))
scale = extend.primitive(
    "scale",
    types=lambda x, *, factor: x,
    meaning=lambda x, *, factor: x * np.float32(factor),
    sources=scale_sources,
    jvp=[lambda t, x, y, *, factor: scale(t, factor=factor)],
    transpose=lambda ct, is_linear, x, *, factor: [scale(ct, factor=factor)],
    batch=extend.leading,
)
alone = extend.primitive("alone", types=lambda x, *, factor: x, sources=scale_sources, batch=extend.leading)
turn = extend.primitive(
    "turn",
    types=lambda x: x.with_shape(x.shape[::-1]),
    sources=sources(
        TURN,
        "turn",
        lambda x: extend.Launch((-(-x.shape[1] // 8), -(-x.shape[0] // 8)), (8, 8), 8 * 9 * 8),
        lambda x: x.shape,
    ),
)
both = extend.primitive(
    "both",
    types=lambda x, y: (y, x),
    sources=sources(BOTH, "both", lambda x, y: extend.Launch(1, 1)),
    multiple_results=True,
)


@devices
@ways
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1009])
def test_a_kernel_runs_on_its_device_in_any_size(device: str, way: Any, count: int):
    x = np.random.default_rng(count).normal(size=count).astype(np.float32)

    y = way(lambda x: scale(x, factor=2.5))(rune.device_put(x, device))

    assert y.device.name == device
    np.testing.assert_array_equal(y, x * np.float32(2.5))


@devices
def test_a_primitive_with_sources_passes_the_check_of_its_rules(device: str):
    report = extend.check(scale, [(np.ones(3, np.float32), {"factor": 2.0})], device=device)

    assert (report.missing, report.tried["jit"]) == ((), 1)


@devices
def test_it_runs_between_kernels_of_rune_under_grad_and_vmap(device: str):
    x = np.linspace(-1, 1, 21, dtype=np.float32).reshape(3, 7)

    def f(row: Any) -> Any:
        return rnp.sum(scale(rnp.sin(row), factor=2.0) * row)

    slopes = rune.jit(rune.vmap(rune.grad(f)), device=device)(x)

    np.testing.assert_allclose(slopes, 2 * (np.sin(x) + x * np.cos(x)), rtol=1e-5, atol=1e-6)


@devices
def test_it_runs_in_a_loop_and_in_a_branch(device: str):
    x = np.arange(5, dtype=np.float32)

    def f(x: Any, flag: Any) -> Any:
        y = rune.fori_loop(0, 200, lambda i, c: alone(c, factor=1.01), x)
        return rune.cond(flag, lambda y: alone(y, factor=0.5), lambda y: y, y)

    program = rune.jit(f, device=device)

    np.testing.assert_allclose(program(x, True), 0.5 * x * 1.01**200, rtol=1e-4)
    np.testing.assert_allclose(program(x, False), x * 1.01**200, rtol=1e-4)


@devices
def test_blocks_of_two_dimensions_share_memory_and_pairs_are_complex_numbers(device: str):
    x = (np.arange(13 * 11) + 1j).reshape(13, 11).astype(np.complex64)

    y = rune.jit(lambda x: turn(x * 2) + 1, device=device)(x)

    np.testing.assert_array_equal(y, (2 * x).T + 1)


@devices
def test_it_has_several_results_of_several_dtypes(device: str):
    x, y = rune.jit(lambda x, y: both(x, y), device=device)(np.int32(3), np.float32(0.5))

    assert (float(x), int(y), x.dtype, y.dtype) == (3.5, 6, np.float32, np.int32)


@devices
def test_sizes_that_are_open_are_known_at_the_launch(device: str):
    with rune.configure(symbolic="auto"):
        f = rune.jit(lambda x: rnp.sum(alone(x, factor=2.0)), device=device)
        sums = [float(f(np.ones(n, np.float32))) for n in (5, 6, 7, 70, 200)]

    assert sums == [10, 12, 14, 140, 400]


@devices
def test_a_call_again_reads_other_arguments(device: str):
    f = rune.jit(lambda x: alone(x, factor=2.0), device=device)

    for k in range(5):
        np.testing.assert_array_equal(f(np.full(70, k, np.float32)), np.full(70, 2 * k, np.float32))


@devices
def test_its_operands_are_checked_for_nan_like_any(device: str):
    with rune.configure(check_nans=True):
        y = rune.jit(lambda x: alone(rnp.abs(x), factor=2.0), device=device)(np.array([-1.5], np.float32))

    np.testing.assert_array_equal(y, [3.0])


@pytest.mark.parametrize("device", OTHERS)
@ways
def test_a_device_of_another_language_is_refused_by_name(device: str, way: Any):
    x = rune.device_put(np.ones(3, np.float32), device)

    with pytest.raises(MissingRule, match=r"cannot compile alone for \w+:0 \(its kernels are only for cuda and opencl"):
        way(lambda x: alone(x, factor=2.0))(x)


def test_the_cpu_runs_the_meaning():
    np.testing.assert_array_equal(rune.jit(lambda x: scale(x, factor=2.0))(np.ones(3, np.float32)), [2, 2, 2])
    double = extend.primitive("written", expand=lambda x: 2 * x, sources=scale_sources)
    assert double(1.5) == 3.0 == rune.jit(double)(1.5)


def broken(language: str) -> extend.Source:
    text = SCALE[language].replace("factor *", "factor * unknown *")
    return extend.Source(language, text, "scale", in_blocks, lambda x, *, factor: (elements(x), float(factor)))


@pytest.mark.parametrize("device", [d for d in DEVICES if d.startswith("opencl")])  # g++ has other words
def test_source_that_does_not_compile_is_shown_with_its_line(device: str):
    op = extend.primitive("broken", types=lambda x, *, factor: x, sources=[broken("opencl")])

    with pytest.raises(CompileError, match=r"cannot compile scale for opencl:0 \(line 4") as error:
        rune.jit(lambda x: op(x, factor=2.0), device=device)(np.ones(3, np.float32))

    assert "as it was written" in (error.value.hint or "")


BAD = {
    "launch": (lambda x: 3, (), "its launch is int"),
    "threads": (lambda x: extend.Launch(1, 0), (), "threads of a block are"),
    "dimensions": (lambda x: extend.Launch((1, 1, 1, 1), 1), (), "one to three dimensions"),
    "shared": (lambda x: extend.Launch(1, 1, -1), (), "shared_bytes is -1"),
    "number": (lambda x: extend.Launch(1, 1), ("n",), "'n' is not a number"),
    "infinity": (lambda x: extend.Launch(1, 1), (float("inf"),), "inf is not a number"),
}


@devices
@pytest.mark.parametrize(("launch", "sizes", "reason"), BAD.values(), ids=[*BAD])
def test_an_invalid_launch_is_refused(device: str, launch: Any, sizes: Any, reason: str):
    op = extend.primitive("bad", types=lambda x: x, sources=sources(SCALE, "scale", launch, lambda x: sizes))

    with pytest.raises(ArgumentError, match=reason):
        rune.jit(op, device=device)(np.ones(3, np.float32))


@devices
def test_blocks_beyond_the_device_and_none_at_all_are_refused(device: str):
    def op(launch: extend.Launch) -> Any:
        return extend.primitive("bad", types=lambda x: x, sources=sources(BOTH, "both", lambda x: launch))

    with pytest.raises(CompileError, match="threads of a block, at most"):
        rune.jit(op(extend.Launch(1, (1 << 20,))), device=device)(np.ones(3, np.float32))
    with pytest.raises(CompileError, match="shared bytes, at most"):
        rune.jit(op(extend.Launch(1, 1, 1 << 40)), device=device)(np.ones(3, np.float32))
    nothing = extend.primitive("none", types=lambda x, *, factor: x, sources=sources(
        SCALE, "scale", lambda x, *, factor: extend.Launch(0, 1), lambda x, *, factor: (1, 1.0)))  # fmt: skip
    with pytest.raises(DeviceError, match=r"scale: cannot write f32\[3\] \(its launch has 0 blocks\)"):
        rune.jit(lambda x: nothing(x, factor=1.0), device=device)(np.ones(3, np.float32))


def test_another_language_is_refused():
    with pytest.raises(ArgumentError, match="cannot compile the language 'wgsl'"):
        extend.Source("wgsl", "", "f", lambda x: extend.Launch(1, 1))
