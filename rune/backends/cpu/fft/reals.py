"""Real rows of even length: complex ones of half the length, of neighbours taken as parts.

    forward    z[j] = x[2j] + i x[2j+1], and of its transform Z
               X[k] = (Z[k] + conj Z[h-k]) / 2 + exp(-2πi k/n) (Z[k] - conj Z[h-k]) / 2i
    inverse    Z from X by the same lines backwards, and its inverse transform

Source: Sorensen, Jones, Heideman & Burrus 1987, "Real-valued fast Fourier transform algorithms",
IEEE Trans. ASSP 35(6), §II.
"""

from __future__ import annotations

import functools

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft import rows
from rune.backends.cpu.fft.conventions import Ends
from rune.backends.cpu.fft.tables import half_turns
from rune.backends.cpu.routine_calls import Call, Work, call_of
from rune.backends.cpu.vector_routines import shape_of
from rune.ops.complex_numbers import WHOLE

# The inverse is the same with real and imaginary parts exchanged before and after.
FROM_PAIRS, TO_PAIRS = Ends(reads="pairs"), Ends(writes="swapped")


def is_routine(n: int, dtype: np.dtype) -> bool:
    """Whether the routine takes rows of n numbers of this real dtype."""
    return n % 2 == 0 and rows.is_routine(n // 2, WHOLE[dtype])


@functools.lru_cache(maxsize=64)
def call_for(name: str, count: int, n: int, dtype: np.dtype) -> Call:
    """The transform of this many rows of n numbers, or the inverse."""
    # Folding needs the 1/2 of the formula. Unfolding leaves 2 Z, of n/2 numbers: 1 / (2 n/2).
    ends, factor = (FROM_PAIRS, 1.0) if name == "forward" else (TO_PAIRS, 1 / n)
    length, turns = rows.length_of(n // 2, dtype, ends, factor), turns_of(n, dtype)
    words = [length.address, turns.ctypes.data, *length.places[:-1]]
    work = Work(count, count * rows.operations(n // 2), length.places[-1])
    return call_of(_code(name, dtype).address(name), words, work, length, turns)


@functools.lru_cache(maxsize=64)
def turns_of(n: int, dtype: np.dtype) -> np.ndarray:
    """What the halves of n real numbers are turned by."""
    return half_turns(n, dtype)


# The module that writes the routine, imported for the first one that is not on disk.
_writer = locks.late_module("rune.backends.cpu.fft.reals_code")


@compiler.lasting
def _code(name: str, dtype: np.dtype) -> compiler.Code:
    def write() -> str:
        return _writer().text(shape_of(dtype), name)

    return compiler.compile_routine("real rows", (name, str(dtype)), {}, write, conventions.EFFORT)
