"""LLVM through `llvmlite.binding`, where its functions are not known (llvm_functions.py).

Object code is linked here, too, on systems whose images are not known.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rune import locks
from rune.backends.cpu.conventions import ANYWHERE, EFFORT, HURRY, OBJECT, declared, symbol_of
from rune.backends.cpu.processor import Processor
from rune.backends.shared.interrupts import deferred
from rune.records import dataclass

if TYPE_CHECKING:  # it is loaded by its first use
    from llvmlite.binding.newpassmanagers import ModulePassManager, PassBuilder
    from llvmlite.binding.targets import TargetMachine


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


def lock() -> locks.Lock:
    """What a thread holds while it compiles."""
    return _lock_of(library())


def processor() -> Processor:
    """The host's processor, as LLVM finds it."""
    llvm = library()
    return Processor(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


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
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(2))
    return _Optimiser(target, None if effort == HURRY else passes, builder)


def _target_machine(effort: int, how: tuple[str, str], host: Processor) -> TargetMachine:
    target, (reloc, codemodel) = library().Target.from_default_triple(), how
    how_much = {"reloc": reloc, "codemodel": codemodel, "opt": 2 if effort == EFFORT else 0}
    return target.create_target_machine(cpu=host.name, features=host.features, jit=True, **how_much)


def emit(text: str, effort: int, how: tuple[str, str], host: Processor, form: int) -> bytes:
    """A module as OBJECT code, or as ASSEMBLY. Errors: RuntimeError in LLVM's words.

    Each has a context that is freed after it: one for all would keep every constant. Finalisers of
    what an error refers to would free them in any order.
    """
    llvm, optimiser = library(), _optimiser(effort, how, host)
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        module.verify()
        if optimiser.passes is not None:
            optimiser.passes.run(module, optimiser.builder)
        target = optimiser.target
        return target.emit_object(module) if form == OBJECT else target.emit_assembly(module).encode()


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
    with lock(), deferred():
        symbols = library().parse_assembly(declared(len(addresses)))
        engine = library().create_mcjit_compiler(symbols, _target_machine(EFFORT, ANYWHERE, host))
        for number, address in enumerate(addresses):
            engine.add_global_mapping(symbols.get_global_variable(symbol_of(number)), address)
        engine.add_object_file(library().ObjectFileRef.from_data(code))
        engine.finalize_object()
        return Engine(engine)
