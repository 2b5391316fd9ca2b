"""LLVM as a library: from IR text to object code, and to the form in which it is stored.

Modules are small and already vectorised, so two passes suffice: registers for stack slots, and
peephole optimisation. The full pipelines give the same speed and take five times as long (measured
on softmax and tanh). Kernels whose operations have two forms get three more, which join their
branches. Drafts get no passes: these take a fifth of the time, and gain little when instructions
are selected quickly as well.

Object code becomes an image (images/), which runs without LLVM. On systems whose object files
images/ does not support, object code is stored, and LLVM links it in each process.
"""

from __future__ import annotations

import functools
import mmap
from types import ModuleType

from rune import locks
from rune.backends.cpu import llvm_functions
from rune.backends.cpu.conventions import ANYWHERE, ASSEMBLY, EFFORT, OBJECT, model, number_of
from rune.backends.cpu.images import layout, loader
from rune.backends.cpu.processor import Processor
from rune.backends.shared import disk_cache
from rune.backends.shared.interrupts import deferred
from rune.errors import CompileError, OutOfMemory

# Memory to reserve for a module. LLVM was measured to take up to 10 MiB and 80 times the text.
ROOM_BYTES, ROOM_FACTOR = 32 << 20, 128


# LLVM through llvmlite's Python, imported for the first module that it links or compiles.
_binding = locks.late_module("rune.backends.cpu.llvm_binding")


@functools.cache
def _library() -> ModuleType:
    """The module that calls LLVM. Errors: ImportError if llvmlite is missing."""
    return llvm_functions if llvm_functions.is_available() else _binding()


def processor() -> Processor:
    """The host's processor, as LLVM detects it."""
    with deferred():
        return _library().processor()


# --- stored code --------------------------------------------------------------------------------


def compiled(name: str, text: str, effort: int, host: Processor) -> tuple[bytes, bool]:
    """The bytes to store of a module, and whether they are an image, or object code to be linked.

    Errors: CompileError "cpu: cannot compile f (LLVM's words)" with the numbered lines; OutOfMemory
    if LLVM could run out of memory, at which it would end the process.
    """
    _require_room(name, ROOM_BYTES + ROOM_FACTOR * len(text))
    with _library().lock(), deferred():
        try:
            code = _object(text, effort, model(), host)
            if not loader.is_available():
                return code, False
            try:
                return layout.image_of(code, number_of).to_bytes(), True
            except layout.Unplaced as why:
                disk_cache.tell(f"LLVM links {name} anew in each process ({why})", about="images")
                return _object(text, effort, ANYWHERE, host), False
        except RuntimeError as error:
            raise _refused(f"cpu: cannot compile {name}", text, str(error)) from error


def _refused(action: str, text: str, report: str) -> CompileError:
    return locks.load("rune.backends.shared.refusal").refusal(action, text, report)


def _require_room(name: str, nbytes: int) -> None:
    """Reserve the memory that LLVM may need, and release it again. Errors: OutOfMemory."""
    # Under a limit of the address space (ulimit -v) the reservation fails, where LLVM would abort.
    # MAP_NORESERVE: it need not fit into free memory.
    if not hasattr(mmap, "MAP_PRIVATE"):
        return
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    try:
        mmap.mmap(-1, nbytes, flags=flags).close()
    except OSError as error:
        raise OutOfMemory(
            f"cpu: cannot compile {name} (LLVM may need {nbytes} B, more than this process can reserve)",
            hint="raise the limit of the address space (ulimit -v), or jit smaller functions",
        ) from error


def _object(text: str, effort: int, how: tuple[str, str], host: Processor) -> bytes:
    return _library().emit(text, effort, how, host, OBJECT)


def assembly(text: str, host: Processor) -> str:
    """A module as assembly."""
    with _library().lock(), deferred():
        return _library().emit(text, EFFORT, model(), host, ASSEMBLY).decode()
