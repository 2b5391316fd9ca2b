"""SPIR-V run on every Vulkan device present: cases that the laws do not reach.

Random kernel code against the interpreter, folded launches, a driver without float controls
of NaN, f16 computed as such.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import rune
from rune import dtypes
from rune.backends import Device, missing
from rune.lowering.kernel.expr import Cast, Op
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.text import parse
from tests.backends.plans import plan_of, run
from tests.lowering.codegen.spirv_run import kernel_of, operations
from tests.lowering.kernel.random_code import random_code, random_inputs
from tests.support.close import same

DEVICES = [d for d in rune.devices() if d.target.backend == "vulkan"]
SEEDS = range(20)

if not DEVICES:
    pytest.skip(f"no Vulkan device: {missing().get('vulkan')}", allow_module_level=True)

on_each = pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)


def opened(device: Device, **changes) -> object:
    """The device opened again, with a changed target."""
    return device.file.open_device(replace(device.target, **changes))


def device_result(backend: object, code: KernelCode, *inputs: np.ndarray) -> np.ndarray:
    """The one result of a kernel."""
    return run(backend, plan_of(code), *inputs)[0]


def expected(code: KernelCode, *inputs: np.ndarray) -> np.ndarray:
    """The same by the interpreter."""
    param = code.params[-1]
    result = np.zeros(int(str(param.size)), param.dtype)
    with np.errstate(all="ignore"):
        interpret(code, [*inputs, result], {})
    return result


@on_each
@pytest.mark.parametrize("seed", SEEDS)
def test_random_code_computes_what_the_interpreter_computes(seed: int, device: Device):
    code, (x, k, _) = random_code(seed), random_inputs(seed)

    same(expected(code, x, k), device_result(device.backend, code, x, k))


GRID = """
code f(x: read f32[1001], y: write f32[1001]) {
  for a in 7 grid { for b in 11 grid { for c in 13 grid {
    store y[143*a + 13*b + c] = x[a + 7*b + 77*c]
  } } }
}"""
GROUPS = """
code reverse(x: read i32[104], y: write i32[104]) {
  for g in 13 grid {
    alloc tile: i32[8] shared
    for t in 8 workgroup {
      store tile[t] = x[8*g + t]
      barrier
      store y[8*g + t] = tile[-t + 7]
    }
  }
}"""


@on_each
@pytest.mark.parametrize("text", [GRID, GROUPS], ids=["grid", "groups"])
def test_a_launch_of_more_groups_than_fit_one_dimension_runs_every_point_once(text: str, device: Device):
    code = parse(text)
    backend = opened(device, launch_groups=3, threads_per_workgroup=16)
    x = np.arange(int(str(code.params[0].size))).astype(code.params[0].dtype)

    same(expected(code, x), device_result(backend, code, x))


EDGES = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -2.5, 3e38])


def of_floats(dtype: np.dtype) -> list[Op]:
    """The operations that compare floats or move their bits."""
    names = {"lt", "le", "gt", "ge", "eq", "ne", "max", "min", "sign", "neg", "abs", "copysign"}
    candidates = operations(dtype)
    return [e for e in candidates if isinstance(e, Op) and e.name in names | {"is_finite", "nextafter"}]


@on_each
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=dtypes.short)
def test_comparisons_are_right_without_float_controls(dtype: np.dtype, device: Device):
    if dtype not in device.target.dtypes:
        pytest.skip(f"{device.name} has no {dtypes.short(dtype)}")
    backend = opened(device, float_controls=frozenset())
    for shift in range(len(EDGES)):
        a, b = EDGES.astype(dtype), np.roll(EDGES, shift).astype(dtype)
        for expr in of_floats(dtype):
            code = kernel_of(expr, dtype)
            reference, out = expected(code, a, b, b), device_result(backend, code, a, b, b)
            # max(0.0, -0.0) may be either zero.
            zero = np.zeros((), out.dtype)
            same(reference + zero, out + zero) if expr.name in ("max", "min") else same(reference, out)


@on_each
def test_f16_is_computed_as_such(device: Device):
    has_type = "shaderFloat16" in device.backend.physical.features  # type: ignore[attr-defined]
    if not has_type or ("nearest", 16) not in device.target.float_controls:
        pytest.skip(f"{device.name} has no f16, or cannot be told how to round it")
    backend = opened(device, dtypes=device.target.dtypes | {dtypes.f16})
    a = np.array([1.5, 65504, 1e-7, -1e-6, 0.1, 2, -7, 300], np.float16)
    b, c = np.roll(a, 1), np.roll(a, 3)
    exact = ("add", "sub", "mul", "neg", "abs", "max", "min", "floor", "round", "lt", "nextafter")
    for expr in operations(dtypes.f16):
        if isinstance(expr, Cast) or expr.name in exact:
            code = kernel_of(expr, dtypes.f16)
            same(expected(code, a, b, c), device_result(backend, code, a, b, c))
