"""CUDA C as rendered, and as NVRTC compiles it: no GPU and no driver is needed for either.

First golden texts, one idea each. Then what the compiler makes of them: no fused product, no
flushed denormal. Last, every primitive in every dtype is compiled to machine code for two
generations of devices, one program for each family of primitives.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rune import dtypes, ops
from rune.backends.cuda.compiler import compile_source, full_version, version
from rune.backends.cuda.kernels import CONDITIONS, STEPS
from rune.errors import CompileError, DtypeError
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.expr import Expressions
from rune.lowering.codegen.c.render import Rendered, assemble, render
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Op, const
from rune.lowering.kernel.text import parse
from rune.lowering.stages import lower
from tests.lowering.kernel.examples import TEXTS
from tests.ops.calls import Sample
from tests.ops.samples import samples
from tests.support.lowering import program_of
from tests.support.sampling import IS_WHOLE, one_in

ARCHITECTURES = ("sm_80", "sm_90")
TARGET = Target(
    "cuda:0",
    "cuda",
    "cuda",
    "a device that does not exist",
    frozenset(CUDA_C.scalars),
    16,
    108,
    1024,
    48 << 10,
    1 << 12,
    frozenset(),
)


@pytest.fixture
def nvrtc() -> Any:
    """The compiler, if its wheel is installed."""
    return pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")


def source(text: str) -> str:
    return assemble([render(parse(text), CUDA_C)], CUDA_C)


def kernel(text: str) -> str:
    return render(parse(text), CUDA_C).text


# --- what a reader sees -----------------------------------------------------------------------


def test_arguments_come_from_a_table_and_read_only_ones_by_the_read_only_path(expect):
    expect(
        source(TEXTS["softmax"]).strip(),
        """
        static __device__ float rune_max_nan(float a, float b) {
        #if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
          float result;
          asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
          return result;
        #else
          return a != a ? a : a > b ? a : b;
        #endif
        }

        extern "C" __global__ void run_softmax(
            const unsigned long long* __restrict__ _table) {
          const float* __restrict__ x = (const float*)_table[0];
          __builtin_assume(__isGlobal(x));
          float* __restrict__ y = (float*)_table[1];
          __builtin_assume(__isGlobal(y));
          const int n = (int)_table[2];
          const int i = (int)blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= n) return;
          float e[64];
          float m = __uint_as_float(0xff800000u);
          for (int j = 0; j < 64; j++) {
            m = rune_max_nan(m, __ldg(&x[64 * i + j]));
          }
          float s = 0.0f;
          for (int j = 0; j < 64; j++) {
            const float t = expf((__ldg(&x[64 * i + j]) - m));
            e[j] = t;
            s = s + t;
          }
          for (int j = 0; j < 64; j++) {
            y[64 * i + j] = e[j] / s;
          }
        }""",
    )


def test_grid_axes_are_folded_into_one_by_32_bit_divisions_where_indices_fit(expect):
    expect(
        kernel(TEXTS["four_axes"]),
        """
        extern "C" __global__ void run_transpose(
            const unsigned long long* __restrict__ _table) {
          const double* __restrict__ x = (const double*)_table[0];
          __builtin_assume(__isGlobal(x));
          double* __restrict__ y = (double*)_table[1];
          __builtin_assume(__isGlobal(y));
          const int at_a_b_c_d = (int)blockIdx.x * blockDim.x + threadIdx.x;
          const int a = at_a_b_c_d / 60;
          const int b = (at_a_b_c_d / 20) % 3;
          const int c = (at_a_b_c_d / 5) % 4;
          const int d = at_a_b_c_d % 5;
          if (a >= 2 || b >= 3 || c >= 4 || d >= 5) return;
          y[a + 2 * b + 6 * c + 24 * d] = __ldg(&x[60 * a + 20 * b + 5 * c + d]);
        }""",
    )


def test_indices_are_64_bit_where_32_do_not_surely_hold_them(expect):
    text = """
    code f(x: read f32[n], y: write f32[n]) sizes n in 0.. {
      for i in n grid { store y[i] = x[n - i - 1] }
    }"""
    expect(
        kernel(text),
        """
        extern "C" __global__ void run_f(
            const unsigned long long* __restrict__ _table) {
          const float* __restrict__ x = (const float*)_table[0];
          __builtin_assume(__isGlobal(x));
          float* __restrict__ y = (float*)_table[1];
          __builtin_assume(__isGlobal(y));
          const long long n = (long long)_table[2];
          const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= n) return;
          y[i] = __ldg(&x[-i + n - 1]);
        }""",
    )


def test_threads_share_memory_and_wait(expect):
    expect(
        kernel(TEXTS["workgroup"]),
        """
        extern "C" __global__ void __launch_bounds__(8) run_reverse(
            const unsigned long long* __restrict__ _table) {
          const float* __restrict__ x = (const float*)_table[0];
          __builtin_assume(__isGlobal(x));
          float* __restrict__ y = (float*)_table[1];
          __builtin_assume(__isGlobal(y));
          const int g = blockIdx.x;
          __shared__ __align__(16) float tile[8];
          const int t = threadIdx.x;
          tile[t] = __ldg(&x[8 * g + t]);
          __syncthreads();
          y[8 * g + t] = tile[-t + 7];
        }""",
    )


def test_narrow_floats_are_computed_in_float(expect):
    text = """
    code f(x: read f16[8], y: write f16[8], z: write bool[8]) {
      for i in 8 grid {
        a: f16 = x[i] + 1.0_f16
        store y[i] = exp(a)
        store z[i] = a < x[i]
      }
    }"""
    expect(
        source(text).strip(),
        """
        static __device__ float rune_f16_load(unsigned short bits) {
          float value;
          asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
          return value;
        }

        static __device__ unsigned short rune_f16_store(float value) {
          unsigned short bits;
          asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
          return bits;
        }

        extern "C" __global__ void run_f(
            const unsigned long long* __restrict__ _table) {
          const unsigned short* __restrict__ x = (const unsigned short*)_table[0];
          __builtin_assume(__isGlobal(x));
          unsigned short* __restrict__ y = (unsigned short*)_table[1];
          __builtin_assume(__isGlobal(y));
          unsigned char* __restrict__ z = (unsigned char*)_table[2];
          __builtin_assume(__isGlobal(z));
          const int i = (int)blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= 8) return;
          const float a = rune_f16_load(rune_f16_store((rune_f16_load(__ldg(&x[i])) + 1.0f)));
          y[i] = rune_f16_store(expf(a));
          z[i] = (unsigned char)(a < rune_f16_load(__ldg(&x[i])));
        }""",
    )


def test_an_aliased_parameter_is_neither_restrict_nor_read_only():
    text = "code f(x: read f32[8], y: write f32[8]) aliases x = y { store y[0] = x[0] }"

    assert "restrict__ x" not in kernel(text)
    assert "restrict__ y" not in kernel(text)
    assert "__ldg" not in kernel(text)


def test_names_that_mean_something_in_cuda_are_changed():
    text = """
    code class(float: read f32[8], y: write f32[8]) {
      for threadIdx in 8 grid { store y[threadIdx] = float[threadIdx] }
    }"""

    assert "v_threadIdx" in kernel(text)
    assert "v_float = (const float*)" in kernel(text)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1e-45, dtypes.f32, "1e-45f"),
        (np.inf, dtypes.f32, "__uint_as_float(0x7f800000u)"),
        (-np.inf, dtypes.f64, "__longlong_as_double(0xfff0000000000000ULL)"),
        (-5, dtypes.i8, "(signed char)(-5)"),
        (-(2**63), dtypes.i64, "(-9223372036854775807LL - 1)"),
        (2**64 - 1, dtypes.u64, "18446744073709551615ULL"),
    ],
)
def test_literals_are_exact(value: Any, dtype: np.dtype, text: str):
    assert Expressions({}, CUDA_C).expr(const(value, dtype)) == text


def test_integers_wrap_in_unsigned_types():
    one = const(1, dtypes.i32)

    addition = Expressions({}, CUDA_C).expr(Op("add", (one, one), dtypes.i32))

    assert addition == "(int)((unsigned int)1 + (unsigned int)1)"


def test_a_dtype_that_the_language_lacks_is_refused():
    text = "code f(x: read c64[8], y: write c64[8]) { store y[0] = x[0] }"

    with pytest.raises(DtypeError, match="render: cannot use c64 in CUDA C"):
        kernel(text)


# --- compilation by NVRTC ---------------------------------------------------------------------


def ptx(text: str) -> str:
    return compile_source(source(text), "f", "compute_80").decode()


def test_user_arithmetic_is_not_contracted_and_a_dot_is(nvrtc: Any):
    text = """
    code f(a: read f32[1], b: read f32[1], x: read f32[1], y: write f32[1]) {
      store y[0] = (a[0] * x[0]) + (b[0] * x[0])
    }"""

    assert "fma" not in ptx(text)
    assert "fma.rn.f32" in ptx(TEXTS["dot"])


def test_division_and_roots_are_rounded_and_denormals_kept(nvrtc: Any):
    text = """
    code f(x: read f32[1], y: write f32[1]) { store y[0] = sqrt(x[0]) / (x[0] + 1.0_f32) }
    """

    assert {"sqrt.rn.f32", "div.rn.f32"} <= set(ptx(text).split())
    assert "ftz" not in ptx(text)


POOLED = """
code big(x: read f32[32], y: write f32[32]) {
  for g in 4 grid {
    alloc tile: f32[12288] shared
    alloc few: u8[3] shared
    for t in 8 workgroup {
      store tile[t] = x[8*g + t]
      barrier
      store y[8*g + t] = tile[-t + 7]
    }
  }
}
"""


def test_a_workgroup_that_shares_more_than_may_be_declared_takes_it_from_the_launch():
    source = render(parse(POOLED), CUDA_C)

    assert source.shared_bytes == 4 * 12288 + 16
    assert "extern __shared__ __align__(1024) unsigned char _pool[];" in source.text
    assert "float* tile = (float*)(_pool + 0);" in source.text
    assert "unsigned char* few = (unsigned char*)(_pool + 49152);" in source.text


def test_a_workgroup_that_shares_less_declares_it():
    source = render(parse(POOLED.replace("12288", "8")), CUDA_C)

    assert source.shared_bytes == 0
    assert "__shared__ __align__(16) float tile[8];" in source.text


def test_shared_memory_beyond_what_may_be_declared_compiles(nvrtc: Any):
    assert compile_source(assemble([render(parse(POOLED), CUDA_C)], CUDA_C), "big", "sm_90")


def test_a_source_that_is_refused_is_shown_with_numbered_lines(nvrtc: Any):
    bad = 'extern "C" __global__ void run_bad() {\n  undeclared = 1;\n}\n'

    with pytest.raises(CompileError) as error:
        compile_source(bad, "bad", "sm_80")

    assert "cuda: cannot compile bad for sm_80 (line 2: identifier " in str(error.value)
    assert ">   2    undeclared = 1;" in str(error.value)


@pytest.mark.parametrize("arch", [*ARCHITECTURES, "compute_90"])
def test_the_kernels_of_the_executor_compile(nvrtc: Any, arch: str):
    assert compile_source(STEPS, "rune's own kernels", arch)
    assert compile_source(CONDITIONS, "conditions of graphs", arch)


def test_the_compiler_reports_its_version_with_the_patch_number(nvrtc: Any):
    full_version.cache_clear()

    assert re.fullmatch(r"{}\.{}\.\d+".format(*version()), full_version())


def test_ptx_declares_the_drivers_function_that_sets_conditions(nvrtc: Any):
    text = compile_source(CONDITIONS, "conditions of graphs", "compute_90").decode()

    assert re.search(r"\.extern \.func cudaGraphSetConditional\b", text)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_example_compiles(nvrtc: Any, arch: str):
    kernels = [render(parse(text), CUDA_C) for text in TEXTS.values()]

    image = compile_source(assemble(kernels, CUDA_C), "examples", arch)

    assert all(k.name.encode() in image for k in kernels)


FAMILIES = sorted({p.family for p in ops.PRIMITIVES})
# A few for the older architecture: the text differs only in products of matrices.
OLDER = ["contraction", *one_in(12, FAMILIES)]
PRIMITIVES_OF = [(f, arch) for arch in ARCHITECTURES for f in (FAMILIES if arch == "sm_90" or IS_WHOLE else OLDER)]


@pytest.mark.parametrize(("family", "arch"), PRIMITIVES_OF)
def test_every_primitive_compiles_in_every_dtype(nvrtc: Any, family: str, arch: str):
    kernels = kernels_of(family)

    image = compile_source(assemble(kernels, CUDA_C), family, arch)

    assert all(k.name.encode() in image for k in kernels)


@functools.cache
def kernels_of(family: str) -> tuple[Rendered, ...]:
    """The kernels that the samples of a family become, with unique names."""
    kernels = []
    for primitive in ops.PRIMITIVES:
        candidates = [s for s in samples(primitive) if is_taken(s)] if primitive.family == family else []
        for code in lowered(of_each_dtype(candidates)).values() if candidates else ():
            kernels.append(render(replace(code, name=f"{primitive.name}_{code.name}"), CUDA_C))
    return tuple(kernels)


def is_taken(sample: Sample) -> bool:
    out = sample.primitive.type_rule(*sample.types, **sample.params)
    return {t.dtype for t in (*sample.types, out)} <= TARGET.program_dtypes


def of_each_dtype(candidates: Sequence[Sample]) -> Sequence[Sample]:
    """The first sample in each combination of dtypes; shapes change no words of kernels."""
    firsts = {tuple(t.dtype for t in s.types): s for s in reversed(candidates)}
    return candidates if IS_WHOLE else list(firsts.values())


def lowered(candidates: Sequence[Sample]) -> Any:
    """The kernels of one program with all samples of a primitive."""
    counts = [len(s.operands) for s in candidates]

    def everything(*flat: Any) -> list[Any]:
        remaining = iter(flat)
        operands = [[next(remaining) for _ in range(n)] for n in counts]
        return [s.primitive(*xs, **s.params) for s, xs in zip(candidates, operands, strict=True)]

    types = [t for s in candidates for t in s.types]
    return lower(program_of(everything, *types), TARGET).kernels
