"""Means with weights."""

from __future__ import annotations

from typing import Any, Literal, overload

from rune import ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ShapeError
from rune.numpy import reductions as r
from rune.numpy.arguments import inexact, together, value
from rune.ops import conventions as c
from rune.ops import statistics as st
from rune.ops.conventions import Axis
from rune.ops.family import wide
from rune.ops.promote import broadcast_to, constant
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike


@overload
def average(a: ArrayLike, axis: Axis = ..., weights: ArrayLike | None = ..., *, keepdims: bool = ...) -> Array: ...
@overload
def average(
    a: ArrayLike, axis: Axis = ..., weights: ArrayLike | None = ..., *, returned: Literal[True], keepdims: bool = ...
) -> tuple[Array, Array]: ...
@overload
def average(
    a: ArrayLike, axis: Axis, weights: ArrayLike | None, returned: Literal[True], keepdims: bool = ...
) -> tuple[Array, Array]: ...
@overload
def average(
    a: ArrayLike, axis: Axis = ..., weights: ArrayLike | None = ..., returned: bool = ..., keepdims: bool = ...
) -> Any: ...
@tiered
def average(
    a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Array | tuple[Array, Array]:
    """Weighted mean; with `returned`, (mean, sum of the weights).

    Shapes: weights have the shape of `a`, or the sizes of the axes in `axis`, in that order.
    Types:  bools and integers become floats.
    Errors: ShapeError if the weights have neither shape.

    >>> import rune.numpy as rnp
    >>> rnp.average(rnp.array([1.0, 3.0]), weights=rnp.array([3.0, 1.0]))
    Array(1.5, f32[], cpu:0)
    """
    if weights is None:
        x = inexact("average", value("average", a))
        mean = st.mean(x, axis, None, keepdims)
        unit_weights = broadcast_to("average", constant(1, x), type_of(x).shape)
        return (mean, r.sum(unit_weights, axis, keepdims=keepdims)) if returned else mean
    x, w = (inexact("average", v) for v in together("average", value("average", a), weights))
    dtype = type_of(x).dtype
    x, w = (c.astype(v, wide(dtype)) for v in (x, _weights(x, w, axis)))
    total = r.sum(w, axis, keepdims=keepdims)
    mean = c.astype(ops.div(r.sum(ops.mul(x, w), axis, keepdims=keepdims), total), dtype)
    return (mean, c.astype(total, dtype)) if returned else mean


def _weights(x: ArrayLike, w: ArrayLike, axis: Axis) -> ArrayLike:
    shape, w_shape = type_of(x).shape, type_of(w).shape
    if w_shape == shape:
        return w
    axes = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    places = [c.normalised_axis("average", at, type_of(x)) for at in axes]
    if not places or w_shape != tuple(shape[at] for at in places):
        raise ShapeError(f"average: cannot weight {type_of(x)} by {type_of(w)} (axis {axis})")
    w = ops.transpose(w, permutation=tuple(sorted(range(len(places)), key=places.__getitem__)))
    spread = tuple(d if i in places else 1 for i, d in enumerate(shape))
    return broadcast_to("average", ops.reshape(w, shape=spread), shape)
