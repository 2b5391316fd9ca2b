"""Functions for which `jax.numpy` follows NumPy: sizes of lists and None, reshapes of NumPy arrays.

TensorFlow Probability asks for the shape of None. Reshaping a NumPy array returns a NumPy array, so
that NumPyro can check inside jit whether values are in the support of a distribution.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np

import rune.numpy as rnp
from rune import dtypes
from rune.array import Array
from rune.sharding.shardings import Sharding
from rune.typing import ArrayLike, Axis


def shape(a: ArrayLike | list | None) -> tuple:
    """Sizes of the axes. Errors: ArgumentError if it is not an array, a list or None."""
    return rnp.shape(_array_of_shape("shape", a))


def ndim(a: ArrayLike | list | None) -> int:
    """Number of axes. Errors: ArgumentError if it is not an array, a list or None."""
    return rnp.ndim(_array_of_shape("ndim", a))


def size(a: ArrayLike | list | None, axis: Axis = None) -> int:
    """Number of elements, in all or along some axes. Errors: as `shape`; AxisError."""
    return rnp.size(_array_of_shape("size", a), axis)


def reshape(
    a: ArrayLike,
    shape: int | Sequence[int],
    order: Literal["C", "F"] = "C",
    *,
    copy: bool | None = None,
    out_sharding: Sharding | None = None,
) -> Array | np.ndarray:
    """As rune.numpy.reshape, but a NumPy array stays a NumPy array and keeps its dtype."""
    if type(a) is np.ndarray and out_sharding is None:
        return np.reshape(a.copy() if copy else a, shape, order)
    return rnp.reshape(a, shape, order, copy=copy, out_sharding=out_sharding)


def _array_of_shape(name: str, a: ArrayLike | list | None) -> ArrayLike:
    """`a`, or an array of its shape if it is None, a list, or holds text or objects."""
    # Callers read nothing but the shape, and a broadcast False takes one byte.
    if isinstance(a, str | bytes) or (isinstance(a, np.ndarray) and a.dtype not in dtypes.ANY):
        return np.broadcast_to(False, np.shape(a))
    if not (a is None or isinstance(a, list | tuple)):
        return a
    message = f"{name} requires ndarray or scalar arguments, got {type(a).__name__}; JAX will refuse it"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return np.broadcast_to(False, np.shape(a))  # type: ignore[arg-type]
