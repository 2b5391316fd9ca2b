"""Divisors and multiples of every pair of hard integers: Python's, wrapped into the dtype."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import same

DTYPES = [f"{sign}{bits}" for sign in ("int", "uint") for bits in (8, 16, 32, 64)]
WAYS = {"eagerly": lambda f: f, "compiled": rune.jit}


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    hard = np.array([low, low + 1, low // 2, 0, 1, 6, 96, high // 2, high - 1, high], dtype)
    if low:
        hard = np.append(hard, np.array([-1, -6], dtype))
    return np.repeat(hard, len(hard)), np.tile(hard, len(hard))


def wrapped(values: list[int], dtype: str) -> np.ndarray:
    bits = np.iinfo(dtype).bits
    return np.array([v % (1 << bits) for v in values], f"u{bits // 8}").view(dtype)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["gcd", "lcm"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_divisors_and_multiples_are_those_of_python_wrapped(dtype: str, name: str, way: str):
    a, b = pairs(dtype)
    of_python = getattr(math, name)
    wanted = wrapped([of_python(int(x), int(y)) for x, y in zip(a, b, strict=True)], dtype)

    found = WAYS[way](getattr(rnp, name))(rnp.asarray(a, dtype=dtype), rnp.asarray(b, dtype=dtype))

    same(wanted, np.asarray(found))
