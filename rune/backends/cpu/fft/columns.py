"""Transforms of complex arrays along an axis that is not the last: columns in vector lanes.

Neighbours in memory are lanes. A vector of columns is taken apart on its way to work memory,
transformed there by the stages of rows.py, and put together where the result lies.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from types import ModuleType

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft import rows
from rune.backends.cpu.fft.conventions import ROOMS
from rune.backends.cpu.fft.lengths import WRITTEN_OUT, radices
from rune.backends.cpu.scratch import in_lines
from rune.backends.shared import host_memory
from rune.ops.complex_numbers import PART

LONGEST = 1 << 12  # numbers of a column, whose work memory a nearer cache holds


def is_routine(n: int, inner: int, dtype: np.dtype) -> bool:
    """Whether the routine takes columns of n complex numbers, `inner` of them side by side."""
    lanes = rows.shape_of(PART[dtype]).lanes
    return inner >= lanes and 1 < n <= LONGEST and set(radices(n)) <= set(WRITTEN_OUT)


def transformed(x: np.ndarray, axis: int, *, inverse: bool) -> np.ndarray:
    """The transform along an axis, or its inverse, of columns that the routine takes."""
    source, result, dtype, n = np.ascontiguousarray(x), np.empty(x.shape, x.dtype), PART[x.dtype], x.shape[axis]
    stages = stages_of(n, dtype)
    shape = rows.shape_of(dtype)
    room = int(in_lines(2 * n * shape.lanes * shape.bytes))
    memory = host_memory.arena(ROOMS * room, "fft")
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    addresses = source.ctypes.data, result.ctypes.data, memory.ctypes.data, stages.address
    _entry(dtype, inverse)(*addresses, outer, n, inner, len(radices(n)), 1 / n if inverse else 1)
    return result


@functools.lru_cache(maxsize=64)
def stages_of(n: int, dtype: np.dtype) -> rows.Stages:
    """The stages of a column of n numbers."""
    return rows.stages_of(n, dtype)


@functools.cache
def _entry(dtype: np.dtype, inverse: bool) -> Callable[..., None]:
    factor = {"float": ctypes.c_float, "double": ctypes.c_double}[rows.shape_of(dtype).scalar]
    kinds = [*[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 4, factor]
    return ctypes.CFUNCTYPE(None, *kinds)(_code(dtype, inverse).address("columns"))


@functools.cache
def _writer() -> ModuleType:
    """The module that writes the routine, imported for the first one that is not on disk."""
    return locks.load("rune.backends.cpu.fft.columns_code")


@compiler.lasting
def _code(dtype: np.dtype, inverse: bool) -> compiler.Code:
    def write() -> str:
        return _writer().text(rows.shape_of(dtype), inverse)

    return compiler.compile_routine("columns", (str(dtype), inverse), {}, write, conventions.HURRY)
