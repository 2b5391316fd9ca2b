"""The two views between a complex array and its parts, which lie side by side in memory.

    part        f32[..., 2] -> f32[...]             one of the two
    interleave  f32[...], f32[...] -> f32[..., 2]   both, along a new axis

Only lowering makes them: a user's program never contains them, so they need no derivative.
"""

from __future__ import annotations

import numpy as np

from rune.core.lower import Bounds, Piece, Source, View
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.ops.family import same_dtype, view_of

Indices = tuple


def _without(items: tuple, axis: int) -> tuple:
    return (*items[:axis], *items[axis + 1 :])


def _part_type(x: ArrayType, *, number: int, axis: int) -> ArrayType:
    assert x.shape[axis] == 2, x
    return x.with_shape(_without(x.shape, axis))


def _part_view(indices: Indices, x: ArrayType, *, number: int, axis: int) -> Source:
    return view_of((*indices[:axis], number, *indices[axis:]))


part = Primitive(
    "part", "movement", _part_type, lambda x, *, number, axis: np.take(x, number, axis), lower=View(_part_view)
)


def _interleave_type(x: ArrayType, y: ArrayType, *, axis: int) -> ArrayType:
    same_dtype("interleave", x, y)
    assert x.shape == y.shape, (x, y)
    shape: Shape = (*x.shape[:axis], 2, *x.shape[axis:])
    return ArrayType(shape, x.dtype, x.weak and y.weak)


def _interleave_view(indices: Indices, x: ArrayType, y: ArrayType, *, axis: int) -> Source:
    # Index 0 on the new axis takes the first piece, index 1 the second.
    part_indices, which = _without(indices, axis), indices[axis]
    return Source((Piece(0, part_indices, (Bounds(which, 0, 1),)), Piece(1, part_indices)))


interleave = Primitive(
    "interleave",
    "movement",
    _interleave_type,
    lambda x, y, *, axis: np.stack([x, y], axis),
    lower=View(_interleave_view),
)
