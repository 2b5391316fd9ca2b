"""SPIR-V as rendered: what a reader sees, what spirv-val accepts, how a kernel is launched.

One idea per golden text: a point of the grid, a loop with scratch and a guarded load, threads and
barriers. Then the corners: index widths, division, float controls, what is refused. Last, that
every operation in every dtype, and every sample of every primitive, is a valid module. That
modules run is tested by the laws, on every Vulkan device present.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rune import dtypes
from rune.backends.shared.executor import evaluate
from rune.backends.shared.parts import parts
from rune.core.primitive import Primitive
from rune.errors import DtypeError
from rune.lowering.codegen.spirv.binary.text import to_text
from rune.lowering.codegen.spirv.binary.words import Op
from rune.lowering.codegen.spirv.render import SpirvKernel, render
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import KernelCode, Store
from rune.lowering.kernel.rewrite import bodies, map_bodies
from rune.lowering.kernel.text import to_text as to_code
from rune.lowering.stages import lower
from tests.lowering.codegen.spirv_run import TARGET, complaint, kernel_of, operations, rendered, validated
from tests.lowering.kernel.examples import TEXTS
from tests.lowering.kernel.random_code import random_code
from tests.ops.calls import Sample
from tests.ops.samples import each_primitive, samples
from tests.support.lowering import program_of
from tests.support.sampling import one_in


def disassembly(text: str, target: Target = TARGET) -> str:
    """The whole module, as text."""
    return to_text(rendered(text, target).words).rstrip()


def body(text: str, target: Target = TARGET) -> str:
    """The entry point, once buffers, sizes and the number of the thread are known."""
    lines = disassembly(text, target).splitlines()
    start = next(k for k, line in enumerate(lines) if "SelectionMerge" in line)
    end = next(k for k, line in enumerate(lines) if "FunctionEnd" in line)
    return "\n".join(lines[start:end])


# --- golden texts -----------------------------------------------------------------------------


DOUBLE = """
code double(x: read f32[n], y: write f32[n]) sizes n in 0..1000 {
  for i in n grid { store y[i] = x[i] * 2.0_f32 }
}"""


def test_a_module_states_its_requirements_and_the_places_of_its_arguments(expect):
    head = disassembly(DOUBLE).partition("  %double = Function")[0].rstrip()
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
          @8 i32
          %arguments = Variable ptr struct12 PushConstant
          %40 = Variable ptr i32 Input   # BuiltIn LocalInvocationIndex
          %44 = Variable ptr i32x3 Input   # BuiltIn WorkgroupId""",
    )


def test_a_thread_loads_its_table_and_finds_its_point(expect):
    entry = disassembly(DOUBLE).partition("-> void\n")[2].partition("  SelectionMerge")[0].rstrip()
    expect(
        entry,
        """
        %2:
          %x = Variable ptr ptr struct5 Function   # RestrictPointer
          %y = Variable ptr ptr struct7 Function   # RestrictPointer
          %17 = AccessChain ptr ptr struct10 %arguments 0
          %19 = Load ptr struct10 %17
          %20 = AccessChain ptr i32 %arguments 1
          %22 = Load i32 %20
          %24 = AccessChain ptr ptr struct5 %19 0
          %25 = Load ptr struct5 %24 Aligned 8
          Store %x %25
          %28 = Load ptr struct5 %x
          %30 = AccessChain ptr ptr struct7 %19 1
          %31 = Load ptr struct7 %30 Aligned 8
          Store %y %31
          %34 = Load ptr struct7 %y
          %36 = AccessChain ptr i32 %19 2
          %38 = Load i32 %36 Aligned 4
          %41 = Load i32 %40
          %45 = AccessChain ptr i32 %44 0
          %46 = Load i32 %45
          %47 = IAdd i32 %22 %46
          %49 = IMul i32 %47 256
          %50 = IAdd i32 %49 %41
          %52 = SLessThan bool %50 %38""",
    )


def test_only_threads_that_have_a_point_do_something(expect):
    expect(
        body(DOUBLE),
        """
          SelectionMerge %55 None
          BranchConditional %52 %53 %55
        %53:
          %57 = AccessChain ptr f32 %28 0 %50
          %58 = Load f32 %57 Aligned 4
          %60 = FMul f32 %58 2.0_f32   # NoContraction
          %61 = AccessChain ptr f32 %34 0 %50
          Store %61 %60 Aligned 4
          Branch %55
        %55:
          Return""",
    )


def test_loops_count_in_variables_and_end_in_merge_blocks(expect):
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
          SelectionMerge %52 None
          BranchConditional %49 %50 %52
        %50:
          Store %55 0.0_f32
          Store %63 0
          Branch %57
        %57:
          LoopMerge %61 %60 None
          Branch %58
        %58:
          %64 = Load i32 %63
          %65 = SLessThan bool %64 8
          BranchConditional %65 %59 %61
        %59:
          %66 = Load f32 %55
          %67 = IAdd i32 %46 %64
          %69 = SGreaterThanEqual bool %67 4
          SelectionMerge %72 None
          BranchConditional %69 %70 %72
        %70:
          %74 = IAdd i32 %67 -4
          %76 = AccessChain ptr f32 %28 0 %74
          %77 = Load f32 %76 Aligned 4
          Branch %72
        %72:
          %78 = Phi f32 %77 %70 0.0_f32 %59
          %79 = FAdd f32 %66 %78   # NoContraction
          Store %55 %79
          Branch %60
        %60:
          %80 = IAdd i32 %64 1
          Store %63 %80
          Branch %57
        %61:
          %81 = Load f32 %55
          %82 = AccessChain ptr f32 %34 0 %46
          Store %82 %81 Aligned 4
          Branch %52
        %52:
          Return""",
    )


def test_threads_of_a_group_share_and_wait(expect):
    expect(
        body("workgroup"),
        """
          SelectionMerge %49 None
          BranchConditional %46 %47 %49
        %47:
          %54 = IMul i32 %43 8
          %55 = IAdd i32 %54 %37
          %57 = AccessChain ptr f32 %28 0 %55
          %58 = Load f32 %57 Aligned 4
          %60 = AccessChain ptr f32 %tile %37
          Store %60 %58
          ControlBarrier 2 2 328
          %64 = IMul i32 %37 -1
          %66 = IAdd i32 %64 7
          %67 = AccessChain ptr f32 %tile %66
          %68 = Load f32 %67
          %69 = AccessChain ptr f32 %34 0 %55
          Store %69 %68 Aligned 4
          Branch %49
        %49:
          Return""",
    )


# --- launches ---------------------------------------------------------------------------------

ONE_AXIS = """
code f(y: write f32[n]) sizes n in 0.. {
  for i in n grid { store y[i] = 0.0_f32 }
}"""


def launched(kernel: SpirvKernel, **sizes: int) -> tuple[int, int] | None:
    """The groups along both dimensions of its one launch."""
    (part,) = [*parts(evaluate(kernel.count, sizes), 0, None, kernel.launch_groups)] or [None]
    return part and part.folded(kernel.launch_groups)


@pytest.mark.parametrize(
    ("points", "groups"),
    [
        (0, None),
        (1, (1, 1)),
        (257, (2, 1)),
        (65535 * 256, (65535, 1)),
        (65535 * 256 + 1, (65535, 2)),
        (10**9, (65535, 60)),
    ],
)
def test_groups_that_one_dimension_cannot_hold_are_folded(points: int, groups: tuple[int, int] | None):
    assert launched(rendered(ONE_AXIS), n=points) == groups


def test_a_small_static_grid_is_spread_over_the_processors():
    kernel = rendered("code f(y: write i32[640]) { for i in 640 grid { store y[i] = 1_i32 } }")

    assert (kernel.threads, launched(kernel)) == (32, (20, 1))


def test_a_workgroup_is_one_group_however_many_threads_it_has():
    kernel = rendered("workgroup")

    assert (kernel.threads, launched(kernel)) == (8, (4, 1))


def test_only_a_grid_that_may_need_folding_asks_how_wide_the_launch_is():
    small = ONE_AXIS.replace("0..", "0..1000")

    assert "NumWorkgroups" in disassembly(ONE_AXIS)
    assert "NumWorkgroups" not in disassembly(small)


# --- indices ----------------------------------------------------------------------------------


def test_indices_are_of_32_bits_where_bounds_allow_it():
    narrow = disassembly("code f(y: write f32[4000000000]) { for i in 9 grid { store y[9*i] = 0.0_f32 } }")
    wide = disassembly("code f(y: write f32[9000000000]) { for i in 9 grid { store y[999999999*i] = 0.0_f32 } }")

    assert "i64" not in narrow
    assert "IMul i64" in wide


def test_a_comparison_of_small_indices_needs_no_64_bits():
    assert "i64" not in disassembly("pad")


def test_a_dividend_that_may_be_negative_is_shifted_first():
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
    modes = [line.split()[1:] for line in disassembly("softmax").splitlines() if "ExecutionMode" in line]

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


UNTOLD = replace(TARGET, float_controls=frozenset())
LOOSE = replace(TARGET, loose=frozenset({"comparisons", "sqrt", "div"}))


@pytest.mark.parametrize("comparison", ["x[i] < 1.0_f32", "x[i] == 0.0_f32", "x[i] != x[i]", "bool(x[i])"])
def test_a_driver_that_takes_denormals_for_0_compares_bits(comparison: str):
    code = f"""
    code f(x: read f32[9], y: write bool[9]) {{
      for i in 9 grid {{ store y[i] = {comparison} }}
    }}"""

    assert "FOrd" not in body(code, LOOSE)
    assert "FUnord" not in body(code, LOOSE)
    assert "FOrd" in body(code) or "FUnord" in body(code)


@pytest.mark.parametrize(("source", "result"), [("f32", "f64"), ("f64", "f32")])
def test_such_a_driver_converts_denormals_by_their_bits(source: str, result: str):
    code = f"""
    code f(x: read {source}[9], y: write {result}[9]) {{
      for i in 9 grid {{ store y[i] = {result}(x[i]) }}
    }}"""

    assert "FMul" in disassembly(code, LOOSE)
    assert "FMul" not in disassembly(code)


def test_the_bits_of_a_word_are_counted_by_an_instruction_for_integers_of_all_sizes():
    code = """
    code f(x: read {0}[9], y: write {0}[9]) {{
      for i in 9 grid {{ store y[i] = popcount(x[i]) }}
    }}"""

    counts = [disassembly(code.format(dtype)).count("BitCount") for dtype in ("i8", "u16", "i32", "u64")]
    assert counts == [1, 1, 1, 2]


def test_a_loose_root_is_corrected_in_integers():
    code = """
    code f(x: read f32[9], y: write f32[9]) {
      for i in 9 grid { store y[i] = sqrt(x[i]) }
    }"""

    assert "FunctionCall" in body(code, LOOSE)
    assert "FunctionCall" not in body(code)


def test_no_remainder_is_the_devices_own():
    # OpSRem and OpSMod are undefined in Vulkan where an operand is negative.
    assert not {op.name for op in Op} & {"SRem", "SMod", "FRem", "FMod"}


def test_read_only_and_aliased_pointers_are_decorated():
    code = """
    code f(x: read f32[9], w: read f32[9], y: write f32[9]) aliases x=y {
      for i in 9 grid { store y[i] = x[i] + w[i] }
    }"""
    lines = [line for line in disassembly(code).splitlines() if line.endswith("Pointer")]

    decorations = {line.split()[0]: line.split("# ")[1] for line in lines}
    assert decorations == {"%x": "AliasedPointer", "%w": "RestrictPointer", "%y": "AliasedPointer"}


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
@pytest.mark.parametrize("target", [TARGET, UNTOLD, LOOSE], ids=["told", "untold", "loose"])
@pytest.mark.parametrize("dtype", sorted(TARGET.dtypes, key=dtypes.short), ids=dtypes.short)
def test_all_operations_on_a_dtype_are_valid(dtype: np.dtype, target: Target, tmp_path):
    code = _together([kernel_of(expr, dtype) for expr in operations(dtype)])

    assert complaint(render(code, target).words, tmp_path) == ""


def _together(codes: Sequence[KernelCode]) -> KernelCode:
    """One kernel with the code of several, one after another."""
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
def test_samples_of_every_primitive_give_valid_modules(primitive: Primitive, tmp_path):
    forms: set[str] = set()

    candidates = [*filter(_is_taken, samples(primitive))]
    for sample in [*candidates[:1], *one_in(4, candidates[1:])]:
        program = program_of(lambda *xs, s=sample: s.primitive(*xs, **s.params), *sample.types)
        for code in lower(program, TARGET).kernels.values():
            # Kernels that differ in dtypes alone are one: those are the business of the test above.
            form = re.sub(r"(bf|[bifu])\d+|bool", "T", re.sub(r"[-.e\d]+_", "N_", to_code(code)))
            assert form in forms or complaint(render(code, TARGET).words, tmp_path) == "", sample
            forms.add(form)


def _is_taken(sample: Sample) -> bool:
    out = sample.primitive.type_rule(*sample.types, **sample.params)
    return {t.dtype for t in (*sample.types, out)} <= TARGET.program_dtypes
