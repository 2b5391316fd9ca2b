"""Tables of roots of unity for the stages of a transform, each root rounded once.

A table is computed for each routine, and is kept alive with it.
"""

from __future__ import annotations

import math

import numpy as np

Table = np.ndarray


def turns_of_stage(radix: int, runs: int, dtype: np.dtype) -> Table:
    """exp(-2πi jp / (radix·runs)) for j in runs, p from 1 to radix-1: f[runs, radix-1, 2]."""
    j, p = np.arange(runs)[:, None], np.arange(1, radix)[None]
    return _pairs(j * p, radix * runs, dtype)


def turns_between(rows: int, columns: int, dtype: np.dtype) -> Table:
    """exp(-2πi jk / (rows·columns)): f[2, rows, columns], the parts apart."""
    j, k = np.arange(rows)[:, None], np.arange(columns)[None]
    return np.ascontiguousarray(np.moveaxis(_pairs(j * k, rows * columns, dtype), -1, 0))


def half_turns(n: int, dtype: np.dtype) -> Table:
    """exp(-2πi k/n) for k from 0 to n/2: f[2, n/2 + 1], the parts apart, -1 the last."""
    turns = _pairs(np.arange(n // 2 + 1), n, dtype)
    # Exactly, so that frequency n/2 of a real row is real.
    turns[-1] = -1, 0
    return np.ascontiguousarray(turns.T)


def roots_of_prime(radix: int, dtype: np.dtype) -> Table:
    """cos and sin of 2π qk / radix for q, k from 1 to radix//2: f[half, half, 2]."""
    q = np.arange(1, radix // 2 + 1)
    roots = _pairs(np.outer(q, q) % radix, radix, dtype)
    roots[..., 1] *= -1
    return roots


def _pairs(turns: np.ndarray, n: int, dtype: np.dtype) -> Table:
    """exp(-2πi t/n), with its two parts as the last axis."""
    return as_pairs(wide_roots(turns, n, dtype), dtype)


def as_pairs(x: np.ndarray, dtype: np.dtype) -> Table:
    """Complex numbers as pairs of this dtype."""
    return np.stack([np.real(x), np.imag(x)], -1).astype(dtype)


def wide_roots(turns: np.ndarray, n: int, dtype: np.dtype) -> np.ndarray:
    """exp(-2πi t/n) in wider complex numbers than those of `dtype`.

    Only 2·sqrt(n) sines and cosines are computed, as each root is a product of two: t = a·step + b.
    """
    step = math.isqrt(n)
    coarse, fine = np.divmod(turns % n, step)
    cos_a, sin_a = (part[coarse] for part in _roots(np.arange(0, n, step), n, dtype))
    cos_b, sin_b = (part[fine] for part in _roots(np.arange(step), n, dtype))
    return cos_a * cos_b - sin_a * sin_b - 1j * (sin_a * cos_b + cos_a * sin_b)


def _roots(turns: np.ndarray, n: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin of 2π t/n in wider floats, so that rounding to dtype removes a product's
    errors."""
    wide = np.float64 if dtype == np.float32 else np.longdouble
    angle = turns.astype(wide) * (8 * np.arctan(wide(1)) / wide(n))
    return np.cos(angle), np.sin(angle)
