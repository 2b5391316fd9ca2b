"""Transforms of real arrays along an axis that is not the last: columns in vector lanes.

A column of 2n numbers is a complex one of n: even rows are real parts, odd rows imaginary ones,
which the first stage reads where they lie. Folded as in reals.py, by vectors of columns.
"""

from __future__ import annotations

import functools

import numpy as np

from rune import locks
from rune.backends.cpu.fft import columns, reals
from rune.backends.cpu.fft.conventions import ROOMS
from rune.backends.cpu.fft.lengths import few_radices
from rune.backends.cpu.fft.stage_lists import stages_of
from rune.backends.cpu.routine_calls import Call, call_of
from rune.backends.cpu.scratch import in_lines
from rune.backends.cpu.vector_routines import code_of_dtypes, shape_of
from rune.ops.complex_numbers import WHOLE


def is_routine(n: int, inner: int, dtype: np.dtype) -> bool:
    """Whether the routine takes columns of n numbers of this real dtype."""
    return n % 2 == 0 and columns.is_routine(n // 2, inner, WHOLE[dtype])


@functools.lru_cache(maxsize=64)
def call_for(name: str, outer: int, half: int, inner: int, dtype: np.dtype) -> Call:
    """The transform of arrays [outer, 2 half, inner], or the inverse."""
    stages, turns, shape = stages_of(half, dtype), reals.turns_of(2 * half, dtype), shape_of(dtype)
    factor = np.array([0.5 if name == "forward" else 1 / (2 * half)], dtype)
    room = int(in_lines(2 * (half + 1) * shape.lanes * shape.bytes))
    words = [stages.address, half, inner, len(few_radices(half)), turns.ctypes.data, factor.ctypes.data]
    work = columns.work_of(outer, half, inner, shape.lanes, ROOMS * room)
    return call_of(_code(dtype).address(name), words, work, stages, turns, factor)


# The module that writes the routines, imported for the first one that is not on disk.
_writer = locks.late_module("rune.backends.cpu.fft.real_columns_code")


_code = code_of_dtypes("real columns", _writer)
