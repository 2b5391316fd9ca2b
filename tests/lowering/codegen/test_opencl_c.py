"""OpenCL C as rendered: what a reader sees. That it runs is tested in tests/backends.

One idea per golden text: loops and scratch, guards, folding of grid axes, threads and barriers,
narrow floats. Then the corners: names, literals, division, what is refused.
"""

from __future__ import annotations

import numpy as np
import pytest

from rune import dtypes
from rune.errors import DtypeError
from rune.lowering.codegen.c.expr import Expressions
from rune.lowering.codegen.c.opencl import OPENCL_C
from rune.lowering.codegen.c.render import assemble, render
from rune.lowering.kernel.expr import Const, Expr, Op, const
from rune.lowering.kernel.text import parse
from tests.lowering.kernel.examples import TEXTS, example


def source(text: str) -> str:
    return assemble([render(parse(text), OPENCL_C)], OPENCL_C).rstrip()


def kernel(text: str) -> str:
    return render(parse(text), OPENCL_C).text


def expression(expr: Expr) -> str:
    return Expressions({}, OPENCL_C).expr(expr)


def test_loops_and_scratch(expect):
    expect(
        kernel(TEXTS["softmax"]),
        """
        __kernel void run_softmax(
            __global const float* x_base, const long x_at,
            __global float* y_base, const long y_at,
            const long n) {
          __global const float* restrict x = x_base + x_at;
          __global float* restrict y = y_base + y_at;
          const long i = get_global_id(0);
          if (i >= n) return;
          float e[64];
          float m = as_float(0xff800000u);
          for (long j = 0; j < 64; j++) {
            m = rune_max_f32(m, x[64 * i + j]);
          }
          float s = 0.0f;
          for (long j = 0; j < 64; j++) {
            const float t = rune_exp_f32((x[64 * i + j] - m));
            e[j] = t;
            s = s + t;
          }
          for (long j = 0; j < 64; j++) {
            y[64 * i + j] = e[j] / s;
          }
        }""",
    )


def test_a_helper_function_is_written_once_after_its_own_helpers_and_before_the_kernels():
    text = """
    code f(x: read f32[8], y: write f32[8]) {
      for i in 8 grid { store y[i] = max(tan(x[i]), tan(exp(x[i]))) }
    }"""
    program = source(text)
    places = [
        program.index(f"{name}(")
        for name in ("float rune_max_f32", "float rune_tan_f32", "float rune_exp_f32", "run_f")
    ]

    assert places == sorted(places)
    assert program.count("float rune_tan_f32(float a) {") == 1


def test_a_program_of_several_kernels_has_each_function_once():
    kernels = [render(parse(TEXTS["softmax"]), OPENCL_C) for _ in range(2)]

    assert assemble(kernels, OPENCL_C).count("float rune_exp_f32(float a) {") == 1


def test_opencl_computes_only_the_functions_that_it_rounds_exactly():
    exact = {"floor", "ceil", "trunc", "round", "abs", "sqrt", "rem", "fma", "nextafter", "copysign", "is_finite"}

    assert set(OPENCL_C.functions[dtypes.f32]) == exact


def test_a_guarded_load_reads_memory_only_where_it_may(expect):
    expect(
        kernel(TEXTS["pad"]),
        """
        __kernel void run_pad(
            __global const float* x_base, const long x_at,
            __global float* y_base, const long y_at) {
          __global const float* restrict x = x_base + x_at;
          __global float* restrict y = y_base + y_at;
          const long i = get_global_id(0);
          if (i >= 12) return;
          const bool inside = ((long)(i) >= 2L) & ((long)(i) < 10L);
          y[i] = inside ? x[i - 2] : 0.0f;
        }""",
    )


def test_a_contracted_product_is_an_fma_and_the_inner_grid_axis_is_the_first(expect):
    expect(
        kernel(TEXTS["dot"]),
        """
        __kernel void run_dot(
            __global const float* a_base, const long a_at,
            __global const float* b_base, const long b_at,
            __global float* c_base, const long c_at) {
          __global const float* restrict a = a_base + a_at;
          __global const float* restrict b = b_base + b_at;
          __global float* restrict c = c_base + c_at;
          const long j = get_global_id(0);
          const long i = get_global_id(1);
          if (i >= 18 || j >= 10) return;
          float acc = 0.0f;
          for (long k = 0; k < 12; k++) {
            acc = fma(a[12 * i + k], b[j + 10 * k], acc);
          }
          c[10 * i + j] = acc;
        }""",
    )


def test_loads_before_any_store_are_merged_with_their_neighbours():
    body = "a: f32 = x[2*i] b: f32 = x[2*i + 1] store y[2*i] = b store y[2*i + 1] = a"
    lines = kernel(f"code f(x: read f32[64], y: write f32[64]) {{ for i in 32 grid {{ {body} }} }}")

    assert "const float2 _run_0 = vload2(0, &x[2 * i]);" in lines
    assert "const float b = _run_0.s1;" in lines
    assert "vstore2((float2)(b, a), 0, &y[2 * i]);" in lines


def test_neighbours_that_are_added_up_are_read_one_by_one():
    body = "a: f32 = x[2*i] b: f32 = x[2*i + 1] s add= a s add= b"
    lines = kernel(
        f"code f(x: read f32[64], y: write f32[64]) {{ for i in 32 grid {{ var s: f32 = 0.0_f32 {body} }} }}"
    )

    assert "vload" not in lines


def test_neighbours_under_a_condition_are_zeros_elsewhere():
    few = "few: bool = index(i) < 9_i64"
    body = f"{few} a: f32 = x[2*i if few] b: f32 = x[2*i + 1 if few] store y[2*i] = b store y[2*i + 1] = a"
    lines = kernel(f"code f(x: read f32[64], y: write f32[64]) {{ for i in 32 grid {{ {body} }} }}")

    assert "const float2 _run_0 = few ? vload2(0, &x[2 * i]) : (float2)(0);" in lines


def test_grid_axes_beyond_three_are_folded_into_the_first(expect):
    expect(
        kernel(TEXTS["four_axes"]),
        """
        __kernel void run_transpose(
            __global const double* x_base, const long x_at,
            __global double* y_base, const long y_at) {
          __global const double* restrict x = x_base + x_at;
          __global double* restrict y = y_base + y_at;
          const long at_a_d = get_global_id(0);
          const long a = at_a_d / 5;
          const long d = at_a_d % 5;
          const long c = get_global_id(1);
          const long b = get_global_id(2);
          if (a >= 2 || b >= 3 || c >= 4 || d >= 5) return;
          y[a + 2 * b + 6 * c + 24 * d] = x[60 * a + 20 * b + 5 * c + d];
        }""",
    )


def test_threads_share_memory_and_wait(expect):
    expect(
        kernel(TEXTS["workgroup"]),
        """
        __kernel void run_reverse(
            __global const float* x_base, const long x_at,
            __global float* y_base, const long y_at) {
          __global const float* restrict x = x_base + x_at;
          __global float* restrict y = y_base + y_at;
          const long g = get_group_id(0) + get_global_offset(0) / 8;
          __local float tile[8];
          const long t = get_local_id(0);
          tile[t] = x[8 * g + t];
          barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
          y[8 * g + t] = tile[-t + 7];
        }""",
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
        __kernel void run_f(
            __global const ushort* x_base, const long x_at,
            __global ushort* y_base, const long y_at,
            __global uchar* z_base, const long z_at) {
          __global const ushort* restrict x = x_base + x_at;
          __global ushort* restrict y = y_base + y_at;
          __global uchar* restrict z = z_base + z_at;
          const long i = get_global_id(0);
          if (i >= 8) return;
          const float a = rune_bf16_load(rune_bf16_store((rune_bf16_load(x[i]) + 1.0f)));
          y[i] = rune_bf16_store(rune_exp_f32(a));
          z[i] = (uchar)(a < rune_bf16_load(x[i]));
        }""",
    )


def test_launch_extents_follow_the_grid():
    source_of_kernel = render(example("four_axes"), OPENCL_C)

    assert source_of_kernel.grid == (10, 4, 3)
    assert source_of_kernel.workgroup == ()
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
      for sqrt in 8 grid {
        run_x: f32 = float[sqrt]
        ẋ: f32 = run_x * 2.0_f32
        v_sqrt: f32 = ẋ
        store y[sqrt] = v_sqrt
      }
    }"""
    c_code = kernel(text)

    assert "run_half(" in c_code
    assert "v_float = v_float_base" in c_code
    assert "const float _u1e8b" not in c_code
    assert c_code.count("v_sqrt_ ") >= 1


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


def test_division_is_plain_where_bounds_allow_and_moves_up_elsewhere():
    text = """
    code f(x: read f32[99], y: write f32[99]) {
      for i in 9 grid {
        for j in 9 serial { store y[i//2 + j] = x[(i - j + 9)//2 + (i - j)//3 + 4] }
      }
    }"""
    c_code = kernel(text)

    assert "(i / 2)" in c_code
    assert "((i - j + 9) / 2 - 4) + ((i - j + 9) / 3 - 3) + 8" in c_code


def test_division_floors_where_no_bound_is_known():
    text = """
    code f(x: read f32[n], y: write f32[n]) sizes n in 0.. {
      for i in n grid { store y[i] = x[(i - n)//3 + n] }
    }"""

    assert "rune_floordiv(i - n, 3)" in kernel(text)


def test_a_helper_comes_after_those_it_uses():
    text = "code f(y: write bf16[1]) { store y[0] = nextafter(1.0_bf16, 2.0_bf16) }"
    c_code = source(text)

    definitions = [c_code.index(f"{name}(") for name in ("rune_bf16_store", "rune_nextafter_bf16")]
    assert definitions == sorted(definitions)


@pytest.mark.parametrize("dtype", ["c64", "f8_e5m2", "i4"])
def test_a_dtype_that_the_language_lacks_is_refused(dtype):
    text = f"code f(x: read {dtype}[8], y: write {dtype}[8]) {{ store y[0] = x[0] }}"

    with pytest.raises(DtypeError, match=f"render: cannot use {dtype} in OpenCL C"):
        kernel(text)
