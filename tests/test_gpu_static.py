"""The instruments of benchmarks/gpu_static.py measure what they claim, on kernels written for it.

Addresses are those of CUDA C that is compiled for the host; machine code is read from a text as
nvdisasm prints it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
from rune import ops
from rune.lowering.costs.reading import FUNCTIONS
from rune.lowering.stages import stages

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import address_trace  # noqa: E402  (a script's neighbour, not a package)
import gpu_static  # noqa: E402
import sass  # noqa: E402

needs_gxx = pytest.mark.skipif(
    shutil.which("g++") is None or sys.platform != "linux", reason="kernels are compiled by g++ on Linux"
)

NEIGHBOURS = 4  # elements of f32 that a thread takes at once

_KERNEL = """
extern "C" __global__ void f(const unsigned long long* __restrict__ _table) {{
  const float* __restrict__ x = (const float*)_table[0];
  float* __restrict__ y = (float*)_table[1];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  {0}
}}
"""


def traced(body: str, blocks: int = 64, threads: int = 128) -> address_trace.Trace:
    """The accesses of a kernel of x and y at its points i."""
    memory = [np.zeros(1 << 20, np.float32) for _ in "xyz"]
    # Both begin at a line, as on a device.
    x, y = (m[-m.ctypes.data % 256 // 4 :][: 1 << 19] for m in memory[:2])
    return address_trace.Kernels(_KERNEL.format(body)).trace("f", blocks, threads, [x, y])


@needs_gxx
@pytest.mark.parametrize(
    ("body", "sectors"),
    [
        ("y[i] = x[i];", 4),
        ("y[i] = x[i + 1];", (4 + 5) / 2),
        ("y[i] = x[32 * i];", (4 + 32) / 2),
        ("y[i] = x[5];", (4 + 1) / 2),
    ],
)
def test_lanes_of_a_warp_are_one_request(body: str, sectors: float):
    assert traced(body).sectors == sectors


@needs_gxx
def test_a_vector_load_touches_the_sectors_of_its_width():
    trace = traced("struct Four { float a, b, c, d; } __align__(16); ((Four*)y)[i] = ((const Four*)x)[i];")

    # 32 times 16 bytes, also where g++ takes each in halves.
    assert trace.sectors == 16


@needs_gxx
def test_every_round_of_a_loop_is_a_request():
    trace = traced("float s = 0; for (int k = 0; k < 1000; k++) s += x[128 * k + threadIdx.x]; y[i] = s;")

    assert trace.requests == 1001


@needs_gxx
def test_lanes_that_take_no_part_touch_nothing():
    assert traced("if (threadIdx.x % 32 < 8) y[i] = 1;").sectors == 1


@needs_gxx
def test_shared_memory_does_not_count_as_traffic():
    assert traced("__shared__ float part[128]; part[threadIdx.x] = 1; y[i] = part[127 - threadIdx.x];").requests == 1


# --- machine code -----------------------------------------------------------------------------

_TEXT = """
	//----- nvinfo : EIATTR_REGCOUNT
	.align		4
        /*0000*/ 	.byte	0x04, 0x2f
        /*0002*/ 	.short	(.L_1 - .L_0)
.L_0:
        /*0004*/ 	.word	index@(run_f)
        /*0008*/ 	.word	0x00000028
	//----- nvinfo : EIATTR_FRAME_SIZE
	.section	.text.run_f,"ax",@progbits
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   STL [R1], R2 ;
.L_x_0:
        /*0020*/                   LDG.E.CONSTANT R4, desc[UR4][R2.64] ;
        /*0030*/                   LDG.E.128.CONSTANT R8, desc[UR4][R2.64] ;
        /*0040*/              @!P0 FFMA R5, R4, R4, R5 ;
        /*0050*/                   FFMA R5, R4, R4, R5 ;
        /*0060*/               @P0 BRA `(.L_x_0) ;
        /*0070*/                   EXIT ;
.L_x_1:
        /*0080*/                   BRA `(.L_x_1);
        /*0090*/                   NOP;
"""


def test_registers_and_spills_are_read():
    machine = sass.read(_TEXT)["run_f"]

    assert (machine.registers, machine.spills, machine.instructions) == (40, 1, 9)


def test_the_mix_is_that_of_the_inner_loop():
    machine = sass.read(_TEXT)["run_f"]

    assert machine.mix == {"LDG.32": 1, "LDG.128": 1, "FFMA": 2, "BRA": 1}
    assert machine.share(sass.PRODUCTS) == 2 / 5
    assert machine.widths == "1 LDG.128, 1 LDG.32"


def needs_nvidias_wheels() -> None:
    """Skip without the wheels that make and print machine code."""
    try:
        importlib.metadata.version("nvidia-cuda-nvdisasm")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs nvidia-cuda-nvdisasm: pip install 'rune-ml[gpu-static]'")
    if importlib.util.find_spec("cuda") is None:
        pytest.skip("needs cuda-bindings")


def instructions_of(function: Callable[[Any], Any]) -> Counter[str]:
    """The machine code of a kernel whose threads each compute a function of NEIGHBOURS numbers."""
    program = rune.make_program(function)(rune.ShapeDtypeStruct((1 << 20,), np.float32))
    lowering = stages(program, gpu_static.target("sm_90"))
    (machine,) = sass.machines(gpu_static.program_text(lowering.plan), "sm_90").values()
    return Counter(machine.mix)


@cache
def instructions_of_a_sum() -> Counter[str]:
    return instructions_of(lambda x: x + 1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_model_counts_functions_as_their_machine_code_does(name: str):
    needs_nvidias_wheels()
    mix = instructions_of(lambda x: getattr(ops, name)(x + 1))
    mix.subtract(instructions_of_a_sum())

    # Constants are moved to registers once for all of them.
    total = mix.total() - mix["MOV"] - mix["HFMA2"]
    assert total / NEIGHBOURS == pytest.approx(sum(FUNCTIONS[name]), abs=2)
    assert mix["MUFU"] + mix["FRND"] == NEIGHBOURS * FUNCTIONS[name][2]
    assert mix["BSSY"] == 0


def test_the_script_prints_a_row_for_a_workload_and_writes_all_figures(tmp_path: Path):
    needs_nvidias_wheels()
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    file = tmp_path / "figures.json"
    command = [sys.executable, "benchmarks/gpu_static.py", "--workloads", "add f32 16M", "--json", str(file)]

    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)

    assert process.returncode == 0, process.stderr
    assert "| add f32 16M | 1, 1 | 16384 x 256 |" in process.stdout
    (figures,) = json.loads(file.read_text())
    assert figures["rows"][0]["trace"]["sectors"] == 16
