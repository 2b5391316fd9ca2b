"""dot_general: sums of products over contracted axes, with batch axes leading the result.

`dimension_numbers` = ((contracting_a, contracting_b), (batch_a, batch_b)). Result axes: batch
axes, the free axes of a, the free axes of b, each in order. Half types accumulate in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Contraction
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Operand, Value
from rune.dims import Size
from rune.errors import ShapeError
from rune.ops import long_sums
from rune.ops.family import KINDS, Batched, require, same_dtype, wide
from rune.ops.index_dims import up
from rune.ops.jax_forms import PRODUCT_NAMES, product_form
from rune.ops.movement import inverse, repeat_lane, transpose
from rune.ops.scalars import NIBBLES

if TYPE_CHECKING:
    from rune.array import Array

Axes = tuple[int, ...]
Numbers = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]


def free_axes(ndim: int, contracting: Axes, batch: Axes) -> Axes:
    """The axes that are neither contracted nor batched."""
    return tuple(i for i in range(ndim) if i not in contracting and i not in batch)


def _dot_type(a: ArrayType, b: ArrayType, *, dimension_numbers: Numbers) -> ArrayType:
    require("dot_general", KINDS["numeric"], "numeric", a, b)
    dtype = same_dtype("dot_general", a, b)
    (ca, cb), (ba, bb) = dimension_numbers
    for i, j in zip((*ca, *ba), (*cb, *bb), strict=True):
        if a.shape[i] != b.shape[j]:
            raise ShapeError(
                f"dot_general: cannot contract {a} with {b} "
                f"(axis {i} of the first: {a.shape[i]}, axis {j} of the second: {b.shape[j]})"
            )
    batch = tuple(a.shape[i] for i in ba)
    free_a = tuple(a.shape[i] for i in free_axes(a.ndim, ca, ba))
    free_b = tuple(b.shape[i] for i in free_axes(b.ndim, cb, bb))
    return ArrayType((*batch, *free_a, *free_b), dtype, a.weak and b.weak)


def _as_matrices(x: np.ndarray, batch: Axes, first: Axes, second: Axes) -> np.ndarray:
    order = (*batch, *first, *second)
    transposed = x if order == tuple(range(x.ndim)) else x.transpose(order)
    sizes = [math.prod([x.shape[i] for i in axes]) for axes in (first, second)]
    return transposed.reshape(*(x.shape[i] for i in batch), *sizes)


def _dot_reference(a: np.ndarray, b: np.ndarray, *, dimension_numbers: Numbers) -> np.ndarray:
    (ca, cb), (ba, bb) = dimension_numbers
    free_a, free_b = free_axes(a.ndim, ca, ba), free_axes(b.ndim, cb, bb)
    lhs = _as_matrices(a.astype(wide(a.dtype), copy=False), ba, free_a, ca)
    rhs = _as_matrices(b.astype(wide(b.dtype), copy=False), bb, cb, free_b)
    shape = (*(a.shape[i] for i in ba), *(a.shape[i] for i in free_a), *(b.shape[i] for i in free_b))
    return long_sums.product(lhs, rhs).reshape(shape).astype(a.dtype, copy=False)


def product_of(
    a: ArrayType, b: ArrayType, dimension_numbers: Numbers
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """The dot_general of operands of known shapes as a NumPy function; None for dtypes that
    accumulate in a wider dtype, and for long sums.
    """
    if wide(a.dtype) != a.dtype or a.dtype in NIBBLES or a.is_symbolic or b.is_symbolic:
        return None
    (ca, cb), (ba, bb) = dimension_numbers
    if math.prod([a.shape[i] for i in ca]) > long_sums.LONG_PRODUCT:
        return None
    free_a, free_b = free_axes(a.ndim, ca, ba), free_axes(b.ndim, cb, bb)
    lhs, rhs = _matrices_of(a, ba, free_a, ca), _matrices_of(b, bb, cb, free_b)
    shape = (*(a.shape[i] for i in (*ba, *free_a)), *(b.shape[i] for i in free_b))
    if lhs is None and rhs is None and len(shape) == a.ndim == b.ndim:
        return np.matmul
    lhs, rhs = lhs or _itself, rhs or _itself
    return lambda x, y: np.matmul(lhs(x), rhs(y)).reshape(shape)


def _itself(x: np.ndarray) -> np.ndarray:
    return x


def _matrices_of(x: ArrayType, batch: Axes, first: Axes, second: Axes) -> Callable[[np.ndarray], np.ndarray] | None:
    """`_as_matrices` for all arrays of one type; None if it changes nothing."""
    order = (*batch, *first, *second)
    sizes = (math.prod([x.shape[i] for i in axes]) for axes in (first, second))
    shape = (*(x.shape[i] for i in batch), *sizes)
    if order != tuple(range(x.ndim)):
        return lambda x: x.transpose(order).reshape(shape)
    return None if shape == x.shape else methodcaller("reshape", shape)


def _dot_transpose(ct: Value, linear: Batched, a: Any, b: Any, *, dimension_numbers: Numbers) -> list[Array | None]:
    (ca, cb), (ba, bb) = dimension_numbers
    if linear[0]:
        return [_wrt_first(ct, a, b, ca, cb, ba, bb, leading=True), None]
    return [None, _wrt_first(ct, b, a, cb, ca, bb, ba, leading=False)]


def _wrt_first(
    ct: Value, x: ArrayType, other: Value, cx: Axes, co: Axes, bx: Axes, bo: Axes, *, leading: bool
) -> Array:
    """The cotangent of `x`: ct contracted with `other` over the free axes of `other`.

    `leading`: whether in ct the free axes of x come before those of `other`.
    """
    ndim, n_batch = type_of(ct).ndim, len(bx)
    free_x = free_axes(x.ndim, cx, bx)
    free_o = free_axes(type_of(other).ndim, co, bo)
    batch = tuple(range(n_batch))
    split = n_batch + (len(free_x) if leading else len(free_o))
    ct_o = tuple(range(split, ndim)) if leading else tuple(range(n_batch, split))
    contraction_axes = tuple(cx[co.index(axis)] for axis in sorted(co))
    if (*bx, *contraction_axes, *free_x) == tuple(range(x.ndim)):
        # x's own order: its contracted axes, which `other` holds, come first.
        return dot_general(other, ct, dimension_numbers=((free_o, ct_o), (bo, batch)))
    product = dot_general(ct, other, dimension_numbers=((ct_o, free_o), (batch, bo)))
    order = inverse((*bx, *free_x, *contraction_axes))
    return product if order == tuple(range(x.ndim)) else transpose(product, permutation=order)


def _dot_batch(
    batched: Batched, size: Size, a: Operand, b: Operand, *, dimension_numbers: Numbers
) -> tuple[Array, bool]:
    """Both batched: a leading batch axis. One batched: its axis is free, and moves to the front."""
    (ca, cb), (ba, bb) = dimension_numbers
    if batched[0] and (batched[1] or not ba):
        if not batched[1]:
            numbers = ((up(ca), cb), ((), ()))
            return dot_general(a, b, dimension_numbers=numbers), True
        numbers = ((up(ca), up(cb)), ((0, *up(ba)), (0, *up(bb))))
        return dot_general(a, b, dimension_numbers=numbers), True
    if ba:
        # Only one operand is batched, and there are batch axes: the other is repeated (a view, no
        # copy).
        a, b = (a, repeat_lane(b, size)) if batched[0] else (repeat_lane(a, size), b)
        return _dot_batch((True, True), size, a, b, dimension_numbers=dimension_numbers)
    out = dot_general(a, b, dimension_numbers=((ca, up(cb)), ((), ())))
    lane = type_of(a).ndim - len(ca)
    order = (lane, *(i for i in range(type_of(out).ndim) if i != lane))
    return transpose(out, permutation=order), True


dot_general: Primitive = Primitive(
    "dot_general",
    "contraction",
    _dot_type,
    _dot_reference,
    jvp=(
        lambda da, a, b, y, *, dimension_numbers: dot_general(da, b, dimension_numbers=dimension_numbers),
        lambda db, a, b, y, *, dimension_numbers: dot_general(a, db, dimension_numbers=dimension_numbers),
    ),
    transpose=_dot_transpose,
    linear_in=((0,), (1,)),
    batch=_dot_batch,
    lower=Contraction(),
    jax_names=PRODUCT_NAMES,
    jax_form=product_form(lambda: dot_general),
)

PRIMITIVES = (dot_general,)
