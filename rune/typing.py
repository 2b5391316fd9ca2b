"""The words for annotations: what functions take as an array, a dtype, a shape, an axis.

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
    """A class of NumPy's or of rune's that stands for its dtype, as `rune.numpy.float32` does."""

    @property
    def dtype(self) -> Any:
        """The dtype itself."""
        ...


# What every function takes as one array: no lists, which `rune.numpy.array` converts.
ArrayLike: TypeAlias = Array | SupportsArray | np.ndarray | np.generic | bool | int | float | complex | Dim
# A dtype of NumPy's, its name or a class: np.dtype("f4"), "float32", rune.numpy.float32, float.
DTypeLike: TypeAlias = np.dtype | str | type[Any] | HasDtype
# The sizes of an array's axes, symbolic ones among them.
Shape: TypeAlias = Sequence[int | Dim]
# One axis or several, from the end if negative; None is all of them.
Axis: TypeAlias = int | Sequence[int] | None

__all__ = ["ArrayLike", "Axis", "DTypeLike", "HasDtype", "Shape", "SupportsArray"]
