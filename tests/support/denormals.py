"""The results that an executor may give if its arithmetic flushes denormal f32 numbers to 0.

Each step of a computation may keep a denormal number or flush it to 0. So a result is right if it
is the result for some choice of flushed operands, or 0 if that result is denormal. The parts of a
complex number are flushed separately. A flushed number times infinity is NaN.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from rune import dtypes
from tests.support.close import ulp_distance

SMALLEST = 2.0**-126
IN_F32 = frozenset({dtypes.f32, dtypes.bf16, dtypes.c64})
SLACK = 4 * SMALLEST  # of a sum of which some terms are 0

Meaning = Callable[[Sequence[np.ndarray]], np.ndarray]


def flushed(x: np.ndarray) -> np.ndarray:
    """The numbers with 0 for denormal numbers, or for denormal parts of complex ones."""
    if x.dtype not in IN_F32:
        return x
    if np.iscomplexobj(x):
        return _joined(flushed(np.real(x)), flushed(np.imag(x)))
    return np.where(np.abs(x) < SMALLEST, np.copysign(x.dtype.type(0), x), x)


def steps(meaning: Meaning, operands: Sequence[np.ndarray], out: np.ndarray) -> np.ndarray:
    """The distance of each result from the nearest right one, in ulps."""
    results = [meaning(reading) for reading in itertools.product(*map(_readings, operands))]
    is_undefined = _is_endless(results[0], operands)
    if not np.iscomplexobj(out):
        apart = [_apart(e, out, np.abs(e)) for r in results for e in (r, flushed(r))]
        return np.where(is_undefined & np.isnan(out), 0, np.minimum.reduce(apart))
    parts = []
    for part in (np.real, np.imag):
        apart = [
            _apart(part(e), part(out), np.maximum(np.abs(np.real(e)), np.abs(np.imag(e))))
            for r in results
            for e in (r, flushed(r))
        ]
        parts.append(np.where(is_undefined & np.isnan(part(out)), 0, np.minimum.reduce(apart)))
    return np.maximum(*parts)


def _readings(x: np.ndarray) -> list[np.ndarray]:
    """The operand in each way that an executor may read it."""
    if not np.iscomplexobj(x):
        return [x, flushed(x)]
    return [_joined(a, b) for a in _readings(np.real(x)) for b in _readings(np.imag(x))]


def _joined(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    out = np.empty(real.shape, np.result_type(real, np.complex64))
    out.real, out.imag = real, imag
    return out


def _is_endless(result: np.ndarray, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Whether infinity may have been multiplied by a denormal number."""
    parts = [p for x in operands if x.dtype in IN_F32 for p in (np.real(x), np.imag(x))]
    small = [(np.abs(p) < SMALLEST) & (p != 0) for p in parts]
    return np.isinf(result) & np.logical_or.reduce([np.zeros(result.shape, bool), *small])


def _apart(expected: np.ndarray, out: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The distance in ulps at numbers of that size; a denormal difference counts as none."""
    ulps = ulp_distance(expected, out)
    if expected.dtype not in IN_F32:
        return ulps
    finite = np.isfinite(expected.astype(np.float32)) & np.isfinite(out.astype(np.float32)) & np.isfinite(size)
    with np.errstate(all="ignore"):
        difference = np.abs(expected.astype(np.float64) - out.astype(np.float64))
        if size.dtype == dtypes.f32:
            ulps = np.where(finite, np.minimum(ulps, np.ceil(difference / np.spacing(size))), ulps)
    return np.where(finite & (difference <= SLACK), 0, ulps)
