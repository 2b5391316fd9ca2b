"""iota, and stop_gradient, the identity that stops derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.jax_names import always
from rune.core.lower import Position, View
from rune.core.primitive import ZERO, Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ShapeError
from rune.ops.family import Batched, require, require_room, size_of_axis, view_of

if TYPE_CHECKING:
    from rune.array import Array


def _iota_type(*, shape: Shape, axis: int, dtype: np.dtype) -> ArrayType:
    type = ArrayType(shape, dtype)
    require("iota", dtypes.NUMERIC, "numeric", type)
    if not 0 <= axis < len(shape):
        raise ShapeError(f"iota: cannot count along axis {axis} (shape {shape})")
    if dtype.itemsize >= 4 and shape[axis] != 0:  # narrower integers wrap, as in JAX
        require_room("iota", shape[axis] - 1, dtype)
    return type


def _iota_reference(*, shape: tuple, axis: int, dtype: np.dtype) -> np.ndarray:
    along = [1] * len(shape)
    along[axis] = shape[axis]
    return np.broadcast_to(np.arange(shape[axis]).astype(dtype).reshape(along), shape)


iota = Primitive(
    "iota",
    "creation",
    _iota_type,
    _iota_reference,
    jvp=(),
    lower=Position(lambda indices, *, shape, axis, dtype: indices[axis]),
    jax_names={"dimension": "axis", "sharding": always(None)},
)


def _stop_batch(batched: Batched, size: Size, x: Value) -> tuple[Array, bool]:
    return stop_gradient(x), True


stop_gradient: Primitive = Primitive(
    "stop_gradient",
    "identity",
    lambda x: x,
    lambda x: x,
    jvp=(ZERO,),
    batch=_stop_batch,
    lower=View(lambda indices, x: view_of(indices)),
)

PRIMITIVES = (iota, size_of_axis, stop_gradient)
