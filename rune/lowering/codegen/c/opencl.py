"""OpenCL C as a dialect of the C family: data only.

f64 needs cl_khr_fp64. 16-bit floats are stored as ushort and computed in float, so that no
extension is needed; vload_half converts them by way of private memory, which compilers remove.
That memory is an array of bytes, as bytes may be read as any type: compilers may assume that a
ushort never aliases a half, and PoCL then computed wrong sums. Devices are little-endian.
LLVM 14, in PoCL, vectorises sums at the places (7 * j) % 64 by stores of whole rows, which wrote
garbage between these places. So loops that write at computed places are marked.
Not here: 8-bit floats and 4-bit integers, which lowering/legalize stores as bits.
"""

from __future__ import annotations

import re

from rune import dtypes
from rune.lowering.codegen.c.dialect import Dialect, Scalar, exact_calls, narrow_float

# Functions that OpenCL rounds exactly. In others a driver may err by 2 to 16 ulps, so rune has its
# own (legalize/scalars.py), with the same bits as on Vulkan and WebGPU, and faster on PoCL.
_FLOAT = exact_calls(is_finite="(bool)isfinite({0})")
_INTEGER = {"popcount": "popcount({0})", "clz": "clz({0})"}

_HELPERS = {
    "rune_f16_load": """float rune_f16_load(ushort bits) {
  __attribute__((aligned(2))) const uchar bytes[2] = {(uchar)bits, (uchar)(bits >> 8)};
  return vload_half(0, (const __private half*)bytes);
}""",
    "rune_f16_store": """ushort rune_f16_store(float value) {
  __attribute__((aligned(2))) uchar bytes[2];
  vstore_half_rte(value, 0, (__private half*)bytes);
  return bytes[0] | (ushort)bytes[1] << 8;
}""",
    "rune_f16_store_f64": """ushort rune_f16_store_f64(double value) {
  __attribute__((aligned(2))) uchar bytes[2];
  vstore_half_rte(value, 0, (__private half*)bytes);
  return bytes[0] | (ushort)bytes[1] << 8;
}""",
    "rune_add_i64_atomically": """#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
void rune_add_i64_atomically(volatile __global long* at, long value) {
  atom_add(at, value);
}""",
    "rune_bf16_load": """float rune_bf16_load(ushort bits) {
  return as_float((uint)bits << 16);
}""",
    "rune_bf16_store": """ushort rune_bf16_store(float value) {
  const uint bits = as_uint(value);
  if (value != value) return (ushort)((bits >> 16) | 0x40);
  return (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}""",
}


# Every device of OpenCL 1.2 has those of 32 bits, in global and local memory. Sums of i64 need an
# extension, and rune uses them in global memory only.
ATOMICS = {
    **{
        (combine, dtype): f"atomic_{combine}(&{{0}}, {{1}})"
        for combine in ("add", "min", "max")
        for dtype in (dtypes.i32, dtypes.u32)
    },
    ("add", dtypes.i64): "rune_add_i64_atomically(&{0}, {1})",
}


# As many as one row of a square's block has; an access needs no more than an element's alignment.
# Bodies that accumulate have no pieces, because PoCL vectorises them better by itself: with pieces,
# products of 512 by 512 take 1.6 times as long, a convolution three times.
_NEIGHBOURS = 8
_PIECES = {d: (s, _NEIGHBOURS) for d, s in ((dtypes.f32, "float"), (dtypes.i32, "int"), (dtypes.u32, "uint"))}


OPENCL_C = Dialect(
    name="OpenCL C",
    scalars={
        dtypes.bool_: Scalar("bool", "uchar", load="({0} != 0)", store="(uchar){0}"),
        dtypes.i8: Scalar("char", "char"),
        dtypes.i16: Scalar("short", "short"),
        dtypes.i32: Scalar("int", "int"),
        dtypes.i64: Scalar("long", "long", "L"),
        dtypes.u8: Scalar("uchar", "uchar"),
        dtypes.u16: Scalar("ushort", "ushort"),
        dtypes.u32: Scalar("uint", "uint", "u"),
        dtypes.u64: Scalar("ulong", "ulong", "UL"),
        dtypes.bf16: narrow_float("bf16", "ushort"),
        dtypes.f16: narrow_float("f16", "ushort"),
        dtypes.f32: Scalar("float", "float", "f"),
        dtypes.f64: Scalar("double", "double"),
    },
    functions={dtypes.f32: _FLOAT, dtypes.f64: _FLOAT, **dict.fromkeys(dtypes.INTEGER, _INTEGER)},
    to_bits={dtypes.f32: "as_uint({0})", dtypes.f64: "as_ulong({0})"},
    from_bits={dtypes.f32: "as_float({0})", dtypes.f64: "as_double({0})"},
    casts={(dtypes.f64, dtypes.f16): "rune_f16_load(rune_f16_store_f64({0}))"},
    helpers=_HELPERS,
    preamble="#pragma OPENCL FP_CONTRACT OFF",
    extensions={dtypes.f64: "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"},
    kernel="__kernel void",
    function="",
    global_pointer="__global {0}* {1}",
    const_pointer="__global const {0}* {1}",
    restrict="restrict ",
    shared_qualifier="__local ",
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    index_type="long",
    grid_point="get_global_id({0})",
    # A launch may run a part of all groups, and begins at its offset.
    group="get_group_id({0}) + get_global_offset({0}) / {2}",
    thread="get_local_id({0})",
    grid_dims=3,
    pointer_offsets=True,
    pieces=_PIECES,
    piece_elements=tuple(f"s{k}" for k in range(_NEIGHBOURS)),
    piece_load="vload{2}(0, {1})",
    piece_store="vstore{3}(({0})({2}), 0, {1})",
    no_piece="({0})(0)",
    pieces_for_sums=False,
    one_by_one="#pragma clang loop vectorize(disable)",
    atomics=ATOMICS,
    reserved_words=frozenset(
        re.findall(r"[a-z_]\w*", " ".join(_FLOAT.values()))
        + "NULL INFINITY NAN HUGE_VAL MAXFLOAT kernel global local constant private event_t".split()
        + "vload2 vload4 vload8 vstore2 vstore4 vstore8".split()
        + "popcount clz isfinite vload_half vstore_half_rte barrier size_t ptrdiff_t main".split()
        + "atomic_add atomic_min atomic_max".split()
    ),
)
