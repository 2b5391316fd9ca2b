"""Associated Legendre functions of all degrees and orders: `jax.scipy.special.lpmn_values`.

JAX has deprecated it without a replacement; e3nn-jax builds harmonics on grids from it.
"""

from __future__ import annotations

import math

import numpy as np

import rune.numpy as rnp
from rune import dtypes
from rune.array import Array
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.typing import ArrayLike


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """P[i, j] = P_j^i(z) for orders i up to m and degrees j up to n = m, with the phase (-1)^i.

    Shapes: z [N] -> [m + 1, n + 1, N]; 0 where the order is above the degree.
    Types:  f32 or f64 -> the same.
    is_normalized:  whether functions have norm 1 on the sphere, like spherical harmonics.
    Errors: ArgumentError if m and n differ; ShapeError for z of another rank; DtypeError.
    Source: the recurrences of DLMF 14.10.3, over the degree, and 14.7.

    >>> import rune.numpy as rnp
    >>> lpmn_values(1, 1, rnp.array([0.6]), False)[:, :, 0]
    Array([[ 1. ,  0.6],
           [ 0. , -0.8]], f32[2,2], cpu:0)
    """
    x = rnp.asarray(z)
    _require(m, n, x)
    degrees = np.arange(n + 1.0)
    above, below, sectoral = (_normalised if is_normalized else _plain)(degrees[:, None], degrees)
    sine = rnp.sqrt(1.0 - x * x)
    # Each degree follows from the two below it; an order starts with its sectoral function, n = m.
    last, row, rows = rnp.zeros((n + 1, 1), x.dtype), rnp.zeros((n + 1, 1), x.dtype), []
    for degree in range(n + 1):
        start = np.where(degrees == degree, sectoral, 0.0)[:, None].astype(x.dtype) * sine**degree
        step, back = (table[degree][:, None].astype(x.dtype) for table in (above, below))
        last, row = row, start + step * x * row - back * last
        rows.append(row)
    return rnp.stack(rows, axis=1)


def _plain(n: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The factors [degree, order] of the two lower degrees, and of sine**order in P_m^m."""
    gap = np.where(m < n, n - m, np.inf)  # up to n = m the recurrence does not apply: its factors are 0
    return (2.0 * n - 1.0) / gap, (n + m - 1.0) / gap, np.cumprod(np.where(m > 0, 1.0 - 2.0 * m, 1.0))


def _normalised(n: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `_plain`, for functions with norm 1."""
    step = np.sqrt(np.where(m < n, 4.0 * n * n - 1.0, 0.0) / np.where(m < n, n * n - m * m, 1.0))
    before = np.maximum((n - 1.0) ** 2 - m * m, 0.0) / np.maximum(4.0 * (n - 1.0) ** 2 - 1.0, 1.0)
    ratio = np.sqrt((2.0 * m + 1.0) / np.maximum(2.0 * m, 1.0))
    return step, step * np.sqrt(before), math.sqrt(0.25 / math.pi) * np.cumprod(np.where(m > 0, -ratio, 1.0))


def _require(m: int, n: int, x: Array) -> None:
    if m != n:
        raise ArgumentError(f"lpmn_values: cannot take orders up to {m} and degrees up to {n} (m == n required)")
    if x.ndim != 1:
        raise ShapeError(f"lpmn_values: cannot take points of shape {x.shape} (one axis required)")
    if x.dtype not in (dtypes.f32, dtypes.f64):
        raise DtypeError(f"lpmn_values: cannot take {x.dtype} (float32 or float64 required)")
