"""(a + aᵀ) / 2 of real matrices in one pass, for eager functions of symmetric matrices.

Squares of vectors are transposed in registers. NumPy reads a column of aᵀ element by element, and
goes over its results twice: for 256 rows it takes five times as long.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from rune import locks
from rune.backends.cpu.gemm.shape import SCALARS
from rune.backends.cpu.routine_calls import Call, Work, call_of
from rune.backends.cpu.vector_routines import code_of_dtypes, shape_of
from rune.backends.shared import host_memory


def is_routine(x: np.ndarray) -> bool:
    """Whether the routine takes these square matrices."""
    return x.dtype in SCALARS and x.size > 0 and x.shape[-1] >= shape_of(x.dtype).lanes


def means(x: np.ndarray) -> np.ndarray:
    """The means of matrices and their transposes, with NumPy's bits."""
    batch, n = math.prod(x.shape[:-2]), x.shape[-1]
    return _call(batch, n, x.dtype)(x, host_memory.empty(x.shape, x.dtype))


@functools.lru_cache(maxsize=64)
def _call(batch: int, n: int, dtype: np.dtype) -> Call:
    lines = -(-n // shape_of(dtype).lanes)  # of squares, each a unit
    return call_of(_code(dtype).address("means"), [n], Work(batch * lines, 2 * batch * n * n, 0))


# The module that writes the routine, imported if it is not on disk.
_writer = locks.late_module("rune.backends.cpu.linalg.means_code")


_code = code_of_dtypes("means", _writer)
