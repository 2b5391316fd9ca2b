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
from typing import TypeAlias

import numpy as np

from rune.array import Array
from rune.core.values import DTypeLike, HasDtype, SupportsArray
from rune.dims import Dim

# What every function accepts as an array; lists have to be converted by `rune.numpy.array`.
ArrayLike: TypeAlias = Array | SupportsArray | np.ndarray | np.generic | bool | int | float | complex | Dim
# Where lists and tuples of numbers, nested or not, are converted, too.
Nested: TypeAlias = ArrayLike | list | tuple
# The sizes of an array's axes, which may be symbolic.
Shape: TypeAlias = Sequence[int | Dim]
# One or several axes, counted from the end if negative; None means all axes.
Axis: TypeAlias = int | Sequence[int] | None

__all__ = ["ArrayLike", "Axis", "DTypeLike", "HasDtype", "Nested", "Shape", "SupportsArray"]
