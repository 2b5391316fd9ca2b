"""CUDA C as a dialect of the C family: data only. NVRTC compiles it, without any header.

A kernel has one parameter, the address of a table of 64-bit words: first the address of each
buffer, then each size. So the contents of a CUDA graph never change; a replay only rewrites the
table (backends/cuda/graph.py). Launches have one dimension, whose blocks are not bounded in
practice; all grid axes are folded into it, by 32-bit divisions where the indices fit.

Addresses of buffers and shared arrays are multiples of 16 bytes, so that neighbouring elements are
one access of up to 128 bits (runs.py). A workgroup that shares more than 48 KB gets it from the
launch, as all devices require.
16-bit floats are stored as unsigned short and computed in float; PTX converts f16 in hardware.
The compiler must be told OPTIONS: no contraction, no flushed denormals, division and sqrt rounded.
Kernels call CUDA's own math functions, and rune's for logistic and erf_inv (legalize/scalars.py).
By NVIDIA's tables, which rest on tests and not on proofs, most are within 2 ulps; in f32 tan, pow,
acosh and erfc may be 4 off, in f64 erfc 5. Arithmetic, sqrt, fma, rem and the roundings are exact.
Not here: 8-bit floats and 4-bit integers, which lowering/legalize stores as bits.
Source: CUDA C++ Programming Guide, "Mathematical Functions"; PTX ISA, "cvt".
"""

from __future__ import annotations

import re
from dataclasses import replace

from rune import dtypes
from rune.lowering.codegen.c.cuda_floats import BF16, COPY, EXTREMES, F16
from rune.lowering.codegen.c.cuda_teams import MATRICES, TEAMS
from rune.lowering.codegen.c.cuda_units import FUNCTION, UNITS
from rune.lowering.codegen.c.dialect import Dialect, Scalar, Together, exact_calls, narrow_float
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.matrices import SUBGROUP

OPTIONS = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")

_SAME_NAME = (
    "cbrt exp exp2 expm1 log log2 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc"
).split()


def _floats(suffix: str) -> dict[str, str]:
    """Operation -> call; `suffix` is that of C's functions of float."""
    return {
        **exact_calls(suffix),
        **{name: f"{name}{suffix}({{0}})" for name in _SAME_NAME},
        **{name: f"{name}{suffix}({{0}}, {{1}})" for name in ("pow", "atan2")},
    }


def _integers(type_: str, suffix: str) -> dict[str, str]:
    """The intrinsics give an int."""
    return {"popcount": f"({type_})__popc{suffix}({{0}})", "clz": f"({type_})__clz{suffix}({{0}})"}


_UNSIGNED = "unsigned long long"
_C_INTEGERS = {dtypes.i32: "int", dtypes.u32: "unsigned int", dtypes.i64: "long long", dtypes.u64: _UNSIGNED}
# Sums of i64 have the same bits as those of u64. Where many threads update an extreme, most values
# do not change it, and reading the element first shows that in a fraction of an atomic's time;
# volatile avoids a stale value.
ATOMICS = {
    **{("add", d): "atomicAdd(&{0}, {1})" for d in (dtypes.i32, dtypes.u32, dtypes.u64, dtypes.f32, dtypes.f64)},
    ("add", dtypes.i64): f"atomicAdd(({_UNSIGNED}*)&{{0}}, ({_UNSIGNED})({{1}}))",
    **{
        (combine, d): f"if (*(volatile {c}*)&{{0}} {sign} {{1}}) atomic{combine.capitalize()}(&{{0}}, {{1}})"
        for combine, sign in (("min", ">"), ("max", "<"))
        for d, c in _C_INTEGERS.items()
    },
}
_F32 = {**_floats("f"), **{name: f"rune_{name}_nan({{0}}, {{1}})" for name in ("max", "min")}}
_F64 = _floats("")


# The widest access of neighbours: 16 bytes.
_PIECES = {
    dtypes.f32: ("float", 4),
    dtypes.i32: ("int", 4),
    dtypes.u32: ("uint", 4),
    dtypes.f64: ("double", 2),
    dtypes.i64: ("longlong", 2),
    dtypes.u64: ("ulonglong", 2),
    **dict.fromkeys((dtypes.f16, dtypes.bf16, dtypes.u16), ("ushort", 4)),
    dtypes.i16: ("short", 4),
    **dict.fromkeys((dtypes.u8, dtypes.bool_), ("uchar", 4)),
    dtypes.i8: ("char", 4),
}

CUDA_C = Dialect(
    name="CUDA C",
    scalars={
        dtypes.bool_: Scalar("bool", "unsigned char", load="({0} != 0)", store="(unsigned char){0}"),
        dtypes.i8: Scalar("signed char", "signed char"),
        dtypes.i16: Scalar("short", "short"),
        dtypes.i32: Scalar("int", "int"),
        dtypes.i64: Scalar("long long", "long long", "LL"),
        dtypes.u8: Scalar("unsigned char", "unsigned char"),
        dtypes.u16: Scalar("unsigned short", "unsigned short"),
        dtypes.u32: Scalar("unsigned int", "unsigned int", "u"),
        dtypes.u64: Scalar("unsigned long long", "unsigned long long", "ULL"),
        dtypes.bf16: narrow_float("bf16", "unsigned short"),
        dtypes.f16: narrow_float("f16", "unsigned short"),
        dtypes.f32: Scalar("float", "float", "f"),
        dtypes.f64: Scalar("double", "double"),
    },
    functions={
        dtypes.f32: _F32,
        dtypes.f64: _F64,
        dtypes.i32: _integers("int", ""),
        dtypes.u32: _integers("unsigned int", ""),
        dtypes.i64: _integers("long long", "ll"),
        dtypes.u64: _integers("unsigned long long", "ll"),
    },
    to_bits={dtypes.f32: "__float_as_uint({0})", dtypes.f64: "(unsigned long long)__double_as_longlong({0})"},
    from_bits={dtypes.f32: "__uint_as_float({0})", dtypes.f64: "__longlong_as_double({0})"},
    casts={(dtypes.f64, dtypes.f16): "rune_f16_load(rune_f16_store_f64({0}))"},
    helpers={**BF16, **EXTREMES, **F16, **UNITS, **TEAMS, **MATRICES, **COPY},
    preamble="",
    extensions={},
    kernel='extern "C" __global__ void',
    function=FUNCTION,
    global_pointer="{0}* {1}",
    const_pointer="const {0}* {1}",
    restrict="__restrict__ ",
    shared_qualifier="__shared__ __align__(16) ",
    static_shared_bytes=48 << 10,
    pool="extern __shared__ __align__(1024) unsigned char {0}[]",
    barrier="__syncthreads()",
    barriers={SUBGROUP: "__syncwarp()"},
    index_type="long long",
    grid_point="({1})blockIdx.x * blockDim.x + threadIdx.x",
    group="blockIdx.x",
    thread="threadIdx.x",
    grid_dims=1,
    pointer_offsets=False,
    reserved_words=frozenset(
        re.findall(r"[a-z_]\w*", " ".join((*_F32.values(), *_F64.values())))
        + "asm bool catch char16_t char32_t class const_cast constexpr decltype delete".split()
        + "dynamic_cast explicit export friend mutable namespace new noexcept nullptr".split()
        + "operator private protected public reinterpret_cast signed static_assert".split()
        + "static_cast template this thread_local throw try typeid typename using".split()
        + "virtual wchar_t and and_eq bitand bitor compl not not_eq or or_eq xor xor_eq".split()
        + "alignas alignof blockIdx blockDim threadIdx gridDim warpSize NULL INFINITY NAN".split()
        + "isfinite size_t ptrdiff_t main uint ushort ulong uchar".split()
        + "atomicAdd atomicMin atomicMax".split()
    ),
    thread_bound="__launch_bounds__({0}) ",
    argument_table="const unsigned long long* __restrict__ _table",
    in_memory="__builtin_assume(__isGlobal({0}))",
    narrow_index="int",
    read_only="__ldg({0})",
    pieces=_PIECES,
    atomics=ATOMICS,
    multiply={d: f"rune_multiply_{dtypes.short(d)}" for d in (dtypes.bf16, dtypes.f16)},
    fetch="rune_fetch_{0}({1}, {2}, {3})",
    fetch_wait="rune_fetched()",
    unroll="#pragma unroll {0}",
    copy="rune_copy({0})",
    together=Together(
        {d: f"rune_multiply_together_{dtypes.short(d)}" for d in (dtypes.bf16, dtypes.f16)},
        swizzle="rune_swizzled({0})",
        start="unsigned int _writes = 0",
        store_record="_writes |= 1u << 31",
        fetch="_writes |= 1u, rune_fetch_line_{0}({1}, {2}, {3})",
        barrier_wait="rune_left_behind<{0}, {1}>(_writes)",
        product_wait="rune_multiplied({0})",
    ),
)
# A launch runs some of the blocks, from `_first` on, for devices that stop long kernels.
CUDA_C_IN_PARTS = replace(
    CUDA_C,
    grid_point="({1})(blockIdx.x + (unsigned int)_first) * blockDim.x + threadIdx.x",
    group="(blockIdx.x + (unsigned int)_first)",
    argument_table=f"{CUDA_C.argument_table}, const unsigned long long _first",
)


def dialect_for(target: Target) -> Dialect:
    """CUDA C for a device."""
    return CUDA_C if target.submission_work is None else CUDA_C_IN_PARTS
