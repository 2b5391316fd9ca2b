"""Reductions over axes (removed from the shape), arg-reductions, and cumulative operations.

Sums and products of half types accumulate in f32. max and min propagate NaN and share the
tangent of a tie equally among the tied; argmax and argmin give the first NaN, else the first
extremum. A tangent of a cumulative product, max or min is computed in log2 n doubling steps
(Hillis & Steele 1986), so that zeros and ties need no division.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.jax_names import Translation
from rune.core.lower import Cumulative, Reduction
from rune.core.primitive import ZERO, JvpRule, Primitive, Rule
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size, bounds
from rune.errors import ShapeError
from rune.ops.arithmetic import (
    add,
    cast,
    div,
    eq,
    gt,
    logical_and,
    logical_or,
    lt,
    max,
    min,
    mul,
    ne,
    select,
    zero_like,
)
from rune.ops.complex_numbers import imag, real
from rune.ops.creation import iota
from rune.ops.family import (
    KINDS,
    Batched,
    batch_reduction,
    broadcast,
    reduce_sum,
    reduced_type,
    require,
    require_positions,
    reshape,
    wide,
)
from rune.ops.long_sums import running_total
from rune.ops.movement import pad, transpose
from rune.ops.scalars import nibbles, order_limits

if TYPE_CHECKING:
    from rune.array import Array

Axes = tuple[int, ...]


def expand_axes(y: Value, shape: tuple, axes: Axes) -> Array:
    """A reduced value broadcast back over the `axes` that were removed."""
    remaining = tuple(i for i in range(len(shape)) if i not in axes)
    return broadcast(y, shape=shape, axes=remaining)


def _reduction(name: str, kind: str, combine: str, reference: Rule, jvp: JvpRule, empty: bool = True) -> Primitive:
    def type_rule(x: ArrayType, *, axes: Axes) -> ArrayType:
        require(name, KINDS[kind], kind, x)
        if not empty and any(0 <= a < x.ndim and x.shape[a] == 0 for a in axes):
            raise ShapeError(f"{name}: cannot reduce {x} over axes {axes} (no elements)")
        return reduced_type(name, x, axes)

    primitive = Primitive(
        name,
        "reduction",
        type_rule,
        nibbles(reference),
        (jvp,),
        batch=batch_reduction(lambda: primitive),
        lower=Reduction(combine),
    )
    return primitive


# --- products and extrema ---------------------------------------------------------------------


def _prod_reference(x: np.ndarray, *, axes: Axes) -> np.ndarray:
    return np.asarray(np.multiply.reduce(x, axis=axes, dtype=wide(x.dtype))).astype(x.dtype, copy=False)


def _prod_jvp(dx: Value, x: Value, y: Value, *, axes: Axes) -> Array:
    """sum_i dx_i prod_{j != i} x_j, with inner products from both sides: correct where x has
    zeros.
    """
    shape = type_of(x).shape
    remaining = tuple(i for i in range(len(shape)) if i not in axes)
    order = (*remaining, *axes)
    rows = tuple(shape[i] for i in remaining)
    flat = [reshape(transpose(v, permutation=order), shape=(*rows, _count(shape, axes))) for v in (dx, x)]
    others = mul(_exclusive_product(flat[1], False), _exclusive_product(flat[1], True))
    return reduce_sum(mul(flat[0], others), axes=(len(rows),))


def _count(shape: tuple, axes: Axes) -> Any:
    total: Size = 1
    for axis in axes:
        total = total * shape[axis]
    return total


def _exclusive_product(x: Value, from_end: bool) -> Array:
    axis = type_of(x).ndim - 1
    predecessors = _shift(x, 1, axis, literal_like(1, x), from_end)
    return cumprod(predecessors, axis=axis, reverse=from_end)


def _extremum_jvp(dx: Value, x: Value, y: Value, *, axes: Axes) -> Array:
    # dx, x [*B, N]   y, result [*B]. Elements that tie share the tangent equally, so that the
    # cotangent
    # still sums to one per slice. No element equals a NaN, so all elements share the tangent of a
    # NaN.
    extremum = expand_axes(y, type_of(x).shape, axes)
    is_extremum = logical_or(eq(x, extremum), ne(extremum, extremum))
    total = reduce_sum(select(is_extremum, dx, zero_like(dx)), axes=axes)
    count = reduce_sum(cast(is_extremum, type_of(x).dtype), axes=axes)
    return div(total, select(eq(y, y), count, y))


reduce_prod = _reduction("reduce_prod", "numeric", "mul", _prod_reference, _prod_jvp)
reduce_max: Primitive = _reduction(
    "reduce_max",
    "ordered",
    "max",
    lambda x, *, axes: np.asarray(np.maximum.reduce(x, axis=axes)),
    _extremum_jvp,
    empty=False,
)
reduce_min: Primitive = _reduction(
    "reduce_min",
    "ordered",
    "min",
    lambda x, *, axes: np.asarray(np.minimum.reduce(x, axis=axes)),
    _extremum_jvp,
    empty=False,
)
reduce_and = _reduction(
    "reduce_and", "bool or integer", "and", lambda x, *, axes: np.asarray(np.bitwise_and.reduce(x, axis=axes)), ZERO
)
reduce_or = _reduction(
    "reduce_or", "bool or integer", "or", lambda x, *, axes: np.asarray(np.bitwise_or.reduce(x, axis=axes)), ZERO
)


# --- arg-reductions ---------------------------------------------------------------------------


def _arg_type(x: ArrayType, *, axis: int, dtype: np.dtype) -> ArrayType:
    require("argmax", dtypes.ANY, "ordered", x)
    if 0 <= axis < x.ndim and x.shape[axis] == 0:
        raise ShapeError(f"argmax: cannot reduce {x} over axis {axis} (no elements)")
    type = reduced_type("argmax", x, (axis,)).with_dtype(dtype)
    require_positions("argmax", x.shape[axis], dtype)
    return type


def _arg_expand(extremum: Callable[[], Primitive], worst: float) -> Rule:
    """The smallest position of the extremum; if that is NaN, of the first NaN.

    worst: the number that loses to all. Complex numbers compare by real part, then imaginary part.
    """

    def expand(x: Value, *, axis: int, dtype: np.dtype) -> Array:
        if type_of(x).dtype == dtypes.bool_:
            x = cast(x, dtypes.i32)
        shape, is_nan = type_of(x).shape, ne(x, x)

        def is_best(x: Value) -> Array:
            return eq(x, expand_axes(extremum()(x, axes=(axis,)), shape, (axis,)))

        if type_of(x).dtype in dtypes.COMPLEX:
            parts = real(x), imag(x)
            nan, last = (literal_like(v, parts[0]) for v in (np.nan, worst))
            level = is_best(select(is_nan, nan, parts[0]))
            best = logical_and(level, is_best(select(level, parts[1], last)))
        else:
            best = is_best(x)
        is_match = logical_or(best, is_nan)
        position = iota(shape=shape, axis=axis, dtype=dtype)
        size = literal_like(np.iinfo(dtype).max, position)
        return reduce_min(select(is_match, position, size), axes=(axis,))

    return expand


def _arg_reduction(name: str, reference: Rule, extremum: Callable[[], Primitive], worst: float) -> Primitive:
    def batch(batched: Batched, size: Size, x: Value, *, axis: int, dtype: np.dtype) -> tuple[Array, bool]:
        return primitive(x, axis=axis + 1, dtype=dtype), True

    primitive = Primitive(
        name,
        "reduction",
        _arg_type,
        lambda x, *, axis, dtype: np.asarray(reference(x, axis=axis)).astype(dtype),
        (ZERO,),
        batch=batch,
        expand=_arg_expand(extremum, worst),
        jax_names={
            "axes": Translation(lambda params: (params["axis"],), lambda axes, _: {"axis": axes[0]}),
            "index_dtype": "dtype",
        },
    )
    return primitive


argmax = _arg_reduction("argmax", np.argmax, lambda: reduce_max, -np.inf)
argmin = _arg_reduction("argmin", np.argmin, lambda: reduce_min, np.inf)


# --- cumulative -------------------------------------------------------------------------------


def _shift(x: Value, by: int, axis: int, fill: Value, from_end: bool) -> Array:
    """Elements moved `by` places along `axis`, away from the start of the scan."""
    amount = tuple(by if i == axis else 0 for i in range(type_of(x).ndim))
    back = tuple(-a for a in amount)
    low, high = (back, amount) if from_end else (amount, back)
    return pad(x, fill, low=low, high=high, interior=(0,) * len(amount))


def _doubling_jvp(combine: Rule, identity: Callable[[Value], Value]) -> JvpRule:
    def rule(dx: Value, x: Value, y: Value, *, axis: int, reverse: bool) -> Value:
        value, tangent, by = x, dx, 1
        zeros = broadcast(zero_like(x), shape=type_of(x).shape, axes=())
        most = bounds(type_of(x).shape[axis])[1]
        if most is None:
            raise ShapeError(f"jvp: cannot scan {type_of(x)} (axis {axis} has no upper bound)")
        while by < most:
            before = _shift(value, by, axis, identity(x), reverse)
            d_before = _shift(tangent, by, axis, zero_like(dx), reverse)
            value, combination = combine(before, d_before, value, tangent)
            # Before the first element, 0 times infinity is not a tangent, and -inf does not tie.
            alone = _shift(zeros, by, axis, literal_like(1, x), reverse)
            tangent = select(eq(alone, zeros), combination, tangent)
            by *= 2
        return tangent

    return rule


def _product_step(a: Value, da: Value, b: Value, db: Value) -> tuple[Array, Array]:
    return mul(a, b), add(mul(da, b), mul(a, db))


def _extremum_step(pick: Callable[[], Primitive], wins: Callable[[], Primitive]) -> Rule:
    def step(a: Value, da: Value, b: Value, db: Value) -> tuple[Array, Array]:
        half = mul(add(da, db), literal_like(0.5, da))
        # An earlier NaN stays the extremum, though every comparison with it is false.
        winner_tangent = select(logical_or(wins()(a, b), ne(a, a)), da, db)
        return pick()(a, b), select(eq(a, b), half, winner_tangent)

    return step


def _cumulative_type(name: str, kind: str) -> Rule:
    def type_rule(x: ArrayType, *, axis: int, reverse: bool) -> ArrayType:
        require(name, KINDS[kind], kind, x)
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"{name}: cannot scan {x} (axis {axis})")
        return x

    return type_rule


def _cumulative_reference(accumulate: Callable[[np.ndarray, int, np.dtype], np.ndarray]) -> Rule:
    def reference(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
        forward = np.flip(x, axis) if reverse else x
        total = accumulate(forward, axis, wide(x.dtype)).astype(x.dtype)
        return np.flip(total, axis) if reverse else total

    return reference


def _cumulative(
    name: str,
    kind: str,
    combine: str,
    accumulate: Callable[[np.ndarray, int, np.dtype], np.ndarray],
    jvp: JvpRule,
    transpose_rule: Rule | None = None,
) -> Primitive:
    def batch(batched: Batched, size: Size, x: Value, *, axis: int, reverse: bool) -> tuple[Array, bool]:
        return primitive(x, axis=axis + 1, reverse=reverse), True

    primitive = Primitive(
        name,
        "cumulative",
        _cumulative_type(name, kind),
        nibbles(_cumulative_reference(accumulate)),
        (jvp,),
        transpose=transpose_rule,
        batch=batch,
        lower=Cumulative(combine),
    )
    return primitive


def least(x: Value) -> np.ndarray:
    """The least number of the dtype of `x`, -inf for floats: the identity of a maximum."""
    return literal_like(order_limits(type_of(x).dtype)[0], x)


cumsum: Primitive = _cumulative(
    "cumsum",
    "numeric",
    "add",
    running_total,
    lambda dx, x, y, *, axis, reverse: cumsum(dx, axis=axis, reverse=reverse),
    lambda ct, linear, x, *, axis, reverse: [cumsum(ct, axis=axis, reverse=not reverse)],
)
cumprod: Primitive = _cumulative(
    "cumprod", "numeric", "mul", np.multiply.accumulate, _doubling_jvp(_product_step, lambda x: literal_like(1, x))
)
cummax = _cumulative(
    "cummax", "ordered", "max", np.maximum.accumulate, _doubling_jvp(_extremum_step(lambda: max, lambda: gt), least)
)
cummin = _cumulative(
    "cummin",
    "ordered",
    "min",
    np.minimum.accumulate,
    _doubling_jvp(_extremum_step(lambda: min, lambda: lt), lambda x: literal_like(np.inf, x)),
)

_OF_ELEMENTS = (reduce_sum, reduce_prod, reduce_max, reduce_min, reduce_and, reduce_or)
PRIMITIVES = (*_OF_ELEMENTS, argmax, argmin, cumsum, cumprod, cummax, cummin)
