"""Positions of true elements.

Their number depends on values. Outside transformations the results have exactly that size; under
jit and other transformations `size` gives it, `fill_value` fills the places where there are fewer,
and positions beyond `size` are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import beside, known, shape_of, value
from rune.numpy.joining import stack
from rune.ops import conventions as c
from rune.ops import ordering as o
from rune.ops.family import index_dtype, require_positions, size_value
from rune.ops.promote import as_type, broadcast_to
from rune.typing import ArrayLike


def _mask(name: str, x: ArrayLike) -> Array:
    return c.astype(value(name, x), dtypes.bool_)


def flat_positions(name: str, mask: ArrayLike, size: Size | None) -> Array:
    """The positions of a flat mask's true elements; one out of bounds past the last.

    Errors: TracerArrayConversionError for a traced mask without `size`.
    """
    if size is None:
        return _known_positions(name, mask)[0]
    (count,) = shape_of(name, (size,))
    fill = size_value(type_of(mask).shape[0], dtypes.i32)
    return ops.cast(o.true_positions(mask, count, fill), index_dtype())


def _known_positions(name: str, mask: ArrayLike) -> list[Array]:
    """The positions of a mask's true elements along each axis.

    Errors: TracerArrayConversionError for a traced mask; DimensionError for positions beyond the
            index dtype.
    """
    for size in type_of(mask).shape:
        require_positions(name, size, index_dtype())
    by_axis = np.nonzero(known(name, mask, "size"))
    return [value(name, places.astype(index_dtype())) for places in by_axis]


def nonzero(a: ArrayLike, *, size: Size | None = None, fill_value: object = None) -> tuple[Array, ...]:
    """Positions of nonzero elements, one array per axis, in row-major order.

    Shapes: [K] for K nonzero elements, or [size], which transformations require. Types: i32.
    fill_value: pads the result after the last position: 0, a number, or one for each axis.
    Errors: TracerArrayConversionError for a traced array without `size`; DimensionError for an axis
            longer than positions count.

    >>> import rune.numpy as rnp
    >>> rnp.nonzero(rnp.array([0, 5, 7])), rnp.nonzero(rnp.array([0, 5]), size=2)
    ((Array([1, 2], i32[2], cpu:0),), (Array([1, 0], i32[2], cpu:0),))
    """
    x = value("nonzero", a)
    shape = type_of(x).shape
    if not shape:
        raise ShapeError(f"nonzero: cannot find positions in {type_of(x)} (it has no axes)")
    mask, fills = _mask("nonzero", x), _fills(fill_value, len(shape))
    if size is None:
        return tuple(beside(places, x) for places in _known_positions("nonzero", mask))
    flat = flat_positions("nonzero", c.reshape(mask, -1), size)
    total = size_value(c.size_of(x), type_of(flat).dtype)
    is_there, by_axis = ops.lt(flat, total), []
    for length, fill in zip(reversed(shape), reversed(fills), strict=True):
        count = size_value(length, type_of(flat).dtype)
        index = c.remainder(flat, count)
        absent = broadcast_to("nonzero", as_type(fill, type_of(flat).dtype), type_of(flat).shape)
        by_axis.append(ops.select(is_there, index, absent))
        flat = c.floor_divide(flat, count)
    return tuple(reversed(by_axis))


def _fills(fill: object, ndim: int) -> Sequence[Array]:
    """The fill of each axis."""
    if isinstance(fill, tuple | list):
        if len(fill) != ndim:
            raise ArgumentError(f"nonzero: cannot use {len(fill)} fill values (one per axis required: {ndim})")
        return [value("nonzero", v) for v in fill]
    return [value("nonzero", 0 if fill is None else fill)] * ndim


def flatnonzero(a: ArrayLike, *, size: Size | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Positions of nonzero elements in the flattened array. Arguments and errors: as `nonzero`.

    Shapes: a any -> [K], or [size]. Types: i32.

    >>> import rune.numpy as rnp
    >>> rnp.flatnonzero(rnp.array([[0, 5], [7, 0]]))
    Array([1, 2], i32[2], cpu:0)
    """
    return nonzero(c.reshape(value("flatnonzero", a), -1), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: Size | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Positions of nonzero elements as rows. Arguments and errors: as `nonzero`.

    Shapes: a [*A] of rank R -> [K, R], or [size, R]. Types: i32.

    >>> import rune.numpy as rnp
    >>> rnp.argwhere(rnp.array([0, 5]))
    Array([[1]], i32[1,1], cpu:0)
    """
    x = value("argwhere", a)
    if type_of(x).shape:
        return stack(nonzero(x, size=size, fill_value=fill_value), axis=1)
    rows = flat_positions("argwhere", c.reshape(_mask("argwhere", x), -1), size)
    return ops.slice_(
        c.reshape(rows, (type_of(rows).shape[0], 1)), start=(0, 0), limit=(type_of(rows).shape[0], 0), stride=(1, 1)
    )
