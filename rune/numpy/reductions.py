"""Reductions over axes, running sums and products, differences.

`axis` is None (all), an integer or a tuple; `where` leaves elements out, `initial` counts as one
more element. Sums and products widen small integers to 32 bits; half types accumulate in f32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array, as_array
from rune.core.interpreter import type_of
from rune.dims import product
from rune.errors import ArgumentError, DtypeError
from rune.numpy.arguments import in_dtype, refuse, static_int, together, value
from rune.numpy.operands import operands_alone
from rune.ops import conventions as c
from rune.ops import extrema
from rune.ops import statistics as st
from rune.ops.conventions import Axis
from rune.ops.family import index_dtype, require_positions
from rune.ops.movement import part
from rune.ops.promote import apply, as_type, broadcast_to, broadcast_together, constant, unrounded
from rune.ops.scalars import order_limits
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, DTypeLike


def selected(name: str, x: ArrayLike, where: ArrayLike | None, identity: Any) -> Any:
    """`x` with the identity of the reduction where the mask is False. Errors: DtypeError."""
    if where is None:
        return x
    mask = value(name, where)
    if type_of(mask).dtype != dtypes.bool_:
        raise DtypeError(f"{name}: cannot use {type_of(mask)} as where= (bool dtype required)")
    return ops.select(*broadcast_together(name, [mask, x, constant(identity, x)]))


def _with_initial(name: str, primitive: Callable[[Any, Any], Any], out: ArrayLike, initial: ArrayLike | None) -> Any:
    """Errors: ArgumentError if `initial` is not an array."""
    return out if initial is None else primitive(out, _initial_as(name, initial, type_of(out).dtype))


def _initial_as(name: str, initial: ArrayLike, dtype: np.dtype) -> ArrayLike:
    """The initial value in the dtype of the result, and never weak."""
    initial = unrounded(name, initial)
    if dtypes.scalar_type(initial) is not None:
        return as_array(initial, dtype)
    constant_initial = as_type(initial, dtype)
    return ops.convert(constant_initial, dtype=dtype) if type_of(constant_initial).weak else constant_initial


def _total(
    name: str,
    reduce: Callable[..., Array],
    combine: Callable[[Any, Any], Any],
    identity: int,
    x: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    out: None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
    promote_integers: bool,
) -> Array:
    refuse(name, out=out)
    x = value(name, x)
    if dtype is None and not promote_integers and type_of(x).dtype != dtypes.bool_:
        dtype = type_of(x).dtype
    result_dtype = _requested_dtype(dtype)
    truths = _counted(x, result_dtype)
    wide = st.summable(x, result_dtype) if truths is None else st.summable(truths, None)
    # Without a dtype, a sum narrower than the default dtype would be widened again.
    dtype = None if result_dtype is None else type_of(wide).dtype
    total = reduce(selected(name, wide, where, identity), axis, dtype, keepdims)
    return _as_truth(_with_initial(name, combine, total, initial), truths)


def _requested_dtype(dtype: DTypeLike | None) -> np.dtype | None:
    """The requested dtype, resolved only once, because resolving one that is truncated warns."""
    return None if dtype is None else dtypes.as_dtype(dtype)


def _counted(x: ArrayLike, dtype: np.dtype | None) -> Array | None:
    """Truth values as 0 and 1 if a sum in bool is requested; otherwise None."""
    if dtype != dtypes.bool_:
        return None
    return ops.convert(ops.convert(x, dtype=dtypes.bool_), dtype=dtypes.i32)


def _as_truth(total: Array, truths: Array | None) -> Array:
    return total if truths is None else ops.convert(total, dtype=dtypes.bool_)


@tiered
def sum(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Sum of elements.

    Shapes: any -> [] unless an axis is given.
    Types:  i8, i16 and bool sum as i32, u8 and u16 as u32, unless dtype is given; all integers as
            i64 or u64 under `enable_x64`.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.sum(rnp.ones((2, 3)), axis=0)
    Array([2., 2., 2.], f32[3], cpu:0)
    """
    return _total("sum", st.sum, _add, 0, a, axis, dtype, out, keepdims, initial, where, promote_integers)


@tiered
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Product of elements; its derivative is also right where there are zeros. Types: as `sum`.

    Shapes: any -> [] unless an axis is given.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.prod(rnp.array([2, 3]))
    Array(6, i32[], cpu:0)
    """
    return _total("prod", st.prod, _mul, 1, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def _add(x: ArrayLike, y: ArrayLike) -> Array:
    return apply(ops.add, x, y)


def _mul(x: ArrayLike, y: ArrayLike) -> Array:
    return apply(ops.mul, x, y)


# --- order ------------------------------------------------------------------------------------

_LOWEST, _HIGHEST = 0, 1  # of order_limits: the identity of a maximum, and of a minimum


def _extremum(
    name: str,
    reduce: Callable[..., Array],
    combine: Any,
    limit: int,
    x: Array,
    axis: Axis,
    out: None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
) -> Array:
    refuse(name, out=out)
    if where is not None and initial is None:
        raise ArgumentError(f"{name}: cannot use where= without initial= (a slice may be empty)")
    x = value(name, x)
    axes = c.normalised_axes(name, axis, type_of(x))
    identity = order_limits(type_of(x).dtype)[limit]
    if initial is not None and 0 in [type_of(x).shape[i] for i in axes]:
        shape = enumerate(type_of(x).shape)
        result_shape = tuple(1 if i in axes else d for i, d in shape if keepdims or i not in axes)
        return broadcast_to(name, _initial_as(name, initial, type_of(x).dtype), result_shape)
    extremum = reduce(selected(name, x, where, identity), axis, keepdims)
    return _with_initial(name, combine, extremum, initial)


@tiered
def max(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
) -> Array:
    """Largest element, or NaN if there is one. Ties share the derivative equally.

    Shapes: any -> [] unless an axis is given. Types: that of `a`.
    Errors: ShapeError for no elements without `initial`; ArgumentError for where= without it.

    >>> import rune.numpy as rnp
    >>> rnp.max(rnp.array([[1, 5], [7, 2]]), axis=1)
    Array([5, 7], i32[2], cpu:0)
    """
    return _extremum("max", st.amax, _MAX, _LOWEST, a, axis, out, keepdims, initial, where)


@tiered
def min(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Smallest element, or NaN if there is one. Ties and errors as for `max`.

    Shapes: any -> [] unless an axis is given. Types: that of `a`.

    >>> import rune.numpy as rnp
    >>> rnp.min(rnp.array([[1, 5], [7, 2]]))
    Array(1, i32[], cpu:0)
    """
    return _extremum("min", st.amin, _MIN, _HIGHEST, a, axis, out, keepdims, initial, where)


_MAX, _MIN = extrema.larger, extrema.smaller
amax, amin = max, min


@tiered
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Largest minus smallest element.

    Shapes: any -> [] unless an axis is given. Types: that of `a`.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and complex numbers;
            ShapeError for no elements; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.ptp(rnp.array([3, 9, 4]))
    Array(6, i32[], cpu:0)
    """
    refuse("ptp", out=out)
    return st.ptp(value("ptp", a), axis, keepdims)


@tiered
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Position of the first maximum, or of the first NaN; in the flattened array for axis None.

    Shapes: any -> [] unless an axis is given. Types: i32.
    Errors: ArgumentError if an argument is not an array; ShapeError for no elements; AxisError for
            an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.argmax(rnp.array([1, 7, 7]))
    Array(1, i32[], cpu:0)
    """
    refuse("argmax", out=out)
    return st.argmax(value("argmax", a), axis, bool(keepdims))


@tiered
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Position of the first minimum, or of the first NaN; in the flattened array for axis None.

    Shapes: any -> [] unless an axis is given. Types: i32.
    Errors: ArgumentError if an argument is not an array; ShapeError for no elements; AxisError for
            an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.argmin(rnp.array([3, 1, 1]))
    Array(1, i32[], cpu:0)
    """
    refuse("argmin", out=out)
    return st.argmin(value("argmin", a), axis, bool(keepdims))


@tiered
def any(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether some element is nonzero.

    Shapes: any -> [] unless an axis is given. Types: bool.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> bool(rnp.any(rnp.array([0, 2])))
    True
    """
    refuse("any", out=out)
    x = c.astype(value("any", a), dtypes.bool_)
    return st.any(selected("any", x, where, False), axis, keepdims)


@tiered
def all(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether every element is nonzero.

    Shapes: any -> [] unless an axis is given. Types: bool.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> bool(rnp.all(rnp.array([0, 2])))
    False
    """
    refuse("all", out=out)
    x = c.astype(value("all", a), dtypes.bool_)
    return st.all(selected("all", x, where, True), axis, keepdims)


@tiered
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Number of nonzero elements, as i32.

    Shapes: any -> [] unless an axis is given. Types: i32.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range;
            DimensionError for more elements than the result counts.

    >>> import rune.numpy as rnp
    >>> rnp.count_nonzero(rnp.array([0, 5, 7]))
    Array(2, i32[], cpu:0)
    """
    truth = c.astype(value("count_nonzero", a), dtypes.bool_)
    axes = c.normalised_axes("count_nonzero", axis, type_of(truth))
    require_positions("count_nonzero", product(type_of(truth).shape[i] for i in axes), index_dtype())
    return st.sum(truth, axis, index_dtype(), keepdims)


# --- running ----------------------------------------------------------------------------------


@tiered
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running sum along an axis, or of the flattened array for None. Types: as `sum`.

    Shapes: any, unchanged along an axis; [N] of all elements for None.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.cumsum(rnp.array([1, 2, 3]))
    Array([1, 3, 6], i32[3], cpu:0)
    """
    refuse("cumsum", out=out)
    x = value("cumsum", a)
    result_dtype = _requested_dtype(dtype)
    if (truths := _counted(x, result_dtype)) is not None:
        return _as_truth(st.cumsum(truths, axis), truths)
    return st.cumsum(x, axis, result_dtype)


@tiered
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running product along an axis, or of the flattened array for None. Types: as `sum`.

    Shapes: any, unchanged along an axis; [N] of all elements for None.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype; AxisError
            for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.cumprod(rnp.array([1, 2, 3]))
    Array([1, 2, 6], i32[3], cpu:0)
    """
    refuse("cumprod", out=out)
    x = value("cumprod", a)
    result_dtype = _requested_dtype(dtype)
    if (truths := _counted(x, result_dtype)) is not None:
        return _as_truth(st.cumprod(truths, axis), truths)
    return st.cumprod(x, axis, result_dtype)


def _accumulated(
    name: str,
    rule: Callable[..., Array],
    first: int,
    x: ArrayLike,
    axis: int | None,
    dtype: DTypeLike | None,
    include_initial: bool,
) -> Array:
    x = value(name, x)
    ndim = type_of(x).ndim
    if axis is None and ndim != 1:
        raise ArgumentError(f"{name}: cannot choose an axis of {type_of(x)} (give axis=)")
    at = 0 if axis is None else c.normalised_axis(name, axis, type_of(x))
    truths = _counted(x, _requested_dtype(dtype))
    out = rule(x, at, dtype) if truths is None else _as_truth(rule(truths, at), truths)
    if not include_initial:
        return out
    low = tuple(int(i == at) for i in range(ndim))
    zeros = (0,) * ndim
    return ops.pad(out, constant(first, out), low=low, high=zeros, interior=zeros)


@operands_alone
def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Running sum, starting with 0 if `include_initial`.

    Shapes: x [*A, N, *B], unchanged; N + 1 if include_initial. Types: as `sum`.
    Errors: ArgumentError without axis, except for rank 1.

    >>> import rune.numpy as rnp
    >>> rnp.cumulative_sum(rnp.array([1, 2]), include_initial=True)
    Array([0, 1, 3], i32[3], cpu:0)
    """
    return _accumulated("cumulative_sum", st.cumsum, 0, x, axis, dtype, include_initial)


@operands_alone
def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Running product, starting with 1 if `include_initial`.

    Shapes: as `cumulative_sum`. Types: as `sum`.
    Errors: as `cumulative_sum`.

    >>> import rune.numpy as rnp
    >>> rnp.cumulative_prod(rnp.array([2, 3]), include_initial=True)
    Array([1, 2, 6], i32[3], cpu:0)
    """
    return _accumulated("cumulative_prod", st.cumprod, 1, x, axis, dtype, include_initial)


@tiered
def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: Any = None, append: ArrayLike | None = None) -> Array:
    """Differences of neighbours, taken n times; for bools, whether they differ.

    Shapes: a [*A, N, *B] -> [*A, N - n, *B]; N includes `prepend` and `append`.
    Types:  that of `a`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.diff(rnp.array([1, 4, 9]))
    Array([3, 5], i32[2], cpu:0)
    """
    x = value("diff", a)
    times = static_int("diff", "a count", n)
    if times == 0:
        return c.distinct(x, a)  # nothing is prepended or appended, as in NumPy
    if times < 0 or not type_of(x).shape:
        raise ArgumentError(f"diff: cannot take {times} differences of {type_of(x)}")
    at = c.normalised_axis("diff", axis, type_of(x))
    x = _extended(x, at, prepend, append)
    size = type_of(x).shape[at]
    if isinstance(size, int) and size < times:
        times = size  # then no elements remain
    for _ in range(times):
        x = _difference(x, at)
    return x


def _extended(x: ArrayLike, axis: int, prepend: ArrayLike | None, append: ArrayLike | None) -> Any:
    parts = [p for p in (prepend, x, append) if p is not None]
    if len(parts) == 1:
        return x
    parts = together("diff", *parts)
    thin = tuple(1 if i == axis else d for i, d in enumerate(type_of(x).shape))
    full = [broadcast_to("diff", p, thin) if not type_of(p).shape else p for p in parts]
    return ops.concatenate(*full, axis=axis)


def _difference(x: ArrayLike, axis: int) -> Any:
    shape = type_of(x).shape
    if shape[axis] == 0:
        return x
    late, early = part(x, axis, 1, shape[axis]), part(x, axis, 0, shape[axis] - 1)
    return (ops.ne if type_of(x).dtype == dtypes.bool_ else ops.sub)(late, early)


@tiered
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """Differences of the flattened array, with values put before and after them.

    Shapes: to_begin of B, ary of N, to_end of E elements -> [B + N - 1 + E]. Types: that of `ary`.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools.

    >>> import rune.numpy as rnp
    >>> rnp.ediff1d(rnp.array([1, 4, 9]), to_begin=0)
    Array([0, 3, 5], i32[3], cpu:0)
    """
    x = c.reshape(value("ediff1d", ary), -1)
    if type_of(x).dtype == dtypes.bool_:
        raise DtypeError(f"ediff1d: cannot subtract elements of {type_of(x)}")
    inner = diff(x)
    parts = [p for p in (to_begin, inner, to_end) if p is not None]
    pieces = (in_dtype("ediff1d", p, type_of(inner).dtype) for p in parts)
    return ops.concatenate(*(c.reshape(p, -1) for p in pieces), axis=0)
