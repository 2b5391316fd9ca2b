"""Scatters to multiples of 0, 1, 2 ... modulo a power of 2, computed in the program, are NumPy's.

A compiler that knows such places may write many of them at once, as LLVM 14 did with garbage
between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import same

EXECUTORS = [d.name for d in rune.devices() if not d.name.startswith("null")]
UPDATES = {"add": np.add, "max": np.maximum, "min": np.minimum}


def scattered(x: Any, updates: Any, factors: tuple[int, ...], change: str) -> list[Any]:
    """For each factor, `updates` at the places factor * j % N."""
    places = [rnp.arange(x.size) * factor % x.size for factor in factors]
    return [getattr(x.at[p], change)(updates) for p in places]


@pytest.mark.parametrize("size", [64, 256, 8192])
@pytest.mark.parametrize("change", UPDATES)
@pytest.mark.parametrize("device", EXECUTORS)
def test_updates_at_multiples_within_a_power_of_2_are_those_of_numpy(device: str, change: str, size: int):
    factors = (3, 5, 7, 9) if size < 8192 else (7,)
    x, updates = np.arange(1, size + 1, dtype=np.float32), np.arange(size, dtype=np.float32) % 7 - 3
    with rune.configure(device=device):
        actual = rune.jit(scattered, static_argnames=("factors", "change"))(x, updates, factors=factors, change=change)

    for factor, result in zip(factors, actual, strict=True):
        expected = x.copy()
        UPDATES[change].at(expected, np.arange(size) * factor % size, updates)
        same(expected, result)
