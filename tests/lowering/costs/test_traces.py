"""The model's sectors against those of the addresses that kernels touch when run on the host.

benchmarks/address_trace.py compiles the executor's CUDA C with a call at every access.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import rune
from rune.lowering.stages import stages

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
    pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="needs cuda-bindings"),
    pytest.mark.skipif(sys.platform != "linux", reason="callbacks of g++ on Linux"),
]

import gpu_static  # noqa: E402  (a script's neighbour, not a package)
from gpu_workloads import WORKLOADS  # noqa: E402

# One of each kind, quick to compile. What memory decides about is left out.
NAMES = (
    "64 products of 512",
    "matmul bf16 4096",
    "softmax 512 x 4096",
    "conv 32x64x28x28 3x3",
    "sum axis 0, 8192 x 1024",
    "transpose 4096",
    "gather 8192 rows of 512",
    "cumsum 4M",
    "MLP step 784-512-10",
)


# Rows that end within a round: the model counts requests of warps that have no element there.
CUT_ROUNDS = frozenset({"in_memory_0"})
# Teams that fetch in turn: the model samples whose turn it is.
IN_TURN = frozenset({"matmul bf16 4096"})


@pytest.mark.parametrize("name", NAMES)
def test_requests_and_their_sectors_are_those_of_addresses(name: str):
    workload, device = WORKLOADS[name], gpu_static.target("sm_90")
    plan = stages(rune.make_program(workload.function)(*workload.types), device).plan
    trace_of = gpu_static.traced(plan)

    for kernel, code in plan.kernels.items():
        costs = gpu_static.cost(code, device)
        trace = trace_of(kernel, costs, name)
        subgroups = costs.groups * -(-costs.group_threads // 32)
        tolerance = 0.07 if kernel in CUT_ROUNDS or name in IN_TURN else 0.02
        np.testing.assert_allclose(costs.sectors, trace.sectors, rtol=tolerance, err_msg=kernel)
        np.testing.assert_allclose(costs.requests / subgroups, trace.requests, rtol=tolerance, err_msg=kernel)
