"""Samples of tests that are too many for every run, and too alike.

RUNE_TEST_WHOLE=1 runs all of them. What is chosen depends on a case's name alone, so that the same
ones run every time and a new case moves no other.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def one_in(count: int, cases: Sequence[T]) -> list[T]:
    """About one of `count` cases, the same in every run; all of them with RUNE_TEST_WHOLE=1.

    Of cases whose names choose none of them it is the first, so that no table is tried by nothing.
    """
    if "RUNE_TEST_WHOLE" in os.environ:
        return list(cases)
    chosen = [c for c in cases if zlib.crc32(str(c).encode()) % count == 0]
    return chosen or list(cases[:1])
