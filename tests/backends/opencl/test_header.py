"""PoCL reads rune's declarations instead of its own header: for which programs, and when not.

Every other OpenCL test shows that the declarations agree with the header: a function without a
declaration is a compiler error, and a function that is declared with other types has no code.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import rune
from rune import extend
from rune.backends import device_named, opencl
from rune.backends.opencl.header import DECLARED, OF_THE_DRIVER
from rune.errors import CompileError
from rune.lowering.codegen.c.dialect import exact_calls
from tests.support.close import close

TARGETS, WHY = opencl.probe()
pytestmark = pytest.mark.skipif(not TARGETS, reason=f"no OpenCL device: {WHY}")
needs_pocl = pytest.mark.skipif(
    not any("Portable Computing Language" in t.description for t in TARGETS[:1]), reason="another driver"
)


@pytest.fixture(scope="module")
def backend() -> Any:
    return device_named("opencl:0").backend


@needs_pocl
def test_pocl_reads_the_declarations(backend):
    assert backend.header is DECLARED


@needs_pocl
def test_the_drivers_header_is_read_where_it_refuses_the_declarations(backend, monkeypatch):
    monkeypatch.setattr(opencl, "TRIAL", "float refused(float x) { return undeclared(x); }")

    assert opencl._header.__wrapped__(backend.device) is OF_THE_DRIVER


@needs_pocl
def test_a_declared_function_without_code_is_refused(backend):
    source = "float __attribute__((overloadable)) no_code(float);\nfloat calls(float x) { return no_code(x); }\n"

    assert opencl._build_error(backend.device, DECLARED.text + source, list(DECLARED.options)) is not None


def test_exactly_rounded_functions_are_declared_for_both_floats():
    names = {call.split("(")[0] for call in exact_calls(is_finite="isfinite({0})").values()}
    declarations = re.findall(r"(\w+)\((?:float|double)\b", DECLARED.text)

    assert {name for name, count in Counter(declarations).items() if count == 2} >= names


ONE_INSTRUCTION = "floor ceil trunc sqrt fabs rint copysign fma vload4 vstore4".split()


@pytest.mark.parametrize("name", ONE_INSTRUCTION)
def test_functions_of_one_instruction_are_defined_inline(name: str):
    """PoCL's library is inlined only on the processors that it was built for."""
    lines = [line for line in DECLARED.text.splitlines() if f" {name}(" in line]

    assert len(lines) >= 2
    assert all(line.startswith("static ") and "always_inline" in line for line in lines)


def test_an_error_numbers_only_the_lines_of_the_program(backend):
    with pytest.raises(CompileError, match=r"line 3, column 1"):
        backend.build("\n\nundeclared f(int x) {}\n", "f", backend.header)


def test_the_users_source_may_call_all_of_opencl_c():
    text = "__kernel void root(__global const float *x, __global float *y) { *y = native_rsqrt(*x); }"
    source = extend.Source("opencl", text, "root", lambda x: extend.Launch(1, 1))
    root = extend.primitive("root", types=lambda x: x, sources=[source])

    y = rune.jit(root, device="opencl:0")(np.full(1, 4.0, np.float32))

    close(np.full(1, 0.5, np.float32), y, ulps=8192, why="OpenCL leaves the error of native functions to the driver")
