"""Transforms of complex rows in eager calls, without a compilation for each length.

A row is split in two, n = a·b, as in forms.py, or is a convolution of a length that splits.
Everything that depends on n is in words and tables that the routine reads, so one module and one
function per radix serve all lengths (rows_code.py, chirps_code.py).

Source: as forms.py, stages.py and convolutions.py.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft.conventions import IN_PARTS, ROOMS, Ends
from rune.backends.cpu.fft.convolutions import chirp_of
from rune.backends.cpu.fft.lengths import few_radices, is_in_lanes, split_length, split_of, step_between
from rune.backends.cpu.fft.stage_lists import stages_of
from rune.backends.cpu.fft.tables import turns_between
from rune.backends.cpu.routine_calls import Call, Work, call_of
from rune.backends.cpu.scratch import in_lines
from rune.backends.cpu.vector_routines import code_of_dtypes, shape_of
from rune.ops.complex_numbers import PART
from rune.records import dataclass

LONGEST_CONVOLVED = 1 << 18  # numbers of a row, whose tables are computed in a fraction of a second
PAIRS, SWAPPED = Ends("pairs", "pairs"), Ends("swapped", "swapped")  # forward, and inverse


@dataclass(frozen=True, slots=True)
class Length:
    """The data for one length, which the routine reads.

    words:   n, the function, a, b, the step between rows of b, the table between the two
             transforms, the number of stages of each, the numbers for each element where it is
             read and written (two of pairs), and the words of these stages; or, of a convolution,
             n, the function, the length that splits, its words, the tables of both products, and
             the factor of pairs
    tables:  what the words point to
    address: the address of the words
    places:  offsets in work memory, in bytes: real and imaginary parts of the row, the values
             between the two transforms, the lanes, and its end
    """

    words: np.ndarray
    tables: tuple[object, ...]
    address: int
    places: tuple[int, ...]


def is_routine(n: int, dtype: np.dtype) -> bool:
    """Whether the routine supports rows of n numbers of this complex dtype."""
    return is_split(n, dtype) or shape_of(PART[dtype]).lanes < n <= LONGEST_CONVOLVED


def is_split(n: int, dtype: np.dtype) -> bool:
    """Whether such rows split into two factors of a vector or more each."""
    return split_of(n, shape_of(PART[dtype]).lanes) is not None and is_in_lanes(n)


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


@functools.lru_cache(maxsize=64)
def length_of(n: int, dtype: np.dtype, ends: Ends, factor: float) -> Length:
    """The words and tables of a length."""
    shape = shape_of(dtype)
    factors = split_of(n, shape.lanes)
    if factors is None or not is_in_lanes(n):
        return _convolved(n, dtype, ends, factor)
    between = turns_between(*factors, dtype)
    down, along = factors
    lists = stages_of(down, dtype, Ends(ends.reads)), stages_of(along, dtype, Ends(writes=ends.writes), factor)
    step = step_between(along, shape)
    counts = [len(few_radices(size)) for size in factors]
    head = [
        n,
        _code(dtype).address("parts"),
        *factors,
        step,
        between.ctypes.data,
        *counts,
        *(1 if end == "parts" else 2 for end in ends),
    ]
    words = np.concatenate([np.array(head, np.int64), *(stages.words for stages in lists)])
    # A real transform puts the first number behind the last (reals.py).
    sizes = n + 1, n + 1, 2 * down * step, 2 * ROOMS * shape.lanes * max(factors)
    places = itertools.accumulate((int(in_lines(size * shape.bytes)) for size in sizes), initial=0)
    return Length(words, (between, *lists), words.ctypes.data, tuple(places))


def _convolved(n: int, dtype: np.dtype, ends: Ends, factor: float) -> Length:
    """The words and tables of a length that does not split, which is a convolution."""
    shape = shape_of(dtype)
    size = split_length(2 * n - 1, shape.lanes)
    inner = length_of(size, dtype, IN_PARTS, 1.0)
    tables = (*chirp_of(n, size, dtype), np.array([factor], dtype))
    words = np.array([n, _chirp_code(dtype, ends).address("chirped"), size, inner.address, *map(_address, tables)])
    _, _, between, *others = inner.places
    room = int(in_lines((n + 1) * shape.bytes))
    # Before what lies between the halves of the convolution are its parts.
    ahead = 2 * room + 2 * size * shape.bytes - between
    places = 0, room, 2 * room, *(place + ahead for place in others)
    return Length(words, (inner, *tables), words.ctypes.data, places)


def _address(table: np.ndarray) -> int:
    return table.ctypes.data


@compiler.lasting
def _chirp_code(dtype: np.dtype, ends: Ends) -> compiler.Code:
    def write() -> str:
        return _chirps().text(shape_of(dtype), ends)

    return compiler.compile_routine("chirps", (str(dtype), *ends), {}, write, conventions.EFFORT)


# The modules that write the routines, imported for the first one that is not on disk.
_writer = locks.late_module("rune.backends.cpu.fft.rows_code")
_chirps = locks.late_module("rune.backends.cpu.fft.chirps_code")


_code = code_of_dtypes("rows", _writer)
