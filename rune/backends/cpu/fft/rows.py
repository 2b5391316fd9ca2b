"""Transforms of complex rows in eager calls, without a compilation for each length.

A row is split in two, n = a·b, as in forms.py. Everything that depends on n is in words and tables
that the routine reads, so one module and one function per radix serve all lengths. They are
compiled with little optimisation: the text already keeps vectors in registers.

Source: as forms.py and stages.py.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable

import numpy as np

from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft.butterflies import WRITTEN_OUT
from rune.backends.cpu.fft.forms import piece_of, radices, split_of, step_between
from rune.backends.cpu.fft.lines import put_together_function, take_apart_function, turned_squares_function
from rune.backends.cpu.fft.stages import declarations, stage_function
from rune.backends.cpu.fft.tables import turns_between, turns_of_stage
from rune.backends.cpu.gemm.library import SCALARS
from rune.backends.cpu.gemm.shape import Shape, shape_for
from rune.backends.cpu.gemm.tile import block_count, maker
from rune.backends.cpu.scratch import in_lines
from rune.backends.shared import host_memory
from rune.lowering.codegen.llvm.ir.text import Value
from rune.ops.complex_numbers import PART
from rune.records import dataclass

_PARTS = "real imag between work words"
_POINTERS = f"source target even odd {_PARTS}"
_HEAD = 7  # the words before those of the stages
OF_STAGE = 4  # words of a stage: its function, its table, runs and length


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
    """The address of `parts_function`."""
    return _code(dtype).address("parts")


def _stage(dtype: np.dtype, radix: int, last: bool) -> int:
    """The address of the stage of a radix."""
    return _stage_code(dtype, radix, last).address(piece_of(radix, last))


@compiler.lasting
def _stage_code(dtype: np.dtype, radix: int, last: bool) -> compiler.Code:
    """The code of a stage. It must last, as the words of lengths contain its address."""
    shape = shape_of(dtype)

    def write() -> str:
        return f"{declarations(shape)}\n\n{public(stage_function(shape, radix, turns=not last))}"

    return compiler.compile_routine("stage", (str(dtype), radix, last), {}, write, conventions.HURRY)


@compiler.lasting
def _code(dtype: np.dtype) -> compiler.Code:
    shape = shape_of(dtype)
    pieces = take_apart_function, put_together_function, turned_squares_function, stages_function

    def write() -> str:
        functions = public(parts_function(shape)), public(rows_function(shape))
        texts = [declarations(shape), *(piece(shape) for piece in pieces), *functions]
        return "\n\n".join(texts)

    return compiler.compile_routine("rows", (str(dtype),), {}, write, conventions.HURRY)


def public(text: str) -> str:
    """A function that can be seen from without its module."""
    return text.replace("define internal", "define", 1)


@functools.cache
def _entry(dtype: np.dtype) -> Callable[..., None]:
    factor = {"float": ctypes.c_float, "double": ctypes.c_double}[shape_of(dtype).scalar]
    kinds = [*[ctypes.c_void_p] * len(_POINTERS.split()), ctypes.c_int64, factor]
    return ctypes.CFUNCTYPE(None, *kinds)(_code(dtype).address("rows"))


def stages_function(shape: Shape) -> str:
    """The transform of a vector of lines, by `count` stages.

    Stages write the two halves of work memory alternately. The source may be the second half: the
    first stage writes the other one.
    """
    make = maker(shape)
    writer, (stages, fr, fi, tr, ti, work) = make.writer, make.pointers("listed fr fi tr ti work")
    count, fs, ts, room = make.sizes("count fs ts room")
    step = make.number(2 * shape.lanes)

    def stage(k: Value) -> None:
        is_first, is_last, second = k.equals(0), k.equals(count - 1), k & 1
        # Stage k writes half k mod 2, so it reads the other one.
        before, after = (make.at(work, room * at) for at in (make.number(1) - second, second))
        source = [make.at(before, part * shape.lanes) for part in (0, 1)]
        target = [make.at(after, part * shape.lanes) for part in (0, 1)]
        words = make.at(stages, k * OF_STAGE, "i64")
        function, turns = (writer.load("ptr", make.at(words, at, "i64")) for at in (0, 1))
        runs, length = (writer.load("i64", make.at(words, at, "i64")) for at in (2, 3))
        reads = [writer.select(is_first, x, y) for x, y in zip((fr, fi, fs), (*source, step), strict=True)]
        writes = [writer.select(is_last, x, y) for x, y in zip((tr, ti, ts), (*target, step), strict=True)]
        make.call(function.text, *reads, *writes, turns, runs, length)

    make.each(count, stage)
    pointers = "ptr %fr, ptr %fi, i64 %fs, ptr %tr, ptr %ti, i64 %ts"
    return make.text(f"stages(ptr %listed, i64 %count, {pointers}, ptr %work, i64 %room)")


def parts_function(shape: Shape) -> str:
    """The transform of one row whose parts are apart, in their place."""
    make, lanes = maker(shape), shape.lanes
    writer = make.writer
    real, imag, between, work, words = make.pointers(_PARTS)
    # All of these words are sizes, except the address of the table.
    n, rows, columns, step, turns, downs, alongs = (
        writer.load("ptr" if k == _HEAD - 3 else "i64", make.at(words, k, "i64")) for k in range(_HEAD)
    )
    stages = make.at(words, _HEAD, "i64")
    along_list = make.at(stages, downs * OF_STAGE, "i64")
    width = make.number(2 * lanes)
    room = width * writer.select(rows > columns, rows, columns)
    middle_real, middle_imag = between, make.at(between, rows * step)
    second = make.at(work, room)
    second_imag = make.at(second, lanes)

    def down(group: Value) -> None:
        first = (group * lanes).call("smin", columns - lanes)
        places = [make.at(part, first) for part in (real, imag, middle_real, middle_imag)]
        make.call("stages", stages, downs, *places[:2], columns, *places[2:], step, work, room)

    def along(group: Value) -> None:
        first = (group * lanes).call("smin", rows - lanes)
        parts = [make.at(part, first * step) for part in (middle_real, middle_imag)]
        turn = make.at(turns, first * columns)
        make.call("turned_squares", *parts, turn, second, second_imag, step, columns, width, n, columns)
        places = [make.at(part, first) for part in (real, imag)]
        make.call("stages", along_list, alongs, second, second_imag, width, *places, rows, work, room)

    make.each(block_count(columns, lanes), down)
    make.each(block_count(rows, lanes), along)
    return make.text(f"parts({', '.join(f'ptr %{name}' for name in _PARTS.split())})")


def rows_function(shape: Shape) -> str:
    """The transform of each of `count` rows of pairs, times `factor`.

    even, odd: where the first and the second number of each pair go, in memory of real and imag
    """
    make = maker(shape)
    source, target, even, odd, *parts = make.pointers(_POINTERS)
    (count,), factor = make.sizes("count"), Value(make.writer, shape.scalar, "%factor")
    n = make.writer.load("i64", parts[-1])

    def row(number: Value) -> None:
        first = number * n * 2
        make.call("take_apart", make.at(source, first), even, odd, n)
        make.call("parts", *parts)
        make.call("put_together", even, odd, make.at(target, first), n, factor)

    make.each(count, row)
    pointers = ", ".join(f"ptr %{name}" for name in _POINTERS.split())
    return make.text(f"rows({pointers}, i64 %count, {shape.scalar} %factor)")
