"""Real rows of even length: complex ones of half the length, of neighbours taken as parts.

    forward    z[j] = x[2j] + i x[2j+1], and of its transform Z
               X[k] = (Z[k] + conj Z[h-k]) / 2 + exp(-2πi k/n) (Z[k] - conj Z[h-k]) / 2i
    inverse    Z from X by the same lines backwards, and its inverse transform

Source: Sorensen, Jones, Heideman & Burrus 1987, "Real-valued fast Fourier transform algorithms",
IEEE Trans. ASSP 35(6), §II.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from types import ModuleType

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft import rows
from rune.backends.cpu.fft.conventions import REAL_POINTERS
from rune.backends.cpu.fft.tables import half_turns
from rune.ops.complex_numbers import PART, WHOLE


def is_routine(n: int, dtype: np.dtype) -> bool:
    """Whether the routine takes rows of n numbers of this real dtype."""
    return n % 2 == 0 and rows.is_routine(n // 2, WHOLE[dtype])


def transformed(x: np.ndarray) -> np.ndarray:
    """Frequencies 0 to n/2 of real rows."""
    result = np.empty((*x.shape[:-1], x.shape[-1] // 2 + 1), WHOLE[x.dtype])
    _run("forward", x, result, x.shape[-1])
    return result


def inverse(x: np.ndarray) -> np.ndarray:
    """Real rows of even length from their frequencies."""
    n = 2 * (x.shape[-1] - 1)
    result = np.empty((*x.shape[:-1], n), PART[x.dtype])
    _run("inverse", x, result, n)
    return result


def _run(name: str, x: np.ndarray, result: np.ndarray, n: int) -> None:
    source, dtype = np.ascontiguousarray(x), PART.get(x.dtype, x.dtype)
    length, turns = rows.length_of(n // 2, dtype), turns_of(n, dtype)
    memory, (real, imag, *places) = length.memory()
    # As in rows.py, parts are exchanged around an inverse.
    even, odd = (imag, real) if name == "inverse" else (real, imag)
    pointers = source.ctypes.data, result.ctypes.data, even, odd, turns.ctypes.data, real, imag, *places
    # Folding needs the 1/2 of the formula. Unfolding leaves 2 Z, of n/2 numbers: 1 / (2 n/2).
    factor = 1 / n if name == "inverse" else 0.5
    _entry(name, dtype)(*pointers, length.address, source.size // source.shape[-1], factor)
    del memory  # which was in use until here


@functools.lru_cache(maxsize=64)
def turns_of(n: int, dtype: np.dtype) -> np.ndarray:
    """What the halves of n real numbers are turned by."""
    return half_turns(n, dtype)


@functools.cache
def _entry(name: str, dtype: np.dtype) -> Callable[..., None]:
    factor = {"float": ctypes.c_float, "double": ctypes.c_double}[rows.shape_of(dtype).scalar]
    kinds = [*[ctypes.c_void_p] * len(REAL_POINTERS.split()), ctypes.c_int64, factor]
    return ctypes.CFUNCTYPE(None, *kinds)(_code(name, dtype).address(name))


@functools.cache
def _writer() -> ModuleType:
    """The module that writes the routine, imported for the first one that is not on disk."""
    return locks.load("rune.backends.cpu.fft.reals_code")


@compiler.lasting
def _code(name: str, dtype: np.dtype) -> compiler.Code:
    parts = rows.parts_address(dtype)

    def write() -> str:
        return _writer().text(rows.shape_of(dtype), name, parts)

    return compiler.compile_routine("real rows", (name, str(dtype)), {"parts": parts}, write, conventions.HURRY)
