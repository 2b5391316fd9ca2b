"""Transforms of complex rows in eager calls, without a compilation for each length.

A row is split in two, n = a·b, as in forms.py. Everything that depends on n is in words and tables
that the routine reads, so one module and one function per radix serve all lengths (rows_code.py).

Source: as forms.py and stages.py.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft.conventions import IN_PARTS, ROOMS, Ends
from rune.backends.cpu.fft.lengths import WRITTEN_OUT, few_radices, piece_of, split_of, step_between
from rune.backends.cpu.fft.tables import turns_between, turns_of_stage
from rune.backends.cpu.routine_calls import Call, Work, call_of
from rune.backends.cpu.scratch import in_lines
from rune.backends.cpu.vector_routines import code_of_dtypes, shape_of
from rune.backends.shared import host_memory
from rune.ops.complex_numbers import PART
from rune.records import dataclass

PAIRS, SWAPPED = Ends("pairs", "pairs"), Ends("swapped", "swapped")  # forward, and inverse


@dataclass(frozen=True, slots=True)
class Length:
    """The data for one length, which the routine reads.

    words:   n, a, b, the step between rows of b, the table between the two transforms, the number
             of stages of each, the numbers for each element where it is read and written (two of
             pairs), and the words of these stages
    tables:  the tables that the words point to
    address: the address of the words
    places:  offsets in work memory, in bytes: real and imaginary parts of the row, the values
             between the two transforms, the lanes, and its end
    """

    words: np.ndarray
    tables: tuple[np.ndarray, ...]
    address: int
    places: tuple[int, ...]


def is_routine(n: int, dtype: np.dtype) -> bool:
    """Whether the routine supports rows of n numbers of this complex dtype."""
    return split_of(n, shape_of(PART[dtype]).lanes) is not None and set(few_radices(n)) <= set(WRITTEN_OUT)


def transformed(x: np.ndarray, *, inverse: bool) -> np.ndarray:
    """The transform along the last axis, or its inverse. Its length must satisfy is_routine."""
    n = x.shape[-1]
    return call_for(x.size // n, n, PART[x.dtype], inverse)(x, host_memory.empty(x.shape, x.dtype))


@functools.lru_cache(maxsize=64)
def call_for(count: int, n: int, dtype: np.dtype, inverse: bool) -> Call:
    """The transform of this many rows of n numbers."""
    length = length_of(n, dtype, SWAPPED if inverse else PAIRS, 1 / n if inverse else 1.0)
    _, _, between, work, end = length.places
    # The places of the parts of a row are not used.
    work_of_rows = Work(count, count * operations(n), end)
    return call_of(_code(dtype).address("rows"), [length.address, between, work], work_of_rows, length)


def operations(n: int) -> int:
    """The operations of a transform of n numbers, roughly: n log2 n."""
    return n * n.bit_length()


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a transform in lanes: OF_STAGE words of each, and the tables they point to."""

    words: np.ndarray
    tables: tuple[np.ndarray, ...]

    @property
    def address(self) -> int:
        """Of the words."""
        return self.words.ctypes.data


def stages_of(n: int, dtype: np.dtype, ends: Ends = IN_PARTS, factor: float = 1.0) -> Stages:
    """The stages of n numbers, whose functions are compiled where no other length has had them.

    factor: of the results, where they are written as pairs
    """
    length, stage_radices = 1, few_radices(n)
    words: list[int] = []
    tables: list[np.ndarray] = []
    for k, radix in enumerate(stage_radices):
        runs, last = n // (radix * length), k == len(stage_radices) - 1
        of_stage = Ends("parts" if k else ends.reads, ends.writes if last else "parts")
        is_scaled = of_stage.writes != "parts"
        # A stage that writes pairs is the last one and has no turns: its table holds the factor.
        tables.append(np.array([factor], dtype) if is_scaled else turns_of_stage(radix, runs, dtype))
        words += [_stage(dtype, radix, last, of_stage), tables[-1].ctypes.data, runs, length]
        length *= radix
    return Stages(np.array(words, np.int64), tuple(tables))


@functools.lru_cache(maxsize=64)
def length_of(n: int, dtype: np.dtype, ends: Ends, factor: float) -> Length:
    """The words and tables of a length."""
    shape = shape_of(dtype)
    factors = split_of(n, shape.lanes)
    assert factors is not None
    between = turns_between(*factors, dtype)
    down, along = factors
    lists = stages_of(down, dtype, Ends(ends.reads)), stages_of(along, dtype, Ends(writes=ends.writes), factor)
    tables = (between, *(table for stages in lists for table in stages.tables))
    step = step_between(along, shape)
    counts = [len(few_radices(size)) for size in factors]
    head = [n, *factors, step, between.ctypes.data, *counts, *(1 if end == "parts" else 2 for end in ends)]
    words = np.concatenate([np.array(head, np.int64), *(stages.words for stages in lists)])
    # A real transform puts the first number behind the last (reals.py).
    sizes = n + 1, n + 1, 2 * down * step, 2 * ROOMS * shape.lanes * max(factors)
    places = itertools.accumulate((int(in_lines(size * shape.bytes)) for size in sizes), initial=0)
    return Length(words, tables, words.ctypes.data, tuple(places))


def parts_address(dtype: np.dtype) -> int:
    """The address of `rows_code.parts_function`."""
    return _code(dtype).address("parts")


def _stage(dtype: np.dtype, radix: int, last: bool, ends: Ends) -> int:
    """The address of the stage of a radix."""
    return _stage_code(dtype, radix, last, ends).address(piece_of(radix, last))


@compiler.lasting
def _stage_code(dtype: np.dtype, radix: int, last: bool, ends: Ends) -> compiler.Code:
    """The code of a stage. It must last, as the words of lengths contain its address."""
    shape = shape_of(dtype)

    def write() -> str:
        return _writer().stage_text(shape, radix, last, ends)

    # With effort: stages made in a hurry took up to a quarter more time (decision 0110).
    return compiler.compile_routine("stage", (str(dtype), radix, last, *ends), {}, write, conventions.EFFORT)


# The module that writes the routine, imported for the first one that is not on disk.
_writer = locks.late_module("rune.backends.cpu.fft.rows_code")


_code = code_of_dtypes("rows", _writer)
