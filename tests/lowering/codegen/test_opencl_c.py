"""OpenCL C as rendered: what a reader sees. That it runs is tested in tests/backends.

One idea per golden text: loops and scratch, guards, folding of grid axes, threads and barriers,
narrow floats. Then the corners: names, literals, division, what is refused.
"""

from __future__ import annotations

import numpy as np
import pytest

from rune import dtypes
from rune.errors import DtypeError
from rune.lowering.codegen.c_expr import Expressions
from rune.lowering.codegen.cstyle import assemble, render
from rune.lowering.codegen.opencl_c import OPENCL_C
from rune.lowering.kernel.expr import Const, Expr, Op, const
from rune.lowering.kernel.text import parse
from tests.lowering.kernel.examples import TEXTS, example


def source(text: str) -> str:
    return assemble([render(parse(text), OPENCL_C)], OPENCL_C)


def kernel(text: str) -> str:
    return render(parse(text), OPENCL_C).text


def expression(expr: Expr) -> str:
    return Expressions(OPENCL_C, {}).expr(expr)


def test_loops_scratch_and_helpers(expect):
    expect(
        source(TEXTS["softmax"]),
        """
        """,
    )


def test_a_guarded_load_reads_memory_only_where_it_may(expect):
    expect(
        kernel(TEXTS["pad"]),
        """
        """,
    )


def test_a_contracted_product_is_an_fma_and_the_inner_grid_axis_is_the_first(expect):
    expect(
        kernel(TEXTS["dot"]),
        """
        """,
    )


def test_grid_axes_beyond_three_are_folded_into_the_first(expect):
    expect(
        kernel(TEXTS["four_axes"]),
        """
        """,
    )


def test_threads_share_memory_and_wait(expect):
    expect(
        kernel(TEXTS["workgroup"]),
        """
        """,
    )


def test_narrow_floats_are_loaded_rounded_and_stored_as_bits(expect):
    text = """
    code f(x: read bf16[8], y: write bf16[8], z: write bool[8]) {
      for i in 8 grid {
        a: bf16 = x[i] + 1.0_bf16
        store y[i] = exp(a)
        store z[i] = a < x[i]
      }
    }"""
    expect(
        kernel(text),
        """
        """,
    )


def test_launch_extents_follow_the_grid():
    rendered = render(example("four_axes"), OPENCL_C)

    assert rendered.grid == (10, 4, 3)
    assert rendered.workgroup == ()
    assert render(example("workgroup"), OPENCL_C).workgroup == (8,)
    assert [str(s) for s in render(example("softmax"), OPENCL_C).grid] == ["n"]
    assert render(example("scatter"), OPENCL_C).grid == ()


def test_contraction_is_switched_off_for_all_programs():
    assert all("FP_CONTRACT OFF" in source(text).splitlines()[0] for text in TEXTS.values())


def test_an_extension_is_named_only_where_its_dtype_is_used():
    assert "cl_khr_fp64" in source(TEXTS["four_axes"])
    assert "cl_khr_fp64" not in source(TEXTS["dot"])


def test_names_that_mean_something_in_c_are_changed():
    text = """
    code half(float: read f32[8], y: write f32[8]) {
      for exp in 8 grid {
        run_x: f32 = float[exp]
        ẋ: f32 = run_x * 2.0_f32
        v_exp: f32 = ẋ
        store y[exp] = v_exp
      }
    }"""
    rendered = kernel(text)

    assert "run_half(" in rendered
    assert "v_float = v_float_base" in rendered
    assert "const float _u1e8b" not in rendered
    assert rendered.count("v_exp_ ") >= 1


def test_an_alias_is_not_restrict():
    text = "code f(x: read f32[8], y: write f32[8]) aliases x = y { store y[0] = x[0] }"

    assert "restrict" not in kernel(text)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1.5, dtypes.f32, "1.5f"),
        (1e-45, dtypes.f32, "1e-45f"),
        (-0.0, dtypes.f64, "(-0.0)"),
        (np.inf, dtypes.f32, "as_float(0x7f800000u)"),
        (-np.inf, dtypes.f64, "as_double(0xfff0000000000000UL)"),
        (1 / 3, dtypes.bf16, "0.33398438f"),
        (True, dtypes.bool_, "true"),
        (-5, dtypes.i8, "(char)(-5)"),
        (-(2**31), dtypes.i32, "(-2147483647 - 1)"),
        (-(2**63), dtypes.i64, "(-9223372036854775807L - 1)"),
        (2**64 - 1, dtypes.u64, "18446744073709551615UL"),
    ],
)
def test_literals_are_exact(value, dtype, text):
    assert expression(const(value, dtype)) == text


def test_a_nan_keeps_its_bits():
    nan = Const(bytes.fromhex("0100c07f"), dtypes.f32)

    assert expression(nan) == "as_float(0x7fc00001u)"


def test_integers_wrap_in_unsigned_types():
    one, byte = const(1, dtypes.i32), const(1, dtypes.i8)

    assert expression(Op("add", (one, one), dtypes.i32)) == "(int)((uint)1 + (uint)1)"
    assert expression(Op("mul", (byte, byte), dtypes.i8)).startswith("(char)((uint)(char)1 *")


def test_division_is_plain_where_bounds_allow_and_floors_elsewhere():
    text = """
    code f(x: read f32[99], y: write f32[99]) {
      for i in 9 grid { for j in 9 serial { store y[i//2 + j] = x[(i - j + 9)//2 + (i - j)//3 + 4] } }
    }"""
    rendered = kernel(text)

    assert "(i / 2)" in rendered
    assert "((i - j + 9) / 2)" in rendered
    assert "rune_floordiv(i - j, 3)" in rendered


def test_a_helper_comes_after_those_it_uses():
    text = "code f(y: write bf16[1]) { store y[0] = nextafter(1.0_bf16, 2.0_bf16) }"
    rendered = source(text)

    definitions = [rendered.index(f"{name}(") for name in ("rune_bf16_store", "rune_nextafter__bf16")]
    assert definitions == sorted(definitions)


@pytest.mark.parametrize("dtype", ["c64", "f8_e5m2", "i4"])
def test_what_the_language_lacks_is_refused(dtype):
    text = f"code f(x: read {dtype}[8], y: write {dtype}[8]) {{ store y[0] = x[0] }}"

    with pytest.raises(DtypeError, match=f"render: cannot use {dtype} in OpenCL C"):
        kernel(text)
