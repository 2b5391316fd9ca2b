"""Quantiles, percentiles and medians, of all elements or of those that are not NaN.

A quantile lies at a place between 0 and n-1 in the sorted row, which the method computes from n and
q, and is interpolated between the two elements there. If q is a number the place is computed in
f64; if it is an array, in the array's dtype. The quantile of a slice with a NaN is NaN, unless NaNs
are left out.
Source: Hyndman & Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50
(1996); their definitions 1 to 9 and four more, under the names that NumPy gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array, as_array
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.dims import is_static, product
from rune.errors import ArgumentError, ShapeError
from rune.numpy import arithmetic, logic
from rune.numpy.arguments import floating, laid_out, refuse, value
from rune.ops import conventions as c
from rune.ops.conventions import Axis
from rune.ops.family import size_value, wide
from rune.ops.promote import as_type, broadcast_to, constant
from rune.ops.sorting import search_sorted, take_last
from rune.records import dataclass
from rune.sharding.shardings import Sharding
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, Nested

# --- places -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The functions that a method needs, for NumPy numbers or for rune arrays."""

    floor: Callable[[Any], Any]
    ceil: Callable[[Any], Any]
    round: Callable[[Any], Any]
    where: Callable[[Any, Any, Any], Any]


_NUMPY = _Numbers(np.floor, np.ceil, np.rint, np.where)
_TRACED = _Numbers(arithmetic.floor, arithmetic.ceil, arithmetic.rint, logic.where)
Place = tuple[Any, Any, Any]  # positions of the two elements, and the weight of the second
Method = Callable[[_Numbers, Any, Any], Place]


def _between(f: _Numbers, place: ArrayLike) -> Place:
    low = f.floor(place)
    return low, low + 1, place - low


def _continuous(alpha: float, beta: float) -> Method:
    return lambda f, n, q: _between(f, n * q + (alpha + q * (1 - alpha - beta)) - 1)


def _at(rule: Callable[[_Numbers, Any, Any], Any]) -> Method:
    """One element, with no interpolation."""

    def method(f: _Numbers, n: ArrayLike, q: ArrayLike) -> Place:
        place = rule(f, n, q)
        return place, place, place * 0

    return method


def _averaged(f: _Numbers, n: Array, q: Array) -> Place:
    low, high, part = _between(f, n * q - 1)
    return low, high, f.where(part == 0, part * 0 + 0.5, part * 0 + 1)


def _closest(f: _Numbers, n: Array, q: ArrayLike) -> Value:
    # Half way between two, take the one whose number, counted from 1, is even.
    low, high, part = _between(f, n * q - 1.5)
    return f.where((part == 0) & (low % 2 == 1), low, high)


def _midpoint(f: _Numbers, n: Array, q: Array) -> Place:
    place = (n - 1) * q
    return f.floor(place), f.ceil(place), place * 0 + 0.5


_METHODS: dict[str, Method] = {
    "inverted_cdf": _at(lambda f, n, q: f.ceil(n * q - 1)),
    "averaged_inverted_cdf": _averaged,
    "closest_observation": _at(_closest),
    "interpolated_inverted_cdf": _continuous(0, 1),
    "hazen": _continuous(0.5, 0.5),
    "weibull": _continuous(0, 0),
    "linear": lambda f, n, q: _between(f, (n - 1) * q),
    "median_unbiased": _continuous(1 / 3, 1 / 3),
    "normal_unbiased": _continuous(3 / 8, 3 / 8),
    "lower": _at(lambda f, n, q: f.floor((n - 1) * q)),
    "higher": _at(lambda f, n, q: f.ceil((n - 1) * q)),
    "midpoint": _midpoint,
    "nearest": _at(lambda f, n, q: f.round((n - 1) * q)),
}


# --- rows -------------------------------------------------------------------------------------


def _rows(name: str, x: Array, axes: tuple[int, ...]) -> Array:
    """`x` [*B, N] with all of `axes` merged into the last one."""
    shape = type_of(x).shape
    batch_axes = tuple(i for i in range(len(shape)) if i not in axes)
    array = c.transpose(x, (*batch_axes, *axes)) if shape else x
    count = product(shape[i] for i in axes)
    return ops.reshape(array, shape=(*(shape[i] for i in batch_axes), count))


def _picked(sorted_rows: Array, counts: Any, q: ArrayLike, method: str) -> Array:
    """The quantiles of sorted rows [*B, N]: [*B, K] for q [K].

    counts: how many elements of the row are valid: a number, or an array [*B, 1].
    """
    is_number = isinstance(counts, int) and isinstance(q, np.ndarray)
    low, high, weight = _METHODS[method](_NUMPY if is_number else _TRACED, counts, q)
    first, second = (_element(sorted_rows, place, counts - 1) for place in (low, high))
    shape, dtype = type_of(first).shape, type_of(first).dtype
    # NumPy's results become constants of the dtype here: not every device has f64.
    weight = as_array(weight, dtype) if is_number else as_type(weight, dtype)
    return _between_elements(first, second, broadcast_to(method, weight, shape))


def _between_elements(first: ArrayLike, second: ArrayLike, weight: Array) -> Array:
    """first + (second - first) weight; where the difference is not finite, the weighted sum."""
    apart = ops.sub(second, first)
    near = c.is_finite(apart)
    apart = ops.select(near, apart, constant(0, apart))
    one = constant(1, weight)
    parts = ops.add(ops.mul(first, ops.sub(one, weight)), ops.mul(second, weight))
    # An infinity of weight 0 must not take part.
    parts = ops.select(ops.eq(weight, constant(0, weight)), first, parts)
    parts = ops.select(ops.eq(weight, one), second, parts)
    return ops.select(near, ops.add(first, ops.mul(apart, weight)), parts)


def _element(sorted_rows: ArrayLike, place: Array, last: Any) -> Array:
    """The elements at places [K] or [*B, K], which may lie slightly outside 0…last."""
    if isinstance(place, np.ndarray):
        place = value("quantile", np.clip(place, 0, last).astype(np.int32))
    else:
        place = c.astype(c.clip(place, 0, last), dtypes.i32)
    shape = (*type_of(sorted_rows).shape[:-1], type_of(place).shape[-1])
    return take_last(sorted_rows, broadcast_to("quantile", place, shape))


def _weighted(name: str, rows: ArrayLike, weights: ArrayLike, q: ArrayLike) -> Any:
    """The first element up to which the weights add up to q of their sum."""
    sorted_rows, weights = ops.sort(rows, weights, num_keys=1)
    shape = type_of(sorted_rows).shape
    total = ops.cumsum(weights, axis=len(shape) - 1, reverse=False)
    part = ops.div(total, broadcast_to(name, total[..., -1:], shape))
    # An element before all weights must not be the answer for q = 0 either.
    part = ops.select(ops.eq(part, constant(0, part)), constant(-1, part), part)
    targets = as_type(value(name, q), type_of(part).dtype)
    targets = broadcast_to(name, targets, (*shape[:-1], type_of(targets).shape[0]))
    position = search_sorted(part, targets, side="left")
    last = size_value(shape[-1] - 1, dtypes.i32)
    return sorted_rows, take_last(sorted_rows, ops.min(position, last))


def _weights_of(name: str, weights: ArrayLike, x: Array, axes: tuple[int, ...]) -> Array:
    """Weights in the shape of `x`; weights with one axis lie along that of the quantile.

    Errors: ShapeError.
    """
    array, shape = value(name, weights), type_of(x).shape
    weights_shape = type_of(array).shape
    if weights_shape != shape:
        if len(axes) != 1 or weights_shape != (shape[axes[0]],):
            raise ShapeError(f"{name}: cannot weight {type_of(x)} by {type_of(array)} (axes {axes})")
        array = ops.broadcast(array, shape=shape, axes=axes)
    return c.astype(array, type_of(x).dtype)


# --- the functions ----------------------------------------------------------------------------


def _quantile(
    name: str, a: ArrayLike, q: Any, axis: Axis, method: str, keepdims: bool, weights: ArrayLike | None, skips: bool
) -> Array:
    """The quantiles q, along leading axes; NaNs are left out if `skips`, otherwise they win."""
    x = floating(name, value(name, a))
    x_dtype, shape = type_of(x).dtype, type_of(x).shape
    axes = c.normalised_axes(name, axis, type_of(x))
    q, q_shape = _flat(name, q)
    x = ops.cast(x, wide(x_dtype))
    rows = _rows(name, x, axes)
    if type_of(rows).shape[-1] <= 0:
        out = as_array(np.nan, type_of(rows).dtype)
        out = broadcast_to(name, out, (*type_of(rows).shape[:-1], int(np.prod(q_shape))))
    elif weights is not None:
        of_rows = _rows(name, _weights_of(name, weights, x, axes), axes)
        out = _of_weighted_rows(name, rows, of_rows, q, skips)
    else:
        out = _of_rows(rows, q, method, skips)
    out = ops.cast(out, x_dtype)
    out = c.transpose(out, (type_of(out).ndim - 1, *range(type_of(out).ndim - 1)))
    result_shape = [1 if i in axes else d for i, d in enumerate(shape) if keepdims or i not in axes]
    return c.reshape(out, (*q_shape, *result_shape))


def _of_rows(rows: ArrayLike, q: ArrayLike, method: str, skips: bool) -> Array:
    (sorted_rows,) = ops.sort(rows, num_keys=1)
    size = type_of(rows).shape[-1]
    if skips:
        is_number = ops.cast(ops.eq(rows, rows), type_of(rows).dtype)
        counts = ops.reduce_sum(is_number, axes=(type_of(rows).ndim - 1,))
        counts = ops.reshape(counts, shape=(*type_of(counts).shape, 1))
        return _picked(sorted_rows, counts, _as_array(q, rows), method)
    if is_static(size) and isinstance(q, np.ndarray):
        return _or_nan(sorted_rows, _picked(sorted_rows, size, q, method))
    q = _as_array(q, rows)
    return _or_nan(sorted_rows, _picked(sorted_rows, size_value(size, type_of(q).dtype), q, method))


def _of_weighted_rows(name: str, rows: ArrayLike, weights: ArrayLike, q: ArrayLike, skips: bool) -> Array:
    if skips:
        weights = ops.select(ops.eq(rows, rows), weights, constant(0, weights))
    sorted_rows, quantiles = _weighted(name, rows, weights, _as_array(q, rows))
    return quantiles if skips else _or_nan(sorted_rows, quantiles)


def _or_nan(sorted_rows: Array, quantiles: Array) -> Array:
    """NaN for the rows that have one: it is sorted last."""
    last = broadcast_to("quantile", sorted_rows[..., -1:], type_of(quantiles).shape)
    return ops.select(ops.ne(last, last), last, quantiles)


def _as_array(q: ArrayLike, rows: ArrayLike) -> Array:
    """q as an array, numbers in the dtype of the rows; half types as f32."""
    array = as_array(q, type_of(rows).dtype) if isinstance(q, np.ndarray) else value("quantile", q)
    return ops.cast(array, wide(type_of(array).dtype))


def _flat(name: str, q: Any) -> tuple[Any, tuple]:
    """q with one axis, in f64 with NumPy where it is a number, and its shape.

    Errors: ArgumentError for NaN.
    """
    if isinstance(q, int | float | list | tuple | np.ndarray | np.generic):
        numbers = np.asarray(q, np.float64)
        if np.isnan(numbers).any():
            raise ArgumentError(f"{name}: cannot take the quantile {q} (0 to 1 expected)")
        return np.clip(numbers, 0, 1).reshape(-1), numbers.shape
    q = floating(name, value(name, q))
    return c.reshape(q, -1), type_of(q).shape


def _checked(name: str, method: str, weights: ArrayLike | None, out: Array | None, overwrite_input: bool) -> None:
    """Errors: ArgumentError for an unknown method, and for one that takes no weights."""
    refuse(name, out=out, overwrite_input=overwrite_input or None)
    if method not in _METHODS:
        raise ArgumentError(f"{name}: cannot use method={method!r} (one of {', '.join(_METHODS)})")
    if weights is not None and method != "inverted_cdf":
        raise ArgumentError(f"{name}: cannot weight elements with method={method!r} (inverted_cdf expected)")


def _require_elements(name: str, a: ArrayLike, axis: Axis) -> None:
    a_type = type_of(value(name, a))
    if any(a_type.shape[i] == 0 for i in c.normalised_axes(name, axis, a_type)):
        raise ShapeError(f"{name}: cannot take a quantile of {a_type} (no elements)")


def _hundredth(q: Nested) -> Value:
    if isinstance(q, int | float | list | tuple | np.ndarray | np.generic):
        return np.asarray(q, np.float64) / 100
    return floating("percentile", value("percentile", q)) / 100


@tiered
def quantile(
    a: ArrayLike,
    q: Nested,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value that a fraction q of the elements over `axis` does not exceed; NaN where there is a
    NaN.

    Shapes: a [*A], q [*Q] -> [*Q, *A without axis].
    Types:  as the elements, integers as floats.
    method: one of NumPy's 13 names; with weights only "inverted_cdf".
    Errors: ArgumentError for an unknown method or q outside 0…1; ShapeError for no elements.
    Source: Hyndman & Fan, The American Statistician 50 (1996).

    >>> import rune.numpy as rnp
    >>> rnp.quantile(rnp.array([1.0, 2.0, 4.0]), 0.75)
    Array(3., f32[], cpu:0)
    """
    _checked("quantile", method, weights, out, overwrite_input)
    _require_elements("quantile", a, axis)
    return _quantile("quantile", a, q, axis, method, keepdims, weights, False)


@tiered
def percentile(
    a: ArrayLike,
    q: Nested,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """`quantile` with q in hundredths.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: a [*A], q [*Q] -> [*Q, *A without axis]. Types: as `quantile`.
    Errors: ArgumentError if an argument is not an array or `method` is unknown; DtypeError for
            complex numbers; ShapeError for no elements; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.percentile(rnp.array([1.0, 2.0, 4.0]), 75)
    Array(3., f32[], cpu:0)
    """
    _checked("percentile", method, weights, out, overwrite_input)
    _require_elements("percentile", a, axis)
    return laid_out(_quantile("percentile", a, _hundredth(q), axis, method, keepdims, weights, False), out_sharding)


@tiered
def nanquantile(
    a: ArrayLike,
    q: Nested,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`quantile` of the elements that are not NaN; NaN where there are none.

    Shapes: a [*A], q [*Q] -> [*Q, *A without axis]. Types: as `quantile`.
    Errors: ArgumentError if an argument is not an array or `method` is unknown; DtypeError for
            complex numbers; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nanquantile(rnp.array([1.0, rnp.nan, 3.0]), 0.5)
    Array(2., f32[], cpu:0)
    """
    _checked("nanquantile", method, weights, out, overwrite_input)
    return _quantile("nanquantile", a, q, axis, method, keepdims, weights, True)


@tiered
def nanpercentile(
    a: ArrayLike,
    q: Nested,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`percentile` of the elements that are not NaN; NaN where there are none.

    Shapes: a [*A], q [*Q] -> [*Q, *A without axis]. Types: as `quantile`.
    Errors: ArgumentError if an argument is not an array or `method` is unknown; DtypeError for
            complex numbers; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nanpercentile(rnp.array([1.0, rnp.nan, 3.0]), 50)
    Array(2., f32[], cpu:0)
    """
    _checked("nanpercentile", method, weights, out, overwrite_input)
    return _quantile("nanpercentile", a, _hundredth(q), axis, method, keepdims, weights, True)


@tiered
def median(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The middle element, or the mean of the two in the middle; NaN where there is a NaN.

    Shapes: any -> [] unless an axis is given. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.median(rnp.array([[3, 1], [2, 9]]), axis=1)
    Array([2. , 5.5], f32[2], cpu:0)
    """
    refuse("median", out=out, overwrite_input=overwrite_input or None)
    return _quantile("median", a, 0.5, axis, "midpoint", keepdims, None, False)


@tiered
def nanmedian(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The median of the elements that are not NaN; NaN where there are none.

    Shapes: any -> [] unless an axis is given. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nanmedian(rnp.array([1.0, rnp.nan, 3.0]))
    Array(2., f32[], cpu:0)
    """
    refuse("nanmedian", out=out, overwrite_input=overwrite_input or None)
    return _quantile("nanmedian", a, 0.5, axis, "midpoint", keepdims, None, True)
