"""Addresses that warps of CUDA kernels touch, by running the kernels on the host.

A kernel's CUDA C is compiled as C++ whose every access calls a function of ours, as race detectors
do it (g++ -fsanitize=thread, with callbacks of our own in the place of its library). Lanes of a warp
run one after the other; what one instruction does for the n-th time in each of them is one request.
Barriers do nothing, so values are wrong where threads exchange some, and addresses right where they
do not depend on such values.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SECTOR, WARP, SAMPLES, MOST = 32, 32, 8, 1 << 14  # bytes, threads, warps, accesses of a lane
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
#define __shared__ static
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
static inline void __syncthreads() {}
template <class T> static inline T __ldg(const T* address) { return *address; }
template <class To, class From> static inline To bits(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
static inline unsigned __float_as_uint(float x) { return bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return bits<float>(x); }
static inline long long __double_as_longlong(double x) { return bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return bits<double>(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
static unsigned char _pool[1 << 18];
"""
_CALLBACKS = """
#include <stdint.h>
#include <stddef.h>
struct Access { uint64_t place, address; uint32_t bytes, writes; };
Access* accesses; uint64_t most, number;
extern "C" {
static inline void note(void* address, unsigned bytes, unsigned writes, void* place) {
  if (number < most) accesses[number] = {(uint64_t)place, (uint64_t)address, bytes, writes};
  number++;
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
void begin(Access* to, uint64_t room) { accesses = to; most = room; number = 0; }
uint64_t end() { return number; }
}
"""
_ACCESS = np.dtype([("place", np.uint64), ("address", np.uint64), ("bytes", np.uint32), ("writes", np.uint32)])


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
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        names = _KERNEL.findall(source)
        (folder / "callbacks.cpp").write_text(_CALLBACKS)
        (folder / "kernels.cpp").write_text(_host(source, names))
        _build(["-fsanitize=thread", "-c", "kernels.cpp", "-o", "kernels.o"], folder)
        _build(["-fno-sanitize=all", "-shared", "kernels.o", "callbacks.cpp", "-o", "kernels.so"], folder)
        self._library = ctypes.CDLL(str(folder / "kernels.so"))
        self._library.end.restype = ctypes.c_uint64

    def trace(self, name: str, blocks: int, threads: int, buffers: Sequence[np.ndarray], sizes: Sequence[int]) -> Trace:
        """What warps spread over a launch touch of the buffers."""
        words = np.array([*(b.ctypes.data for b in buffers), *sizes, 0], np.uint64)
        warps = -(-threads // WARP)
        counts, sectors, widths = [], [], set[int]()
        for sample in range(SAMPLES):
            block, warp = sample * (blocks - 1) // (SAMPLES - 1), sample % warps
            lanes = range(WARP * warp, min(threads, WARP * (warp + 1)))
            runs = [self._lane(name, block, threads, lane, words) for lane in lanes]
            each = _requests([_of_buffers(run, buffers) for run in runs], widths)
            counts.append(len(each))
            sectors += each
        return Trace(float(np.mean(counts)), float(np.mean(sectors)) if sectors else 0.0, tuple(sorted(widths)))

    def _lane(self, name: str, block: int, threads: int, thread: int, words: np.ndarray) -> np.ndarray:
        log = np.empty(MOST, _ACCESS)
        self._library.begin(ctypes.c_void_p(log.ctypes.data), ctypes.c_uint64(MOST))
        run = getattr(self._library, f"trace_{name}")
        run(block, threads, thread, ctypes.c_void_p(words.ctypes.data))
        return log[: min(MOST, self._library.end())]


def _of_buffers(run: np.ndarray, buffers: Sequence[np.ndarray]) -> np.ndarray:
    """Accesses of a lane to the buffers; not to shared memory, nor to what is its own."""
    address = run["address"]
    inside = np.zeros(len(run), np.bool_)
    for b in buffers:
        inside |= (address >= b.ctypes.data) & (address < b.ctypes.data + b.nbytes)
    return run[inside]


def _requests(runs: Sequence[np.ndarray], widths: set[int]) -> list[int]:
    """Sectors of each request: accesses of all lanes by one instruction, for the same time."""
    touched: dict[tuple[int, int], set[int]] = {}
    for run in runs:
        times: dict[int, int] = {}
        for place, address, size, _ in run.tolist():
            time = times.get(place, 0)
            times[place] = time + 1
            widths.add(size)
            touched.setdefault((place, time), set()).update(
                range(address // SECTOR, (address + size - 1) // SECTOR + 1)
            )
    return [len(sectors) for sectors in touched.values()]


def _host(source: str, names: Sequence[str]) -> str:
    """C++ of a program, with a way into each kernel as one thread of it."""
    source = source.replace(_TABLE, "const unsigned long long* _table").replace("__restrict__", "")
    source = re.sub(r'asm\("[^;]*?%0[^;]*;"[^;]*;', "value = {};", source)
    source = re.sub(r"extern __shared__[^;]*_pool\[\];", "", source)
    ways = (
        f'extern "C" __attribute__((no_sanitize("thread"))) void trace_{name}'
        f"(unsigned block, unsigned threads, unsigned thread, const unsigned long long* words) "
        f"{{ blockIdx = {{block}}; blockDim = {{threads}}; threadIdx = {{thread}}; {name}(words); }}"
        for name in names
    )
    return "\n".join([_HEAD, source, *ways])


def _build(arguments: Sequence[str], folder: Path) -> None:
    command = ["g++", "-O1", "-w", "-std=gnu++17", "-fPIC", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
