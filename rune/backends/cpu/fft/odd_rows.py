"""Transforms of many real rows of odd length n = r·m: a row in each lane, as in groups.py.

    y[p, i] = exp(-2πi ip/n) · sum over q of x[q·m + i] exp(-2πi pq/r)
    X[p + r·k] = sum over i of y[p, i] exp(-2πi ik/m)

Of r numbers p only the first (r+1)/2 are computed: the frequencies of the others are conjugates.
The inverse goes backwards. r is the largest small factor, which leaves least to compute.

Source: Sorensen, Jones, Heideman & Burrus 1987, as reals.py, §III, for any radix.
"""

from __future__ import annotations

import functools

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft import rows
from rune.backends.cpu.fft.lengths import few_radices, is_in_lanes
from rune.backends.cpu.fft.stage_lists import stages_of
from rune.backends.cpu.fft.tables import turns_of_stage
from rune.backends.cpu.routine_calls import Call, Work, call_of
from rune.backends.cpu.scratch import in_lines
from rune.backends.cpu.vector_routines import code_of_dtypes, shape_of
from rune.ops.fourier.in_memory import LONGEST_COLUMN, first_radix


def is_routine(count: int, n: int, dtype: np.dtype) -> bool:
    """Whether the routine takes `count` rows of n numbers of this real dtype."""
    lanes, radix = shape_of(dtype).lanes, first_radix(n)
    is_product = n % 2 == 1 and radix is not None and radix < n
    return is_product and count >= lanes and lanes <= n <= LONGEST_COLUMN and is_in_lanes(n)


@functools.lru_cache(maxsize=64)
def call_for(name: str, count: int, n: int, dtype: np.dtype) -> Call:
    """The transform of this many rows of n numbers, or its inverse. name: forward or inverse"""
    radix = first_radix(n)
    assert radix is not None
    m, shape = n // radix, shape_of(dtype)
    stages, turns = stages_of(m, dtype), turns_of_stage(radix, m, dtype)
    factor = np.array([1.0 if name == "forward" else 1 / n], dtype)
    stage = _stage_code(name, radix, dtype).address("stage")
    words = [stage, turns.ctypes.data, stages.address, factor.ctypes.data, len(few_radices(m)), radix, m, count]
    # Two rooms of half the lines, and two of the stages of one.
    room = in_lines(2 * ((radix + 1) // 2 * m * 2 + 2 * m) * shape.lanes * shape.bytes)
    work = Work(-(-count // shape.lanes), count * rows.operations(n) // 2, int(room))
    return call_of(_code(dtype).address(name), words, work, stages, turns, factor)


@compiler.lasting
def _stage_code(name: str, radix: int, dtype: np.dtype) -> compiler.Code:
    def write() -> str:
        return _writer().stage_text(shape_of(dtype), name, radix)

    return compiler.compile_routine("real stage", (name, radix, str(dtype)), {}, write, conventions.EFFORT)


# The module that writes the routines, imported for the first one that is not on disk.
_writer = locks.late_module("rune.backends.cpu.fft.odd_rows_code")


_code = code_of_dtypes("odd rows", _writer)
