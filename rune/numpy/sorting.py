"""Sorting, partial sorting, and searching sorted arrays.

The order is total: NaN comes after all numbers, -0 equals 0, complex numbers are compared by their
real and then their imaginary part. Every sort is stable. Derivatives follow the elements; positions
have none.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import refuse, static_ints, together, value, values
from rune.ops import conventions as c
from rune.ops import ordering as o
from rune.ops.complex_numbers import WHOLE
from rune.ops.family import index_dtype, position_dtype
from rune.ops.sorting import positions_like
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, DTypeLike

_SEARCHES = ("scan", "scan_unrolled", "sort", "compare_all")


def _refuse_kind(name: str, kind: str | None, order: Array | None, stable: bool) -> None:
    """Every sort is stable, and arrays have no fields to order by."""
    if stable not in (None, True, False):
        raise ArgumentError(f"{name}: cannot use stable={stable!r} (True or False)")
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        refuse(name, kind=kind)
    refuse(name, order=order)


@tiered
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements in order along `axis`, NaN last; flattened for None, reversed if descending.

    Shapes: any, unchanged; [N] of all elements for axis None. Types: that of `a`.
    Errors: AxisError for an axis out of range.
    Cost:   on a device O(n log^2 n) comparisons, in parallel.

    >>> import rune.numpy as rnp
    >>> rnp.sort(rnp.array([3.0, rnp.nan, -1.0]))
    Array([-1.,  3., nan], f32[3], cpu:0)
    """
    _refuse_kind("sort", kind, order, stable)
    return o.sort(value("sort", a), axis, descending)


@tiered
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The positions that put the elements in order along `axis`; ties keep their order.

    Shapes: any, unchanged; [N] of all elements for axis None.
    Types:  i32 (i64 under `enable_x64`) unless dtype is given.
    Errors: AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.argsort(rnp.array([3.0, 1.0, 3.0]), descending=True)
    Array([0, 2, 1], i32[3], cpu:0)
    """
    _refuse_kind("argsort", kind, order, stable)
    positions = o.argsort(value("argsort", a), axis, descending)
    return positions if dtype is None else c.astype(positions, dtypes.as_dtype(dtype))


@tiered
def sort_complex(a: ArrayLike) -> Array:
    """The elements as complex numbers, in order of their real and then their imaginary parts.

    Shapes: any, unchanged. Types: c64, or c128 of f64 and c128.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.sort_complex(rnp.array([2, 1]))
    Array([1.+0.j, 2.+0.j], c64[2], cpu:0)
    """
    x = value("sort_complex", a)
    dtype = type_of(x).dtype
    wide = WHOLE.get(dtype, dtypes.c128 if dtype in (dtypes.i64, dtypes.u64) else dtypes.c64)
    return o.sort(x if dtype in dtypes.COMPLEX else c.astype(x, wide))


def _checked_kth(name: str, a: ArrayLike, kth: ArrayLike, axis: int | None) -> Array:
    """The array. Errors: ArgumentError if `kth` is not a position along the axis."""
    x = value(name, a)
    size = c.size_of(x) if axis is None else type_of(x).shape[c.normalised_axis(name, axis, x.type)]
    for k in static_ints(name, "kth", kth):
        if not (-size <= k and k < size):
            raise ArgumentError(f"{name}: cannot place element {k} of {size} ({type_of(x)})")
    return x


@tiered
def partition(a: ArrayLike, kth: ArrayLike, axis: int | None = -1) -> Array:
    """The elements, with those at `kth` where `sort` would put them; here all are in order.

    Shapes: any, unchanged; [N] of all elements for axis None. Types: that of `a`.
    Errors: ArgumentError for a kth out of range.

    >>> import rune.numpy as rnp
    >>> rnp.partition(rnp.array([3, 1, 2]), 1)
    Array([1, 2, 3], i32[3], cpu:0)
    """
    return o.sort(_checked_kth("partition", a, kth, axis), axis)


@tiered
def argpartition(a: ArrayLike, kth: ArrayLike, axis: int | None = -1) -> Array:
    """The positions of `partition`'s elements.

    Shapes: any, unchanged; [N] of all elements for axis None. Types: i32.
    Errors: ArgumentError for a kth out of range.

    >>> import rune.numpy as rnp
    >>> rnp.argpartition(rnp.array([3, 1, 2]), 1)
    Array([1, 2, 0], i32[3], cpu:0)
    """
    order = o.argsort(_checked_kth("argpartition", a, kth, axis), axis)
    return ops.cast(order, dtypes.canonical(position_dtype(order.size)))


@tiered
def lexsort(keys: object, axis: int = -1) -> Array:
    """The positions that sort by the last key, then among equal ones by the key before it, and so
    on.

    Shapes: keys, a sequence of [*B, N] or one array [K, *B, N] -> [*B, N]. Types: i32.
    Errors: ShapeError where the keys' shapes differ; ArgumentError for no keys.

    >>> import rune.numpy as rnp
    >>> rnp.lexsort((rnp.array([9, 4, 0]), rnp.array([1, 2, 1])))
    Array([2, 0, 1], i32[3], cpu:0)
    """
    columns = values("lexsort", keys)
    if any(type_of(k).shape != type_of(columns[0]).shape for k in columns):
        shapes = ", ".join(str(type_of(k)) for k in columns)
        raise ShapeError(f"lexsort: cannot sort by {shapes} (shapes differ)")
    if not type_of(columns[0]).shape:
        return value("lexsort", np.zeros((), index_dtype()))
    rows = [o.along_last("lexsort", k, axis)[0] for k in reversed(columns)]
    at = c.normalised_axis("lexsort", axis, type_of(columns[0]))
    positions = ops.sort(*rows, positions_like(rows[0]), num_keys=len(rows))[-1]
    return ops.cast(o.back(positions, at), index_dtype())


@tiered
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """Where `v` would be inserted to keep `a` sorted: before equal elements, or after them with
    "right".

    Shapes: a [N], v [*V] -> [*V]. Types: i32 if the size of `a` fits in it, with or without x64.
    sorter: positions that put `a` into order. method: a hint, as in JAX; it changes nothing.
    Errors: ShapeError unless `a` has one axis; ArgumentError for an unknown side or method.

    >>> import rune.numpy as rnp
    >>> rnp.searchsorted(rnp.array([1, 3, 3]), rnp.array([0, 3, 4]), side="right")
    Array([0, 3, 3], i32[3], cpu:0)
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: cannot search side={side!r} (left or right)")
    if method not in _SEARCHES:
        raise ArgumentError(f"searchsorted: cannot use method={method!r} (one of {', '.join(_SEARCHES)})")
    x, targets = together("searchsorted", a, v)
    return o.searchsorted(x, targets, side, None if sorter is None else value("searchsorted", sorter))
