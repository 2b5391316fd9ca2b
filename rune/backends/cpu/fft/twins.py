"""Transforms of short rows in eager calls, two rows in each vector: twins.

A row of n = a·b numbers is a transform of a, whose columns lie in vectors as they do in memory,
turns, squares that are transposed in registers, and a transform of b, which leaves the frequencies
in their order. Both factors are half a vector or a whole one, so that code of such a length needs
little memory between the two, or none. Groups (groups.py) move a number three times as often.

Source: as forms.py and reals.py.
"""

from __future__ import annotations

import functools

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft import rows
from rune.backends.cpu.fft.lengths import twin_factors
from rune.backends.cpu.fft.tables import half_turns, turns_between
from rune.backends.cpu.routine_calls import Call, Work, call_of
from rune.backends.cpu.vector_routines import shape_of
from rune.ops.complex_numbers import PART, WHOLE


def is_routine(count: int, n: int, dtype: np.dtype) -> bool:
    """Whether the routine takes `count` rows of n numbers of this complex dtype."""
    return count > 1 and twin_factors(n, shape_of(PART[dtype]).lanes) is not None


def is_real_routine(count: int, n: int, dtype: np.dtype) -> bool:
    """Whether the routine takes `count` rows of n numbers of this real dtype."""
    return n % 2 == 0 and is_routine(count, n // 2, WHOLE[dtype])


@functools.lru_cache(maxsize=64)
def call_for(name: str, count: int, n: int, dtype: np.dtype) -> Call:
    """The transform of this many rows of n complex numbers each."""
    shape, turns, real_turns = shape_of(dtype), _turns(n, dtype), _real_turns(n, dtype)
    words = [count, turns.ctypes.data, real_turns.ctypes.data]
    work = Work(-(-count // 2), count * rows.operations(n), 8 * n * shape.bytes)
    return call_of(_code(name, n, dtype).address(name), words, work, turns, real_turns)


def _turns(n: int, dtype: np.dtype) -> np.ndarray:
    """exp(-2πi jp/n) for the columns j of each vector and p below a: f[b/half, a, 2, lanes]."""
    lanes = shape_of(dtype).lanes
    factors = twin_factors(n, lanes)
    assert factors is not None
    table = turns_between(*factors, dtype).reshape(2, factors[0], -1, lanes // 2)
    return np.ascontiguousarray(np.tile(table.transpose(2, 1, 0, 3), 2))


def _real_turns(n: int, dtype: np.dtype) -> np.ndarray:
    """exp(-πi k/n) for the frequencies k of each vector: f[n/half, 2, lanes]."""
    lanes = shape_of(dtype).lanes
    table = half_turns(2 * n, dtype)[:, :n].reshape(2, -1, lanes // 2)
    return np.ascontiguousarray(np.tile(table.transpose(1, 0, 2), 2))


# The module that writes the routines, imported for the first one that is not on disk.
_writer = locks.late_module("rune.backends.cpu.fft.twins_code")


@compiler.lasting
def _code(name: str, n: int, dtype: np.dtype) -> compiler.Code:
    def write() -> str:
        return _writer().text(shape_of(dtype), name, n)

    return compiler.compile_routine("twins", (name, n, str(dtype)), {}, write, conventions.EFFORT)
