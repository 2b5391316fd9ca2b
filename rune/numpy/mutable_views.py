"""Views of immutable arrays: where the elements of a view lie in another array.

Reading extracts them; writing gives a new version of the other array with them in it. This module
also says which indices of a box are views, and which are out of bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any, TypeGuard

import numpy as np

from rune.array import Array
from rune.errors import BoundsError
from rune.numpy.creation import arange
from rune.records import dataclass

# Functions for which NumPy gives a view of all elements (reshape and ravel where it can, boxes
# always).
MOVEMENTS = frozenset(
    "expand_dims flip fliplr flipud matrix_transpose moveaxis permute_dims ravel reshape rollaxis"
    " rot90 squeeze swapaxes transpose T mT".split()
)


@dataclass(frozen=True, slots=True)
class Part:
    """The elements that a basic index selects."""

    index: Any

    def read(self, base: Array) -> Any:
        return base[self.index]

    def written(self, base: Array, new: Array) -> Array:
        return base.at[self.index].set(new)


@dataclass(frozen=True, slots=True)
class Movement:
    """All elements, in other places."""

    move: Callable[[Array], Array]

    def read(self, base: Array) -> Any:
        return self.move(base)

    def written(self, base: Array, new: Array) -> Array:
        places = self.move(arange(base.size).reshape(base.shape))
        return base.ravel().at[places.ravel()].set(new.ravel()).reshape(base.shape)


def _is_number(entry: object) -> TypeGuard[int]:
    return isinstance(entry, int | np.integer) and not isinstance(entry, bool)


def is_basic(index: object) -> bool:
    """Whether NumPy gives a view for an index: numbers, slices, ellipsis and new axes."""
    entries = index if isinstance(index, tuple) else (index,)
    return all(_is_number(e) or isinstance(e, slice | EllipsisType | None) for e in entries)


def require_within(x: Array, index: object) -> None:
    """Raise for an integer out of bounds: rune.numpy would clamp it, unexpected by libraries."""
    entries = index if isinstance(index, tuple) else (index,)
    axis_count = sum(map(_axes_of, entries))
    axis = 0
    for entry in entries:
        if _is_number(entry):
            size = x.shape[axis] if axis < x.ndim else None
            if type(size) is int and not -size <= entry < size:
                raise BoundsError(f"mutable: cannot index axis {axis} of {x.type} by {entry}")
        axis += x.ndim - axis_count if entry is Ellipsis else _axes_of(entry)


def _axes_of(entry: Any) -> int:
    """The number of axes that an index entry other than an ellipsis uses; a mask uses its rank."""
    if entry is None or entry is Ellipsis:
        return 0
    is_mask = getattr(entry, "dtype", None) == np.bool_
    return entry.ndim if is_mask else 1
