"""PTX written directly: what it looks like, what it means, and that it assembles.

Its meaning is that of a small machine (ptx_machine.py), which is held against the interpreter of
kernel code bit for bit, in every operation and dtype that is rendered, with all registers of a
device and with hardly any. What is not rendered is refused by name. nvJitLink assembles the text to
machine code, without a GPU or a driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rune import dims, dtypes
from rune.backends.executor import evaluate
from rune.errors import CompileError, DtypeError
from rune.lowering.codegen import cstyle, cuda_c, ptx
from rune.lowering.kernel.expr import Cast, Expr, Load, Op
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import Access, KernelCode
from rune.lowering.kernel.text import parse
from tests.lowering.kernel.examples import TEXTS
from tests.lowering.kernel.random_code import random_inputs
from tests.lowering.ptx_cases import (
    DTYPES,
    EXAMPLES,
    RANDOM,
    SUM,
    N,
    elementwise,
    inputs,
    is_rendered,
    operations,
    rng,
)  # fmt: skip
from tests.lowering.ptx_machine import run_entry
from tests.support.close import near, same

TIGHT = {"words": 6, "predicates": 2}  # what fma wants, of three f64
Arrays = list[np.ndarray]
Limits = Mapping[str, int]


def test_a_sum_is_a_loop_of_each_thread(expect):
    expect(
        ptx.assemble([ptx.render(parse(SUM))]).rstrip(),
        """
        .version 7.0
        .target sm_70
        .address_size 64

        .visible .entry run_total(.param .u64 table)
        {
          .reg .b64 %d<5>;
          .reg .b32 %r<2>;
          .reg .pred %p<1>;
          .reg .f32 %f<2>;
          ld.param.u64 %d0, [table];
          cvta.to.global.u64 %d0, %d0;
          ld.global.nc.u64 %d1, [%d0+0];
          cvta.to.global.u64 %d1, %d1;
          ld.global.nc.u64 %d2, [%d0+8];
          cvta.to.global.u64 %d2, %d2;
          ld.global.nc.u64 %d0, [%d0+16];
          mov.u32 %r0, %ctaid.x;
          mov.u32 %r1, %ntid.x;
          mul.wide.u32 %d3, %r0, %r1;
          mov.u32 %r0, %tid.x;
          cvt.u64.u32 %d4, %r0;
          add.s64 %d3, %d3, %d4;
          setp.ge.s64 %p0, %d3, %d0;
          @%p0 ret;
          mov.f32 %f0, 0f00000000;
          mov.b64 %d0, 0;
        L1:
          setp.ge.s64 %p0, %d0, 8;
          @%p0 bra E1;
          mul.lo.s64 %d4, %d3, 8;
          add.s64 %d4, %d4, %d0;
          mad.lo.s64 %d4, %d4, 4, %d1;
          ld.global.nc.f32 %f1, [%d4];
          add.rn.f32 %f0, %f0, %f1;
          add.s64 %d0, %d0, 1;
          bra L1;
        E1:
          mad.lo.s64 %d0, %d3, 4, %d2;
          st.global.f32 [%d0], %f0;
          ret;
        }""",
    )


def test_what_has_no_register_is_in_local_memory_and_loops_keep_theirs(expect):
    lines = ptx.render(parse(SUM), TIGHT).text.splitlines()

    expect(
        "\n".join(lines[2:7] + lines[lines.index("L1:") :]),
        """
          .reg .b64 %d<3>;
          .reg .b32 %r<2>;
          .reg .pred %p<1>;
          .reg .f32 %f<2>;
          .local .align 8 .b8 local_d[32];
        L1:
          setp.ge.s64 %p0, %d0, 8;
          @%p0 bra E1;
          ld.local.b64 %d1, [local_d+24];
          mul.lo.s64 %d1, %d1, 8;
          add.s64 %d1, %d1, %d0;
          ld.local.b64 %d2, [local_d+0];
          mad.lo.s64 %d1, %d1, 4, %d2;
          ld.global.nc.f32 %f0, [%d1];
          ld.local.f32 %f1, [local_f+0];
          add.rn.f32 %f1, %f1, %f0;
          st.local.f32 [local_f+0], %f1;
          add.s64 %d0, %d0, 1;
          bra L1;
        E1:
          ld.local.b64 %d0, [local_d+24];
          ld.local.b64 %d1, [local_d+8];
          mad.lo.s64 %d0, %d0, 4, %d1;
          ld.local.f32 %f0, [local_f+0];
          st.global.f32 [%d0], %f0;
          ret;
        }""",
    )


# --- what it means ----------------------------------------------------------------------------


def run(
    code: KernelCode, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], limits: Limits
) -> None:
    """The kernel on the machine; arrays that it writes change."""
    rendered = ptx.render(code, limits)
    words = [*(number << 32 for number in range(1, len(arrays) + 1)), *sizes.values()]
    points = evaluate(dims.product(rendered.grid), sizes)
    run_entry(rendered.text, np.array(words, np.uint64), arrays, -(-points // 4) * 4)


def both(code: KernelCode, inputs: Arrays, sizes: Mapping[str, int]) -> tuple[Arrays, list[Arrays]]:
    """The results of the interpreter, and those of the machine: with many registers, with few."""
    outputs = [p for p in code.params if p.access is not Access.READ]
    made = [[np.zeros(evaluate(p.size, sizes), p.dtype) for p in outputs] for _ in range(3)]
    interpret(code, [*inputs, *made[0]], sizes)
    for limits, results in zip((ptx.LIMITS, TIGHT), made[1:], strict=True):
        run(code, [*inputs, *results], sizes, limits)
    return made[0], made[1:]


def agree(code: KernelCode, inputs: Arrays, sizes: Mapping[str, int]) -> None:
    """The machine's results are the interpreter's, bit for bit."""
    expected, found = both(code, inputs, sizes)
    for results in found:
        same(expected, results)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtypes.short)
def test_every_operation_has_its_meaning_or_is_refused(dtype: np.dtype):
    for op in operations(dtype):
        if is_rendered(op):
            agree(elementwise(dtype, op), inputs(dtype), {})
        else:
            with pytest.raises(DtypeError, match=f"ptx: cannot render {op.name} of"):
                ptx.render(elementwise(dtype, op))


@pytest.mark.parametrize("dtype", DTYPES, ids=dtypes.short)
def test_every_conversion_and_bitcast_is_exact(dtype: np.dtype):
    a = Load("a", (dims.symbol("i", 0, N - 1),), dtype)

    for target in DTYPES:
        agree(elementwise(dtype, Cast(a, target)), inputs(dtype), {})
        if target.itemsize == dtype.itemsize:
            agree(elementwise(dtype, Op("bitcast", (a,), target)), inputs(dtype), {})


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_computes_what_the_interpreter_does(name: str):
    text, arrays, sizes = EXAMPLES[name]

    expected, found = both(parse(text), arrays, sizes)

    for results in found:
        if name == "dot":
            near(expected, results, relative=1e-6, why="the machine fuses products into the sum")
        else:
            same(expected, results)


def test_a_division_of_what_may_be_negative_is_moved_up():
    text = """
    code f(x: read f32[99], y: write f32[81]) {
      for i in 9 grid {
        for j in 9 serial { store y[9*i + j] = x[(i - j)//3 + (i - j)%4 + 20] }
      }
    }"""

    agree(parse(text), [rng.normal(size=99).astype(np.float32)], {})


@pytest.mark.parametrize("code", RANDOM, ids=lambda code: code.name)
def test_random_code_computes_what_the_interpreter_does(code: KernelCode):
    agree(code, random_inputs(0)[:2], {})


def test_a_limit_below_what_an_instruction_needs_is_refused():
    with pytest.raises(
        CompileError, match=r"cannot allocate words \(one step needs 4, there are 3"
    ):
        ptx.render(parse(SUM), {"words": 3})


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "what"), [("softmax", "alloc"), ("scatter", "if"), ("workgroup", "alloc")]
)
def test_what_is_no_elementwise_kernel_or_sum_is_refused_by_name(name: str, what: str):
    refused = rf"ptx: cannot render \w+ \(it has {what}; elementwise kernels and sums only\)"

    with pytest.raises(CompileError, match=refused) as caught:
        ptx.render(parse(TEXTS[name]))
    assert "CUDA C renders every kernel" in str(caught.value)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "u8", "i16"])
def test_small_numbers_are_refused(dtype: str):
    text = f"code f(x: read {dtype}[8], y: write {dtype}[8]) {{ store y[0] = x[0] }}"

    with pytest.raises(DtypeError, match=f"ptx: cannot use {dtype}"):
        ptx.render(parse(text))


def test_an_index_of_unknown_sign_is_refused():
    text = """
    code f(x: read f32[n], y: write f32[n]) sizes n in 0.. {
      for i in n grid { store y[i] = x[(i - n)//3 + n] }
    }"""

    with pytest.raises(CompileError, match=r"the sign of i - n or 3 is not known"):
        ptx.render(parse(text))


# --- that it assembles, and launches as CUDA C does -------------------------------------------


@pytest.fixture
def assembler() -> Any:
    """nvJitLink, where there is a wheel of it."""
    module = pytest.importorskip("cuda.bindings.nvjitlink", reason="nvJitLink is not installed")
    try:
        module.version()
    except Exception as error:
        pytest.skip(f"nvJitLink is not installed ({type(error).__name__})")
    return module


def assembled(assembler: Any, text: str, arch: str) -> bytes:
    """Machine code; the assembler's own words where it refuses."""
    data, handle = text.encode(), assembler.create(1, [f"-arch={arch}"])
    try:
        assembler.add_data(handle, assembler.InputType.PTX, data, len(data), "kernels")
        assembler.complete(handle)
    except assembler.nvJitLinkError:
        log = bytearray(assembler.get_error_log_size(handle))
        assembler.get_error_log(handle, log)
        pytest.fail(log.decode())
    made = bytearray(assembler.get_linked_cubin_size(handle))
    assembler.get_linked_cubin(handle, made)
    assembler.destroy(handle)
    return bytes(made)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_every_kernel_assembles(assembler: Any, arch: str):
    larger = [replace(parse(text), name=name) for name, (text, _, _) in EXAMPLES.items()] + RANDOM
    codes = list(larger)
    for dtype in DTYPES:
        a = Load("a", (dims.symbol("i", 0, N - 1),), dtype)
        exprs: list[Expr] = [op for op in operations(dtype) if is_rendered(op)]
        exprs += [Cast(a, target) for target in DTYPES]
        made = [elementwise(dtype, e) for e in exprs]
        codes += [replace(c, name=f"{dtypes.short(dtype)}_{k}") for k, c in enumerate(made)]
    kernels = [ptx.render(code) for code in codes]
    kernels += [ptx.render(replace(code, name=f"{code.name}_tight"), TIGHT) for code in larger]

    image = assembled(assembler, ptx.assemble(kernels), arch)

    assert all(k.name.encode() in image for k in kernels)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_launch_has_the_shape_of_the_one_in_cuda_c(name: str):
    code = parse(EXAMPLES[name][0])
    here, there = ptx.render(code), cstyle.render(code, cuda_c.CUDA_C)

    for field in ("name", "params", "sizes", "grid", "workgroup"):
        assert getattr(here, field) == getattr(there, field)
