"""Transforms of complex arrays along an axis that is not the last: columns in vector lanes.

Neighbours in memory are lanes. The first stage takes a vector of columns apart on its way to work
memory, and the last one puts it together where the result lies (rows.py).
"""

from __future__ import annotations

import functools

import numpy as np

from rune import locks
from rune.backends.cpu.fft import rows
from rune.backends.cpu.fft.conventions import ROOMS
from rune.backends.cpu.fft.lengths import few_radices, is_in_lanes
from rune.backends.cpu.fft.stage_lists import stages_of
from rune.backends.cpu.routine_calls import Call, Work, call_of
from rune.backends.cpu.scratch import in_lines
from rune.backends.cpu.vector_routines import code_of_dtypes, shape_of
from rune.ops.complex_numbers import PART
from rune.ops.fourier.in_memory import LONGEST_COLUMN


def is_routine(n: int, inner: int, dtype: np.dtype) -> bool:
    """Whether the routine takes columns of n complex numbers, `inner` of them side by side."""
    lanes = shape_of(PART[dtype]).lanes
    return inner >= lanes and 1 < n <= LONGEST_COLUMN and is_in_lanes(n)


@functools.lru_cache(maxsize=64)
def call_for(outer: int, n: int, inner: int, dtype: np.dtype, inverse: bool) -> Call:
    """The transform of arrays [outer, n, inner]."""
    ends, factor = (rows.SWAPPED, 1 / n) if inverse else (rows.PAIRS, 1.0)
    stages, shape = stages_of(n, dtype, ends, factor), shape_of(dtype)
    room = int(in_lines(2 * n * shape.lanes * shape.bytes))
    work = work_of(outer, n, inner, shape.lanes, ROOMS * room)
    return call_of(_code(dtype).address("columns"), [stages.address, n, inner, len(few_radices(n))], work, stages)


def work_of(outer: int, n: int, inner: int, lanes: int, memory_bytes: int) -> Work:
    """The work of columns [outer, n, inner], a vector of them a unit."""
    return Work(outer * -(-inner // lanes), outer * inner * rows.operations(n), memory_bytes)


# The module that writes the routine, imported for the first one that is not on disk.
_writer = locks.late_module("rune.backends.cpu.fft.columns_code")


_code = code_of_dtypes("columns", _writer)
