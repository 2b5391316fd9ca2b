"""The functions of llvmlite's library that compile a module, called without llvmlite's Python.

Importing `llvmlite.binding`, which declares 300 functions, takes 10 ms of a process's first call.
These are the 23 functions that rune needs, as llvmlite 0.45 to 0.50 declare them (ffi.py,
module.py, targets.py and newpassmanagers.py of each; a test compares them with the installed
version). For other versions, and on systems where the library has another name, llvm_binding.py
does the same through llvmlite.

All objects created here are destroyed here, or live as long as the process: no finaliser calls
LLVM.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_void_p

from rune import locks
from rune.backends.cpu.conventions import EFFORT, HURRY
from rune.backends.cpu.processor import Processor
from rune.backends.shared.interrupts import deferred
from rune.lowering.codegen.llvm.underflow import TWO_FORMS
from rune.records import dataclass

KNOWN = ("0.45", "0.46", "0.47", "0.48", "0.49", "0.50")
PASSES = ("SROA", "InstCombine")
# After these, where operations have two forms: branches on one condition become one branch, and
# what is computed on both of its sides, or before it and on one side, is computed once.
JOINING_PASSES = ("JumpThreading", "NewGVN", "SimplifyCFG")
MOST_JOINED = 1 << 16  # bytes of a module for which these take a few milliseconds; longer ones do without
_PREFIX = "LLVMPY_"
_WORDS = POINTER(c_char_p)  # receives a string, which the caller has to dispose of
# By name: the type of the result, and those of the arguments.
FUNCTIONS: Mapping[str, tuple[type, Sequence[type]]] = {
    "InitializeNativeTarget": (c_int, ()),
    "InitializeNativeAsmPrinter": (c_int, ()),
    "GetHostCPUName": (c_int, (_WORDS,)),
    "GetHostCPUFeatures": (c_int, (_WORDS,)),
    "GetDefaultTargetTriple": (c_int, (_WORDS,)),
    "GetTargetFromTriple": (c_void_p, (c_char_p, _WORDS)),
    # The target, triple, processor, features, effort, relocations, code model, whether it prints,
    # whether the code runs in this process, and a name of calling conventions.
    "CreateTargetMachine": (
        c_void_p,
        (c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int, c_char_p),
    ),
    "CreateNewModulePassManager": (c_void_p, ()),
    "module_AddSROAPass": (c_int, (c_void_p,)),
    "module_AddInstCombinePass": (c_int, (c_void_p,)),
    "module_AddJumpThreadingPass": (c_int, (c_void_p,)),
    "module_AddNewGVNPass": (c_int, (c_void_p,)),
    "module_AddSimplifyCFGPass": (c_int, (c_void_p,)),
    "CreatePipelineTuningOptions": (c_void_p, ()),
    "CreatePassBuilder": (c_void_p, (c_void_p, c_void_p)),
    "RunNewModulePassManager": (c_int, (c_void_p, c_void_p, c_void_p)),
    "ContextCreate": (c_void_p, ()),
    "ContextDispose": (c_int, (c_void_p,)),
    "ParseAssembly": (c_void_p, (c_void_p, c_char_p, _WORDS)),
    "VerifyModule": (c_bool, (c_void_p, _WORDS)),
    "DisposeModule": (c_int, (c_void_p,)),
    "TargetMachineEmitToMemory": (c_void_p, (c_void_p, c_void_p, c_int, _WORDS)),
    "GetBufferStart": (c_void_p, (c_void_p,)),
    "GetBufferSize": (c_size_t, (c_void_p,)),
    "DisposeMemoryBuffer": (c_int, (c_void_p,)),
    "DisposeString": (c_int, (c_char_p,)),
}
# Threads share target machines and passes. Reentrant: a finaliser or a signal handler may compile.
_lock = locks.fork_guard(threading.RLock())


def is_available() -> bool:
    """Whether the installed llvmlite has a version with known declarations. Errors: ImportError."""
    version = locks.load("llvmlite").__version__
    return version.rpartition(".")[0] in KNOWN and os.path.isfile(_path())


def joins_forms(text: str) -> bool:
    """Whether a module gets the passes that join the branches between two forms of operations."""
    return TWO_FORMS in text and len(text) <= MOST_JOINED


def lock() -> locks.Lock:
    """The lock that a thread holds while it compiles."""
    return _lock


def _path() -> str:
    return os.path.join(locks.load("llvmlite").__path__[0], "binding", "libllvmlite.so")


@functools.cache
def _functions() -> Mapping[str, Callable[..., int]]:
    """The functions of the library, initialised for the host."""
    with locks.loading, deferred():
        library, functions = ctypes.CDLL(_path()), {}
        for name, (result, arguments) in FUNCTIONS.items():
            function = functions[name] = getattr(library, _PREFIX + name)
            function.restype, function.argtypes = result, arguments
        functions["InitializeNativeTarget"]()
        functions["InitializeNativeAsmPrinter"]()
    return functions


def _ask(name: str, *arguments: object) -> tuple[int, str]:
    """The result of a function, and its message."""
    words = c_char_p()
    result = _functions()[name](*arguments, byref(words))
    message = (words.value or b"").decode()
    _functions()["DisposeString"](words)
    return result, message


def processor() -> Processor:
    """The host's processor, as LLVM detects it."""
    # Sorted by name, as llvmlite's Python does: both must give the same key on disk.
    features = filter(None, _ask("GetHostCPUFeatures")[1].split(","))
    return Processor(_ask("GetHostCPUName")[1], ",".join(sorted(features, key=lambda word: word[1:])))


@dataclass(frozen=True, slots=True)
class _Optimiser:
    """Addresses of the target machine and of the passes over a module, which drafts do without."""

    target: int
    passes: int | None
    builder: int | None


@functools.cache
def _optimiser(effort: int, has_forms: bool, how: tuple[str, str], host: Processor) -> _Optimiser:
    """One for all modules of a kind: LLVM leaks pass managers that are dropped."""
    target, functions = _target_machine(effort, how, host), _functions()
    if effort == HURRY:  # even an empty list of passes takes a tenth of a millisecond
        return _Optimiser(target, None, None)
    passes = functions["CreateNewModulePassManager"]()
    for name in (*PASSES, *JOINING_PASSES) if has_forms else PASSES:
        functions[f"module_Add{name}Pass"](passes)
    tuning = functions["CreatePipelineTuningOptions"]()
    return _Optimiser(target, passes, functions["CreatePassBuilder"](target, tuning))


def _target_machine(effort: int, how: tuple[str, str], host: Processor) -> int:
    triple = _ask("GetDefaultTargetTriple")[1].encode()
    target, report = _ask("GetTargetFromTriple", triple)
    words = [word.encode() for word in (host.name, host.features, *how)]
    level = 2 if effort == EFFORT else 0
    machine = target and _functions()["CreateTargetMachine"](target, triple, *words[:2], level, *words[2:], 0, 1, b"")
    if not machine:
        raise RuntimeError(report or f"no code for {host.name}")
    return machine


def emit(text: str, effort: int, how: tuple[str, str], host: Processor, form: int) -> bytes:
    """A module as OBJECT code, or as ASSEMBLY. Errors: RuntimeError with LLVM's message.

    Each module has its own context, which is freed with it: a shared one would keep every constant.
    """
    optimiser, functions = _optimiser(effort, joins_forms(text), how, host), _functions()
    context = functions["ContextCreate"]()
    try:
        module, report = _ask("ParseAssembly", context, text.encode())
        if report or not module:
            raise RuntimeError(f"LLVM IR parsing error\n{report}")
        try:
            return _emit(module, optimiser, form)
        finally:
            functions["DisposeModule"](module)
    finally:
        functions["ContextDispose"](context)


def _emit(module: int, optimiser: _Optimiser, form: int) -> bytes:
    is_broken, report = _ask("VerifyModule", module)
    if is_broken:
        raise RuntimeError(report)
    functions = _functions()
    if optimiser.passes is not None:
        functions["RunNewModulePassManager"](optimiser.passes, module, optimiser.builder)
    buffer, report = _ask("TargetMachineEmitToMemory", optimiser.target, module, form)
    if not buffer:
        raise RuntimeError(report)
    try:
        return ctypes.string_at(functions["GetBufferStart"](buffer), functions["GetBufferSize"](buffer))
    finally:
        functions["DisposeMemoryBuffer"](buffer)
