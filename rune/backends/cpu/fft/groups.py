"""Transforms of many short rows in eager calls: a row in each lane.

Squares of numbers are transposed to lanes and back, so rows of any length are whole vectors, and no
row has to split into two factors (rows.py). Real rows are complex ones of half their length
(reals.py), folded in lanes.
"""

from __future__ import annotations

import functools

import numpy as np

from rune import locks
from rune.backends.cpu.fft import reals, rows
from rune.backends.cpu.fft.conventions import ROOMS
from rune.backends.cpu.fft.lengths import few_radices, is_in_lanes
from rune.backends.cpu.fft.stage_lists import stages_of
from rune.backends.cpu.routine_calls import Call, Work, call_of
from rune.backends.cpu.scratch import in_lines
from rune.backends.cpu.vector_routines import code_of_dtypes, shape_of
from rune.ops.complex_numbers import PART, WHOLE

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
