"""Types for annotations: what functions accept as an array, a dtype, a shape or an axis.

>>> import rune, rune.numpy as rnp
>>> from rune.typing import ArrayLike
>>> def double(x: ArrayLike) -> rune.Array:
...     return rnp.multiply(x, 2)
>>> double(3)
Array(6, i32*[], cpu:0)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from rune.array import Array
from rune.core.values import SupportsArray
from rune.dims import Dim


class HasDtype(Protocol):
    """A NumPy or rune class that stands for its dtype, such as `rune.numpy.float32`."""

    @property
    def dtype(self) -> Any:
        """The dtype itself."""
        ...


# What every function accepts as an array; lists have to be converted by `rune.numpy.array`.
ArrayLike: TypeAlias = Array | SupportsArray | np.ndarray | np.generic | bool | int | float | complex | Dim
# A NumPy dtype, its name, or a class: np.dtype("f4"), "float32", rune.numpy.float32, float.
DTypeLike: TypeAlias = np.dtype | str | type[Any] | HasDtype
# The sizes of an array's axes, which may be symbolic.
Shape: TypeAlias = Sequence[int | Dim]
# One or several axes, counted from the end if negative; None means all axes.
Axis: TypeAlias = int | Sequence[int] | None

__all__ = ["ArrayLike", "Axis", "DTypeLike", "HasDtype", "Shape", "SupportsArray"]
