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
UPDATES = ("add", "max", "min", "set")
SIZES = (63, 64, 65, 131, 256, 8192)  # LLVM erred at powers of 2 alone


def scattered(x: Any, updates: Any, factors: tuple[int, ...], change: str) -> list[Any]:
    """For each factor, `x` with `updates` at the places factor * j % N, and twice that.

    The places are no result: stored ones are loaded, and no compiler knows them.
    """
    results = []
    for factor in factors:
        places = rnp.arange(x.size) * factor % x.size
        changed = getattr(x.at[places], change)(updates)
        results += [changed, changed * 2]
    return results


def expected(x: np.ndarray, updates: np.ndarray, factors: tuple[int, ...], change: str) -> list[np.ndarray]:
    """The same by NumPy."""
    functions = {"add": np.add.at, "max": np.maximum.at, "min": np.minimum.at, "set": np.put}
    results = []
    for factor in factors:
        places, changed = np.arange(x.size) * factor % x.size, x.copy()
        functions[change](changed, places, updates)
        results += [changed, changed * 2]
    return results


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("change", UPDATES)
@pytest.mark.parametrize("device", EXECUTORS)
def test_updates_at_multiples_are_those_of_numpy(device: str, change: str, size: int):
    factors = {8192: (7,), 63: (5, 8), 65: (3, 7), 131: (3, 7)}.get(size, (3, 5, 7, 9))
    x, updates = np.arange(1, size + 1, dtype=np.float32), np.arange(size, dtype=np.float32) % 7 - 3
    compiled = rune.jit(scattered, static_argnames=("factors", "change"))
    reference = expected(x, updates, factors, change)

    with rune.configure(device=device):
        same(reference, compiled(x, updates, factors=factors, change=change))
        same(reference, scattered(rnp.asarray(x), updates, factors, change))
