"""The checks that the entry into a plan makes on array objects, compiled once for all plans.

    i64 unfit_array(ptr argv, i64 count, ptr dtypes, ptr ranks)
        0, or k + 1 if array k is not exactly an ndarray with the dtype and rank in the tables,
        contiguous and aligned
    i64 unfit_shape(ptr argv, i64 count, ptr ranks, ptr lengths)
        0, or k + 1 if an axis of array k has another length than in the table, which has the
        lengths of all arrays one after the other
    void read_addresses(ptr argv, i64 count, ptr words)
        writes the address of each array's memory
    ptr enter(ptr self, ptr argv, i64 count)
        the entire entry into a plan of fixed sizes. `self` is an array of words: the plan's @run,
        the number of arrays in a call, the number of arguments, then their dtypes, ranks and
        lengths

An entry of each plan's own took a third of LLVM's time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.host_abi import ADDRESSES, Abi, NativeFunction, native_function
from rune.core.types import ArrayType
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class ArrayChecks:
    """Addresses of the functions, which are valid as long as `code` lives."""

    code: compiler.Code
    unfit_array: int
    unfit_shape: int
    read_addresses: int
    enter: int


CHECKS = ("unfit_array", "unfit_shape", "read_addresses", "enter")


def native_entry(
    name: str, arguments: Sequence[ArrayType], results: Sequence[ArrayType], abi: Abi, run: int
) -> NativeFunction:
    """The Python function that checks arrays for a plan of fixed sizes, and calls its @run."""
    # Dtypes are compared by identity: NumPy's built-in ones are single objects, and `run.py`
    # repairs calls with equal ones.
    total, shapes = len(arguments) + len(results) + 1, [t.shape for t in arguments]
    dtypes, ranks = [id(t.dtype) for t in arguments], [*map(len, shapes)]
    table = np.array([run, total, len(shapes), *dtypes, *ranks, *itertools.chain(*shapes)], np.int64)
    return native_function(name, array_checks(abi).enter, table)


# The functions as text, imported if no earlier process has left the code.
_code = locks.late_module("rune.backends.cpu.array_checks_code")


@functools.cache
def array_checks(abi: Abi) -> ArrayChecks:
    """The functions, compiled for this layout of array objects."""
    # More effort does not make calls faster, and the first call would take 5 ms more.
    names = [field.name for field in fields(abi)]
    words = [(name, getattr(abi, name)) for name in names if name not in ADDRESSES]
    outside = {name: getattr(abi, name) for name in ADDRESSES}

    def write() -> str:
        return _code().text(abi)

    code = compiler.compile_routine("array_checks", words, outside, write, conventions.HURRY)
    return ArrayChecks(code, *map(code.address, CHECKS))
