"""Small matrices and many lanes: when an algorithm is written out, and how NumPy goes over lanes.

A matrix of up to TINY rows is a handful of numbers: written out over its elements, vectorised over
the lanes, it beats a call of LAPACK for each lane by an order of magnitude, so there the expansion
is compiled on the CPU as well. In NumPy itself the lanes of small matrices stand last in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rune import dtypes
from rune.core.types import ArrayType

TINY = 4  # rows of a matrix that is written out: its elements are n³ expressions
TINY_COMPLEX = 3  # of complex numbers, whose product is six of them
NARROW = 8  # rows of a matrix of which any number of lanes is better compiled
IN_CACHE = 300_000  # elements up to which a compiled loop beats NumPy (measured: LU, QR)
FEW = 64  # rows up to which NumPy takes all lanes in one step


def is_small(*types: ArrayType) -> bool:
    """Whether all matrices have few enough rows and columns, known when compiled."""
    return all(
        isinstance(d, int) and d <= (TINY_COMPLEX if t.dtype in dtypes.COMPLEX else TINY)
        for t in types
        for d in t.shape[-2:]
    )


def fits_cache(type: ArrayType) -> bool:
    """Whether a compiled loop over rows and columns is faster than NumPy's routine on the CPU.

    It is as long as all that a step goes through stays in the cache, and for narrow matrices.
    """
    if all(isinstance(d, int) and d <= NARROW for d in type.shape[-2:]):
        return True
    sizes = [d for d in type.shape if isinstance(d, int)]
    return len(sizes) == len(type.shape) and math.prod(sizes) <= IN_CACHE


def prefers_lanes(a: np.ndarray) -> bool:
    """Whether NumPy does better by one step for all lanes than by one matrix after the other."""
    lanes = math.prod(a.shape[:-2])
    return lanes >= 4 and max(a.shape[-2:]) <= FEW


def lanes_last(a: np.ndarray) -> np.ndarray:
    """A copy with the lanes as one last axis. Shapes: [*B, M, N] -> [M, N, B]."""
    flat = a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:])
    return np.ascontiguousarray(np.moveaxis(flat, 0, -1))


def lanes_first(a: np.ndarray, lead: tuple[int, ...]) -> np.ndarray:
    """Undo `lanes_last`; `a` may have any number of axes before the lanes."""
    return np.moveaxis(a, -1, 0).reshape(*lead, *a.shape[:-1])


def over_matrices(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """`function` of one matrix after the other (all arrays have the same batch axes), stacked."""
    lead = arrays[0].shape[:-2]
    if not lead:
        return function(*arrays)
    flat = [a.reshape(math.prod(lead), *a.shape[-2:]) for a in arrays]
    if 0 in lead:  # no lane to tell the shape of a result
        one = function(*(np.ones(a.shape[-2:], a.dtype) for a in arrays))
        return np.empty((*lead, *one.shape), one.dtype)
    stacked = np.stack([function(*lane) for lane in zip(*flat, strict=True)])
    return stacked.reshape(*lead, *stacked.shape[1:])
