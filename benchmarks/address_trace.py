"""Addresses that warps of CUDA kernels touch, by running the kernels on the host.

A kernel's CUDA C is compiled as C++ in which every access calls a function, as it does for a race
detector (g++ -fsanitize=thread), but one of ours. Lanes of a warp run one after the other; what one
instruction does for the n-th time in each of them is one request. Barriers do nothing, so values
are wrong where threads exchange some, and addresses right where they do not depend on such values.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rune.lowering.codegen.c.cuda_teams import TEAMS
from rune.lowering.codegen.c.cuda_units import UNITS

SECTOR, WARP, SAMPLES = 32, 32, 16  # bytes, threads, warps
MOST, OFTEN, PLACES = 1 << 16, 32, 1 << 14  # accesses of a lane, of one instruction; instructions
_KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(')
_TABLE = "const unsigned long long* __restrict__ _table"

_HEAD = """
#include <math.h>
#include <string.h>
using namespace std;
struct Position { unsigned x, y, z; };
static Position blockIdx, blockDim, threadIdx;
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
static inline void __syncthreads() {}
#define __builtin_assume(holds)
static inline void __syncwarp() {}
template <class T> static inline T __ldg(const T* address) { return *address; }
template <class T> static inline T atomicAdd(T* at, T x) { T old = *at; return *at = old + x, old; }
template <class T> static inline T atomicMin(T* at, T x) { T old = *at; return *at = x < old ? x : old, old; }
template <class T> static inline T atomicMax(T* at, T x) { T old = *at; return *at = x > old ? x : old, old; }
template <class To, class From> static inline To bits(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
static inline unsigned __float_as_uint(float x) { return bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return bits<float>(x); }
static inline long long __double_as_longlong(double x) { return bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return bits<double>(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
// Copies are of one piece, which no optimisation takes apart.
#define PIECE(type, name, count, fields) \\
  struct name##count { \\
    typedef type All __attribute__((vector_size(count * sizeof(type)))); \\
    union { struct { fields }; All all; }; \\
    name##count() : all() {} \\
    name##count(const name##count& other) : all(other.all) {} \\
    name##count& operator=(const name##count& other) { all = other.all; return *this; } \\
  };
#define PIECES(type, name) \\
  PIECE(type, name, 2, type x; type y;) \\
  PIECE(type, name, 4, type x; type y; type z; type w;) \\
  static inline name##2 make_##name##2(type x, type y) { name##2 p; p.x = x; p.y = y; return p; } \\
  static inline name##4 make_##name##4(type x, type y, type z, type w) \\
    { name##4 p; p.x = x; p.y = y; p.z = z; p.w = w; return p; }
PIECES(float, float) PIECES(int, int) PIECES(unsigned, uint) PIECES(double, double)
PIECES(long long, longlong) PIECES(unsigned long long, ulonglong)
PIECES(short, short) PIECES(unsigned short, ushort) PIECES(signed char, char) PIECES(unsigned char, uchar)
static unsigned char _pool[1 << 18];
// Units for matrices read shared memory alone; a fetch is a load of one piece.
struct Matrix {};
#define MATRIX(name) static inline Matrix name(const unsigned short*, int) { return {}; }
MATRIX(rune_rows) MATRIX(rune_rows_turned) MATRIX(rune_columns) MATRIX(rune_columns_turned)
MATRIX(rune_columns_8) MATRIX(rune_columns_8_turned)
template <class... All> static inline void rune_multiply_bf16(All&&...) {}
template <class... All> static inline void rune_multiply_bf16_8(All&&...) {}
template <class... All> static inline void rune_multiply_f16(All&&...) {}
template <class... All> static inline void rune_multiply_f16_8(All&&...) {}
#define FETCH(bytes, piece) \\
  __attribute__((always_inline)) static inline void rune_fetch_##bytes(void* to, const void* from, bool guard) { \\
    if (guard) *(piece*)to = *(const piece*)from; \\
  }
FETCH(4, unsigned) FETCH(8, uint2) FETCH(16, uint4) FETCH(line_4, unsigned) FETCH(line_8, uint2) FETCH(line_16, uint4)
static inline void rune_fetched() {}
static inline unsigned long long __cvta_generic_to_shared(const void* at) { return (unsigned long long)at; }
static inline void rune_multiply_begins() {}
static inline void rune_multiply_ends() {}
template <int> static inline void rune_multiplied_but() {}
template <int> static inline void rune_fetched_but() {}
static inline void rune_fetches_end() {}
template <class... Sums> static inline void rune_multiplied(Sums&...) {}
#define TOGETHER(columns) \\
  template <int, int, class... All> static inline void rune_multiply_together_bf16_##columns(All&&...) {} \\
  template <int, int, class... All> static inline void rune_multiply_together_f16_##columns(All&&...) {}
TOGETHER(64) TOGETHER(128) TOGETHER(192) TOGETHER(256)
"""
_CALLBACKS = """
#include <stdint.h>
#include <stddef.h>
struct Access { uint64_t place, address; uint32_t bytes, time; };
struct Place { uint64_t place, times; };
const unsigned PLACES = 1 << 14;
Access* accesses; Place* places; uint64_t most, often, number;
extern "C" {
static inline void note(void* address, unsigned bytes, unsigned writes, void* at) {
  uint64_t place = (uint64_t)at;
  unsigned slot = (unsigned)(place * 0x9E3779B97F4A7C15ull >> 50);
  while (places[slot].place && places[slot].place != place) slot = (slot + 1) % PLACES;
  places[slot].place = place;
  uint64_t time = places[slot].times++;
  if (time < often && number < most) accesses[number++] = {place, (uint64_t)address, bytes, (uint32_t)time};
}
#define BOTH(name, bytes) \\
  void __tsan_read##name(void* p) { note(p, bytes, 0, __builtin_return_address(0)); } \\
  void __tsan_write##name(void* p) { note(p, bytes, 1, __builtin_return_address(0)); } \\
  void __tsan_unaligned_read##name(void* p) { note(p, bytes, 0, __builtin_return_address(0)); } \\
  void __tsan_unaligned_write##name(void* p) { note(p, bytes, 1, __builtin_return_address(0)); }
BOTH(1, 1) BOTH(2, 2) BOTH(4, 4) BOTH(8, 8) BOTH(16, 16)
void __tsan_read_range(void* p, size_t n) { note(p, n, 0, __builtin_return_address(0)); }
void __tsan_write_range(void* p, size_t n) { note(p, n, 1, __builtin_return_address(0)); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
void begin(Access* to, uint64_t room, Place* of, uint64_t each) {
  accesses = to; most = room; places = of; often = each; number = 0;
}
uint64_t end() { return number; }
}
"""
_ACCESS = np.dtype([("place", np.uint64), ("address", np.uint64), ("bytes", np.uint32), ("time", np.uint32)])
_PLACE = np.dtype([("place", np.uint64), ("times", np.uint64)])


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests of the sampled warps to buffers: of a warp on average, and sectors that one touches.

    widths: bytes of the accesses, each once
    """

    requests: float
    sectors: float
    widths: tuple[int, ...]


class Kernels:
    """The kernels of one program, compiled for the host."""

    def __init__(self, source: str):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "callbacks.cpp").write_text(_CALLBACKS)
            (folder / "kernels.cpp").write_text(_host(source, _KERNEL.findall(source)))
            _build(["-fsanitize=thread", "-c", "kernels.cpp", "-o", "kernels.o"], folder)
            _build(["-shared", "kernels.o", "callbacks.cpp", "-o", "kernels.so"], folder)
            # It stays loaded when its file is gone.
            self._library = ctypes.CDLL(str(folder / "kernels.so"))
        self._library.end.restype = ctypes.c_uint64

    def trace(self, name: str, blocks: int, threads: int, buffers: Sequence[np.ndarray]) -> Trace:
        """The accesses to the buffers of warps spread over a launch."""
        words = np.array([b.ctypes.data for b in buffers], np.uint64)
        warps = -(-threads // WARP)
        requests, sectors, widths = 0.0, 0.0, set[int]()
        for sample in range(SAMPLES):
            block, warp = (2 * sample + 1) * blocks // (2 * SAMPLES), sample % warps
            lanes = range(WARP * warp, min(threads, WARP * (warp + 1)))
            runs = [self._lane(name, block, threads, lane, words, buffers) for lane in lanes]
            for often, each in _requests(runs, widths):
                requests += often
                sectors += often * each
        return Trace(requests / SAMPLES, sectors / max(1.0, requests), tuple(sorted(widths)))

    def _lane(
        self, name: str, block: int, threads: int, thread: int, words: np.ndarray, buffers: Sequence[np.ndarray]
    ) -> Run:
        log, places = np.empty(MOST, _ACCESS), np.zeros(PLACES, _PLACE)
        to, of = (ctypes.c_void_p(array.ctypes.data) for array in (log, places))
        self._library.begin(to, ctypes.c_uint64(MOST), of, ctypes.c_uint64(OFTEN))
        getattr(self._library, f"trace_{name}")(block, threads, thread, ctypes.c_void_p(words.ctypes.data))
        times = dict(places[places["place"] > 0].tolist())
        return Run(_of_buffers(log[: self._library.end()], buffers), times)


@dataclass(frozen=True, slots=True)
class Run:
    """The run of one lane: the first accesses of each instruction, and how often it ran in all."""

    accesses: np.ndarray
    times: Mapping[int, int]


def _of_buffers(accesses: np.ndarray, buffers: Sequence[np.ndarray]) -> np.ndarray:
    """The accesses to the buffers, without shared memory and a lane's own arrays."""
    address = accesses["address"]
    inside = np.zeros(len(accesses), np.bool_)
    for b in buffers:
        inside |= (address >= b.ctypes.data) & (address < b.ctypes.data + b.nbytes)
    return accesses[inside]


def _requests(runs: Sequence[Run], widths: set[int]) -> Iterator[tuple[float, float]]:
    """How often a warp runs each instruction, and the sectors of one request, on average."""
    touched: dict[int, dict[int, set[int]]] = {}
    for run in runs:
        for place, address, size, time in run.accesses.tolist():
            widths.add(size)
            sectors = range(address // SECTOR, (address + size - 1) // SECTOR + 1)
            touched.setdefault(place, {}).setdefault(time, set()).update(sectors)
    for place, by_time in touched.items():
        often = max(run.times.get(place, 0) for run in runs)
        yield float(often), float(np.mean([len(s) for s in by_time.values()]))


def _host(source: str, names: Sequence[str]) -> str:
    """C++ of a program, with a way into each kernel as one thread of it."""
    source = source.replace(_TABLE, "const unsigned long long* _table").replace("__restrict__", "")
    for function in (*UNITS.values(), *TEAMS.values()):
        source = source.replace(function, "")
    source = re.sub(r'asm\("[^;]*?%0[^;]*;"[^;]*;', "value = {};", source)
    source = re.sub(r"extern __shared__[^;]*_pool\[\];", "", source)
    ways = (
        f'extern "C" __attribute__((no_sanitize("thread"))) void trace_{name}'
        f"(unsigned block, unsigned threads, unsigned thread, const unsigned long long* words) "
        f"{{ blockIdx = {{block}}; blockDim = {{threads}}; threadIdx = {{thread}}; "
        # Barriers do nothing here, so what threads count together would grow from one to the next.
        f"memset(_pool, 0, sizeof _pool); {name}(words); }}"
        for name in names
    )
    return "\n".join([_HEAD, source, *ways])


def _build(arguments: Sequence[str], folder: Path) -> None:
    command = ["g++", "-O1", "-w", "-std=gnu++17", "-fPIC", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
