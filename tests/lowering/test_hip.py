"""HIP C++ as rendered. It has never been compiled for AMD hardware: text is all that is tested.

Where it differs from CUDA C, and only there, the whole text is shown.
"""

from __future__ import annotations

from dataclasses import fields

from rune.lowering.codegen.c import hip
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.hip import HIP
from rune.lowering.codegen.c.render import assemble, render
from rune.lowering.kernel.text import parse
from tests.lowering.kernel.examples import TEXTS


def test_contraction_is_off_and_half_floats_are_those_of_clang(expect):
    text = """
    code f(x: read f16[8], w: read f64[8], y: write f16[8]) {
      for i in 8 grid {
        a: f16 = f16(w[i])
        store y[i] = x[i] * a
      }
    }"""
    expect(
        assemble([render(parse(text), HIP)], HIP).rstrip(),
        """
        #include <hip/hip_runtime.h>
        #define __isGlobal(address) true
        #pragma clang fp contract(off)

        static __device__ float rune_f16_load(unsigned short bits) {
          return (float)__builtin_bit_cast(_Float16, bits);
        }

        static __device__ unsigned short rune_f16_store_f64(double value) {
          return __builtin_bit_cast(unsigned short, (_Float16)value);
        }

        static __device__ unsigned short rune_f16_store(float value) {
          return __builtin_bit_cast(unsigned short, (_Float16)value);
        }

        extern "C" __global__ void run_f(
            const unsigned long long* __restrict__ _table) {
          const unsigned short* __restrict__ x = (const unsigned short*)_table[0];
          __builtin_assume(__isGlobal(x));
          const double* __restrict__ w = (const double*)_table[1];
          __builtin_assume(__isGlobal(w));
          unsigned short* __restrict__ y = (unsigned short*)_table[2];
          __builtin_assume(__isGlobal(y));
          const int i = (int)blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= 8) return;
          const float a = rune_f16_load(rune_f16_store_f64(__ldg(&w[i])));
          y[i] = rune_f16_store((rune_f16_load(__ldg(&x[i])) * a));
        }""",
    )


def test_kernels_are_those_of_cuda():
    for text in TEXTS.values():
        assert render(parse(text), HIP) == render(parse(text), CUDA_C)


def test_the_dialects_differ_only_in_name_first_lines_half_type_subgroups_units_and_copies():
    different = {f.name for f in fields(HIP) if getattr(HIP, f.name) != getattr(CUDA_C, f.name)}

    assert different == {
        "name",
        "preamble",
        "helpers",
        "barriers",
        "multiply",
        "fetch",
        "fetch_wait",
        "copy",
        "together",
    }
    assert {n for n, t in HIP.helpers.items() if t != CUDA_C.helpers[n]} == {
        "rune_f16_load",
        "rune_f16_store",
        "rune_f16_store_f64",
    }


def test_the_dialect_is_marked_as_unverified():
    assert "UNVERIFIED" in str(hip.__doc__)
