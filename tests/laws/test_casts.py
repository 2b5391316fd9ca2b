"""Casts, on every executor and eagerly: all bit patterns of up to 16 bits, to every dtype.

The oracle is written from the rules: floats round as in ml_dtypes and NumPy, a float cast to an
integer saturates and NaN becomes 0, integers wrap, anything but zero is true. Then rounding at and
next to every midpoint between neighbours of the narrow formats; then arithmetic of 8-bit and 4-bit
numbers over all pairs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune.backends import Device
from rune.core.primitive import Primitive
from tests.support.arrays import array
from tests.support.close import same
from tests.support.sampling import in_turn

pytestmark = in_turn()

COMPUTING = [d for d in rune.devices() if d.target.backend != "null"]
NARROW = sorted((d for d in dtypes.ANY if d.itemsize <= 2), key=dtypes.short)
FORMATS = sorted((d for d in dtypes.FLOATING if d.itemsize <= 2), key=dtypes.short)
SMALL = (dtypes.i4, dtypes.u4, dtypes.f8_e4m3, dtypes.f8_e5m2)
EVERY = sorted(dtypes.ANY, key=dtypes.short)


@dataclass(frozen=True)
class Run:
    """Runs functions, compiled on a device or eagerly. `takes`: the dtypes that there are."""

    device: Device | None = None

    @property
    def takes(self) -> frozenset[np.dtype]:
        known = dtypes.ANY if self.device is None else self.device.target.program_dtypes
        return known & dtypes.ANY

    def __call__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        run = function if self.device is None else rune.jit(function, device=self.device.name)
        return run(*args)


@pytest.fixture(autouse=True)
def _quiet():
    """No warnings: overflow and NaN are intended."""
    with np.errstate(all="ignore"):
        yield


everywhere = pytest.mark.parametrize(
    "run", [Run(), *map(Run, COMPUTING)], ids=["eagerly", *(d.name for d in COMPUTING)]
)


def patterns(dtype: np.dtype) -> np.ndarray:
    """Every value of a dtype of at most 16 bits, NaNs and all."""
    if dtype == dtypes.bool_:
        return np.array([False, True])
    if dtype in (dtypes.i4, dtypes.u4):
        low = -8 if dtype == dtypes.i4 else 0
        return np.arange(low, low + 16).astype(np.int8).astype(dtype)
    count = 1 << (8 * dtype.itemsize)
    return np.arange(count, dtype=f"u{dtype.itemsize}").view(dtype)


def limits(dtype: np.dtype) -> tuple[int, int]:
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def saturated(value: float, low: int, high: int) -> int:
    """The integer towards zero, or the nearest end; of NaN 0."""
    if math.isnan(value):
        return 0
    return int(value) if low <= value <= high else low if value < low else high


@functools.cache  # the same on every executor, and a second for 16 bits
def patterns_as(source: np.dtype, dtype: np.dtype) -> np.ndarray:
    """Every value of one dtype, in another."""
    return cast(patterns(source), dtype)


def cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The rules, in f64 and i64, which hold every number of 16 bits."""
    if dtype == dtypes.bool_:
        return x.astype(np.float64) != 0
    if x.dtype in dtypes.FLOATING and dtype in dtypes.INTEGER:
        low, high = limits(dtype)
        saturated_values = [saturated(v, low, high) for v in x.astype(np.float64).tolist()]
        return np.array(saturated_values, np.uint64 if dtype == dtypes.u64 else np.int64).astype(dtype)
    if x.dtype in dtypes.FLOATING:
        return x.astype(np.float32).astype(dtype)
    wide = x.astype(np.int64)
    return wide.astype(np.float32).astype(dtype) if dtype in dtypes.FLOATING else wide.astype(dtype)


@everywhere
@pytest.mark.parametrize("source", NARROW, ids=dtypes.short)
def test_every_bit_pattern_converts_to_every_dtype(source: np.dtype, run: Run):
    x = patterns(source)
    real = [d for d in EVERY if d != dtypes.bool_ and d in run.takes]

    def converted(x: Any) -> list[Any]:
        return [ops.convert(x, dtype=d) for d in real] + [ops.ne(x, np.zeros((), source))]

    outputs = run(converted, (array(x),))

    for dtype, out in zip([*real, dtypes.bool_], outputs, strict=True):
        same(patterns_as(source, dtype), np.asarray(out))


@everywhere
@pytest.mark.parametrize("dtype", FORMATS, ids=dtypes.short)
def test_rounding_is_to_nearest_even_around_every_midpoint(dtype: np.dtype, run: Run):
    values = patterns(dtype).astype(np.float32)
    ascending = np.unique(values[np.isfinite(values)])
    beyond = ascending[-1] + (ascending[-1] - ascending[-2])  # where the next number would be
    ascending = np.concatenate([[-beyond], ascending, [beyond]])
    middle = (ascending[:-1] + ascending[1:]) / np.float32(2)
    x = np.concatenate([middle, *(np.nextafter(middle, np.float32(e)) for e in (-np.inf, np.inf))])

    result = run(lambda x: ops.convert(x, dtype=dtype), (array(x),))

    same(x.astype(dtype), np.asarray(result))


@everywhere
@pytest.mark.parametrize("dtype", FORMATS, ids=dtypes.short)
def test_an_f64_next_to_a_midpoint_rounds_as_in_numpy(dtype: np.dtype, run: Run):
    if dtypes.f64 not in run.takes:
        pytest.skip("no f64 there")
    values = patterns(dtype).astype(np.float64)
    ascending = np.unique(values[np.isfinite(values)])
    middle = (ascending[:-1] + ascending[1:]) / 2
    x = np.concatenate([middle, np.nextafter(middle, -1e300), np.nextafter(middle, 1e300)])

    result = run(lambda x: ops.convert(x, dtype=dtype), (array(x),))

    same(x.astype(dtype), np.asarray(result))


@everywhere
def test_floats_beyond_every_integer_dtype_saturate(run: Run):
    numbers = [np.nan, np.inf, -np.inf, 3e38, -3e38, 2.9, -2.9, 127.5, 255.5, -128.5]
    x = np.array(numbers, np.float32)
    integers = sorted(dtypes.INTEGER & run.takes, key=dtypes.short)

    results = run(lambda x: [ops.convert(x, dtype=d) for d in integers], (array(x),))

    for dtype, out in zip(integers, results, strict=True):
        same(cast(x, dtype), np.asarray(out))


# --- arithmetic over all pairs ----------------------------------------------------------------

ARITHMETIC = (ops.add, ops.sub, ops.mul, ops.div, ops.rem, ops.max, ops.min, ops.eq, ops.lt, ops.select)
OF_BITS = (ops.logical_and, ops.logical_or, ops.logical_xor, ops.shl, ops.shr)


def meaning(primitive: Primitive, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The operation in a wider dtype, rounded or wrapped once."""
    if primitive is ops.select:
        return np.where(a.astype(np.float32) < b.astype(np.float32), a, b)
    assert primitive.reference is not None
    wide = np.float32 if a.dtype in dtypes.FLOATING else np.int8
    wide = np.uint8 if a.dtype == dtypes.u4 else wide
    exact = np.asarray(primitive.reference(a.astype(wide), b.astype(wide)))
    return exact if exact.dtype == bool else exact.astype(a.dtype)


@everywhere
@pytest.mark.parametrize("dtype", SMALL, ids=dtypes.short)
def test_arithmetic_of_small_numbers_is_exact_or_rounded_once_for_all_pairs(dtype: np.dtype, run: Run):
    numbers = patterns(dtype)
    a, b = (np.ascontiguousarray(g).reshape(-1) for g in np.meshgrid(numbers, numbers))
    primitives = ARITHMETIC + (OF_BITS if dtype in dtypes.INTEGER else ())

    def all_of(a: Any, b: Any) -> list[Any]:
        return [p(ops.lt(a, b), a, b) if p is ops.select else p(a, b) for p in primitives]

    results = run(all_of, (array(a), array(b)))

    for primitive, out in zip(primitives, results, strict=True):
        same(_settled(primitive, meaning(primitive, a, b)), _settled(primitive, out))


def _settled(primitive: Primitive, out: Any) -> np.ndarray:
    """The sign of max(0.0, -0.0) is open: zeros without theirs."""
    value = np.asarray(out)
    if primitive in (ops.max, ops.min) and value.dtype in dtypes.FLOATING:
        return np.where(value.astype(np.float32) == 0, np.zeros((), value.dtype), value)
    return value
