"""LLVM through `llvmlite.binding`, for versions whose functions are not known (llvm_functions.py).

It also links object code, on systems without images.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rune import locks
from rune.backends.cpu.conventions import ANYWHERE, EFFORT, HURRY, OBJECT, declared, symbol_of
from rune.backends.cpu.llvm_functions import joins_forms
from rune.backends.cpu.processor import Processor
from rune.backends.shared.interrupts import deferred
from rune.records import dataclass

if TYPE_CHECKING:  # it is loaded by its first use
    from llvmlite.binding.newpassmanagers import ModulePassManager, PassBuilder
    from llvmlite.binding.targets import TargetMachine


@functools.cache
def library() -> Any:
    """LLVM, initialised for the host. Loaded on first use, because it is large.

    Errors: ImportError where llvmlite is missing.
    """
    with locks.loading, deferred():
        llvm: Any = locks.load("llvmlite.binding")
        locks.fork_guard(_lock_of(llvm))
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    return llvm


def _lock_of(llvm: Any) -> locks.Lock:
    """The lock that llvmlite takes in each of its calls, because threads share LLVM's context.

    We use no other lock, because finalisers call LLVM and may run under any lock. A fork must wait
    for it too: in a child LLVM's memory is intact only if no thread was inside LLVM.
    """
    return llvm.ffi.lib._lock._lock


def lock() -> locks.Lock:
    """The lock that a thread holds while it compiles."""
    return _lock_of(library())


def processor() -> Processor:
    """The host's processor, as LLVM detects it."""
    llvm = library()
    return Processor(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


@dataclass(frozen=True, slots=True)
class _Optimiser:
    """The passes over a module, and the target machine for them and for instruction selection."""

    target: TargetMachine
    # None for drafts: even an empty list of passes takes a tenth of a millisecond.
    passes: ModulePassManager | None
    builder: PassBuilder


@functools.cache
def _optimiser(effort: int, has_forms: bool, how: tuple[str, str], host: Processor) -> _Optimiser:
    """One for all modules of a kind: LLVM leaks 4 KiB for each pass manager that is dropped."""
    llvm, target = library(), _target_machine(effort, how, host)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    if has_forms:
        passes.add_jump_threading_pass()
        passes.add_new_gvn_pass()
        passes.add_simplify_cfg_pass()
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(2))
    return _Optimiser(target, None if effort == HURRY else passes, builder)


def _target_machine(effort: int, how: tuple[str, str], host: Processor) -> TargetMachine:
    target, (reloc, codemodel) = library().Target.from_default_triple(), how
    how_much = {"reloc": reloc, "codemodel": codemodel, "opt": 2 if effort == EFFORT else 0}
    return target.create_target_machine(cpu=host.name, features=host.features, jit=True, **how_much)


def emit(text: str, effort: int, how: tuple[str, str], host: Processor, form: int) -> bytes:
    """A module as OBJECT code, or as ASSEMBLY. Errors: RuntimeError with LLVM's message.

    Each module has its own context, which is freed after it: a shared one would keep every
    constant. Both are closed here, because after an error finalisers might free them in the wrong
    order.
    """
    llvm, optimiser = library(), _optimiser(effort, joins_forms(text), how, host)
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        module.verify()
        if optimiser.passes is not None:
            optimiser.passes.run(module, optimiser.builder)
        target = optimiser.target
        return target.emit_object(module) if form == OBJECT else target.emit_assembly(module).encode()


# --- object code that LLVM links ----------------------------------------------------------------


class Engine:
    """Linked object code, freed when this dies."""

    __slots__ = ("__weakref__", "_engine")

    def __init__(self, engine: Any):
        self._engine = engine

    def address(self, name: str) -> int:
        """The address of a function or of data."""
        with deferred():
            return self._engine.get_function_address(name) or self._engine.get_global_value_address(name)

    # A default argument, because this module's globals may be None when the interpreter ends.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            with deferred():  # an interrupt could make llvmlite free the code twice
                self._engine.close()


def linked(code: bytes, addresses: Sequence[int], host: Processor) -> Engine:
    """An engine with the object code, its symbols bound to these addresses.

    The engine has its own symbols, not the process's: while code is linked, a finaliser or a signal
    handler may compile in the same thread, with other addresses under the same names.
    """
    with lock(), deferred():
        symbols = library().parse_assembly(declared(len(addresses)))
        engine = library().create_mcjit_compiler(symbols, _target_machine(EFFORT, ANYWHERE, host))
        for number, address in enumerate(addresses):
            engine.add_global_mapping(symbols.get_global_variable(symbol_of(number)), address)
        engine.add_object_file(library().ObjectFileRef.from_data(code))
        engine.finalize_object()
        return Engine(engine)
