"""Transforms of complex rows in eager calls, without a compilation for each length.

A row is split in two, n = a·b, as in forms.py. Everything that depends on n is in words and tables
that the routine reads, so one module and one function per radix serve all lengths (rows_code.py).
They are compiled with little optimisation: the text already keeps vectors in registers.

Source: as forms.py and stages.py.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable
from types import ModuleType

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft.conventions import ROW_POINTERS
from rune.backends.cpu.fft.lengths import WRITTEN_OUT, piece_of, radices, split_of, step_between
from rune.backends.cpu.fft.tables import turns_between, turns_of_stage
from rune.backends.cpu.gemm.shape import SCALARS, Shape, shape_for
from rune.backends.cpu.scratch import in_lines
from rune.backends.shared import host_memory
from rune.ops.complex_numbers import PART
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Length:
    """The data for one length, which the routine reads.

    words:   n, a, b, the step between rows of b, the table between the two transforms, the number
             of stages of each, and the words of these stages
    tables:  the tables that the words point to
    address: the address of the words
    places:  offsets in work memory, in bytes: real and imaginary parts of the row, the values
             between the two transforms, the lanes, and its end
    """

    words: np.ndarray
    tables: tuple[np.ndarray, ...]
    address: int
    places: tuple[int, ...]

    def memory(self) -> tuple[np.ndarray, list[int]]:
        """Work memory for one row, and where its parts begin."""
        memory = host_memory.arena(self.places[-1], "fft")
        first = memory.ctypes.data
        return memory, [first + place for place in self.places[:-1]]


def is_routine(n: int, dtype: np.dtype) -> bool:
    """Whether the routine supports rows of n numbers of this complex dtype."""
    return split_of(n, shape_of(PART[dtype]).lanes) is not None and set(radices(n)) <= set(WRITTEN_OUT)


def transformed(x: np.ndarray, *, inverse: bool) -> np.ndarray:
    """The transform along the last axis, or its inverse. Its length must satisfy is_routine."""
    source, result, n = np.ascontiguousarray(x), np.empty(x.shape, x.dtype), x.shape[-1]
    length = length_of(n, PART[x.dtype])
    memory, (real, imag, *places) = length.memory()
    # The inverse is the same with real and imaginary parts exchanged before and after.
    even, odd = (imag, real) if inverse else (real, imag)
    arrays = source.ctypes.data, result.ctypes.data, even, odd, real, imag, *places, length.address
    _entry(PART[x.dtype])(*arrays, x.size // n, 1 / n if inverse else 1)
    del memory  # which was in use until here
    return result


@functools.cache
def shape_of(dtype: np.dtype) -> Shape:
    """The machine's vectors of this dtype."""
    return shape_for(compiler.machine(), SCALARS[dtype])


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a transform in lanes: OF_STAGE words of each, and the tables they point to."""

    words: np.ndarray
    tables: tuple[np.ndarray, ...]

    @property
    def address(self) -> int:
        """Of the words."""
        return self.words.ctypes.data


def stages_of(n: int, dtype: np.dtype) -> Stages:
    """The stages of n numbers, whose functions are compiled where no other length has had them."""
    length, stage_radices = 1, radices(n)
    words: list[int] = []
    tables: list[np.ndarray] = []
    for k, radix in enumerate(stage_radices):
        runs = n // (radix * length)
        tables.append(turns_of_stage(radix, runs, dtype))
        words += [_stage(dtype, radix, k == len(stage_radices) - 1), tables[-1].ctypes.data, runs, length]
        length *= radix
    return Stages(np.array(words, np.int64), tuple(tables))


@functools.lru_cache(maxsize=64)
def length_of(n: int, dtype: np.dtype) -> Length:
    """The words and tables of a length."""
    shape = shape_of(dtype)
    factors = split_of(n, shape.lanes)
    assert factors is not None
    between = turns_between(*factors, dtype)
    lists = [stages_of(factor, dtype) for factor in factors]
    tables = (between, *(table for stages in lists for table in stages.tables))
    step = step_between(factors[1], shape)
    head = [n, *factors, step, between.ctypes.data, *(len(radices(factor)) for factor in factors)]
    words = np.concatenate([np.array(head, np.int64), *(stages.words for stages in lists)])
    # A real transform puts the first number behind the last (reals.py).
    sizes = n + 1, n + 1, 2 * factors[0] * step, 4 * shape.lanes * max(factors)
    places = itertools.accumulate((int(in_lines(size * shape.bytes)) for size in sizes), initial=0)
    return Length(words, tables, words.ctypes.data, tuple(places))


def parts_address(dtype: np.dtype) -> int:
    """The address of `rows_code.parts_function`."""
    return _code(dtype).address("parts")


def _stage(dtype: np.dtype, radix: int, last: bool) -> int:
    """The address of the stage of a radix."""
    return _stage_code(dtype, radix, last).address(piece_of(radix, last))


@compiler.lasting
def _stage_code(dtype: np.dtype, radix: int, last: bool) -> compiler.Code:
    """The code of a stage. It must last, as the words of lengths contain its address."""
    shape = shape_of(dtype)

    def write() -> str:
        return _writer().stage_text(shape, radix, last)

    return compiler.compile_routine("stage", (str(dtype), radix, last), {}, write, conventions.HURRY)


@compiler.lasting
def _code(dtype: np.dtype) -> compiler.Code:
    shape = shape_of(dtype)
    return compiler.compile_routine("rows", (str(dtype),), {}, lambda: _writer().text(shape), conventions.HURRY)


@functools.cache
def _writer() -> ModuleType:
    """The module that writes the routine, imported for the first one that is not on disk."""
    return locks.load("rune.backends.cpu.fft.rows_code")


@functools.cache
def _entry(dtype: np.dtype) -> Callable[..., None]:
    factor = {"float": ctypes.c_float, "double": ctypes.c_double}[shape_of(dtype).scalar]
    kinds = [*[ctypes.c_void_p] * len(ROW_POINTERS.split()), ctypes.c_int64, factor]
    return ctypes.CFUNCTYPE(None, *kinds)(_code(dtype).address("rows"))
