"""Calls of NumPy in a plan of the CPU that native code makes: decompositions and sorts.

Lowering writes them as Python functions (lowering/host_calls.py). They remain that where the rule
of their kind gives None: where sizes are symbolic, or where NumPy takes less time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rune.backends.cpu import kinds_of_calls
from rune.backends.cpu.dots import Run
from rune.backends.shared.callbacks import function_of, is_callback
from rune.core.types import ArrayType
from rune.lowering.codegen.llvm.ir.text import Value
from rune.lowering.host_calls import AsComplex, LibraryCall
from rune.lowering.plan import Call, Plan, Step, all_steps
from rune.ops.sorting import sort, top_k
from rune.records import dataclass

SORTS = (sort, top_k)


class Pool(Protocol):
    """Cores that share the rows or matrices of a call, and LLVM's effort for the plan."""

    @property
    def cores(self) -> int:
        """The number of cores."""
        ...

    @property
    def parallel(self) -> Callable[[], int]:
        """The address of the function that runs a task on all of them (threads.py)."""
        ...

    @property
    def effort(self) -> int:
        """LLVM's effort."""
        ...


@dataclass(frozen=True, slots=True)
class Native:
    """Native code for a call.

    scratch_bytes: rule(cores), the bytes of work memory that it needs
    write:         writes the step; the value is the address of the work memory
    """

    scratch_bytes: Callable[[int], int]
    write: Callable[[Run, Call, Value, Pool], None]


def library_call(step: Step) -> tuple[LibraryCall, Sequence[ArrayType]] | None:
    """The primitive that a step calls NumPy for, with the types of its operands; else None."""
    if not is_callback(step):
        return None
    function = function_of(step)
    call, operands = function.call, function.operands
    # A plan has complex operands as pairs of reals; the call inside knows their dtype.
    if isinstance(call, AsComplex):
        call, operands = call.call, call.operands
    return (call, operands) if isinstance(call, LibraryCall) else None


def native_of(step: Step) -> Native | None:
    """The native code that makes a call; None if the step is none, or remains a call of Python."""
    call = library_call(step)
    if call is None:
        return None
    kind = kinds_of_calls.sorts() if call[0].primitive in SORTS else kinds_of_calls.spectra()
    return kind.native_of(step)


def calls_python(plan: Plan) -> bool:
    """Whether a step of the plan is a Python function."""
    return any(is_callback(step) and native_of(step) is None for step in all_steps(plan))


def scratch_bytes(plan: Plan, cores: int) -> int:
    """The bytes of work memory of a plan's calls, which use it in turn."""
    return max([native.scratch_bytes(cores) for native in map(native_of, all_steps(plan)) if native], default=0)
