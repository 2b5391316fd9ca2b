"""Divisors, multiples and powers of hard integers: Python's, wrapped into the dtype."""

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
    reference = wrapped([of_python(int(x), int(y)) for x, y in zip(a, b, strict=True)], dtype)

    result = WAYS[way](getattr(rnp, name))(rnp.asarray(a, dtype=dtype), rnp.asarray(b, dtype=dtype))

    same(reference, np.asarray(result))


EXPONENTS = [0, 200, 256, 2**31 + 5, 2**64 + 3, 2**70]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_are_pythons_for_exponents_beyond_the_dtype(dtype: str, exponent: int, way: str):
    bases = np.unique(pairs(dtype)[0])
    modulus = 1 << np.iinfo(dtype).bits
    reference = wrapped([pow(int(b), exponent, modulus) for b in bases], dtype)

    result = WAYS[way](lambda x: rnp.power(x, exponent))(rnp.asarray(bases, dtype=dtype))

    same(reference, np.asarray(result))


def test_a_bool_has_powers_beyond_64_bits():
    assert rnp.power(rnp.array([True, False]), 2**70).tolist() == [1, 0]
