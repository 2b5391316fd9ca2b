"""C11 as a dialect of the C family: data only, for processors without anything but a C compiler.

A kernel is a function of one grid point, which a launch calls in a loop over the grid; compilers
inline it there, and vectorise its loads and stores. Functions that C does not round exactly are
rune's own (legalize/scalars.py), with the same bits for every library.
The compiler must be told OPTIONS: no contraction, and that one address may hold several types.
Not here: floats below 32 bits and 4-bit integers, which lowering/legalize keeps as bits.
"""

from __future__ import annotations

import re

import numpy as np

from rune import dtypes
from rune.lowering.codegen.c.dialect import Dialect, Scalar, exact_calls
from rune.lowering.codegen.target import Target, natively

OPTIONS = ("-std=c11", "-O3", "-ffp-contract=off", "-fno-strict-aliasing")


def _integers(dtype: np.dtype) -> dict[str, str]:
    bits, type_ = 8 * dtype.itemsize, _TYPES[dtype]
    return {
        "popcount": f"({type_})rune_popcount((uint{bits}_t){{0}})",
        "clz": f"({type_})rune_clz((uint{bits}_t){{0}}, {bits})",
    }


def _bits(name: str, source: str, target: str) -> str:
    return f"""static inline {target} {name}({source} value) {{
  {target} bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}}"""


_HELPERS = {
    "rune_bits_f32": _bits("rune_bits_f32", "float", "uint32_t"),
    "rune_bits_f64": _bits("rune_bits_f64", "double", "uint64_t"),
    "rune_f32_of": _bits("rune_f32_of", "uint32_t", "float"),
    "rune_f64_of": _bits("rune_f64_of", "uint64_t", "double"),
    "rune_popcount": """static inline int rune_popcount(uint64_t bits) {
  int count = 0;
  for (; bits; bits &= bits - 1) count++;
  return count;
}""",
    "rune_clz": """static inline int rune_clz(uint64_t bits, int width) {
  for (; bits; bits >>= 1) width--;
  return width;
}""",
}
_TYPES = {
    d: f"{'u' if d in dtypes.UNSIGNED else ''}int{8 * d.itemsize}_t" for d in dtypes.INTEGER - {dtypes.i4, dtypes.u4}
}
_SUFFIXES = {dtypes.u32: "u", dtypes.i64: "LL", dtypes.u64: "ULL"}

C = Dialect(
    name="C",
    scalars={
        dtypes.bool_: Scalar("bool", "uint8_t", load="({0} != 0)", store="(uint8_t){0}"),
        **{d: Scalar(name, name, _SUFFIXES.get(d, "")) for d, name in _TYPES.items()},
        dtypes.f32: Scalar("float", "float", "f"),
        dtypes.f64: Scalar("double", "double"),
    },
    functions={dtypes.f32: exact_calls("f"), dtypes.f64: exact_calls(), **{d: _integers(d) for d in _TYPES}},
    to_bits={dtypes.f32: "rune_bits_f32({0})", dtypes.f64: "rune_bits_f64({0})"},
    from_bits={dtypes.f32: "rune_f32_of({0})", dtypes.f64: "rune_f64_of({0})"},
    casts={},
    helpers=_HELPERS,
    preamble="#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>",
    extensions={},
    kernel="static inline void",
    function="static inline ",
    global_pointer="{0} *{1}",
    const_pointer="const {0} *{1}",
    restrict="restrict ",
    shared_qualifier="",
    barrier="",
    index_type="int64_t",
    grid_point="_at_{0}",
    group="_at_{0}",
    thread="0",
    grid_dims=3,
    pointer_offsets=False,
    positions=", ".join(f"const int64_t _at_{k}" for k in range(3)),
    reserved_words=frozenset(
        re.findall(r"[a-z_]\w*", " ".join(exact_calls("f").values()) + " ".join(exact_calls().values()))
        + "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t memcpy isfinite main".split()
        + "NULL INFINITY NAN HUGE_VAL size_t ptrdiff_t y0 y1 yn j0 j1 jn gamma asm typeof".split()
    ),
)

# One thread, whose kernels are loops; rune does not know what the compiler assumes of the
# processor.
TARGET = Target(
    name="c:0",
    backend="c",
    language="c",
    description="a processor with a C compiler",
    dtypes=frozenset(C.scalars),
    vector_bytes=16,
    cores=1,
    threads_per_workgroup=1,
    shared_bytes=0,
    scratch_bytes=1 << 16,
    routines=frozenset({"c_source"}),
    subgroup_threads=1,
    native=natively(arithmetic=[dtypes.f32, dtypes.f64]),
    is_processor=True,
)
