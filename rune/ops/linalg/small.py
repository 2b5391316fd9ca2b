"""Small matrices and many lanes: when an algorithm is written out, and how NumPy treats lanes.

A matrix of up to TINY rows is a handful of numbers. Written out over its elements and vectorised
over the lanes, an algorithm beats one LAPACK call per lane by an order of magnitude, so the
expansion is compiled on the CPU too. In NumPy the lanes of small matrices are last in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rune import dtypes
from rune.core.types import ArrayType

TINY = 4  # rows of a matrix that is written out: its elements are n³ expressions
TINY_COMPLEX = 3  # the same for complex numbers, whose product is six of real ones
NARROW = 8  # rows up to which the expansion is compiled for any number of lanes
IN_CACHE = 300_000  # elements up to which a compiled loop beats NumPy (measured: LU, QR)
FEW = 64  # rows up to which NumPy takes all lanes in one step


def is_small(*types: ArrayType) -> bool:
    """Whether all matrices have few enough rows and columns, as is known at compile time."""
    return all(
        isinstance(d, int) and d <= (TINY_COMPLEX if t.dtype in dtypes.COMPLEX else TINY)
        for t in types
        for d in t.shape[-2:]
    )


def fits_cache(type: ArrayType) -> bool:
    """Whether a compiled loop over rows and columns is faster than NumPy's routine on the CPU.

    It is if everything that a step reads stays in the cache, and for narrow matrices.
    """
    if all(isinstance(d, int) and d <= NARROW for d in type.shape[-2:]):
        return True
    sizes = [d for d in type.shape if isinstance(d, int)]
    return len(sizes) == len(type.shape) and math.prod(sizes) <= IN_CACHE


def prefers_lanes(a: np.ndarray) -> bool:
    """Whether NumPy is faster with one step for all lanes than with one matrix after another."""
    lanes = math.prod(a.shape[:-2])
    return lanes >= 4 and max(a.shape[-2:]) <= FEW


def lanes_last(a: np.ndarray) -> np.ndarray:
    """A copy with the lanes as one last axis. Shapes: [*B, M, N] -> [M, N, B]."""
    flat = a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:])
    return np.ascontiguousarray(np.moveaxis(flat, 0, -1))


def lanes_first(a: np.ndarray, lead: tuple[int, ...]) -> np.ndarray:
    """The inverse of `lanes_last`; `a` may have any number of axes before the lanes."""
    return np.moveaxis(a, -1, 0).reshape(*lead, *a.shape[:-1])


def over_matrices(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """`function` of one matrix after another (all arrays have the same batch axes), stacked."""
    lead = arrays[0].shape[:-2]
    if not lead:
        return function(*arrays)
    flat = [a.reshape(math.prod(lead), *a.shape[-2:]) for a in arrays]
    if 0 in lead:  # no lane tells the shape of a result
        one = function(*(np.ones(a.shape[-2:], a.dtype) for a in arrays))
        return np.empty((*lead, *one.shape), one.dtype)
    results = np.stack([function(*lane) for lane in zip(*flat, strict=True)])
    return results.reshape(*lead, *results.shape[1:])
