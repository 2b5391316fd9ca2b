"""Functions of CUDA C for floats: conversions of 16-bit floats, extremes with NaN, and a copy.

16-bit floats are stored as unsigned short; PTX converts f16 in hardware, bf16 from compute
capability 8.0 on. Source: PTX ISA, "cvt", "max".
"""

from __future__ import annotations

from rune.lowering.codegen.c.cuda_units import FUNCTION


def _half(name: str, parameter: str, letter: str) -> str:
    """A conversion to f16 in hardware, to nearest, ties to even."""
    return f"""{FUNCTION}unsigned short {name}({parameter} value) {{
  unsigned short bits;
  asm("cvt.rn.f16.f{32 if letter == "f" else 64} %0, %1;" : "=h"(bits) : "{letter}"(value));
  return bits;
}}"""


BF16 = {
    "rune_bf16_load": f"""{FUNCTION}float rune_bf16_load(unsigned short bits) {{
  return __uint_as_float((unsigned int)bits << 16);
}}""",
    "rune_bf16_store": f"""{FUNCTION}unsigned short rune_bf16_store(float value) {{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  unsigned int result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(0.0f), "f"(value));
  return (unsigned short)result;
#else
  const unsigned int bits = __float_as_uint(value);
  if (value != value) return (unsigned short)((bits >> 16) | 0x40);
  return (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
#endif
}}""",
}


def _extreme(name: str, sign: str) -> str:
    """The larger or smaller of two, NaN if either is, by one instruction where there is one."""
    return f"""{FUNCTION}float rune_{name}_nan(float a, float b) {{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float result;
  asm("{name}.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a != a ? a : a {sign} b ? a : b;
#endif
}}"""


EXTREMES = {"rune_max_nan": _extreme("max", ">"), "rune_min_nan": _extreme("min", "<")}
F16 = {
    "rune_f16_load": f"""{FUNCTION}float rune_f16_load(unsigned short bits) {{
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}}""",
    "rune_f16_store": _half("rune_f16_store", "float", "f"),
    "rune_f16_store_f64": _half("rune_f16_store_f64", "double", "d"),
}


# Adding -0 changes no value, and compilers keep the instruction.
COPY = {
    "rune_copy": f"""{FUNCTION}float rune_copy(float value) {{
  float copy;
  asm("add.rn.f32 %0, %1, 0f80000000;" : "=f"(copy) : "f"(value));
  return copy;
}}"""
}
