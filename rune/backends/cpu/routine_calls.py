"""Calls of routines by eager functions: a Python function of three arrays over native code.

A routine is void(ptr words, ptr source, ptr target, ptr memory). Its words say what to do, and do
not change; a call passes arrays, whose addresses native code reads from the objects. Through
ctypes, each of them took longer than a transform of a hundred numbers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.host_abi import ADDRESSES, Abi, abi, native_function
from rune.backends.cpu.scratch import LINE
from rune.backends.shared import host_memory
from rune.records import dataclass

ADDRESS = [ctypes.c_void_p] * 4


@dataclass(frozen=True, slots=True)
class Call:
    """A routine with its words.

    run:          the function of source, target and memory, all arrays
    memory_bytes: the work memory that it needs
    references:   what the words refer to
    """

    run: Callable[[np.ndarray, np.ndarray, np.ndarray], object]
    memory_bytes: int
    references: tuple[object, ...]

    def __call__(self, x: np.ndarray, result: np.ndarray) -> np.ndarray:
        """`result`, computed from `x`."""
        # An array that is dense is returned itself.
        self.run(np.ascontiguousarray(x), result, host_memory.empty((self.memory_bytes,), _BYTE))
        return result


_BYTE = np.dtype(np.uint8)


def call_of(function: int, words: Sequence[int], memory_bytes: int, *references: object) -> Call:
    """The routine at this address, on these words behind it."""
    table = np.array([function, *words], np.int64)
    layout, size = abi(), memory_bytes + LINE  # native code aligns the memory
    if layout is not None:
        run = native_function("fft", _enter(layout), table).call
        return Call(run, size, references)
    routine, first = ctypes.CFUNCTYPE(None, *ADDRESS)(function), table.ctypes.data

    def by_ctypes(*arrays: np.ndarray) -> None:
        source, target, memory = (x.ctypes.data for x in arrays)
        routine(first, source, target, memory + -memory % LINE)

    return Call(by_ctypes, size, (table, *references))


# The module that writes the function, imported if no earlier process has left the code.
_writer = locks.late_module("rune.backends.cpu.routine_calls_code")


@compiler.lasting
def _code(layout: Abi) -> compiler.Code:
    words = [(f.name, getattr(layout, f.name)) for f in fields(layout) if f.name not in ADDRESSES]
    outside = {name: getattr(layout, name) for name in ADDRESSES}
    return compiler.compile_routine("fft call", words, outside, lambda: _writer().text(layout), conventions.HURRY)


def _enter(layout: Abi) -> int:
    return _code(layout).address("enter")
