"""Counting: into bins, of integers, and into grids of several dimensions.

A value belongs to the bin whose left edge is the last one not exceeding it; the rightmost bin
includes its right edge. Counts are floats where the values are, integers otherwise; weights are
summed in their dtype. Computed edges depend on the data, under jit too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array, as_array
from rune.core.interpreter import type_of
from rune.dims import Size, product
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.numpy.arguments import floating, known, laid_out, listed, static_int, static_size, value
from rune.numpy.logic import where
from rune.numpy.reductions import diff
from rune.ops import conventions as c
from rune.ops import ordering as o
from rune.ops import statistics as st
from rune.ops.family import fit, position_dtype, size_value, wide
from rune.ops.index_values import signed
from rune.ops.operators import Operators
from rune.ops.promote import as_type, constant
from rune.ops.segments import segment_sum
from rune.sharding.shardings import Sharding
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, Nested

_Listed = (list, tuple)
_RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")


@tiered
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The bin number of each value: how many edges it has reached.

    Shapes: x [*A], bins [N] -> [*A], 0 to N. The edges may also descend. Types: i32.
    right:  whether an edge belongs to the bin on its left.
    Errors: ShapeError unless bins has one axis.

    >>> import rune.numpy as rnp
    >>> rnp.digitize(rnp.array([0.5, 1.0, 9.0]), rnp.array([0.0, 1.0, 2.0]))
    Array([1, 2, 3], i32[3], cpu:0)
    """
    edges, points = value("digitize", bins), value("digitize", x)
    if type_of(edges).ndim != 1:
        raise ShapeError(f"digitize: cannot use {type_of(edges)} as bins (one axis required)")
    side, count = "left" if right else "right", type_of(edges).shape[0]
    if count == 0:
        return fit(value("digitize", np.int32(0)), type_of(points).shape)
    ascends = edges[-1] >= edges[0]
    number = o.searchsorted(where(ascends, edges, ops.reverse(edges, axes=(0,))), points, side)
    # With descending edges, the search runs in reversed order and counts the edges not reached.
    return where(ascends, number, ops.sub(size_value(count, type_of(number).dtype), number))


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """How often each of 0, 1, 2, … occurs, or the sum of its weights.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: x [N] of integers -> [length]; without length, as long as the largest value requires,
            and at least minlength. With length, larger values are left out. Negative values count
            as 0.
    Types:  x integers or bools -> i32, or that of the weights.
    Errors: DtypeError for values that are not integers; ShapeError unless x has one axis;
            TracerArrayConversionError for a traced x without length.

    >>> import rune.numpy as rnp
    >>> rnp.bincount(rnp.array([0, 2, 2])), rnp.bincount(rnp.array([0, 2, 2]), length=2)
    (Array([1, 0, 2], i32[3], cpu:0), Array([1, 0], i32[2], cpu:0))
    """
    places = value("bincount", x)
    x_type = type_of(places)
    if x_type.dtype not in dtypes.INTEGER | {dtypes.bool_}:
        raise DtypeError(f"bincount: cannot count {x_type} (integer dtype required)")
    if x_type.ndim != 1:
        raise ShapeError(f"bincount: cannot count {x_type} (one axis required)")
    places = c.astype(places, dtypes.i32) if x_type.dtype == dtypes.bool_ else places
    places = c.clip(places, 0, None)
    if length is None:
        most = int(known("bincount", st.amax(places), "length")) + 1 if x_type.shape[0] != 0 else 0
        length = max(most, static_int("bincount", "minlength", minlength))
    sample_weights = _weights("bincount", weights, x_type.shape, dtypes.canonical(dtypes.i64))
    size = static_size("bincount", "a length", length)
    return laid_out(segment_sum(sample_weights, signed(places, size), size), out_sharding)


def _weights(name: str, weights: ArrayLike | None, shape: tuple, dtype: np.dtype) -> Any:
    """The weights, or ones for None. Errors: ShapeError for other shapes."""
    if weights is None:
        return fit(as_array(1, dtype), shape)
    array = value(name, weights)
    if type_of(array).shape != shape:
        raise ShapeError(f"{name}: cannot weight elements of shape {shape} by {type_of(array)}")
    return c.astype(array, dtype) if type_of(array).dtype == dtypes.bool_ else array


# --- edges ------------------------------------------------------------------------------------


def histogram_bin_edges(a: ArrayLike, bins: object = 10, range: Any = None, weights: ArrayLike | None = None) -> Array:
    """The edges of a histogram's bins: those given, or those of `bins` equal bins over the range.

    Shapes: a any -> [bins + 1], or that of the edges given.
    Types:  that of `a`, bools and integers as floats; given edges keep their own.
    bins:   a number, edges [N+1] in order, or the name of one of NumPy's rules ("auto", …), for
            which the values must be concrete.
    range:  (low, high); None means from the least to the largest element.
    Errors: ArgumentError for a number below 1, no edges, or a range that is invalid or descending.

    >>> import rune.numpy as rnp
    >>> rnp.histogram_bin_edges(rnp.array([0.0, 2.0]), bins=2)
    Array([0., 1., 2.], f32[3], cpu:0)
    """
    x = value("histogram", a)
    if isinstance(bins, str):
        if bins not in _RULES:
            raise ArgumentError(f"histogram: cannot use bins={bins!r} ({', '.join(_RULES)})")
        limits = None if range is None else (float(range[0]), float(range[1]))
        dtype = type_of(floating("histogram", x)).dtype
        return as_array(np.histogram_bin_edges(np.asarray(x), bins, limits), dtype)
    if isinstance(bins, list | tuple):
        bins = np.asarray(bins)
    if isinstance(bins, Operators | np.ndarray) and type_of(bins).ndim == 1:
        if type_of(bins).shape[0] == 0:
            raise ArgumentError("histogram: cannot count between no edges")
        return c.distinct(value("histogram", bins), bins)
    count = static_int("histogram", "bins", bins)
    if count < 1:
        raise ArgumentError(f"histogram: cannot make {count} bins (at least one required)")
    return _equal_bins(*_limits(floating("histogram", x), range), count)


def _equal_bins(low: ArrayLike, high: ArrayLike, count: int) -> Array:
    """count + 1 numbers at equal distances."""
    number = ops.iota(shape=(count,), axis=0, dtype=dtypes.i32)
    dtype = type_of(low).dtype
    step = ops.div(ops.sub(high, low), as_array(count, dtype))
    edges = ops.add(ops.mul(ops.cast(number, dtype), step), low)
    return ops.concatenate(edges, ops.reshape(high, shape=(1,)), axis=0)


def _limits(x: ArrayLike, range: object) -> tuple[Array, Array]:
    """The first and the last edge, 1 apart if all values are equal."""
    dtype = type_of(x).dtype
    if range is None:
        empty = c.size_of(x) <= 0
        low, high = (constant(v, x) for v in (0, 1)) if empty else (st.amin(x), st.amax(x))
    else:
        low, high = _given_limits(range, dtype)
    same = ops.eq(low, high)
    half = constant(0.5, x)
    return ops.select(same, ops.sub(low, half), low), ops.select(same, ops.add(high, half), high)


def _given_limits(range: object, dtype: np.dtype) -> list[Array]:
    limits = listed("histogram", "range", range)
    if len(limits) != 2:
        raise ArgumentError(f"histogram: cannot use range={range!r} ((low, high) expected)")
    low, high = limits
    if all(isinstance(v, int | float) for v in (low, high)) and not low <= high:
        raise ArgumentError(f"histogram: cannot use range={range!r} (the first exceeds the second)")
    return [as_type(value("histogram", v), dtype) for v in (low, high)]


# --- histograms -------------------------------------------------------------------------------


def _bins_of(x: ArrayLike, edges: Array) -> Array:
    """The bin number of each value, -1 outside all bins."""
    values, edges = c.same_dtype("histogram", x, edges)
    count = type_of(edges).shape[0] - 1
    bins = ops.cast(o.searchsorted(edges, values, "right"), dtypes.i32)
    bins = ops.sub(bins, value("histogram", np.int32(1)))
    last = size_value(count - 1, dtypes.i32)
    is_last = ops.eq(values, fit(edges[-1], type_of(values).shape))
    inside = ops.logical_or(is_last, ops.lt(values, fit(edges[-1], type_of(values).shape)))
    return ops.select(inside, ops.min(bins, last), constant(-1, bins))


def histogram(
    a: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None, density: bool | None = None
) -> tuple[Array, Array]:
    """(number of elements in each bin, edges of the bins).

    Shapes: a any -> [N], [N+1]. Arguments: bins and range as for `histogram_bin_edges`.
    Types:  counts are floats where the elements are; sums of weights have their dtype.
    density: the counts divided by their sum and the bins' widths.
    Errors: as `histogram_bin_edges`; ShapeError for weights of another shape.

    >>> import rune.numpy as rnp
    >>> rnp.histogram(rnp.array([0.0, 1.5, 2.0]), bins=2)
    (Array([1., 2.], f32[2], cpu:0), Array([0., 1., 2.], f32[3], cpu:0))
    """
    x = value("histogram", a)
    edges = histogram_bin_edges(x, bins, range)
    counts = _counts("histogram", weights, _result_dtype(x), _bins_of(x, edges), type_of(edges).shape[0] - 1)
    if not density:
        return counts, edges
    counts = floating("histogram", counts)
    widths = as_type(diff(edges), type_of(counts).dtype)
    return ops.div(ops.div(counts, widths), st.sum(counts)), edges


def _result_dtype(x: ArrayLike) -> np.dtype:
    dtype = type_of(x).dtype
    return wide(dtype) if dtype in dtypes.INEXACT else dtypes.canonical(dtypes.i64)


def _counts(name: str, weights: ArrayLike | None, dtype: np.dtype, places: ArrayLike, count: Size) -> Array:
    """The sum of the weights at each of `count` places, or the number of places in `dtype`."""
    shape = type_of(places).shape
    places = c.reshape(places, -1)
    if weights is not None:
        return _summed(c.reshape(_weights(name, weights, shape, dtype), -1), places, count)
    # Counted in integers: a count of ones in f32 stops at 2**24.
    ones = as_array(1, position_dtype(product(shape)))
    return ops.cast(_summed(fit(ones, type_of(places).shape), places, count), dtype)


def _summed(sample_weights: ArrayLike, places: ArrayLike, count: Size) -> Array:
    """The sum of the weights at each of `count` places; weights at -1 are left out.

    One extra segment collects those at -1, so that no index is out of bounds.
    """
    outside = ops.lt(places, constant(0, places))
    extra = fit(size_value(count, dtypes.i32), type_of(places).shape)
    sums = segment_sum(sample_weights, ops.select(outside, extra, places), count + 1)
    return sums[:count]


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: object = 10,
    range: Nested | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """(number of points in each cell, edges along x, edges along y).

    Shapes: x and y [N] -> [A, B], [A+1], [B+1]. Types: as `histogramdd`.
    bins:   a number or edges for both, or one of these for each.
    Errors: ShapeError where x and y differ; else as `histogramdd`.

    >>> import rune.numpy as rnp
    >>> rnp.histogram2d(rnp.array([0.0, 1.0]), rnp.array([0.0, 2.0]), bins=2)[0]
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    points = [value("histogram2d", v) for v in (x, y)]
    if any(type_of(p).ndim != 1 or type_of(p).shape != type_of(points[0]).shape for p in points):
        raise ShapeError(
            f"histogram2d: cannot pair {type_of(points[0])} with {type_of(points[1])} (one axis of one size required)"
        )
    if isinstance(bins, Operators | np.ndarray) and type_of(bins).ndim == 1:
        bins = [bins, bins] if type_of(bins).shape[0] != 2 else list(bins)
    elif isinstance(bins, list | tuple) and len(bins) not in (1, 2):
        bins = [np.asarray(bins)] * 2
    counts, (rows, columns) = _histogram("histogram2d", points, bins, range, weights, density)
    return counts, rows, columns


def histogramdd(
    sample: Nested,
    bins: Nested = 10,
    range: Nested | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """(number of points in each cell, edges along each axis).

    Shapes: sample [N, D], or D arrays [N] -> [B1, …, BD], D edges. Types: as `histogram`.
    bins:   a number for all axes, or a number or edges for each.
    range:  None, or for each axis None or (low, high).
    Errors: ArgumentError unless there are D of these; ShapeError for a sample of another rank.

    >>> import rune.numpy as rnp
    >>> counts, edges = rnp.histogramdd(rnp.array([[0.0, 0.0], [1.0, 2.0]]), bins=2)
    >>> counts
    Array([[1., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    if isinstance(sample, _Listed):
        points = [value("histogramdd", v) for v in sample]
    else:
        rows = value("histogramdd", sample)
        if type_of(rows).ndim == 1:
            rows = c.reshape(rows, (-1, 1))
        if type_of(rows).ndim != 2:
            raise ShapeError(f"histogramdd: cannot take {type_of(rows)} (points [N, D] expected)")
        points = [rows[:, k] for k in _numbers(type_of(rows).shape[1])]
    return _histogram("histogramdd", points, bins, range, weights, density)


def _numbers(count: Size) -> Sequence[int]:
    return tuple(np.arange(static_int("histogramdd", "a number of axes", count)).tolist())


def _each(name: str, parameter: str, choice: Any, count: int) -> list[Any]:
    """One choice for every axis. Errors: ArgumentError if their number is not that of the axes."""
    if choice is None or isinstance(choice, int | np.integer | str):
        return [choice] * count
    choices = list(choice)
    if len(choices) != count:
        raise ArgumentError(f"{name}: cannot use {len(choices)} {parameter} for {count} axes")
    return choices


def _histogram(
    name: str,
    points: Sequence[Array],
    bins: object,
    range: Nested | None,
    weights: ArrayLike | None,
    density: bool | None,
) -> tuple[Array, list[Array]]:
    ndim = len(points)
    if ndim == 0:
        raise ShapeError(f"{name}: cannot count points without coordinates")
    points = c.same_dtype(name, *points)
    bins_by_axis, limits = _each(name, "bins", bins, ndim), _each(name, "ranges", range, ndim)
    edges = [histogram_bin_edges(p, b, r) for p, b, r in zip(points, bins_by_axis, limits, strict=True)]
    shape = tuple(type_of(e).shape[0] - 1 for e in edges)
    place: Array | None = None
    outside: Array | None = None
    for p, e, size in zip(points, edges, shape, strict=True):
        bin_number = _bins_of(p, e)
        beyond = ops.lt(bin_number, constant(0, bin_number))
        outside = beyond if outside is None else ops.logical_or(outside, beyond)
        count = size_value(size, dtypes.i32)
        place = bin_number if place is None else ops.add(ops.mul(place, count), bin_number)
    flat = ops.select(outside, constant(-1, place), place)
    counts = _counts(name, weights, _result_dtype(points[0]), flat, product(shape))
    counts = c.reshape(counts, shape)
    return (_dense(counts, edges) if density else counts), edges


def _dense(counts: ArrayLike, edges: Sequence[ArrayLike]) -> Array:
    """The counts divided by their sum and the cells' sizes."""
    counts = floating("histogram", counts)
    total = st.sum(counts)
    shape = type_of(counts).shape
    for axis, e in enumerate(edges):
        widths = as_type(diff(e), type_of(counts).dtype)
        counts = ops.div(counts, ops.broadcast(widths, shape=shape, axes=(axis,)))
    return ops.div(counts, total)
