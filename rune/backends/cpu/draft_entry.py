"""The entry into a draft: the checks of array_checks.py in Python.

A draft is called only a few times, so compiling the checks would take longer than making them here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from rune.backends.cpu.host_abi import MISCOUNTED
from rune.backends.cpu.signature import Signature
from rune.backends.shared.protocol import Buffer
from rune.core.types import ArrayType
from rune.records import dataclass

# A call through CFUNCTYPE releases the interpreter's lock, as the native entries do.
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class DraftEntry:
    """The plan's argument types, the number of arrays of a call, and the plan's @run."""

    takes: tuple[ArrayType, ...]
    count: int
    run: Callable[[object], object]

    def call(self, *arrays: Buffer) -> int:
        """Run the plan on the memory of its arguments, results and arena.

        Returns 0; k + 1 if array k is not exactly an ndarray of the expected dtype, rank and shape,
        contiguous and aligned; MISCOUNTED; or the word that the plan has written in place of its
        seat, GAVE_UP.
        """
        if len(arrays) != self.count:
            return MISCOUNTED
        # All layouts before any shape, as in native code, so that both report the same array.
        for fits in (_is_laid_out, _has_shape):
            for number, (array, type) in enumerate(zip(arrays, self.takes, strict=False), 1):
                if not fits(array, type):
                    return number
        # The last word, the seat, stays 0: no crew runs a draft.
        words = (ctypes.c_int64 * (self.count + 1))(*[array.ctypes.data for array in arrays])
        self.run(words)
        return words[self.count]


def draft_entry(signature: Signature, run: int) -> DraftEntry:
    """The entry into a plan of fixed sizes whose @run is at this address."""
    return DraftEntry(signature.arguments, len(signature.arguments) + len(signature.results) + 1, _RUN(run))


def _is_laid_out(array: object, expected: ArrayType) -> bool:
    if type(array) is not np.ndarray or array.dtype is not expected.dtype or array.ndim != len(expected.shape):
        return False
    return array.flags.c_contiguous and array.flags.aligned


def _has_shape(array: Buffer, expected: ArrayType) -> bool:
    return array.shape == expected.shape
