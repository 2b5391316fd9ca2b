"""The processor that code is compiled for, as LLVM names it.

LLVM's answer is stored on disk under the processor's own description, so that code of an earlier
process runs without loading LLVM. On x86 that description is the result of the instruction `cpuid`,
which LLVM uses too; on other processors LLVM is asked in every process.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from collections.abc import Callable
from importlib.util import find_spec

from rune.backends.cpu.images import loader
from rune.backends.shared import disk_cache
from rune.records import dataclass

# Machine code of void cpuid(i32 leaf, i32 part, ptr answer), and of void enabled(ptr answer), which
# reads by xgetbv which registers the system saves. cpuid overwrites rbx, which the System V ABI
# preserves, and rdx, which has the third argument: one is pushed, the other is copied to r8.
_CPUID = bytes.fromhex("53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3")
_ENABLED = bytes.fromhex("31c9 0f01d0 8907 895704 c3")
_PLACES = {"cpuid": 0, "enabled": 64}
_EXTENDED = 0x8000_0000  # the first of the extended leaves
_SAVES = 1 << 27  # OSXSAVE in leaf 1: xgetbv may be used
# The leaves that LLVM reads: leaf, part, and registers. Other registers describe the core that
# answers, and would differ from call to call.
_ASKED = (
    (0, 0, (0, 1, 2, 3)),
    (1, 0, (0, 2, 3)),
    (7, 0, (0, 1, 2, 3)),
    (7, 1, (0, 1, 2, 3)),
    (0xD, 1, (0,)),
    (0x14, 0, (1,)),
    (0x19, 0, (1,)),
    (0x1E, 1, (0,)),
    (0x24, 0, (1,)),
    (_EXTENDED, 0, (0,)),
    (_EXTENDED + 1, 0, (2, 3)),
    (_EXTENDED + 8, 0, (1,)),
)


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor: LLVM's name of it, and its features, "+avx2,-avx512f,..."."""

    name: str
    features: str


def known(ask: Callable[[], Processor]) -> Processor:
    """The processor, from disk if it is there, else from LLVM. Errors: ImportError; those of
    `ask`."""
    words, identity = llvm_words(), _identity()
    if identity is None:
        return ask()
    key = disk_cache.key_of("processor", words, identity)
    entry = disk_cache.load(key)
    if entry is None:
        answer = ask()
        disk_cache.store(key, f"{answer.name}\n{answer.features}".encode())
        return answer
    name, features = entry.decode().split("\n")
    return Processor(name, features)


@functools.cache
def llvm_words() -> str:
    """The installed LLVM, identified by path, size and time of llvmlite's files.

    Errors: ImportError if llvmlite is missing.
    """
    spec = find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("No module named 'llvmlite'", name="llvmlite")
    package = spec.submodule_search_locations[0]
    with os.scandir(os.path.join(package, "binding")) as entries:
        libraries = [entry.path for entry in entries if "llvmlite" in entry.name]
    files = [(path, os.stat(path)) for path in sorted([os.path.join(package, "_version.py"), *libraries])]
    return "\n".join(f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in files)


@functools.cache
def _identity() -> bytes | None:
    """The processor's description of itself, as bytes; None on other processors than x86."""
    if not loader.is_available():
        return None
    code = _CPUID.ljust(_PLACES["enabled"], b"\0") + _ENABLED
    code_in_memory = loader.load(loader.Image(code, loader.PAGE, loader.PAGE, _PLACES, (), ()), ())
    cpuid = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(code_in_memory.address("cpuid"))
    answer = (ctypes.c_uint32 * 4)()

    def ask_cpuid(leaf: int, part: int) -> tuple[int, ...]:
        cpuid(leaf, part, answer)
        return tuple(answer)

    last = {0: ask_cpuid(0, 0)[0], _EXTENDED: ask_cpuid(_EXTENDED, 0)[0]}
    registers = [
        r for leaf, part, parts in _ASKED if leaf <= last[leaf & _EXTENDED] for r in _of(ask_cpuid(leaf, part), parts)
    ]
    if ask_cpuid(1, 0)[2] & _SAVES:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code_in_memory.address("enabled"))(answer)
        registers += answer[:2]
    return struct.pack(f"<{len(registers)}I", *registers)


def _of(registers: tuple[int, ...], parts: tuple[int, ...]) -> list[int]:
    return [registers[k] for k in parts]
