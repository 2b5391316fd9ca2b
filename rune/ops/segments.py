"""Segment operations: rows of data that have the same segment number are combined.

    data [N, *R], segment_ids [N] -> [num_segments, *R]

A segment without rows gets the identity of the operation: 0, 1, the least or the largest value.
Numbers out of bounds are dropped (mode "fill", "drop"), or clamped to the nearest segment
("clip"). The derivatives are those of a scatter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import Primitive
from rune.core.values import Value
from rune.dims import Dim, Size
from rune.errors import ArgumentError, DtypeError, ShapeError, TracerIntegerConversionError
from rune.ops.family import fit, reshape
from rune.ops.index_dims import IndexDims
from rune.ops.indexing import scatter_add
from rune.ops.promote import operand, refuse_sharding
from rune.ops.reduction import least, reduce_max
from rune.ops.scalars import order_limits
from rune.ops.scatters import multiply_at, scatter_max, scatter_min

if TYPE_CHECKING:
    from rune.array import Array

_MODES = {None: "fill", "fill": "fill", "drop": "fill", "clip": "clip", "promise_in_bounds": "promise_in_bounds"}
Segments = Callable[..., Any]


def _greatest(x: Value) -> Value:
    return literal_like(order_limits(type_of(x).dtype)[1], x)


def _count(name: str, ids: Value, num_segments: Size | None) -> Size:
    """The number of segments: the argument, or one more than the largest segment number."""
    if num_segments is not None:
        count = num_segments if isinstance(num_segments, Dim) else num_segments.__index__()
        if not count >= 0:
            raise ArgumentError(f"{name}: cannot make {count} segments")
        return count
    if type_of(ids).shape[0] == 0:
        return 0
    try:
        return reduce_max(ids, axes=(0,)).__index__() + 1
    except TracerIntegerConversionError as error:
        raise TracerIntegerConversionError(
            f"{name}: cannot count the segments of a traced array", hint="give num_segments="
        ) from error


_DOC = """{what} of the rows in each segment.

    Shapes: data [N, *R], segment_ids [N] of integers -> [num_segments, *R]. Rank-0 data count N times.
    num_segments: the number of segments, by default one more than the largest segment number;
            required where segment_ids are traced.
    mode:   "fill" (the default) and "drop" leave out rows whose segment number is out of bounds,
            "clip" adds them to the nearest segment. indices_are_sorted, unique_indices and
            bucket_size are accepted as in JAX, and change nothing.
    Errors: DtypeError if segment_ids are not integers, ShapeError if they are not [N],
            TracerIntegerConversionError if they are traced without num_segments.

    >>> import rune.numpy as rnp
    >>> from rune.ops import {name}
    >>> {name}(rnp.array([1.0, 2.0, 3.0]), rnp.array([0, 0, 1]))
    Array({shown}, f32[2], cpu:0)
    """


def _segments(
    name: str,
    scatter: Primitive | Callable[..., Array],
    identity: Callable[[Value], Value],
    summary: str,
    result_text: str,
) -> Segments:
    def function(
        data: Value,
        segment_ids: Value,
        num_segments: Size | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: str | None = None,
        out_sharding: None = None,
    ) -> Any:
        refuse_sharding(name, out_sharding)
        x, ids = operand(name, data), operand(name, segment_ids)
        ids_type = type_of(ids)
        x = x if type_of(x).shape else fit(x, ids_type.shape[:1])
        rows = type_of(x)
        if ids_type.dtype not in dtypes.INTEGER:
            raise DtypeError(f"{name}: cannot use {ids_type} as numbers (integer dtype required)")
        if not rows.shape or ids_type.shape != rows.shape[:1]:
            raise ShapeError(f"{name}: cannot number the rows of {rows} by {ids_type}")
        if mode not in _MODES:
            raise ArgumentError(f"{name}: cannot use mode={mode!r} (fill, drop, clip)")
        count = _count(name, ids, num_segments)
        if count == 0 or 0 in rows.shape:
            return fit(identity(x), (count, *rows.shape[1:]))
        return scatter(
            fit(identity(x), (count, *rows.shape[1:])),
            reshape(ids, shape=(*ids_type.shape, 1)),
            x,
            dims=IndexDims(tuple(range(1, rows.ndim)), (0,), (0,)),
            slice_sizes=(1, *rows.shape[1:]),
            mode=_MODES[mode],
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(name=name, what=summary, shown=result_text)
    return function


segment_sum = _segments("segment_sum", scatter_add, lambda x: literal_like(0, x), "The sum", "[3., 3.]")
segment_prod = _segments("segment_prod", multiply_at, lambda x: literal_like(1, x), "The product", "[2., 3.]")
segment_max = _segments("segment_max", scatter_max, least, "The maximum", "[2., 3.]")
segment_min = _segments("segment_min", scatter_min, _greatest, "The minimum", "[1., 3.]")
