"""Truth values, a byte each, as bits, 64 at a time: eager packbits of large arrays.

One comparison of a vector gives the bits of a word, whose bytes are then put in order. NumPy
takes 1.6 times as long.
"""

from __future__ import annotations

import functools

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.routine_calls import Call, Work, call_of
from rune.backends.shared import host_memory

WORD = 64  # bits
_OPERATIONS = 20  # of a transform, which take as long as one word
_U8 = np.dtype(np.uint8)


def is_one_row(x: np.ndarray) -> bool:
    """Whether the rows of an array are read as one row, of truth values of a byte each."""
    return x.itemsize == 1 and (x.ndim == 1 or (x.ndim > 1 and x.shape[-1] % 8 == 0))


def pack(x: np.ndarray, bitorder: str) -> np.ndarray:
    """The bits along the last axis of an array whose rows `is_one_row` takes for one."""
    result = host_memory.empty((*x.shape[:-1], -(-x.shape[-1] // 8)), _U8)
    _call(x.size // WORD, bitorder)(x, result)
    count = x.size % WORD
    if count:
        # NumPy has the bits that fill no word.
        row = x.reshape(-1)[x.size - count :]
        result.reshape(-1)[x.size // WORD * 8 :] = np.packbits(row, bitorder="big" if bitorder == "big" else "little")
    return result


@functools.lru_cache(maxsize=64)
def _call(words: int, bitorder: str) -> Call:
    return call_of(_code(bitorder).address("pack"), (), Work(words, words * _OPERATIONS, 0))


@compiler.lasting
def _code(bitorder: str) -> compiler.Code:
    return compiler.compile_routine("bits", (bitorder,), {}, lambda: _writer().text(bitorder), conventions.EFFORT)


# The module that writes the routine, imported if it is not on disk.
_writer = locks.late_module("rune.backends.cpu.bits_code")
