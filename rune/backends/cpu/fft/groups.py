"""Transforms of many short rows in eager calls: a row in each lane.

Squares of numbers are transposed to lanes and back, so rows of any length are whole vectors, and no
row has to split into two factors (rows.py). Real rows are complex ones of half their length
(reals.py), folded in lanes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from rune import locks
from rune.backends.cpu.fft import reals, rows
from rune.backends.cpu.fft.conventions import ROOMS
from rune.backends.cpu.fft.lengths import few_radices, is_in_lanes
from rune.backends.cpu.fft.stage_lists import stages_of
from rune.backends.cpu.routine_calls import Call, Work, call_of
from rune.backends.cpu.scratch import in_lines
from rune.backends.cpu.vector_routines import code_of_dtypes, shape_of
from rune.backends.shared import host_memory
from rune.ops.complex_numbers import PART, WHOLE

Calls = Callable[[str, int, int, np.dtype], Call]  # of a routine's name, a number of rows, n and a real dtype
LONGEST = 1 << 6  # numbers of a row, above which rows.py is faster
LONGEST_OF_ALL = 1 << 12  # the same of rows that it cannot split


def is_routine(count: int, n: int, dtype: np.dtype) -> bool:
    """Whether the routine takes `count` rows of n numbers of this complex dtype."""
    lanes = shape_of(PART[dtype]).lanes
    longest = LONGEST if rows.is_split(n, dtype) else LONGEST_OF_ALL
    return count >= lanes and lanes <= n <= longest and is_in_lanes(n)


def is_real_routine(count: int, n: int, dtype: np.dtype) -> bool:
    """Whether the routines take `count` rows of n numbers of this real dtype."""
    return n % 2 == 0 and is_routine(count, n // 2, WHOLE[dtype])


def transformed(x: np.ndarray, *, inverse: bool) -> np.ndarray:
    """The transform along the last axis, or its inverse."""
    return complex_by(call_for, x, inverse)


def from_reals(x: np.ndarray) -> np.ndarray:
    """Frequencies 0 to n/2 of real rows."""
    return spectra_by(call_for, x)


def to_reals(x: np.ndarray) -> np.ndarray:
    """Real rows of even length from their frequencies."""
    half = x.shape[-1] - 1
    result = host_memory.empty((*x.shape[:-1], 2 * half), PART[x.dtype])
    return call_for("inverse", x.size // (half + 1), half, result.dtype)(x, result)


def complex_by(calls: Calls, x: np.ndarray, inverse: bool) -> np.ndarray:
    """The transform along the last axis, or its inverse, by one of these calls."""
    n = x.shape[-1]
    name = "backward" if inverse else "complex"
    return calls(name, x.size // n, n, PART[x.dtype])(x, host_memory.empty(x.shape, x.dtype))


def spectra_by(calls: Calls, x: np.ndarray) -> np.ndarray:
    """Frequencies 0 to n/2 of real rows by one of these calls."""
    n = x.shape[-1]
    result = host_memory.empty((*x.shape[:-1], n // 2 + 1), WHOLE[x.dtype])
    return calls("forward", x.size // n, n // 2, x.dtype)(x, result)


@functools.lru_cache(maxsize=64)
def call_for(name: str, count: int, n: int, dtype: np.dtype) -> Call:
    """The transform of this many rows of n complex numbers each, when they are in lanes."""
    stages, shape = stages_of(n, dtype), shape_of(dtype)
    room = int(in_lines(2 * (n + 1) * shape.lanes * shape.bytes))
    turns = reals.turns_of(2 * n, dtype)
    factor = np.array([{"complex": 1.0, "backward": 1 / n, "forward": 0.5, "inverse": 1 / (2 * n)}[name]], dtype)
    words = [stages.address, count, n, len(few_radices(n)), turns.ctypes.data, factor.ctypes.data]
    work = Work(-(-count // shape.lanes), count * rows.operations(n), ROOMS * room)
    return call_of(_code(dtype).address(name), words, work, stages, turns, factor)


# The module that writes the routines, imported for the first one that is not on disk.
_writer = locks.late_module("rune.backends.cpu.fft.groups_code")


_code = code_of_dtypes("groups of rows", _writer)
