"""Bits read as every other dtype, and bytes in reverse: NumPy's views of the same memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rune
from rune import lax
from tests.support.arrays import array

NAMES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128"
DTYPES = [np.dtype(name) for name in NAMES.split()] + [np.dtype(ml_dtypes.bfloat16)]
ROWS = 3


def viewed(raw: bytes, dtype: np.dtype, other: np.dtype) -> np.ndarray:
    """Memory as `dtype`, a row for each element of the wider of the two."""
    ratio = other.itemsize // dtype.itemsize
    return np.frombuffer(raw, dtype).reshape(ROWS, *[ratio][: ratio > 1])


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("new", DTYPES, ids=str)
def test_bits_are_those_of_the_same_memory(new: np.dtype, wrap: Callable[[Any], Any]):
    rng = np.random.default_rng(0)
    olds = DTYPES if wrap is not rune.jit else [d for d in DTYPES if "c" in d.kind + new.kind]
    for old in olds:
        raw = rng.bytes(ROWS * max(old.itemsize, new.itemsize))
        expected = viewed(raw, new, old)

        actual = np.asarray(wrap(lambda x: lax.bitcast_convert_type(x, new))(array(viewed(raw, old, new))))

        assert (actual.dtype, actual.shape, actual.tobytes()) == (new, expected.shape, raw), old


@pytest.mark.parametrize(("wrap", "dtype"), [*itertools.product([lambda f: f, rune.jit], DTYPES)])
def test_bytes_are_swapped_within_each_number_and_each_part(wrap: Callable[[Any], Any], dtype: np.dtype):
    x = np.frombuffer(np.random.default_rng(1).bytes(5 * dtype.itemsize), dtype)

    assert np.asarray(wrap(lambda v: v.byteswap())(array(x))).tobytes() == x.byteswap().tobytes()
