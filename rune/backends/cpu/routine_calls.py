"""Calls of routines by eager functions: a Python function of three arrays over native code.

A routine is void(ptr words, ptr source, ptr target, ptr memory, i64 first, i64 last). It does units
`first` to `last` of its work, which do not depend on each other, so that cores can share them. Its
words say what to do, and do not change; a call passes arrays, whose addresses native code reads
from the objects. Through ctypes, each of them took longer than a transform of a hundred numbers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions, threads
from rune.backends.cpu.host_abi import ADDRESSES, Abi, abi, native_function
from rune.backends.cpu.scratch import LINE, in_lines
from rune.backends.shared import host_memory
from rune.records import dataclass

HEAD = 4  # words before those of the routine: its address, units, units of a share, bytes of memory
_ROUTINE = [*[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64]
_BYTE = np.dtype(np.uint8)
# The least number of operations that cores share, about 20 µs on one; fewer were no faster.
_SHARED_OPERATIONS = 250_000


@dataclass(frozen=True, slots=True)
class Work:
    """What a routine has to do.

    units:        how many there are
    operations:   of all of them, on one number each
    memory_bytes: the work memory of one core
    """

    units: int
    operations: int
    memory_bytes: int

    def units_of_share(self, cores: int) -> int:
        """How many units a core takes at a time; all of them where sharing would not pay."""
        # One for each core: with two for each of them, transforms of columns took a fifth longer.
        shares = cores if self.operations >= _SHARED_OPERATIONS else 1
        return max(-(-self.units // shares), 1)


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


def call_of(function: int, words: Sequence[int], work: Work, *references: object) -> Call:
    """The routine at this address, on these words."""
    layout, memory = abi(), int(in_lines(work.memory_bytes))
    if layout is None:
        table = np.array([*words], np.int64)
        return Call(_by_ctypes(function, table, work.units), memory + LINE, (table, *references))
    share = threads.shares()[0]
    units = work.units_of_share(share.cores)
    table = np.array([function, work.units, units, memory, *words], np.int64)
    shares = -(-work.units // units)
    code = _shared_code(layout, threads.parallel_address(share)) if shares > 1 else _code(layout)
    run = native_function("routine", code.address("enter"), table).call
    return Call(run, shares * memory + LINE, references)  # native code aligns the memory


def _by_ctypes(function: int, table: np.ndarray, units: int) -> Callable[..., None]:
    routine, first = ctypes.CFUNCTYPE(None, *_ROUTINE)(function), table.ctypes.data

    def run(*arrays: np.ndarray) -> None:
        source, target, memory = (x.ctypes.data for x in arrays)
        routine(first, source, target, memory + -memory % LINE, 0, units)

    return run


# The module that writes the functions, imported if no earlier process has left the code.
_writer = locks.late_module("rune.backends.cpu.routine_calls_code")


@compiler.lasting
def _code(layout: Abi) -> compiler.Code:
    return _compiled("call of a routine", layout, {}, lambda: _writer().text(layout))


@compiler.lasting
def _shared_code(layout: Abi, parallel: int) -> compiler.Code:
    outside = {"parallel": parallel}
    return _compiled("shared call of a routine", layout, outside, lambda: _writer().shared_text(layout, parallel))


def _compiled(kind: str, layout: Abi, outside: dict[str, int], write: Callable[[], str]) -> compiler.Code:
    words = [(f.name, getattr(layout, f.name)) for f in fields(layout) if f.name not in ADDRESSES]
    addresses = {name: getattr(layout, name) for name in ADDRESSES}
    return compiler.compile_routine(kind, words, addresses | outside, write, conventions.HURRY)
