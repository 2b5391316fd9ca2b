"""Sets: the distinct elements of arrays, and of two arrays together, in sorted order.

The size of a result depends on values. Under jit and other transformations `size` gives it:
elements beyond it are left out, and `fill_value` fills the places where there are fewer. Everything
rests on one stable sort: the first element of each run of equal ones is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack, overload

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.dims import Size, product
from rune.errors import ArgumentError
from rune.numpy.arguments import static_int, value
from rune.numpy.composites import composite
from rune.numpy.indexing import take
from rune.numpy.joining import concatenate
from rune.numpy.positions import flat_positions
from rune.ops import conventions as c
from rune.ops.family import fit, index_dtype, size_value
from rune.ops.movement import move_axis
from rune.ops.promote import constant
from rune.ops.sorting import positions_like
from rune.typing import ArrayLike


class UniqueAllResult(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


# --- runs of equal elements -------------------------------------------------------------------


def _differs(key: Any, equal_nan: bool) -> Array:
    """Where an element of a sorted row [N] differs from the previous one: [N-1]."""
    before, after = key[:-1], key[1:]
    is_different = ops.ne(before, after)
    if not equal_nan or type_of(key).dtype not in dtypes.INEXACT:
        return is_different
    both = ops.logical_and(ops.ne(before, before), ops.ne(after, after))
    return ops.logical_and(is_different, ops.logical_not(both))


def _starts(keys: Sequence[ArrayLike], equal_nan: bool) -> Array:
    """Where sorted rows [N] begin a new run of equal rows, as bool [N]."""
    first = value("unique", np.ones(1, bool))
    if type_of(keys[0]).shape[0] == 0:
        return first[:0]
    return ops.concatenate(first, reduce(ops.logical_or, (_differs(key, equal_nan) for key in keys)), axis=0)


def _sorted_row(x: Array) -> tuple[Array, Array]:
    """A row in sorted order, and the former positions of its elements."""
    sorted_x, positions = ops.sort(x, positions_like(x), num_keys=1)
    return sorted_x, positions


def _chosen(x: ArrayLike, mask: ArrayLike, size: Size | None, fill_value: ArrayLike | None) -> Array:
    """The elements (rows) of x where the mask is true: `size` of them, if it is given."""
    if size is None:
        return take(x, flat_positions("unique", mask, None), axis=0, mode="clip")
    return _filled(x, flat_positions("unique", mask, size), fill_value)


def _filled(x: ArrayLike, places: ArrayLike, fill_value: ArrayLike | None) -> Array:
    """The rows of x at these places, with fills for places outside; only fills if x has no rows."""
    length, *row = type_of(x).shape
    if length == 0 and fill_value is not None:
        return fit(c.astype(value("unique", fill_value), type_of(x).dtype), (*type_of(places).shape, *row))
    return take(x, places, axis=0, mode="fill", fill_value=fill_value)


def _or_first(elements: Array, mask: ArrayLike, fill_value: ArrayLike | None) -> Array:
    """Selected elements; past the last of them, the first one or the given fill value."""
    count = type_of(elements).shape[0]
    if fill_value is not None or count == 0 or type_of(mask).shape[0] == 0:
        return elements
    count_true = ops.reduce_sum(ops.cast(mask, dtypes.i32), axes=(0,))
    number = ops.iota(shape=(count,), axis=0, dtype=dtypes.i32)
    return ops.select(ops.lt(number, count_true), elements, fit(elements[0], type_of(elements).shape))


# --- unique -----------------------------------------------------------------------------------


def _columns(x: Array) -> list[Any]:
    """The columns of rows [N, R], by which they are compared; equal keys where there is none."""
    count, width = type_of(x).shape
    columns = [x[:, k] for k in range(static_int("unique", "a size of rows", width))]
    return columns or [fit(value("unique", np.int32(0)), (count,))]


_Yes: TypeAlias = Literal[True]
_No: TypeAlias = Literal[False]


class _Sized(TypedDict, total=False):
    size: Size | None
    fill_value: ArrayLike | None


class _Kw(_Sized, total=False):
    axis: int | None
    equal_nan: bool
    sorted: bool


@overload
def unique(
    ar: ArrayLike, return_index: _No = False, return_inverse: _No = False, return_counts: _No = False, **kw: Unpack[_Kw]
) -> Array: ...
@overload
def unique(
    ar: ArrayLike, return_index: _Yes, return_inverse: _No = False, return_counts: _No = False, **kw: Unpack[_Kw]
) -> tuple[Array, Array]: ...
@overload
def unique(
    ar: ArrayLike, return_index: _No = False, *, return_inverse: _Yes, return_counts: _No = False, **kw: Unpack[_Kw]
) -> tuple[Array, Array]: ...
@overload
def unique(
    ar: ArrayLike, return_index: _No = False, return_inverse: _No = False, *, return_counts: _Yes, **kw: Unpack[_Kw]
) -> tuple[Array, Array]: ...
@overload
def unique(
    ar: ArrayLike, return_index: _Yes, return_inverse: _Yes, return_counts: _No = False, **kw: Unpack[_Kw]
) -> tuple[Array, Array, Array]: ...
@overload
def unique(
    ar: ArrayLike, return_index: _Yes, return_inverse: _No = False, *, return_counts: _Yes, **kw: Unpack[_Kw]
) -> tuple[Array, Array, Array]: ...
@overload
def unique(
    ar: ArrayLike, return_index: _No = False, *, return_inverse: _Yes, return_counts: _Yes, **kw: Unpack[_Kw]
) -> tuple[Array, Array, Array]: ...
@overload
def unique(
    ar: ArrayLike, return_index: _Yes, return_inverse: _Yes, return_counts: _Yes, **kw: Unpack[_Kw]
) -> tuple[Array, Array, Array, Array]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: Size | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any: ...
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: Size | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """The distinct elements in order (distinct slices along `axis`).

    On request, the result is a tuple of the values and: the first position of each, the number of
    the value of every element, and the count of each.
    size:   the size of the result, required under transformations. fill_value: its padding, by
            default the first value. NaNs are all equal, or all distinct if equal_nan is false.
    Shapes: ar [*A] -> values [U], positions [U], numbers [*A] ([N] along an axis), counts [U].
    Types:  that of `ar`; positions, numbers and counts i32.
    Errors: TracerArrayConversionError for a traced array without size; ArgumentError where a size
            other than 0 requests elements of an empty array without a fill_value.

    >>> import rune.numpy as rnp
    >>> rnp.unique(rnp.array([3, 1, 1]), return_counts=True)
    (Array([1, 3], i32[2], cpu:0), Array([2, 1], i32[2], cpu:0))
    """
    x = value("unique", ar)
    if axis is None:
        keys, rows, shape = [c.reshape(x, -1)], c.reshape(x, -1), type_of(x).shape
    else:
        at = c.normalised_axis("unique", axis, type_of(x))
        rows = move_axis(x, at, 0)
        length, *row_shape = type_of(rows).shape
        keys, shape = _columns(ops.reshape(rows, shape=(length, product(row_shape)))), (length,)
    _require_fill(type_of(rows).shape[0], size, fill_value)
    *sorted_keys, positions = ops.sort(*keys, positions_like(keys[0]), num_keys=len(keys))
    starts = _starts(sorted_keys, equal_nan)
    results = [_values(rows, positions, starts, size, fill_value, axis)]
    if return_index:
        index = _or_first(_chosen(positions, starts, size, None), starts, None)
        results.append(ops.cast(index, index_dtype()))
    if return_inverse:
        results.append(ops.reshape(_numbers(starts, positions), shape=shape))
    if return_counts:
        results.append(_counts(starts, size))
    return results[0] if len(results) == 1 else tuple(results)


def _require_fill(count: Size, size: Size | None, fill_value: ArrayLike | None) -> None:
    if count == 0 and size not in (None, 0) and fill_value is None:
        why = f"unique: cannot fill {size} elements (the array is empty)"
        raise ArgumentError(why, hint="give fill_value=")


def _values(
    rows: ArrayLike,
    positions: ArrayLike,
    starts: ArrayLike,
    size: Size | None,
    fill_value: ArrayLike | None,
    axis: int | None,
) -> Array:
    """The first row of each run, along `axis` again."""
    if size is not None and fill_value is None:
        places = _or_first(_chosen(positions, starts, size, None), starts, None)
        distinct = take(rows, places, axis=0, mode="clip")
    elif size is None:
        distinct = take(rows, _chosen(positions, starts, None, None), axis=0, mode="clip")
    else:
        distinct = _filled(rows, _chosen(positions, starts, size, np.iinfo(np.int32).max), fill_value)
    if axis is None:
        return distinct
    return move_axis(distinct, 0, axis % type_of(distinct).ndim)


def _numbers(starts: ArrayLike, positions: ArrayLike) -> Array:
    """For every element, the number of the run that it is in."""
    number = ops.cumsum(ops.cast(starts, dtypes.i32), axis=0, reverse=False)
    number = ops.sub(number, constant(1, number))
    _, back = ops.sort(positions, number, num_keys=1)
    return ops.cast(back, index_dtype())


def _counts(starts: ArrayLike, size: Size | None) -> Array:
    """The length of each run; 0 past the last."""
    if size is not None:  # the run after the last one requested ends it
        edges = flat_positions("unique", starts, size + 1)
        return ops.sub(edges[1:], edges[:-1])
    (count,) = type_of(starts).shape
    first = flat_positions("unique", starts, None)
    end = size_value(count, type_of(first).dtype)
    if type_of(first).shape[0] == 0:
        return first
    after = ops.concatenate(first[1:], fit(end, (1,)), axis=0)
    return ops.sub(after, first)


def unique_all(x: ArrayLike, /, *, size: Any = None, fill_value: ArrayLike | None = None) -> UniqueAllResult:
    """Distinct values, their first positions, the number of every element's value, and counts.

    Shapes: x [*A] -> [U], [U], [*A], [U]; U is size if given. Types: that of `x`, then i32.
    Arguments and errors: as `unique`; every NaN is a distinct value.

    >>> import rune.numpy as rnp
    >>> rnp.unique_all(rnp.array([2, 1, 2])).inverse_indices
    Array([1, 0, 1], i32[3], cpu:0)
    """
    results = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueAllResult(*results)


def unique_counts(
    x: ArrayLike, /, *, size: Size | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """Distinct values, and how often each occurs. Arguments and errors: as `unique_all`.

    Shapes: x any -> [U], [U]; U is size if given. Types: that of `x`, i32.

    >>> import rune.numpy as rnp
    >>> rnp.unique_counts(rnp.array([2, 1, 2])).counts
    Array([1, 2], i32[2], cpu:0)
    """
    results = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCountsResult(*results)


def unique_inverse(
    x: ArrayLike, /, *, size: Size | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """Distinct values, and the number of every element's. Arguments and errors: as `unique_all`.

    Shapes: x [*A] -> [U], [*A]; U is size if given. Types: that of `x`, i32.

    >>> import rune.numpy as rnp
    >>> rnp.unique_inverse(rnp.array([2, 1, 2])).inverse_indices
    Array([1, 0, 1], i32[3], cpu:0)
    """
    results = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverseResult(*results)


def unique_values(x: ArrayLike, /, *, size: Size | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Distinct values. Arguments and errors: as `unique_all`.

    Shapes: x any -> [U], or [size]. Types: that of `x`.

    >>> import rune.numpy as rnp
    >>> rnp.unique_values(rnp.array([2, 1, 2]))
    Array([1, 2], i32[2], cpu:0)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# --- two sets ---------------------------------------------------------------------------------

_SEARCHES = ("auto", "binary_search", "compare_all", "sort")


def _pair(name: str, x: ArrayLike, y: ArrayLike) -> list[Array]:
    """Both arrays, flattened and promoted together."""
    return c.same_dtype(name, *(c.reshape(value(name, v), -1) for v in (x, y)))


def _is_in(x: ArrayLike, sorted_row: ArrayLike) -> Value:
    """Whether elements [N] occur in a sorted row."""
    (count,) = type_of(sorted_row).shape
    if count == 0:
        return fit(value("isin", np.zeros((), bool)), type_of(x).shape)
    place = ops.search_sorted(sorted_row, x, side="left")
    return ops.eq(take(sorted_row, place, axis=0, mode="clip"), x)


@composite
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is among the others, or is not, if `invert`. NaN is never among them.

    Shapes: element [*A], test_elements any -> [*A]. Types: bool.
    method: a hint, as in JAX; it changes nothing.
    Errors: ArgumentError for an unknown method.

    >>> import rune.numpy as rnp
    >>> rnp.isin(rnp.array([1, 2, 3]), rnp.array([3, 1]))
    Array([ True, False,  True], bool[3], cpu:0)
    """
    if method not in _SEARCHES:
        raise ArgumentError(f"isin: cannot use method={method!r} (one of {', '.join(_SEARCHES)})")
    x = value("isin", element)
    flat, others = _pair("isin", x, test_elements)
    is_member = _is_in(flat, ops.sort(others, num_keys=1)[0])
    is_member = ops.logical_not(is_member) if invert else is_member
    return ops.reshape(is_member, shape=type_of(x).shape)


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: Any = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements of both. Arguments and errors: as `unique`.

    Shapes: any -> [U], or [size]. Types: promoted together.

    >>> import rune.numpy as rnp
    >>> rnp.union1d(rnp.array([2, 1]), rnp.array([3, 2]))
    Array([1, 2, 3], i32[3], cpu:0)
    """
    both = concatenate(_pair("union1d", ar1, ar2))
    return unique(both, size=size, fill_value=fill_value)


@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: _No = False, **kw: Unpack[_Sized]
) -> Array: ...
@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, return_indices: _Yes, **kw: Unpack[_Sized]
) -> tuple[Array, Array, Array]: ...
@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool, return_indices: _Yes, **kw: Unpack[_Sized]
) -> tuple[Array, Array, Array]: ...
@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = ..., return_indices: bool = ..., **kw: Unpack[_Sized]
) -> Any: ...
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: Size | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, ...]:
    """The distinct elements that are in both; on request, where they first occur in each.

    Shapes: any -> [U], or [size]; positions as the values. Types: promoted together; positions i32.
    size, fill_value: as `unique`; positions are filled with a number out of bounds.
    Errors: TracerArrayConversionError for traced arrays without size.

    >>> import rune.numpy as rnp
    >>> rnp.intersect1d(rnp.array([2, 1, 2]), rnp.array([3, 2]))
    Array([2], i32[1], cpu:0)
    """
    (x, where_x), (y, where_y) = map(_sorted_row, _pair("intersect1d", ar1, ar2))
    mask = ops.logical_and(_starts([x], True), _is_in(x, y))
    common = _chosen(x, mask, size, 0 if fill_value is None else fill_value)
    place = ops.search_sorted(y, common, side="left")
    common = common if size is None else _or_first(common, mask, fill_value)
    if not return_indices:
        return common
    first = _chosen(where_x, mask, size, type_of(x).shape[0])
    second = take(where_y, place, axis=0, mode="clip") if type_of(y).shape[0] != 0 else place
    if size is not None:
        count = ops.reduce_sum(ops.cast(mask, dtypes.i32), axes=(0,))
        outside = fit(size_value(type_of(y).shape[0], dtypes.i32), type_of(second).shape)
        second = ops.select(ops.lt(positions_like(second), count), second, outside)
    return common, *(ops.cast(i, index_dtype()) for i in (first, second))


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: Size | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements of the first that are not in the second, in order.

    Shapes: any -> [U], or [size]. Types: that of the first; promoted together to compare.
    assume_unique: all elements of the first that are not in the second, in their own order.
    size, fill_value: as `unique`, but filled with 0 unless given.
    Errors: TracerArrayConversionError for traced arrays without size.

    >>> import rune.numpy as rnp
    >>> rnp.setdiff1d(rnp.array([3, 1, 1, 2]), rnp.array([2]))
    Array([1, 3], i32[2], cpu:0)
    """
    x = c.reshape(value("setdiff1d", ar1), -1)
    x = x if assume_unique else ops.sort(x, num_keys=1)[0]
    candidates, y = _pair("setdiff1d", x, ar2)
    mask = ops.logical_not(_is_in(candidates, ops.sort(y, num_keys=1)[0]))
    mask = mask if assume_unique else ops.logical_and(mask, _starts([x], True))
    return _chosen(x, mask, size, 0 if fill_value is None else fill_value)


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: Size | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements that are in only one of the two. Arguments and errors: as `unique`.

    Shapes: any -> [U], or [size]. Types: promoted together.

    >>> import rune.numpy as rnp
    >>> rnp.setxor1d(rnp.array([3, 1, 1]), rnp.array([3, 2]))
    Array([1, 2], i32[2], cpu:0)
    """
    x, y = (ops.sort(v, num_keys=1)[0] for v in _pair("setxor1d", ar1, ar2))
    both = [ops.logical_and(_starts([v], True), ops.logical_not(_is_in(v, w))) for v, w in ((x, y), (y, x))]
    union, mask = ops.concatenate(x, y, axis=0), ops.concatenate(*both, axis=0)
    union, in_one_only = ops.sort(union, mask, num_keys=1)
    distinct = _chosen(union, in_one_only, size, 0 if fill_value is None else fill_value)
    return distinct if size is None else _or_first(distinct, in_one_only, fill_value)
