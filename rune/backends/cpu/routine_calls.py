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

JOB = 5  # words of a share's job: a table, the source, the target, work memory, units before it
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
class Task:
    """The routine at an address, its words, and what they refer to."""

    function: int
    words: Sequence[int]
    work: Work
    references: tuple[object, ...]

    @property
    def memory_bytes(self) -> int:
        """The work memory of a share, in full lines of the cache."""
        return int(in_lines(self.work.memory_bytes))

    def shares(self, cores: int) -> int:
        """The shares of its units among the cores."""
        return -(-self.work.units // self.work.units_of_share(cores))

    def table(self, cores: int) -> np.ndarray:
        """The words of the task for so many cores, after HEAD."""
        head = self.function, self.work.units, self.work.units_of_share(cores), self.memory_bytes
        return np.array([*head, *self.words], np.int64)


@dataclass(frozen=True, slots=True)
class Call:
    """A routine with its words.

    run:          the function of source, target and memory, all arrays
    memory_bytes: the work memory that it needs
    task:         the routine and its words, for calls by compiled plans
    """

    run: Callable[[np.ndarray, np.ndarray, np.ndarray], object]
    memory_bytes: int
    task: Task

    def __call__(self, x: np.ndarray, result: np.ndarray) -> np.ndarray:
        """`result`, computed from `x`."""
        # An array that is dense is returned itself.
        self.run(np.ascontiguousarray(x), result, host_memory.empty((self.memory_bytes,), _BYTE))
        return result


def call_of(function: int, words: Sequence[int], work: Work, *references: object) -> Call:
    """The routine at this address, on these words."""
    layout, task = abi(), Task(function, words, work, references)
    if layout is None:
        table = np.array([*words], np.int64)
        return Call(_by_ctypes(function, table, work.units), task.memory_bytes + LINE, task)
    share = threads.shares()[0]
    shares = task.shares(share.cores)
    code = _shared_code(layout, threads.parallel_address(share)) if shares > 1 else _code(layout)
    run = native_function("routine", code.address("enter"), task.table(share.cores)).call
    return Call(run, shares * task.memory_bytes + LINE, task)  # native code aligns the memory


def share_address() -> int:
    """The address of void(ptr job, i64 first, i64 last), units of a task for a pool's threads.

    The job has JOB words. Units of a share count from those before the job.
    """
    return _share_code().address("share")


def _by_ctypes(function: int, table: np.ndarray, units: int) -> Callable[..., None]:
    routine, first = ctypes.CFUNCTYPE(None, *_ROUTINE)(function), table.ctypes.data

    def run(*arrays: np.ndarray) -> None:
        source, target, memory = (x.ctypes.data for x in arrays)
        routine(first, source, target, memory + -memory % LINE, 0, units)

    return run


# The module that writes the functions, imported if no earlier process has left the code.
_writer = locks.late_module("rune.backends.cpu.routine_calls_code")


@compiler.lasting
def _share_code() -> compiler.Code:
    return compiler.compile_routine("share of a routine", (), {}, lambda: _writer().share_text(), conventions.HURRY)


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
