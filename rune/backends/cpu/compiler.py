"""LLVM as a library: the host's processor, from IR text to machine code, and its lifetime.

Modules are small and already vectorised, so two passes suffice: registers for stack slots, and
peepholes. The full pipelines give the same speed and take five times as long (measured on
softmax and tanh). A Code object owns what it compiled: dropped, it frees the machine code.

Object code is kept on disk (disk_cache.py): addresses of this process, `inttoptr (i64 N to ptr)`,
become symbols, so that the next process makes the same text and binds them to its own.
"""

from __future__ import annotations

import functools
import mmap
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rune import locks
from rune.backends.shared import disk_cache
from rune.backends.shared.interrupts import deferred
from rune.backends.shared.refusal import refusal
from rune.errors import OutOfMemory
from rune.lowering.codegen.llvm import Machine
from rune.records import dataclass

if TYPE_CHECKING:  # LLVM is loaded by its first use
    from llvmlite.binding.module import ModuleRef
    from llvmlite.binding.newpassmanagers import ModulePassManager, PassBuilder
    from llvmlite.binding.targets import TargetMachine

PASSES = ("sroa", "instruction_combine")
# LLVM's effort where it chooses instructions, of 0 to 2: the least gives slower code, sooner.
HURRY, EFFORT = 0, 2
# What LLVM takes for a module: at most about 10 MiB, and 80 times its text, were measured.
ROOM_BYTES, ROOM_FACTOR = 32 << 20, 128
_ADDRESS = re.compile(r"inttoptr \(i64 (\d+) to ptr\)")


@functools.cache
def library() -> Any:
    """LLVM, ready to compile for the host. Loaded on first use: it is large.

    Errors: ImportError where llvmlite is missing.
    """
    with locks.loading, deferred():
        llvm: Any = locks.load("llvmlite.binding")
        locks.held(_lock_of(llvm))
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    return llvm


def _lock_of(llvm: Any) -> locks.Lock:
    """The lock that llvmlite takes in each of its calls: LLVM's context is shared by all threads.

    There is no other, since finalizers call LLVM and may run under any lock. A child of a fork
    finds LLVM's memory whole only if no thread was at work in it.
    """
    return llvm.ffi.lib._lock._lock


def _lock() -> locks.Lock:
    return _lock_of(library())


@dataclass(frozen=True, slots=True)
class Processor:
    """What code is compiled for: LLVM's name, and "+avx2,-avx512f,..." of what there is."""

    name: str
    features: str


@functools.cache
def host() -> Processor:
    """The host's processor."""
    llvm = library()
    with deferred():
        return Processor(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


@functools.cache
def features() -> dict[str, bool]:
    """The instruction sets that code may use, by LLVM's names."""
    listed = filter(None, host().features.split(","))
    return {word[1:]: word[0] == "+" for word in listed}


@functools.cache
def machine() -> Machine:
    """What the renderer needs to know of the processor."""
    available = features()
    wide = all(available.get(f) for f in ("avx512f", "avx512bw", "avx512vl", "avx512dq"))
    if wide:
        return Machine(64, masked=True, scalef=frozenset({"<16 x float>", "<8 x double>"}))
    return Machine(32 if available.get("avx2") else 16, masked=False)


def has_half() -> bool:
    """Whether f16 converts in hardware; LLVM would call a library that is not there."""
    return platform.machine().lower() in ("arm64", "aarch64") or bool(features().get("f16c"))


@functools.cache
def attributes() -> str:
    """The attributes of every function, `#0`."""
    width = f'"prefer-vector-width"="{8 * machine().vector_bytes}" '
    width += f'"min-legal-vector-width"="{8 * machine().vector_bytes}"'
    return f"attributes #0 = {{ nounwind {width} }}"


# Code and its constants are mapped apart, wherever there is room: in a process whose address space
# is in pieces they may be out of reach of a 32-bit offset, so code holds whole addresses.
_MODEL = {"reloc": "static", "codemodel": "large"}


def _target_machine(effort: int = EFFORT) -> TargetMachine:
    target = library().Target.from_default_triple()
    return target.create_target_machine(cpu=host().name, features=host().features, opt=effort, jit=True, **_MODEL)


@dataclass(slots=True)
class Code:
    """Machine code of one module, alive as long as this object."""

    engine: Any
    text: str
    image: bytes  # object code, ...
    addresses: Sequence[int]  # ... and what its symbols stand for, in order
    effort: int  # LLVM's

    def address(self, name: str) -> int:
        """Where a function begins."""
        with deferred():
            return self.engine.get_function_address(name)

    # Bound here: while the interpreter ends, this module's globals are None.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            with deferred():  # else an interrupt could free the code twice
                self.engine.close()

    def assembly(self) -> str:
        """The module as assembly, compiled again for reading."""
        with _lock(), deferred():
            optimiser = _optimiser(EFFORT)
            return optimiser.target.emit_assembly(_optimised(self.text, optimiser))


def compile_module(name: str, text: str, effort: int = EFFORT) -> Code:
    """Compile IR text.

    Errors: CompileError "cpu: cannot compile f (LLVM's words)" with the numbered lines; OutOfMemory
    where LLVM could run short of memory, at which it would end the process.
    """
    text, addresses = _with_symbols(f"{text}\n\n{attributes()}\n")
    versions = ".".join(map(str, library().llvm_version_info))
    target = (*_MODEL.values(), host().name, host().features)
    key = disk_cache.key_of("llvm", versions, *target, *PASSES, str(effort), text)
    _require_room(name, ROOM_BYTES + ROOM_FACTOR * len(text))
    with _lock(), deferred():
        try:
            image = _object(key, text, effort)
            return Code(_linked(image, addresses), text, image, addresses, effort)
        except RuntimeError as error:
            raise refusal(f"cpu: cannot compile {name}", text, str(error)) from error


def link(image: bytes, addresses: Sequence[int], effort: int) -> Code:
    """Object code of an earlier process, with its symbols bound to addresses of this one."""
    with _lock(), deferred():
        return Code(_linked(image, addresses), "", image, addresses, effort)


def _require_room(name: str, nbytes: int) -> None:
    """Reserve the memory LLVM may need, and release it again. Errors: OutOfMemory."""
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


def _with_symbols(text: str) -> tuple[str, list[int]]:
    """The text with a symbol for each address of this process, and those addresses."""
    numbers: dict[int, int] = {}

    def symbol(match: re.Match[str]) -> str:
        return f"@{_symbol(numbers.setdefault(int(match[1]), len(numbers)))}"

    text = _ADDRESS.sub(symbol, text)
    return _declared(len(numbers)) + text, list(numbers)


def _symbol(number: int) -> str:
    return f"address.{number}"


def _declared(count: int) -> str:
    return "".join(f"@{_symbol(number)} = external global i8\n" for number in range(count))


def _object(key: bytes, text: str, effort: int) -> bytes:
    """The object code, kept from an earlier process or made."""
    code = disk_cache.load(key)
    if code is None:
        optimiser = _optimiser(effort)
        code = optimiser.target.emit_object(_optimised(text, optimiser))
        disk_cache.store(key, code)
    return code


def _linked(code: bytes, addresses: Sequence[int]) -> Any:
    """An engine with the object code, its symbols bound to these addresses.

    They are the engine's own, not the process's: while code is linked, a finaliser or a handler of
    signals may compile in the same thread, and one name stands for another address there.
    """
    symbols = library().parse_assembly(_declared(len(addresses)))
    engine = library().create_mcjit_compiler(symbols, _target_machine())
    for number, address in enumerate(addresses):
        engine.add_global_mapping(symbols.get_global_variable(_symbol(number)), address)
    engine.add_object_file(library().ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


@dataclass(frozen=True, slots=True)
class _Optimiser:
    """The passes over a module, and the target that they and the choice of instructions ask."""

    target: TargetMachine
    passes: ModulePassManager
    builder: PassBuilder


@functools.cache
def _optimiser(effort: int) -> _Optimiser:
    """One for all modules: LLVM gives back nothing of passes that are dropped, 4 KiB each."""
    llvm, target = library(), _target_machine(effort)
    passes = llvm.create_new_module_pass_manager()
    for name in PASSES:
        getattr(passes, f"add_{name}_pass")()
    return _Optimiser(target, passes, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(2)))


def _optimised(text: str, optimiser: _Optimiser) -> ModuleRef:
    """The module, in a context that is freed with it: one for all would keep every constant."""
    llvm = library()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    optimiser.passes.run(module, optimiser.builder)
    return module


def available_cores() -> int:
    """Processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
