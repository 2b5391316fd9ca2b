"""`shape`, `ndim` and `size`, also of lists and None: JAX answers as NumPy does, with a warning.

TensorFlow Probability asks for the shape of None.
"""

from __future__ import annotations

import warnings

import numpy as np

import rune.numpy as rnp
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


def _described(name: str, a: ArrayLike | list | None) -> ArrayLike:
    """An array of that shape, if `a` is not an array."""
    if not (a is None or isinstance(a, list | tuple)):
        return a
    what = f"{name} requires ndarray or scalar arguments, got {type(a).__name__}; JAX will refuse it"
    warnings.warn(what, DeprecationWarning, stacklevel=3)
    return np.broadcast_to(False, np.shape(a))  # type: ignore[arg-type]
