"""Floats on every executor: extremes, signs, neighbours and casts at the edges, against NumPy.

The edges are values for which languages guarantee nothing: NaN, infinities, both zeros, denormal
numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import rune
from rune import dtypes, lax
from rune.backends import Device

DTYPES = (dtypes.f16, dtypes.f32, dtypes.f64)
DEVICES = [d for d in rune.devices() if d.target.backend != "null"]
PAIRS = [(d, x) for d in DEVICES for x in DTYPES if x in d.target.program_dtypes]
BINARY: dict[str, Callable[..., np.ndarray]] = {"max": np.maximum, "min": np.minimum, "nextafter": np.nextafter}
INTEGERS = ("i8", "i16", "i32", "u8", "u16", "u32", "i64", "u64")


def edges(dtype: np.dtype) -> np.ndarray:
    """Both signs of 0, of denormal, of normal and of infinite numbers, and NaN."""
    info = np.finfo(dtype)
    sizes = [0.0, info.smallest_subnormal, info.tiny, 1.0, 2.5, info.max, np.inf]
    return np.array([*sizes, *(-x for x in sizes), np.nan], dtype)


def words(x: rune.Array | np.ndarray) -> list[int]:
    """The bits, of every NaN the same."""
    values = np.asarray(x)
    return np.where(np.isnan(values), values.dtype.type(np.nan), values).view(f"u{values.itemsize}").tolist()


def label(x: Device | np.dtype) -> str:
    return x.name if isinstance(x, Device) else dtypes.short(x)


@pytest.fixture(autouse=True)
def wide_types():
    with rune.enable_x64(), np.errstate(over="ignore", under="ignore"):  # NumPy warns of them
        yield


on_each = pytest.mark.parametrize(("device", "dtype"), PAIRS, ids=label)


@on_each
def test_extremes_and_neighbours_are_the_same_bits_on_every_executor(device: Device, dtype: np.dtype):
    pairs = [(a, b) for a, b in itertools.product(edges(dtype), repeat=2) if a != 0 or b != 0]
    a, b = (np.array(side, dtype) for side in zip(*pairs, strict=True))

    results = rune.jit(lambda a, b: {n: getattr(lax, n)(a, b) for n in BINARY}, device=device)(a, b)

    for name, meaning in BINARY.items():
        assert words(results[name]) == words(meaning(a, b)), name


@on_each
def test_signs_are_the_same_on_every_executor(device: Device, dtype: np.dtype):
    x = edges(dtype)

    result = rune.jit(lax.sign, device=device)(x)

    assert words(np.abs(np.asarray(result))) == words(np.abs(np.sign(x)))
    assert np.array_equal(np.asarray(result), np.sign(x), equal_nan=True)


@on_each
def test_floats_beyond_an_integer_saturate_on_every_executor(device: Device, dtype: np.dtype):
    limits = [2.0**n for n in (7, 8, 15, 16, 31, 32, 63, 64)]
    near = [np.nextafter(dtype.type(x), dtype.type(s)) for x in limits if x <= np.finfo(dtype).max for s in (0, np.inf)]
    bounds = np.array([x for x in limits if x <= np.finfo(dtype).max], dtype)
    x = np.concatenate([edges(dtype), bounds, -bounds, np.array(near, dtype), -np.array(near, dtype)])
    targets = [dtypes.FROM_SHORT[n] for n in INTEGERS if dtypes.FROM_SHORT[n] in device.target.program_dtypes]

    results = rune.jit(lambda x: [x.astype(t) for t in targets], device=device)(rune.numpy.asarray(x))

    for target, result in zip(targets, results, strict=True):
        assert np.asarray(result).tolist() == [saturated(float(v), target) for v in x], dtypes.short(target)


def saturated(x: float, target: np.dtype) -> int:
    """Towards 0, at most the ends of the range; 0 for NaN."""
    info = np.iinfo(target)
    if np.isnan(x):
        return 0
    if np.isinf(x):
        return int(info.max if x > 0 else info.min)
    return min(max(int(x), int(info.min)), int(info.max))
