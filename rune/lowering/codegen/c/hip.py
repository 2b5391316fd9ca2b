"""HIP C++ as a dialect of the C family: CUDA C, except where clang differs.

UNVERIFIED: its text is golden-tested and has never been compiled for, or run on, AMD hardware.
There is no executor for it. Contraction is switched off in the source; f16 is clang's _Float16.
"""

from __future__ import annotations

from dataclasses import replace

from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.cuda_floats import BF16, EXTREMES
from rune.lowering.codegen.c.cuda_units import FUNCTION


def _half(name: str, parameter: str) -> str:
    """Rounded once, to nearest, ties to even."""
    return f"""{FUNCTION}unsigned short {name}({parameter} value) {{
  return __builtin_bit_cast(unsigned short, (_Float16)value);
}}"""


HIP = replace(
    CUDA_C,
    name="HIP C++",
    preamble="#include <hip/hip_runtime.h>\n#define __isGlobal(address) true\n#pragma clang fp contract(off)",
    helpers={
        **BF16,
        **EXTREMES,
        "rune_f16_load": f"""{FUNCTION}float rune_f16_load(unsigned short bits) {{
  return (float)__builtin_bit_cast(_Float16, bits);
}}""",
        "rune_f16_store": _half("rune_f16_store", "float"),
        "rune_f16_store_f64": _half("rune_f16_store_f64", "double"),
    },
    barriers={},
    multiply={},
    fetch="",
    fetch_wait="",
    copy="",
    together=None,
)
