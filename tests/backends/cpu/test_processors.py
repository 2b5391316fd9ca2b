"""Other processors: vectors of 128, 256 and 512 bits on this one, and NEON as far as assembly."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import llvmlite.binding as llvm
import pytest

from rune import dtypes
from rune.backends.cpu import compiler
from rune.backends.cpu.conventions import HURRY
from rune.backends.cpu.fft import library as fft
from rune.backends.cpu.gemm import library as gemm
from rune.backends.cpu.linalg import library as linalg
from rune.lowering.codegen.llvm.render import render
from rune.lowering.codegen.machine import Machine
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.text import parse
from tests.support.processors import PROCESSORS, runs_here
from tests.support.sampling import IS_WHOLE

# Vectors of 128 and 256 bits in every run; those of 512 are most hosts' own.
CHOSEN = [*PROCESSORS] if IS_WHOLE else ["sse2", "avx2"]
REGISTERS = {"sse2": "xmm", "sse4": "xmm", "avx2": "ymm", "avx512": "zmm"}
WIDER = {"sse2": "ymm|zmm", "sse4": "ymm|zmm", "avx2": "zmm", "avx512": "nothing is wider"}

# Reductions, scans and carries at extents around one, two and three vectors, products of matrices,
# and rows one longer than vectors; then one kernel as assembly.
SCRIPT = """
import sys
from tests.support.processors import compile_for
compile_for(sys.argv[1])
import numpy as np, rune
from rune import dtypes
from tests.laws.test_extents import Case, check
from tests.support.arrays import array

for dtype, extents in {
    dtypes.f32: (3, 13, 24, 65), dtypes.f64: (7, 13), dtypes.bf16: (9,), dtypes.i64: (6,),
    dtypes.i8: (49,), dtypes.f16: (17,),
}.items():
    for extent in extents:
        check(Case("cpu:0", dtype, extent))
x = np.arange(37 * 29, dtype=np.float32).reshape(37, 29) % 7
product = np.asarray(rune.jit(lambda x: x @ x.T)(array(x)))
np.testing.assert_array_equal(product, x @ x.T)
narrow = np.asarray(rune.jit(lambda x: (x * 2).astype(dtypes.bf16))(array(x)))
np.testing.assert_array_equal(narrow.astype(np.float32), (x * 2))
f = rune.jit(lambda x: x * 3 + 1)
f(array(x))
executable = f.traced(array(x)).on_cpu
executable.refine()
print(executable.assembly())
"""


def assembly(processor: str) -> str:
    """The output of the script when everything is compiled for this processor."""
    command = [sys.executable, "-c", SCRIPT, processor]
    process = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout


@pytest.mark.parametrize("name", CHOSEN)
def test_a_processor_computes_what_numpy_does_in_its_own_registers(name: str):
    if not runs_here(name):
        pytest.skip(f"the host has no {name}")
    text = assembly(name)

    assert re.search(REGISTERS[name], text)
    assert not re.search(WIDER[name], text)


KERNELS = {
    "rows": """
        code rows(x: read f32[51], y: write bf16[51]) {
          for r in 3 grid { for i in 17 vector { store y[17*r + i] = bf16(x[17*r + i]) } }
        }""",
    "columns": """
        code columns(x: read f64[230], y: write f64[23]) {
          for j in 23 grid {
            var s: f64 = 0.0_f64
            for i in 10 serial { s add= x[23*i + j] }
            store y[j] = s
          }
        }""",
    "branch": """
        code branch(x: read i32[40], y: readwrite i8[40]) {
          for i in 40 grid { if x[i] > 3_i32 { store y[i] = i8(x[i]) } }
        }""",
}


def of_arm(code: KernelCode) -> str:
    """The kernel as assembly for an ARM processor with NEON."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    source = render(code, Machine(16, has_cheap_masks=False))
    attributes = "attributes #0 = { nounwind }"
    text = "\n".join([*sorted(source.declarations), source.text, attributes])
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="neoverse-n1", opt=2)
    module = llvm.parse_assembly(text)
    module.verify()
    return machine.emit_assembly(module)


@pytest.mark.parametrize(
    ("kernel", "vector"), [("rows", r"v\d+\.4s"), ("columns", r"v\d+\.2d"), ("branch", r"v\d+\.4s")]
)
def test_a_kernel_is_assembled_for_neon(kernel: str, vector: str):
    assert re.search(vector, of_arm(parse(KERNELS[kernel])))


LIBRARIES = {
    "products": partial(gemm.library, routine="dot"),
    "factorisations": linalg.library,
    "transforms": fft.library,
}


@pytest.mark.parametrize("kind", LIBRARIES)
def test_the_routines_of_one_machine_are_not_those_of_another_in_the_same_process(kind: str):
    library: Callable[..., Any] = LIBRARIES[kind]
    on_host = library(dtypes.f32, 1, 0, HURRY)
    with patch.object(compiler, "machine", lambda: Machine(16, has_cheap_masks=False)):
        assert library(dtypes.f32, 1, 0, HURRY).shape.lanes == 4

    assert library(dtypes.f32, 1, 0, HURRY) is on_host
    assert on_host.shape.lanes == compiler.machine().vector_bytes // 4
