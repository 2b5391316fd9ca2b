"""Masks in an index: the positions of their true elements, as in NumPy.

A mask of rank k takes k axes, and stands for k arrays of positions. A mask of rank 0 takes none: it
is a new axis of size 1 (`opened`); True selects its only position, False selects nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune import dtypes
from rune.core.interpreter import Tracer, type_of
from rune.core.values import Operand, Value
from rune.dims import Size
from rune.errors import AxisError, NonConcreteBooleanIndexError
from rune.ops.family import position_dtype, reshape
from rune.ops.sized_slices import Slice


def is_advanced(entry: object) -> bool:
    """Whether an entry is an index array."""
    return not (entry is None or entry is Ellipsis or isinstance(entry, slice | int | Slice))


def is_mask(entry: object) -> bool:
    """Whether an entry is an array of bools."""
    return is_advanced(entry) and type_of(entry).dtype == dtypes.bool_


def is_scalar_mask(entry: object) -> bool:
    """Whether an entry is a single bool."""
    if isinstance(entry, bool | np.bool_):
        return True
    return getattr(entry, "dtype", None) == dtypes.bool_ and not getattr(entry, "shape", None)


def axes_taken(entry: object) -> int:
    """The number of axes that an entry takes."""
    if entry is None or entry is Ellipsis or is_scalar_mask(entry):
        return 0
    return type_of(entry).ndim if is_mask(entry) else 1


def opened(x: Operand, entries: Sequence[object]) -> tuple[Value, tuple[object, ...]]:
    """The operand with an axis of size 1 for each rank-0 mask, and the entries with masks replaced
    by positions.
    """
    shape, axes = type_of(x).shape, iter(type_of(x).shape)
    ellipsis_count = len(shape) - sum(map(axes_taken, entries))
    sizes: list[Size] = []
    for entry in entries:
        count = ellipsis_count if entry is Ellipsis else axes_taken(entry)
        sizes += [1] if is_scalar_mask(entry) else [n for _, n in zip(range(count), axes, strict=False)]
    positions = (_scalar_positions(x, e) if is_scalar_mask(e) else e for e in entries)
    return reshape(x, shape=(*sizes, *axes)), tuple(positions)


def _scalar_positions(x: Operand, mask: object) -> np.ndarray:
    if isinstance(mask, Tracer):
        raise traced_mask(x, mask)
    return np.zeros(int(np.asarray(mask)), np.int32)


def mask_positions(x: Operand, mask: object, axis: int) -> list[Value]:
    """The positions of a mask's true elements along each axis; the mask begins at `axis` of x.

    Errors: AxisError if its sizes differ from those of x.
    """
    if isinstance(mask, Tracer):
        raise traced_mask(x, mask)
    mask_type = type_of(mask)
    # A mask with a size of 0 selects nothing, whatever the size of the axis.
    sizes = type_of(x).shape[axis : axis + mask_type.ndim]
    if any(n not in (0, size) for n, size in zip(mask_type.shape, sizes, strict=True)):
        raise AxisError(f"index: cannot index {type_of(x)} with a mask {mask_type} (axis {axis}: shapes differ)")
    positions = np.nonzero(np.asarray(mask))
    return [i.astype(position_dtype(size)) for i, size in zip(positions, sizes, strict=True)]


def traced_mask(x: Operand, mask: Value) -> NonConcreteBooleanIndexError:
    """The error for a traced mask in an index."""
    return NonConcreteBooleanIndexError(
        f"index: cannot index with a traced mask {type_of(mask)} into {type_of(x)} "
        "(the result's shape would depend on its values)",
        hint="use rune.numpy.where(mask, x, other)",
    )
