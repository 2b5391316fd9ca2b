"""Python functions for native code to call while a plan runs.

Native code passes one array of words: the addresses of the results, those of the operands, then the
plan's sizes. An exception cannot pass through native frames: it is stored for the thread, the plan
stops, and `raise_pending` raises it when the native call has returned.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from rune.backends.shared.apart import apart, is_long
from rune.backends.shared.executor import concrete_type, size_bytes, static_shape
from rune.core.types import ArrayType
from rune.errors import CheckError, CompileError, with_context
from rune.lowering.codegen.target import Target
from rune.lowering.host_calls import HostFunction
from rune.lowering.plan import Call, Plan, Step, all_steps

_pending = threading.local()
# Threads with small stacks have overflowed after 100.
MOST_NESTED = 64  # callbacks within each other; each costs about 5 KiB of the native stack


class _Nesting(threading.local):
    """How many callbacks are active in this thread, one within the other."""

    depth = 0


_nesting = _Nesting()


def is_callback(step: Step) -> TypeGuard[Call]:
    """Whether a step of a plan calls Python."""
    return isinstance(step, Call) and step.routine == "callback"


def refuse_routines(plan: Plan, target: Target) -> None:
    """Errors: CompileError for a call that is neither a Python function nor the target's."""
    for step in all_steps(plan):
        if isinstance(step, Call) and not is_callback(step) and step.routine not in target.routines:
            action = f"{target.backend}: cannot call {step.routine} on {target.name}"
            raise CompileError(f"{action} (its plans may call only Python functions)")


def function_of(step: Call) -> HostFunction:
    """The function that the step calls."""
    function: Any = dict(step.parameters)["function"]
    return function


class Callbacks:
    """The functions of one plan. This keeps them alive: native code holds only their addresses."""

    def __init__(self, plan: Plan):
        self._names = [s.name for s in plan.size_sources]
        self._functions: list[Callable[[int], int]] = []
        self.are_there = any(map(is_callback, all_steps(plan)))

    def function(self, step: Call) -> Callable[[int], int]:
        """A function of the words' address that returns 0, or 1 after an error."""
        function = self._entry(step)
        self._functions.append(function)
        return function

    def called(self, step: Call) -> HostFunction:
        """The function that a step calls."""
        return function_of(step)

    def _entry(self, step: Call) -> Callable[[int], int]:
        function, names, outputs = self.called(step), self._names, len(step.outputs)
        slots = [s.type for s in (*step.outputs, *step.inputs)]
        places, count = len(slots), len(slots) + len(names)
        words_type = ctypes.c_int64 * count
        # Computed once, since small plans spend most of their time in these calls.
        known = None if any(t.is_symbolic for t in slots) else [_reader(t) for t in slots]

        def enter(address: int) -> int:
            try:
                words = words_type.from_address(address)[:]
                if known is not None:
                    types, readers = slots, known
                else:
                    sizes = dict(zip(names, words[places:], strict=True))
                    types = [concrete_type(t, sizes) for t in slots]
                    readers = [_reader(t) for t in types]
                arrays = [read(word) for read, word in zip(readers, words)]
                _fill(function, arrays, types, outputs)
            except BaseException as error:  # KeyboardInterrupt too, which ends the plan
                _pending.error = error
                return 1
            return 0

        return enter


def _reader(type: ArrayType) -> Callable[[int], np.ndarray]:
    """A function that gives the memory at an address as an array of the type."""
    memory, shape, dtype = ctypes.c_uint8 * size_bytes(type), static_shape(type), type.dtype
    return lambda address: np.ndarray(shape, dtype, memoryview(memory.from_address(address)))


def fill(function: HostFunction, arrays: Sequence[np.ndarray], types: Sequence[ArrayType], outputs: int) -> None:
    """Call the function on the arrays after the first `outputs`, and copy its results into
    those."""
    reshaped_arrays = [a.reshape(static_shape(t)) for a, t in zip(arrays, types)]
    _fill(function, reshaped_arrays, types, outputs)


def _fill(function: HostFunction, arrays: Sequence[np.ndarray], types: Sequence[ArrayType], outputs: int) -> None:
    operands = arrays[outputs:]
    if not function.borrows:  # a user's function may keep its operands; theirs is the plan's memory
        operands = [np.array(a) for a in operands]
    results = _called(function, operands, types[:outputs])
    for target, value in zip(arrays[:outputs], results, strict=True):
        if value.shape != target.shape:  # NumPy would broadcast it
            misfit = f"{function} yields {list(value.shape)}, the program declares {list(target.shape)}"
            raise CheckError(f"call: cannot take a result of another shape ({misfit})")
        target[...] = value


def _called(function: HostFunction, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> list[np.ndarray]:
    """The results of a function, which may run programs with callbacks of their own.

    Errors: RecursionError before the native stack overflows: Python's own limit does not count it.
    """
    if function.borrows:  # a routine of NumPy, which never calls back
        return _of_library(function, arrays, types)
    if _nesting.depth >= MOST_NESTED:
        cause = f"{MOST_NESTED} callbacks are nested"
        hint = "recurse in plain Python, or use a loop of rune.lax, without jitted functions in between"
        raise RecursionError(with_context(f"callback: cannot call {function} ({cause})", hint))
    _nesting.depth += 1
    try:
        return function(arrays, types)
    finally:
        _nesting.depth -= 1


def _of_library(function: HostFunction, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> list[np.ndarray]:
    if not is_long([x.shape for x in arrays]):
        return function(arrays, types)
    # After an interrupt the routine still reads its operands, when the plan has ended and its
    # memory is used again: so it gets copies.
    copies = [np.array(a) for a in arrays]
    return apart(lambda: function(copies, types))


def raise_pending() -> None:
    """Raise the error that a callback of this thread has stored, if any."""
    error = getattr(_pending, "error", None)
    if error is not None:
        _pending.error = None
        raise error
