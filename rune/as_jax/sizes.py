"""What `jax.numpy` answers as NumPy does: sizes, also of lists and None; reshapes of NumPy's data.

TensorFlow Probability asks for the shape of None. A reshape of NumPy's array is one of NumPy's, so
that NumPyro knows within jit whether values are in the support of a distribution.
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
    return rnp.shape(_described("shape", a))


def ndim(a: ArrayLike | list | None) -> int:
    """Number of axes. Errors: ArgumentError if it is not an array, a list or None."""
    return rnp.ndim(_described("ndim", a))


def size(a: ArrayLike | list | None, axis: Axis = None) -> int:
    """Number of elements, in all or along some axes. Errors: as `shape`; AxisError."""
    return rnp.size(_described("size", a), axis)


def reshape(
    a: ArrayLike,
    shape: int | Sequence[int],
    order: Literal["C", "F"] = "C",
    *,
    copy: bool | None = None,
    out_sharding: Sharding | None = None,
) -> Array | np.ndarray:
    """As rune.numpy.reshape; of NumPy's array another of NumPy's, in its dtype."""
    if type(a) is np.ndarray and out_sharding is None:
        return np.reshape(a.copy() if copy else a, shape, order)
    return rnp.reshape(a, shape, order, copy=copy, out_sharding=out_sharding)


def _described(name: str, a: ArrayLike | list | None) -> ArrayLike:
    """An array of that shape, if `a` is not an array, or is of texts or objects."""
    if isinstance(a, str | bytes) or (isinstance(a, np.ndarray) and a.dtype not in dtypes.ANY):
        return np.broadcast_to(False, np.shape(a))
    if not (a is None or isinstance(a, list | tuple)):
        return a
    what = f"{name} requires ndarray or scalar arguments, got {type(a).__name__}; JAX will refuse it"
    warnings.warn(what, DeprecationWarning, stacklevel=3)
    return np.broadcast_to(False, np.shape(a))  # type: ignore[arg-type]
