"""CUDA C to machine code through NVRTC: no nvcc, no headers, and no driver.

A device runs machine code of its own generation, compiled for it or for an older member. Where
NVRTC knows no member of that generation, it compiles to PTX, which the driver translates when it
loads it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from importlib import import_module
from typing import Any

from rune.backends.shared.refusal import refusal
from rune.errors import CompileError, DeviceError
from rune.lowering.codegen.c.cuda import OPTIONS

_WITH_MORE = (90,)  # architectures with a variant that has more instructions: sm_90a


def _nvrtc() -> Any:
    return import_module("cuda.bindings.nvrtc")


def version() -> tuple[int, int]:
    """The version of NVRTC. Errors: those of its import, where it is missing."""
    _, major, minor = _nvrtc().nvrtcVersion()
    return major, minor


@functools.cache
def full_version() -> str:
    """NVRTC's version with its patch number, "13.5.37", which only the PTX that it writes
    contains."""
    # Any architecture would do, and the oldest is always there.
    text = compile_source('extern "C" __global__ void empty() {}', "empty", f"compute_{min(supported())}")
    number = re.search(rb"release [\d.]+, V([\d.]+)", text)
    if number is None:
        raise CompileError("cuda: cannot find NVRTC's version (its PTX begins without one)")
    return number[1].decode()


def supported() -> tuple[int, ...]:
    """The architectures that NVRTC compiles for: 80 is compute capability 8.0."""
    _, known = _nvrtc().nvrtcGetSupportedArchs()
    return tuple(known)


def architecture(capability: tuple[int, int], known: Collection[int]) -> str:
    """The architecture to compile for: "sm_86" for machine code, "compute_120" for PTX.

    For 9.0 it is "sm_90a", which has an instruction that later devices lack: products of warp
    groups.

    Errors: DeviceError for a device older than all architectures in `known`.

    >>> architecture((8, 9), (75, 80, 86, 90)), architecture((10, 0), (75, 80, 86, 90))
    ('sm_86', 'compute_90')
    """
    major, minor = capability
    # Code for an architecture newer than the device does not load.
    older = [a for a in known if a <= 10 * major + minor]
    if not older:
        raise DeviceError(
            f"cuda: cannot compile for compute capability {major}.{minor} "
            f"(NVRTC knows {min(known) / 10:.1f} and later)",
            hint="install an older one: pip install nvidia-cuda-nvrtc-cu12 'cuda-bindings<13'",
        )
    best = max(older)
    # Machine code runs within one major version only; PTX is translated for any later one.
    if best // 10 != major:
        return f"compute_{best}"
    return f"sm_{best}{'a' * (best in _WITH_MORE)}"


def compile_source(source: str, name: str, arch: str) -> bytes:
    """The image to load: a cubin for sm_.., PTX text for compute_...

    Errors: CompileError "cuda: cannot compile f for sm_90 (line 3: ...)" with the numbered source.
    """
    nvrtc = _nvrtc()
    # The file name appears only in NVRTC's messages, from which `refusal` removes it.
    program = _ask("nvrtcCreateProgram", source.encode(), b"kernels.cu", 0, [], [])
    try:
        options = [o.encode() for o in (f"--gpu-architecture={arch}", *OPTIONS)]
        (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            report = _text(program, "ProgramLog").decode(errors="replace").rstrip("\0")
            raise refusal(f"cuda: cannot compile {name} for {arch}", source, report or code.name)
        return _text(program, "CUBIN" if arch.startswith("sm_") else "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _ask(function: str, *arguments: object) -> Any:
    code, *values = getattr(_nvrtc(), function)(*arguments)
    if code != 0:
        raise CompileError(f"cuda: cannot call {function} ({code.name})")
    return values[0] if values else None


def _text(program: object, part: str) -> bytes:
    """Output of NVRTC, read into a buffer of the size that it reports."""
    # NVRTC fills these bytes in place, which is safe while nothing else refers to them.
    text = bytes(_ask(f"nvrtcGet{part}Size", program))
    _ask(f"nvrtcGet{part}", program, text)
    return text
