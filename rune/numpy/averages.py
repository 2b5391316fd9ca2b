"""Means and variances, and the reductions that leave NaN out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError
from rune.numpy import reductions as r
from rune.numpy.arguments import inexact, refuse, value
from rune.numpy.arithmetic import fmax, fmin
from rune.numpy.composites import composite
from rune.ops import conventions as c
from rune.ops import statistics as st
from rune.ops.complex_numbers import real_dtype
from rune.ops.conventions import Axis
from rune.ops.family import wide
from rune.ops.promote import apply, as_type, broadcast_to, constant
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, DTypeLike


@tiered
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Arithmetic mean of the elements where the mask is true; integers as floats.

    Shapes: any -> [] unless an axis is given.
    Types:  bools and integers become floats, unless dtype is an integer dtype.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.mean(rnp.array([[1, 2], [3, 4]]), axis=0)
    Array([2., 3.], f32[2], cpu:0)
    """
    refuse("mean", out=out)
    x = value("mean", a)
    if where is None:
        return st.mean(x, axis, dtype, keepdims)
    return _masked_mean("mean", x, where, axis, dtype, keepdims)


def _in_floats(name: str, x: ArrayLike, dtype: DTypeLike | None) -> tuple[Any, np.dtype]:
    """x in the dtype to compute in, and the dtype of the result."""
    x = inexact(name, x if dtype is None else c.astype(x, dtypes.as_dtype(dtype)))
    dtype_out = type_of(x).dtype
    return ops.cast(x, wide(dtype_out)), dtype_out


def _mask(name: str, where: ArrayLike, x: ArrayLike) -> Array:
    """`where` as bools, in the shape of x."""
    return broadcast_to(name, c.astype(value(name, where), dtypes.bool_), type_of(x).shape)


def _masked_mean(
    name: str, x: ArrayLike, where: ArrayLike, axis: Axis, dtype: DTypeLike | None, keepdims: bool
) -> Array:
    x, x_dtype = _in_floats(name, x, dtype)
    mask = _mask(name, where, x)
    total = r.sum(ops.select(mask, x, constant(0, x)), axis, keepdims=keepdims)
    count = r.sum(mask, axis, real_dtype(type_of(x).dtype), keepdims=keepdims)
    quotient = c.by_parts(lambda part: ops.div(part, count), total)
    return ops.cast(quotient, x_dtype if dtype is None else dtypes.as_dtype(dtype))


@composite
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """Mean squared distance from the mean; the divisor is the count minus `ddof` (`correction`).

    Shapes: any -> [] unless an axis is given.
    Types:  bools and integers become floats; complex numbers give reals.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.var(rnp.array([1.0, 3.0]))
    Array(1., f32[], cpu:0)
    """
    refuse("var", out=out)
    x, less = value("var", a), _correction("var", ddof, correction)
    if where is None:
        return st.var(x, axis, dtype, less, keepdims, mean)
    return _masked_var("var", x, where, axis, dtype, less, keepdims, mean)


def _correction(name: str, ddof: float, correction: float | None) -> float:
    if correction is not None and ddof != 0:
        raise ArgumentError(f"{name}: cannot use both ddof and correction (they mean the same)")
    return ddof if correction is None else correction


def _masked_var(
    name: str,
    x: ArrayLike,
    where: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    ddof: float,
    keepdims: bool,
    mean: ArrayLike | None,
) -> Array:
    x, x_dtype = _in_floats(name, x, dtype)
    mask = _mask(name, where, x)
    centre = _masked_mean(name, x, mask, axis, None, True) if mean is None else mean
    squares = st.squared_length(ops.select(mask, apply(ops.sub, x, centre), constant(0, x)))
    total = r.sum(squares, axis, keepdims=keepdims)
    count = r.sum(mask, axis, type_of(squares).dtype, keepdims=keepdims)
    variance = ops.div(total, st.left_over(count, ddof))
    return ops.cast(variance, real_dtype(x_dtype))


@composite
def std(
    a: object,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """Square root of `var`; its derivative is NaN where all elements are equal.

    Shapes: any -> [] unless an axis is given.
    Types:  bools and integers become floats; complex numbers give reals.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.std(rnp.array([1.0, 3.0]))
    Array(1., f32[], cpu:0)
    """
    refuse("std", out=out)
    x, x_dtype = _in_floats("std", value("std", a), dtype)
    less = _correction("std", ddof, correction)
    variance = var(x, axis, ddof=less, keepdims=keepdims, where=where, mean=mean)
    return ops.cast(ops.sqrt(variance), real_dtype(x_dtype))


# --- without NaN ------------------------------------------------------------------------------


def _number(name: str, x: ArrayLike) -> tuple[Any, Any]:
    """x, and where it is a number (None: everywhere)."""
    x = value(name, x)
    return x, (ops.eq(x, x) if type_of(x).dtype in dtypes.INEXACT else None)


def _both(mask: Array | None, where: ArrayLike | None) -> ArrayLike | None:
    if mask is None or where is None:
        return where if mask is None else mask
    return apply(ops.logical_and, mask, c.astype(value("where", where), dtypes.bool_))


@tiered
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Sum of the elements that are numbers.

    Shapes: any -> [] unless an axis is given. Types: as `sum`.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nansum(rnp.array([1.0, rnp.nan]))
    Array(1., f32[], cpu:0)
    """
    refuse("nansum", out=out)
    x, mask = _number("nansum", a)
    return r.sum(x, axis, dtype, None, keepdims, initial, _both(mask, where))


@tiered
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Product of the elements that are numbers.

    Shapes: any -> [] unless an axis is given. Types: as `prod`.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nanprod(rnp.array([3.0, rnp.nan]))
    Array(3., f32[], cpu:0)
    """
    refuse("nanprod", out=out)
    x, mask = _number("nanprod", a)
    return r.prod(x, axis, dtype, None, keepdims, initial, _both(mask, where))


@tiered
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Mean of the elements that are numbers; NaN where there is none.

    Shapes: any -> [] unless an axis is given. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nanmean(rnp.array([1.0, rnp.nan, 3.0]))
    Array(2., f32[], cpu:0)
    """
    refuse("nanmean", out=out)
    x, mask = _number("nanmean", a)
    return mean(x, axis, dtype, None, keepdims, where=_both(mask, where))


@tiered
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Variance of the elements that are numbers.

    Shapes: any -> [] unless an axis is given.
    Types:  bools and integers become floats; complex numbers give reals.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nanvar(rnp.array([1.0, rnp.nan, 3.0]))
    Array(1., f32[], cpu:0)
    """
    refuse("nanvar", out=out)
    return _of_numbers("nanvar", var, a, axis, dtype, ddof, keepdims, where, mean)


def _of_numbers(
    name: str,
    spread: Callable[..., Array],
    a: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    ddof: float,
    keepdims: bool,
    where: ArrayLike | None,
    mean: ArrayLike | None,
) -> Array:
    """A spread of the elements that are numbers; NaN where no degrees of freedom remain."""
    x, mask = _number(name, a)
    mask = _both(mask, where)
    value = spread(x, axis, dtype, None, ddof, keepdims, where=mask, mean=mean)
    if mask is None:
        return value
    numbers = r.sum(broadcast_to(name, mask, type_of(x).shape), axis, type_of(value).dtype, keepdims=keepdims)
    return ops.select(ops.gt(numbers, constant(ddof, numbers)), value, constant(np.nan, value))


@tiered
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Standard deviation of the elements that are numbers.

    Shapes: any -> [] unless an axis is given.
    Types:  bools and integers become floats; complex numbers give reals.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nanstd(rnp.array([1.0, rnp.nan, 3.0]))
    Array(1., f32[], cpu:0)
    """
    refuse("nanstd", out=out)
    return _of_numbers("nanstd", std, a, axis, dtype, ddof, keepdims, where, mean)


def _nan_extremum(
    name: str,
    largest: bool,
    a: ArrayLike,
    axis: Axis,
    out: None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
) -> Array:
    """Over numbers only; NaN, or `initial`, where a slice has no numbers."""
    refuse(name, out=out)
    x, mask = _number(name, a)
    reduce, fill = (r.max, -np.inf) if largest else (r.min, np.inf)
    if mask is None:
        return reduce(x, axis, None, keepdims, initial, where)
    if where is not None and initial is None:
        raise ArgumentError(f"{name}: cannot use where= without initial= (a slice may be empty)")
    among = None if initial is None else fill
    extremum = reduce(ops.select(mask, x, constant(fill, x)), axis, None, keepdims, among, where)
    has_number = r.any(mask, axis, None, keepdims, where=where)
    extremum = ops.select(has_number, extremum, constant(np.nan, extremum))
    if initial is None:
        return extremum
    return (fmax if largest else fmin)(extremum, as_type(initial, type_of(extremum).dtype, name=name))


@tiered
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Largest of the elements that are numbers, and of `initial`; NaN where there is none.

    Shapes: any -> [] unless an axis is given. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array, or for where= without initial=; DtypeError
            for complex numbers; ShapeError for no elements without initial=; AxisError for an axis
            out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nanmax(rnp.array([1.0, rnp.nan]))
    Array(1., f32[], cpu:0)
    """
    return _nan_extremum("nanmax", True, a, axis, out, keepdims, initial, where)


@tiered
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Smallest of the elements that are numbers, and of `initial`; NaN where there is none.

    Shapes: any -> [] unless an axis is given. Types: that of `a`.
    Errors: as for `nanmax`.

    >>> import rune.numpy as rnp
    >>> rnp.nanmin(rnp.array([1.0, rnp.nan]))
    Array(1., f32[], cpu:0)
    """
    return _nan_extremum("nanmin", False, a, axis, out, keepdims, initial, where)


def _nan_position(
    name: str, reduce: Callable[..., Array], fill: float, x: ArrayLike, axis: int | None, keepdims: bool
) -> Array:
    """Among numbers only; -1 where a slice has none."""
    x, mask = _number(name, x)
    if mask is None:
        return reduce(x, axis, keepdims)
    position = reduce(ops.select(mask, x, constant(fill, x)), axis, keepdims)
    return ops.select(st.any(mask, axis, keepdims), position, constant(-1, position))


@tiered
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Position of the largest number; -1 where there is none.

    Shapes: any -> [] unless an axis is given. Types: i32.
    Errors: ArgumentError if an argument is not an array; ShapeError for no elements; AxisError for
            an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nanargmax(rnp.array([rnp.nan, 2.0]))
    Array(1, i32[], cpu:0)
    """
    refuse("nanargmax", out=out)
    return _nan_position("nanargmax", st.argmax, -np.inf, a, axis, bool(keepdims))


@tiered
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Position of the smallest number; -1 where there is none.

    Shapes: any -> [] unless an axis is given. Types: i32.
    Errors: ArgumentError if an argument is not an array; ShapeError for no elements; AxisError for
            an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nanargmin(rnp.array([rnp.nan, 2.0]))
    Array(1, i32[], cpu:0)
    """
    refuse("nanargmin", out=out)
    return _nan_position("nanargmin", st.argmin, np.inf, a, axis, bool(keepdims))


@tiered
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running sum with NaN counted as 0.

    Shapes: any, unchanged along an axis; [N] of all elements for None. Types: as `sum`.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nancumsum(rnp.array([1.0, rnp.nan, 2.0]))
    Array([1., 1., 3.], f32[3], cpu:0)
    """
    refuse("nancumsum", out=out)
    x, mask = _number("nancumsum", a)
    terms = x if mask is None else ops.select(mask, x, constant(0, x))
    return r.cumsum(terms, axis, dtype)


@tiered
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running product with NaN counted as 1.

    Shapes: any, unchanged along an axis; [N] of all elements for None. Types: as `sum`.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.nancumprod(rnp.array([2.0, rnp.nan, 3.0]))
    Array([2., 2., 6.], f32[3], cpu:0)
    """
    refuse("nancumprod", out=out)
    x, mask = _number("nancumprod", a)
    factors = x if mask is None else ops.select(mask, x, constant(1, x))
    return r.cumprod(factors, axis, dtype)
