"""Routines of eager calls in the vectors of the machine, a module for each dtype."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType

import numpy as np

from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.gemm.shape import SCALARS, Shape, shape_for


@functools.cache
def shape_of(dtype: np.dtype) -> Shape:
    """The machine's vectors of this dtype."""
    return shape_for(compiler.machine(), SCALARS[dtype])


def code_of_dtypes(kind: str, writer: Callable[[], ModuleType]) -> functools._lru_cache_wrapper[compiler.Code]:
    """The function that gives the routines of a dtype, whose text a module writes."""

    @compiler.lasting
    def code(dtype: np.dtype) -> compiler.Code:
        shape = shape_of(dtype)
        return compiler.compile_routine(kind, (str(dtype),), {}, lambda: writer().text(shape), conventions.EFFORT)

    return code
