"""LLVM as a library: from IR text to object code, and to what is stored of it.

Modules are small and already vectorised, so two passes suffice: registers for stack slots, and
peepholes. The full pipelines give the same speed and take five times as long (measured on
softmax and tanh). In a hurry there are none: they take a fifth of the time, and gain little where
instructions are chosen in a hurry, too.

Object code becomes an image (images/), which needs no LLVM where it runs. Where the layout does not
know this system's objects, object code is kept, and LLVM links it in each process.
"""

from __future__ import annotations

import functools
import mmap
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rune import locks
from rune.backends.cpu.conventions import ANYWHERE, EFFORT, HURRY, declared, model, number_of, symbol_of
from rune.backends.cpu.images import layout, loader
from rune.backends.cpu.processor import Processor
from rune.backends.shared import disk_cache
from rune.backends.shared.interrupts import deferred
from rune.errors import CompileError, OutOfMemory
from rune.records import dataclass

if TYPE_CHECKING:  # LLVM is loaded by its first use
    from llvmlite.binding.module import ModuleRef
    from llvmlite.binding.newpassmanagers import ModulePassManager, PassBuilder
    from llvmlite.binding.targets import TargetMachine

PASSES = ("sroa", "instruction_combine")
# What LLVM takes for a module: at most about 10 MiB, and 80 times its text, were measured.
ROOM_BYTES, ROOM_FACTOR = 32 << 20, 128


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


def processor() -> Processor:
    """The host's processor, as LLVM finds it."""
    llvm = library()
    with deferred():
        return Processor(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


# --- code as it is stored -----------------------------------------------------------------------


def compiled(name: str, text: str, effort: int, host: Processor) -> tuple[bytes, bool]:
    """What is stored of a module, and whether it is an image, or object code that LLVM links.

    Errors: CompileError "cpu: cannot compile f (LLVM's words)" with the numbered lines; OutOfMemory
    where LLVM could run short of memory, at which it would end the process.
    """
    _require_room(name, ROOM_BYTES + ROOM_FACTOR * len(text))
    with _lock(), deferred():
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


def _object(text: str, effort: int, how: tuple[str, str], host: Processor) -> bytes:
    optimiser = _optimiser(effort, how, host)
    return optimiser.target.emit_object(_optimised(text, optimiser))


def assembly(text: str, host: Processor) -> str:
    """A module as assembly."""
    with _lock(), deferred():
        optimiser = _optimiser(EFFORT, model(), host)
        return optimiser.target.emit_assembly(_optimised(text, optimiser))


@dataclass(frozen=True, slots=True)
class _Optimiser:
    """The passes over a module, and the target that they and the choice of instructions ask."""

    target: TargetMachine
    passes: ModulePassManager | None  # in a hurry none: even an empty list takes a tenth of a millisecond
    builder: PassBuilder


@functools.cache
def _optimiser(effort: int, how: tuple[str, str], host: Processor) -> _Optimiser:
    """One for all modules: LLVM gives back nothing of passes that are dropped, 4 KiB each."""
    llvm, target = library(), _target_machine(effort, how, host)
    passes = llvm.create_new_module_pass_manager()
    for name in PASSES:
        getattr(passes, f"add_{name}_pass")()
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(2))
    return _Optimiser(target, None if effort == HURRY else passes, builder)


def _target_machine(effort: int, how: tuple[str, str], host: Processor) -> TargetMachine:
    target, (reloc, codemodel) = library().Target.from_default_triple(), how
    how_much = {"reloc": reloc, "codemodel": codemodel, "opt": 2 if effort == EFFORT else 0}
    return target.create_target_machine(cpu=host.name, features=host.features, jit=True, **how_much)


def _optimised(text: str, optimiser: _Optimiser) -> ModuleRef:
    """The module, in a context that is freed with it: one for all would keep every constant."""
    llvm = library()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    if optimiser.passes is not None:
        optimiser.passes.run(module, optimiser.builder)
    return module


# --- object code that LLVM links ----------------------------------------------------------------


class Engine:
    """Object code that runs; it is freed with this."""

    __slots__ = ("__weakref__", "_engine")

    def __init__(self, engine: Any):
        self._engine = engine

    def address(self, name: str) -> int:
        """Where a function or data begins."""
        with deferred():
            return self._engine.get_function_address(name) or self._engine.get_global_value_address(name)

    # Bound here: while the interpreter ends, this module's globals are None.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            with deferred():  # else an interrupt could free the code twice
                self._engine.close()


def linked(code: bytes, addresses: Sequence[int], host: Processor) -> Engine:
    """An engine with the object code, its symbols bound to these addresses.

    They are the engine's own, not the process's: while code is linked, a finaliser or a handler of
    signals may compile in the same thread, and one name stands for another address there.
    """
    with _lock(), deferred():
        symbols = library().parse_assembly(declared(len(addresses)))
        engine = library().create_mcjit_compiler(symbols, _target_machine(EFFORT, ANYWHERE, host))
        for number, address in enumerate(addresses):
            engine.add_global_mapping(symbols.get_global_variable(symbol_of(number)), address)
        engine.add_object_file(library().ObjectFileRef.from_data(code))
        engine.finalize_object()
        return Engine(engine)
