"""A CUDA device for machines without one: the driver is emulated, and kernels run on the host.

`install` makes this process see a driver (driver.cpp) before rune looks for one. cuda-bindings and
NVRTC are the real ones; only the code that NVRTC would compile for the device is compiled by g++
for the host, from the same CUDA C. So this tests the actual calls, structures, orders and kernels,
but not the memory model, the machine code or the speed of a GPU.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from rune.backends import cuda
from rune.lowering.codegen.c import cuda_teams, cuda_units
from rune.lowering.codegen.source_kernels import ENTRY

HERE = Path(__file__).parent
SWITCH = "RUNE_TEST_CUDA_EMULATOR"
_FLAGS = ("-O1", "-w", "-std=gnu++17", "-fPIC")
# Arithmetic as written; functions of constants are called too, as g++ would round them otherwise.
_OF_KERNELS = ("-ffp-contract=off", "-fno-builtin", "-fno-strict-aliasing", "-fwrapv")
# What is written for the device's own instructions, and the same for the host's.
_INSTRUCTIONS = {
    # Not compiled for the host, which has the other branches.
    'asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));': "",
    'asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));': "",
    'asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(0.0f), "f"(value));': "",
    'asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));': "value = from_half(bits);",
    'asm("add.rn.f32 %0, %1, 0f80000000;" : "=f"(copy) : "f"(value));': "copy = value;",
    'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));': "bits = to_half(value);",
    'asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value));': "bits = to_half(value);",
    "extern __shared__ __align__(1024) unsigned char _pool[];": "unsigned char* _pool = (unsigned char*)cuda_pool();",
    # On the device no value of a table is written through another pointer; g++ need not know.
    "const unsigned long long* __restrict__ _table": "const unsigned long long* _table",
}
_DECLARATION = re.compile(r'extern "C" __device__ __cudart_builtin__ void CUDARTAPI \w+\([^;]*;')
_POOL = re.compile(r"extern __shared__ (\w+(?: \w+)*) (\w+)\[\];")  # as users write it
_KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\((\d+)\) )?(\w+)\(([^)]*)\) \{')


def why_not() -> str | None:
    """Why there can be no emulated device here."""
    if sys.platform != "linux":
        return "the emulated driver is for Linux"
    return None if shutil.which("g++") else "the emulated driver needs g++"


def install() -> None:
    """From now on rune finds the device. Errors: RuntimeError where it cannot be built."""
    reason = why_not()
    if reason is not None:
        raise RuntimeError(reason)
    # What asks for libcuda.so.1 later gets what is loaded under that name already.
    ctypes.CDLL(str(_driver()), ctypes.RTLD_GLOBAL)
    cuda.compile_source = compile_source
    # The disk cache keeps code of the host apart from that of devices.
    cuda.full_version = lambda: "emulated"


@functools.cache
def _driver() -> Path:
    """The library, built once for all processes of a run of the tests."""
    folder = Path(os.environ["RUNE_CACHE_DIR"]) / "cuda-emulator"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "libcuda.so.1"
    if not library.exists():
        sources = [str(HERE / name) for name in ("driver.cpp", "blocks.cpp")]
        # Nothing of C++ is for others to see: NVRTC has its own, and would take ours.
        alone = ("-fvisibility=hidden", "-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL")
        _compiled(["-shared", *sources, *alone, "-Wl,-soname,libcuda.so.1", "-pthread", "-ldl"], library)
    return library


@functools.cache
def _header() -> None:
    """The header that every kernel includes, precompiled: parsing it takes most of the time."""
    header = _driver().parent / "kernels.h.gch"
    if not header.exists():
        _compiled([*_OF_KERNELS, "-x", "c++-header", str(HERE / "kernels.h")], header)


def compile_source(source: str, name: str, arch: str) -> bytes:
    """CUDA C as a library for the host, instead of NVRTC's machine code."""
    _header()
    folder = _driver().parent
    image, text = folder / f"kernels-{os.getpid()}.so", folder / f"kernels-{os.getpid()}.cpp"
    text.write_text(host_source(source))
    folders = ("-I", str(folder), "-I", str(HERE), "-L", str(folder))
    _compiled(["-shared", str(text), *_OF_KERNELS, *folders, "-l:libcuda.so.1"], image)
    return image.read_bytes()


def host_source(source: str) -> str:
    """C++ of the same meaning, with a record of each kernel."""
    host = _DECLARATION.sub("", source)
    # Those of units for matrices and of fetches are in kernels.h.
    for function in (*cuda_units.UNITS.values(), *cuda_teams.TEAMS.values()):
        host = host.replace(function, "")
    for device, same in _INSTRUCTIONS.items():
        host = host.replace(device, same)
    host = _POOL.sub(r"\1* \2 = (\1*)cuda_pool();", host)
    assert "asm(" not in host, host
    records = [_record(source, kernel) for kernel in _KERNEL.finditer(source)]
    return "\n".join(['#include "kernels.h"', host, *records])


def _record(source: str, kernel: re.Match[str]) -> str:
    threads, name, params = kernel[1] or "0", kernel[2], kernel[3]
    count = params.count(",") + 1
    text = source[kernel.end() : source.index("\n}\n", kernel.end())]
    # A kernel that a user wrote is called by one of rune's.
    has_barriers = "__sync" in (source if name == ENTRY else text)
    types, words = ", ".join(["unsigned long long"] * count), ", ".join(f"words[{k}]" for k in range(count))
    # All parameters are words of 64 bits, which functions of the host all take in the same way.
    call = f"((void (*)({types})){name})({words})"
    return (
        f"static void run_{name}(const unsigned long long* words) {{ {call}; }}\n"
        f'extern "C" const Kernel kernel_{name} = {{run_{name}, {count}, {threads}, {int(has_barriers)}}};'
    )


def _compiled(arguments: list[str], result: Path) -> None:
    """Build a file, which other processes see once it is complete."""
    partial = result.with_name(f"{os.getpid()}-{result.name}")
    process = subprocess.run(["g++", *_FLAGS, *arguments, "-o", str(partial)], capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"g++ cannot build the emulated device:\n{process.stderr[:4000]}")
    partial.rename(result)
