"""WGSL as rendered: what a reader sees. That it runs is tested in tests/backends/wgpu/test_wgpu.py.

One idea per golden text: words and bindings, guards, memories that are shared, narrow elements,
threads and barriers, floats that no compiler may rearrange. Then the corners: names, literals,
division, 64 bits, what is refused. Last, that naga accepts every operation in every dtype.
"""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from rune import dims, dtypes
from rune.backends import wgpu
from rune.dims import Size
from rune.errors import DtypeError
from rune.lowering.codegen.wgsl.expr import REGISTERS, STORED, Expressions
from rune.lowering.codegen.wgsl.helpers import FUNCTIONS
from rune.lowering.codegen.wgsl.render import Rendered, render
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op, const
from rune.lowering.kernel.nodes import Access, For, KernelCode, Kind, Let, Param, Store
from rune.lowering.kernel.text import parse
from rune.lowering.scalar.table import OPERATIONS, result_dtype
from tests.lowering.codegen.spirv_run import kernel_of
from tests.lowering.codegen.spirv_run import operations as operations_of
from tests.lowering.kernel.examples import TEXTS, example


def function(text: str, *memories: int) -> str:
    """The entry point alone."""
    module_text = render(parse(text), memories or None).text
    return module_text[module_text.index("@compute") :].rstrip()


def body(text: str, *memories: int) -> str:
    """The code of a thread after it has computed its point."""
    inside = function(text, *memories).partition("return; }\n")[2].removesuffix("}")
    return textwrap.dedent(inside).rstrip()


def expression(expr: Expr) -> str:
    return Expressions({}, {}).expr(expr)


# --- golden texts -----------------------------------------------------------------------------


def test_buffers_are_words_and_begin_where_the_block_says(expect):
    code = """
    code f(x: read f32[8*n], y: write f32[n]) sizes n in 1..99 {
      for i in n grid {
        var s: f32 = 0.0_f32
        for j in 8 serial { s add= x[8*i + j] }
        store y[i] = s
      }
    }"""
    expect(
        render(parse(code)).text.rstrip(),
        """
        struct Args {
          zero: u32,
          points: u32,
          first: u32,
          at_x: i32,
          at_y: i32,
          size_n: i32,
        }

        @group(0) @binding(0) var<uniform> args: Args;
        @group(0) @binding(1) var<storage, read_write> memory0: array<u32>;
        @group(0) @binding(2) var<storage, read_write> memory1: array<u32>;

        var<private> rune_zero: u32;

        fn rune_pin(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ rune_zero); }

        @compute @workgroup_size(64)
        fn run_f(@builtin(workgroup_id) group_id: vec3<u32>,
            @builtin(num_workgroups) group_count: vec3<u32>,
            @builtin(local_invocation_index) thread_id: u32) {
          rune_zero = args.zero & group_id.x;
          let group = args.first + group_id.x + group_id.y * group_count.x;
          if (group * 64u + thread_id >= args.points) { return; }
          let point = i32(group * 64u + thread_id);
          let i = point;
          var s: f32 = 0.0f;
          for (var j = 0i; j < 8; j++) {
            s = s + bitcast<f32>(memory0[args.at_x + 8 * i + j]);
          }
          memory1[args.at_y + i] = bitcast<u32>(rune_pin(s));
        }""",
    )


def test_a_guarded_load_reads_another_element_and_discards_it(expect):
    code = """
    code f(x: read i32[8], y: write i32[12]) {
      for i in 12 grid {
        inside: bool = (index(i) >= 2_i64) & (index(i) < 10_i64)
        a: i32 = x[i - 2 if inside]
        store y[i] = a
      }
    }"""
    expect(
        body(code),
        """
        let point = i32(group * 64u + thread_id);
        let i = point;
        let inside = ((i) >= 2i) & ((i) < 10i);
        let a = select(0i, bitcast<i32>(memory0[args.at_x + i - 2]), inside);
        memory1[args.at_y + i] = u32(a);""",
    )


def test_parameters_may_share_a_memory(expect):
    code = """
    code f(x: read f32[8], y: read u32[8], z: write f32[8]) {
      for i in 8 grid {
        a: u32 = y[i]
        store z[i] = x[i] * f32(a)
      }
    }"""
    text = render(parse(code), (0, 1, 0)).text

    assert text.count("var<storage, read_write>") == 2
    expect(
        body(code, 0, 1, 0),
        """
        let point = i32(group * 64u + thread_id);
        let i = point;
        let a = memory1[args.at_y + i];
        memory0[args.at_z + i] = bitcast<u32>(bitcast<f32>(memory0[args.at_x + i]) * f32(a));""",
    )


def test_bytes_behind_2_gib_are_found_by_a_position_without_a_sign():
    code = parse("code f(x: read i8[9], y: write i8[9]) { for i in 9 grid { store y[i] = x[i] } }")
    text = render(code, (0, 0)).text

    # Sums of i32 wrap: as u32 they are right up to 4 GiB, and `>>` of i32 would keep the sign.
    assert text.count("memory0[u32(at) >> 2u]") == 3
    assert "[at >>" not in text


def test_narrow_elements_are_parts_of_words_that_threads_share(expect):
    code = """
    code f(x: read i8[n], y: write bool[n]) sizes n in 1..99 {
      for i in n grid {
        a: i8 = x[i]
        store y[i] = a < 3_i8
      }
    }"""
    text = render(parse(code)).text.rstrip()

    assert "memory0: array<u32>" in text
    assert "memory1: array<atomic<u32>>" in text
    expect(
        text[text.index("fn memory0") :],
        """
        fn memory0_load8(at: i32) -> u32 {
          return (memory0[u32(at) >> 2u] >> (8u * (u32(at) & 3u))) & 0xffu;
        }

        fn memory1_store8(at: i32, value: u32) {
          let shift = 8u * (u32(at) & 3u);
          atomicAnd(&memory1[u32(at) >> 2u], ~(0xffu << shift));
          atomicOr(&memory1[u32(at) >> 2u], (value & 0xffu) << shift);
        }

        @compute @workgroup_size(64)
        fn run_f(@builtin(workgroup_id) group_id: vec3<u32>,
            @builtin(num_workgroups) group_count: vec3<u32>,
            @builtin(local_invocation_index) thread_id: u32) {
          let group = args.first + group_id.x + group_id.y * group_count.x;
          if (group * 64u + thread_id >= args.points) { return; }
          let point = i32(group * 64u + thread_id);
          let i = point;
          let a = i32(memory0_load8(args.at_x + i) << 24u) >> 24u;
          memory1_store8(args.at_y + i, u32(a < 3i));
        }""",
    )


def test_threads_share_memory_and_wait(expect):
    assert "var<workgroup> tile: array<f32, 8>;" in render(example("workgroup")).text
    expect(
        function(TEXTS["workgroup"]),
        """
        @compute @workgroup_size(8)
        fn run_reverse(@builtin(workgroup_id) group_id: vec3<u32>,
            @builtin(num_workgroups) group_count: vec3<u32>,
            @builtin(local_invocation_index) thread_id: u32) {
          let group = args.first + group_id.x + group_id.y * group_count.x;
          if (group >= args.points) { return; }
          let point = i32(group);
          let g = point;
          let thread = i32(thread_id);
          let t = thread;
          tile[t] = bitcast<f32>(memory0[args.at_x + 8 * g + t]);
          workgroupBarrier();
          storageBarrier();
          memory1[args.at_y + 8 * g + t] = bitcast<u32>(tile[-t + 7]);
        }""",
    )


def test_a_float_that_arithmetic_follows_is_pinned(expect):
    code = """
    code f(x: read f32[8], y: write f32[8]) {
      for i in 8 grid {
        a: f32 = x[i]
        b: f32 = (a * a) + 0.0_f32
        c: f32 = max(b, nan_f32)
        store y[i] = c - c
      }
    }"""
    expect(
        body(code),
        """
        let point = i32(group * 64u + thread_id);
        let i = point;
        let a = bitcast<f32>(memory0[args.at_x + i]);
        let b = rune_pin(rune_pin(a * a) + rune_float(0u));
        let c = rune_max_f32(b, rune_float(0x7fc00000u));
        memory1[args.at_y + i] = bitcast<u32>(c - rune_pin(c));""",
    )


def test_a_sum_is_pinned_where_it_is_used_and_not_while_it_grows(expect):
    code = """
    code f(x: read f32[8], y: write f32[8]) {
      for i in 8 grid {
        var s: f32 = 0.0_f32
        for j in 2 serial { s add= x[j] }
        store y[i] = s - x[i]
      }
    }"""
    expect(
        body(code),
        """
        let point = i32(group * 64u + thread_id);
        let i = point;
        var s: f32 = 0.0f;
        for (var j = 0i; j < 2; j++) {
          s = s + bitcast<f32>(memory0[args.at_x + j]);
        }
        memory1[args.at_y + i] = bitcast<u32>(rune_pin(s) - bitcast<f32>(memory0[args.at_x + i]));""",
    )


def test_functions_are_written_once_in_plain_arithmetic():
    text = render(example("softmax")).text

    assert text.count("fn rune_exp_f32(") == 1
    assert text.count("fn rune_max_f32(") == 1
    assert " exp(" not in text


# --- launches ---------------------------------------------------------------------------------


def test_all_grid_loops_are_one_number_of_points():
    assert render(example("dot")).points == 180
    assert str(render(example("softmax")).points) == "n"
    assert render(example("scatter")).points == 1


def test_a_workgroup_takes_one_point_where_the_kernel_has_threads():
    source = render(example("workgroup"))

    assert (source.points, source.threads, source.is_point_per_group) == (4, 8, True)


def test_the_launch_lists_the_extents_that_must_fit_32_bits():
    n = dims.symbol("n", 1, 100)

    assert {n, 64 * n} <= set(render(example("softmax")).extents)


# --- corners ----------------------------------------------------------------------------------


def test_names_that_mean_something_in_wgsl_are_changed():
    text = """
    code half(var: read f32[8], y: write f32[8]) {
      for select in 8 grid {
        rune_x: f32 = var[select]
        ẋ: f32 = rune_x * 2.0_f32
        v_select: f32 = ẋ
        store y[select] = v_select
      }
    }"""
    source = function(text)

    assert "args.at_v_var + v_select]" in source
    assert "let v_rune_x = " in source
    assert "let v_select_ = " in source


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1.5, dtypes.f32, "1.5f"),
        (-2.0, dtypes.f32, "(-2.0f)"),
        (1e20, dtypes.f32, "1e+20f"),
        (1e-45, dtypes.f32, "rune_float(0x1u)"),
        (-0.0, dtypes.f32, "rune_float(0x80000000u)"),
        (np.inf, dtypes.f32, "rune_float(0x7f800000u)"),
        (True, dtypes.bool_, "true"),
        (-5, dtypes.i8, "(-5i)"),
        (-(2**31), dtypes.i32, "i32(-2147483648)"),
        (2**32 - 1, dtypes.u32, "4294967295u"),
        (2**33 + 1, dtypes.u64, "vec2<u32>(1u, 2u)"),
    ],
)
def test_literals_are_exact(value, dtype, text):
    assert expression(const(value, dtype)) == text


def test_a_nan_keeps_its_bits():
    assert expression(Const(bytes.fromhex("0100c07f"), dtypes.f32)) == "rune_float(0x7fc00001u)"


def test_narrow_integers_are_wrapped_where_they_may_leave_their_range():
    a, b = Const(b"\x03", dtypes.i8), Local("b", dtypes.i8)
    names = Expressions({"b": "b"}, {})

    assert names.expr(Op("add", (b, a), dtypes.i8)) == "(((b + 3i) << 24u) >> 24u)"
    assert names.expr(Op("max", (b, a), dtypes.i8)) == "max(b, 3i)"
    assert names.expr(Cast(b, dtypes.u8)) == "(u32(b) & 0xffu)"


def test_constants_that_naga_would_fold_are_hidden_from_it():
    most = const(2**31 - 1, dtypes.i32)

    assert expression(Op("add", (most, most), dtypes.i32)).startswith("(rune_keep_i32(2147483647i)")


REMAINDERS = """
code f(x: read i32[8], y: read i32[8], z: write i32[8]) {
  for i in 8 grid { store z[i] = (x[i] % y[i]) + (x[i] % 3_i32) }
}"""


def test_no_remainder_is_the_languages_own():
    # naga translates it to OpSRem, which Vulkan leaves undefined for negative numbers.
    assert "%" not in render(parse(REMAINDERS)).text
    assert "%" not in "".join(FUNCTIONS.values())


LOOSE = frozenset({"div", "sqrt", "denormals"})
DIVISION = """
code f(x: read f32[8], y: write f32[8]) {
  for i in 8 grid { store y[i] = sqrt(x[i]) / 3.0_f32 }
}"""


def test_on_a_device_with_loose_division_quotients_are_computed_from_mantissas():
    loose, exact = render(parse(DIVISION), None, LOOSE).text, render(parse(DIVISION)).text

    assert "rune_div_f32(" in loose
    assert "rune_sqrt_f32(" in loose
    assert "rune_div_f32(" not in exact
    assert "rune_sqrt(" in exact


def test_truth_values_of_a_group_are_words():
    text = """
    code f(x: read i32[64], y: write i32[1]) {
      for k in 1 grid {
        alloc is_one: bool[64] shared
        for t in 64 workgroup {
          store is_one[t] = x[t] == 1_i32
          barrier
          if index(t) < 1_i64 { store y[0] = i32(is_one[7] | is_one[t]) }
        }
      }
    }"""

    source = render(parse(text)).text

    assert "var<workgroup> is_one: array<u32, 64>;" in source
    assert "(is_one[7] != 0u)" in source


def test_an_index_is_32_bit_and_a_counter_two_words():
    i = dims.symbol("i", 0, 9)
    names = Expressions({"i": "i"}, {})

    assert names.expr(Cast(Index(2 * i + 1), dtypes.f32)) == "f32(2 * i + 1)"
    assert names.expr(Cast(Index(i), dtypes.u64)) == "rune_of_i32_u64((i))"
    assert names.expr(Cast(Local("i", dtypes.u32), dtypes.i64)) == "i32(min(i, 2147483647u))"


@pytest.mark.parametrize("dtype", ["f64", "i64", "u64", "f16", "f8_e5m2"])
def test_a_dtype_that_no_buffer_can_hold_is_refused(dtype):
    text = f"code f(x: read {dtype}[8], y: write {dtype}[8]) {{ store y[0] = x[0] }}"

    with pytest.raises(DtypeError, match=f"render: cannot use {dtype} in WGSL"):
        render(parse(text))


@pytest.mark.parametrize("expr", operations_of(dtypes.f16), ids=str)
def test_nothing_can_be_done_with_a_dtype_that_the_language_lacks(expr: Op | Cast):
    with pytest.raises(DtypeError):
        render(kernel_of(expr, dtypes.f16))


def test_arithmetic_that_needs_64_bits_is_refused():
    x = Local("x", dtypes.u64)
    names = Expressions({"x": "x"}, {})

    for expr, operation in (
        (Op("div", (x, x), dtypes.u64), "div of u64"),
        (Cast(x, dtypes.f32), "a conversion of u64 to f32"),
        (const(2**40, dtypes.i64), "1099511627776 of i64"),
    ):
        with pytest.raises(DtypeError, match=f"render: cannot use {operation} in WGSL"):
            names.expr(expr)


# --- naga -------------------------------------------------------------------------------------

TARGETS, WHY = wgpu.probe()
needs_naga = pytest.mark.skipif(not TARGETS, reason=f"no WebGPU adapter: {WHY}")


@pytest.fixture(scope="module")
def device() -> wgpu.WgpuBackend:
    return wgpu.open_device(TARGETS[0])


def accepted(device: wgpu.WgpuBackend, source: Rendered) -> bool:
    """Whether naga takes the module; it raises where not."""
    return device.pipeline(source) is not None


def operations(dtype: np.dtype, i: Size) -> KernelCode:
    """One kernel with every operation on a dtype, and a conversion to every other."""
    x, flag = Load("x", (i,), dtype), Load("flag", (i,), dtypes.bool_)
    values: list[Expr] = [Cast(x, d) for d in sorted(STORED, key=dtypes.short)]
    for name, op in OPERATIONS.items():
        result = result_dtype(name, dtype)
        if dtype in op.dtypes and result is not None:
            args = (flag, x, x) if name == "select" else (x,) * op.arity
            values.append(Op(name, args, result))
    lets = [Let(f"made{k}", e) for k, e in enumerate(values)]
    params = (
        Param("x", dtype, 8, Access.READ),
        Param("flag", dtypes.bool_, 8, Access.READ),
        Param("y", dtype, 8, Access.WRITE),
    )
    return KernelCode("f", params, (), (For("i", 8, Kind.GRID, (*lets, Store("y", i, x))),))


@needs_naga
@pytest.mark.parametrize("dtype", sorted(STORED, key=dtypes.short), ids=dtypes.short)
def test_naga_accepts_every_operation_in_every_dtype(device, dtype):
    code = operations(dtype, dims.symbol("i", 0, 7))

    assert accepted(device, render(code))
    assert accepted(device, render(code, (0, 0, 0)))


@needs_naga
@pytest.mark.parametrize("name", [n for n in TEXTS if n != "four_axes"])
def test_naga_accepts_every_example(device, name):
    assert accepted(device, render(example(name)))


def test_every_register_has_a_type_that_can_be_rendered():
    assert set(REGISTERS.values()) == {"bool", "i32", "u32", "f32", "vec2<u32>"}
