"""SPIR-V as rendered: what a reader sees, what spirv-val accepts, how a kernel is launched.

One idea per golden text: a point of the grid, a loop with scratch and a guarded load, threads and
barriers. Then the corners: index widths, division, float controls, what is refused. Last, that
every operation in every dtype, and every sample of every primitive, is a valid module. That
modules run is tested by the laws, on every Vulkan device that is here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rune import dtypes
from rune.core.primitive import Primitive
from rune.errors import DtypeError
from rune.lowering.codegen.spirv import render
from rune.lowering.codegen.spirv_text import to_text
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import KernelCode, Store
from rune.lowering.kernel.rewrite import bodies, map_bodies
from rune.lowering.kernel.text import to_text as to_code
from rune.lowering.pipeline import lower
from tests.lowering.codegen.spirv_run import TARGET, complaint, kernel_of, operations, rendered, validated
from tests.lowering.kernel.examples import TEXTS
from tests.lowering.kernel.random_code import random_code
from tests.ops.calls import Sample
from tests.ops.samples import each_primitive, samples
from tests.support.lowering import program_of


def shown(text: str, target: Target = TARGET) -> str:
    """The whole module."""
    return to_text(rendered(text, target).words).rstrip()


def body(text: str, target: Target = TARGET) -> str:
    """The entry point, once buffers, sizes and the number of the thread are known."""
    lines = shown(text, target).splitlines()
    start = next(k for k, line in enumerate(lines) if "SelectionMerge" in line)
    end = next(k for k, line in enumerate(lines) if "FunctionEnd" in line)
    return "\n".join(lines[start:end])


# --- golden texts -----------------------------------------------------------------------------


DOUBLE = """
code double(x: read f32[n], y: write f32[n]) sizes n in 0..1000 {
  for i in n grid { store y[i] = x[i] * 2.0_f32 }
}"""


def test_a_module_says_what_it_needs_and_where_arguments_lie(expect):
    head = shown(DOUBLE).partition("  %double = Function")[0].rstrip()
    expect(
        head,
        """
        Capability Shader
        Capability DenormPreserve
        Capability SignedZeroInfNanPreserve
        Capability RoundingModeRTE
        Capability PhysicalStorageBufferAddresses
        EntryPoint %double "main"
        ExecutionMode LocalSize 256 1 1
        ExecutionMode DenormPreserve 32
        ExecutionMode RoundingModeRTE 32
        ExecutionMode SignedZeroInfNanPreserve 32
        struct5:   # Block
          @0 NonWritable f32[]
        struct7:   # Block
          @0 f32[]
        struct10:   # Block
          @0 NonWritable ptr struct5
          @8 NonWritable ptr struct7
          @16 NonWritable i32
        struct12:   # Block
          @0 ptr struct10
          %arguments = Variable ptr struct12 PushConstant
          %37 = Variable ptr i32 Input   # BuiltIn LocalInvocationIndex
          %41 = Variable ptr i32x3 Input   # BuiltIn WorkgroupId""",
    )


def test_a_thread_loads_its_table_and_finds_its_point(expect):
    entry = shown(DOUBLE).partition("-> void\n")[2].partition("  SelectionMerge")[0].rstrip()
    expect(
        entry,
        """
        %2:
          %x = Variable ptr ptr struct5 Function   # RestrictPointer
          %y = Variable ptr ptr struct7 Function   # RestrictPointer
          %16 = AccessChain ptr ptr struct10 %arguments 0
          %18 = Load ptr struct10 %16
          %20 = AccessChain ptr ptr struct5 %18 0
          %21 = Load ptr struct5 %20 Aligned 8
          Store %x %21
          %24 = Load ptr struct5 %x
          %26 = AccessChain ptr ptr struct7 %18 1
          %28 = Load ptr struct7 %26 Aligned 8
          Store %y %28
          %31 = Load ptr struct7 %y
          %33 = AccessChain ptr i32 %18 2
          %35 = Load i32 %33 Aligned 4
          %38 = Load i32 %37
          %42 = AccessChain ptr i32 %41 0
          %43 = Load i32 %42
          %45 = IMul i32 %43 256
          %46 = IAdd i32 %45 %38
          %48 = SLessThan bool %46 %35""",
    )


def test_only_threads_that_have_a_point_do_something(expect):
    expect(
        body(DOUBLE),
        """
          SelectionMerge %51 None
          BranchConditional %48 %49 %51
        %49:
          %53 = AccessChain ptr f32 %24 0 %46
          %54 = Load f32 %53 Aligned 4
          %56 = FMul f32 %54 2.0_f32   # NoContraction
          %57 = AccessChain ptr f32 %31 0 %46
          Store %57 %56 Aligned 4
          Branch %51
        %51:
          Return""",
    )


def test_loops_count_in_variables_and_merge_behind_themselves(expect):
    code = """
    code f(x: read f32[72], y: write f32[64]) {
      for i in 64 grid {
        var s: f32 = 0.0_f32
        for j in 8 serial { s add= x[i + j - 4 if index(i + j) >= 4_i64] }
        store y[i] = s
      }
    }"""
    expect(
        body(code),
        """
          SelectionMerge %48 None
          BranchConditional %45 %46 %48
        %46:
          Store %51 0.0_f32
          Store %59 0
          Branch %53
        %53:
          LoopMerge %57 %56 None
          Branch %54
        %54:
          %60 = Load i32 %59
          %61 = SLessThan bool %60 8
          BranchConditional %61 %55 %57
        %55:
          %62 = Load f32 %51
          %63 = IAdd i32 %42 %60
          %65 = SGreaterThanEqual bool %63 4
          SelectionMerge %68 None
          BranchConditional %65 %66 %68
        %66:
          %70 = IAdd i32 %63 -4
          %72 = AccessChain ptr f32 %24 0 %70
          %73 = Load f32 %72 Aligned 4
          Branch %68
        %68:
          %74 = Phi f32 %73 %66 0.0_f32 %55
          %75 = FAdd f32 %62 %74   # NoContraction
          Store %51 %75
          Branch %56
        %56:
          %76 = IAdd i32 %60 1
          Store %59 %76
          Branch %53
        %57:
          %77 = Load f32 %51
          %78 = AccessChain ptr f32 %31 0 %42
          Store %78 %77 Aligned 4
          Branch %48
        %48:
          Return""",
    )


def test_threads_of_a_group_share_and_wait(expect):
    expect(
        body("workgroup"),
        """
          SelectionMerge %45 None
          BranchConditional %42 %43 %45
        %43:
          %50 = IMul i32 %39 8
          %51 = IAdd i32 %50 %34
          %53 = AccessChain ptr f32 %24 0 %51
          %54 = Load f32 %53 Aligned 4
          %56 = AccessChain ptr f32 %tile %34
          Store %56 %54
          ControlBarrier 2 2 328
          %60 = IMul i32 %34 -1
          %62 = IAdd i32 %60 7
          %63 = AccessChain ptr f32 %tile %62
          %64 = Load f32 %63
          %65 = AccessChain ptr f32 %31 0 %51
          Store %65 %64 Aligned 4
          Branch %45
        %45:
          Return""",
    )


# --- launches ---------------------------------------------------------------------------------

ONE_AXIS = """
code f(y: write f32[n]) sizes n in 0.. {
  for i in n grid { store y[i] = 0.0_f32 }
}"""


@pytest.mark.parametrize(
    ("points", "groups"),
    [
        (0, (0, 0, 0)),
        (1, (1, 1, 1)),
        (257, (2, 1, 1)),
        (65535 * 256, (65535, 1, 1)),
        (65535 * 256 + 1, (65535, 2, 1)),
        (10**9, (65535, 60, 1)),
    ],
)
def test_groups_that_one_dimension_cannot_hold_are_folded(points: int, groups: tuple[int, ...]):
    assert rendered(ONE_AXIS).groups({"n": points}) == groups


def test_a_small_static_grid_is_spread_over_the_processors():
    kernel = rendered("code f(y: write i32[640]) { for i in 640 grid { store y[i] = 1_i32 } }")

    assert (kernel.threads, kernel.groups({})) == (32, (20, 1, 1))


def test_a_workgroup_is_one_group_however_many_threads_it_has():
    kernel = rendered("workgroup")

    assert (kernel.threads, kernel.groups({})) == (8, (4, 1, 1))


def test_only_a_grid_that_may_need_folding_asks_how_wide_the_launch_is():
    small = ONE_AXIS.replace("0..", "0..1000")

    assert "NumWorkgroups" in shown(ONE_AXIS)
    assert "NumWorkgroups" not in shown(small)


# --- indices ----------------------------------------------------------------------------------


def test_indices_are_of_32_bits_where_bounds_allow_it():
    narrow = shown("code f(y: write f32[4000000000]) { for i in 9 grid { store y[9*i] = 0.0_f32 } }")
    wide = shown("code f(y: write f32[9000000000]) { for i in 9 grid { store y[999999999*i] = 0.0_f32 } }")

    assert "i64" not in narrow
    assert "IMul i64" in wide


def test_a_comparison_of_small_indices_needs_no_64_bits():
    assert "i64" not in shown("pad")


def test_division_of_what_may_be_negative_moves_up_first():
    code = """
    code f(x: read f32[9], y: write f32[9]) {
      for i in 9 grid { store y[i] = x[(i - 5)//3 + 2] }
    }"""

    assert "UDiv i32" in body(code)
    assert "SDiv" not in body(code)


# --- what a device promises -------------------------------------------------------------------


def test_arithmetic_on_floats_is_never_contracted():
    code = """
    code f(x: read f32[9], y: write f32[9]) {
      for i in 9 grid { store y[i] = (x[i] * x[i]) + x[i] }
    }"""

    floats = [line for line in body(code).splitlines() if " FMul " in line or " FAdd " in line]

    assert len(floats) == 2
    assert all(line.endswith("# NoContraction") for line in floats)


def test_a_dot_may_fuse_its_products():
    assert "Fma" in body("dot")


def test_float_controls_are_those_of_the_types_in_use():
    modes = [line.split()[1:] for line in shown("softmax").splitlines() if "ExecutionMode" in line]

    expected = ["DenormPreserve", "RoundingModeRTE", "SignedZeroInfNanPreserve"]
    assert modes[1:] == [[mode, "32"] for mode in expected]


def test_a_driver_that_may_drop_nan_compares_bits():
    plain = replace(TARGET, float_controls=frozenset())
    code = """
    code f(x: read f32[9], y: write bool[9]) {
      for i in 9 grid { store y[i] = x[i] < 1.0_f32 }
    }"""

    assert "FOrdLessThan" in body(code)
    assert "FOrd" not in body(code, plain)


def test_what_is_only_read_says_so_and_what_may_be_the_same_too():
    code = """
    code f(x: read f32[9], w: read f32[9], y: write f32[9]) aliases x=y {
      for i in 9 grid { store y[i] = x[i] + w[i] }
    }"""
    lines = [line for line in shown(code).splitlines() if line.endswith("Pointer")]

    said = {line.split()[0]: line.split("# ")[1] for line in lines}
    assert said == {"%x": "AliasedPointer", "%w": "RestrictPointer", "%y": "AliasedPointer"}


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        ("f64", "code f(y: write f64[9]) { for i in 9 grid { store y[i] = 0.0_f64 } }"),
        ("i64", "code f(y: write f32[n]) sizes n in 0.. { for i in n grid { store y[i] = 0.0_f32 } }"),
        ("i8", "code f(y: write bool[9]) { for i in 9 grid { store y[i] = true } }"),
    ],
)
def test_a_type_that_the_device_lacks_is_refused(missing: str, text: str):
    only = replace(TARGET, dtypes=frozenset({dtypes.f32, dtypes.i32, dtypes.u32}))

    with pytest.raises(DtypeError, match=f"cannot use {missing} in SPIR-V on vulkan:0"):
        rendered(text, only)


# --- validity ---------------------------------------------------------------------------------


@validated
@pytest.mark.parametrize("name", TEXTS)
def test_an_example_is_valid(name: str, tmp_path):
    assert complaint(rendered(name).words, tmp_path) == ""


@validated
@pytest.mark.parametrize("controls", [TARGET.float_controls, frozenset()], ids=["told", "untold"])
@pytest.mark.parametrize("dtype", sorted(TARGET.dtypes, key=dtypes.short), ids=dtypes.short)
def test_all_operations_on_a_dtype_are_valid(dtype: np.dtype, controls, tmp_path):
    target = replace(TARGET, float_controls=controls)

    code = _together([kernel_of(expr, dtype) for expr in operations(dtype)])

    assert complaint(render(code, target).words, tmp_path) == ""


def _together(codes: Sequence[KernelCode]) -> KernelCode:
    """One kernel that does what several do, one after the other."""
    outputs = [replace(c.params[-1], name=f"y{k}") for k, c in enumerate(codes)]
    loops = [c.body[0] for c in codes]
    stores = (
        replace(stmt, buffer=p.name)
        for p, loop in zip(outputs, loops, strict=True)
        for stmt in bodies(loop)[0]
        if isinstance(stmt, Store)
    )
    inside = map_bodies(loops[0], lambda _: tuple(stores))
    return replace(codes[0], params=(*codes[0].params[:-1], *outputs), body=(inside,))


@validated
@pytest.mark.parametrize("seed", range(12))
def test_random_code_is_valid(seed: int, tmp_path):
    assert complaint(render(random_code(seed), TARGET).words, tmp_path) == ""


@validated
@each_primitive
def test_every_sample_of_a_primitive_gives_valid_modules(primitive: Primitive, tmp_path):
    forms: set[str] = set()

    for sample in filter(_is_taken, samples(primitive)):
        program = program_of(lambda *xs, s=sample: s.primitive(*xs, **s.params), *sample.types)
        for code in lower(program, TARGET).kernels.values():
            # Kernels that differ in dtypes alone are one: those are the business of the test above.
            form = re.sub(r"(bf|[bifu])\d+|bool", "T", re.sub(r"[-.e\d]+_", "N_", to_code(code)))
            assert form in forms or complaint(render(code, TARGET).words, tmp_path) == "", sample
            forms.add(form)


def _is_taken(sample: Sample) -> bool:
    out = sample.primitive.type_rule(*sample.types, **sample.params)
    return {t.dtype for t in (*sample.types, out)} <= TARGET.program_dtypes
