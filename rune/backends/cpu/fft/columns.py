"""Transforms of complex arrays along an axis that is not the last: columns in vector lanes.

Neighbours in memory are lanes. A vector of columns is taken apart on its way to work memory,
transformed there by the stages of rows.py, and put together where the result lies.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable

import numpy as np

from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft import rows
from rune.backends.cpu.fft.butterflies import WRITTEN_OUT
from rune.backends.cpu.fft.forms import radices
from rune.backends.cpu.fft.lines import put_pairs, take_pairs
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import block_count, maker
from rune.backends.cpu.scratch import in_lines
from rune.backends.shared import host_memory
from rune.lowering.codegen.llvm.ir.text import Value
from rune.ops.complex_numbers import PART

LONGEST = 1 << 12  # numbers of a column, whose work memory a nearer cache holds
_ROOMS = 3  # of work memory: two for stages, and one for what the last of them writes


def is_routine(n: int, inner: int, dtype: np.dtype) -> bool:
    """Whether the routine takes columns of n complex numbers, `inner` of them side by side."""
    lanes = rows.shape_of(PART[dtype]).lanes
    return inner >= lanes and 1 < n <= LONGEST and set(radices(n)) <= set(WRITTEN_OUT)


def transformed(x: np.ndarray, axis: int, *, inverse: bool) -> np.ndarray:
    """The transform along an axis, or its inverse, of columns that the routine takes."""
    source, result, dtype, n = np.ascontiguousarray(x), np.empty(x.shape, x.dtype), PART[x.dtype], x.shape[axis]
    stages = _stages(n, dtype)
    shape = rows.shape_of(dtype)
    room = int(in_lines(2 * n * shape.lanes * shape.bytes))
    memory = host_memory.arena(_ROOMS * room, "fft")
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    addresses = source.ctypes.data, result.ctypes.data, memory.ctypes.data, stages.address
    _entry(dtype, inverse)(*addresses, outer, n, inner, len(radices(n)), 1 / n if inverse else 1)
    return result


@functools.lru_cache(maxsize=64)
def _stages(n: int, dtype: np.dtype) -> rows.Stages:
    return rows.stages_of(n, dtype)


@functools.cache
def _entry(dtype: np.dtype, inverse: bool) -> Callable[..., None]:
    factor = {"float": ctypes.c_float, "double": ctypes.c_double}[rows.shape_of(dtype).scalar]
    kinds = [*[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 4, factor]
    return ctypes.CFUNCTYPE(None, *kinds)(_code(dtype, inverse).address("columns"))


@compiler.lasting
def _code(dtype: np.dtype, inverse: bool) -> compiler.Code:
    shape = rows.shape_of(dtype)

    def write() -> str:
        texts = [declarations(shape), rows.stages_function(shape), rows.public(columns_function(shape, inverse))]
        return "\n\n".join(texts)

    return compiler.compile_routine("columns", (str(dtype), inverse), {}, write, conventions.HURRY)


def columns_function(shape: Shape, inverse: bool) -> str:
    """The transform along the middle axis of pairs [outer, n, inner], times `factor`.

    The last vector of columns ends with the last column. An inverse exchanges the parts.
    """
    make, lanes = maker(shape), shape.lanes
    (source, target, work, stages), (outer, n, inner, count) = (
        make.pointers("source target work words"),
        make.sizes("outer n inner count"),
    )
    width = make.number(2 * lanes)
    room = n * width
    first, second, third = (make.at(work, room * number) for number in range(_ROOMS))
    order = (1, 0) if inverse else (0, 1)
    factor = make.writer.splat(Value(make.writer, shape.scalar, "%factor"), lanes)

    def columns(start: Value) -> None:
        def take(k: Value) -> None:
            for part, place in zip(take_pairs(make, make.at(source, start + k * inner * 2)), order, strict=True):
                make.put(part, make.at(second, k * width + place * lanes))

        def put(k: Value) -> None:
            real, imag = (make.vector(make.at(third, k * width + place * lanes)) * factor for place in order)
            put_pairs(make, real, imag, make.at(target, start + k * inner * 2))

        make.each(n, take)
        # The columns are in the second room, as the first stage writes to the first (rows.py).
        places = [second, make.at(second, lanes), width, third, make.at(third, lanes), width]
        make.call("stages", stages, count, *places, first, room)
        make.each(n, put)

    def array(number: Value) -> None:
        make.each(
            block_count(inner, lanes),
            lambda group: columns((number * n * inner + (group * lanes).call("smin", inner - lanes)) * 2),
        )

    make.each(outer, array)
    sizes = f"i64 %outer, i64 %n, i64 %inner, i64 %count, {shape.scalar} %factor"
    return make.text(f"columns(ptr %source, ptr %target, ptr %work, ptr %words, {sizes})")
