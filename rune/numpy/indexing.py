"""Reading by computed positions: take and take_along_axis.

Positions out of bounds follow `mode`: "fill" (the default: NaN, the smallest signed, the largest
unsigned integer, True), "clip" or "wrap"; negative positions count from the end, except in "clip".
"""

from __future__ import annotations

from typing import Any

from rune import dtypes, ops
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.numpy.arguments import rank, refuse, value
from rune.ops import conventions as c
from rune.ops.family import size_value
from rune.ops.indexing import IndexDims
from rune.ops.promote import broadcast_shape, broadcast_to, constant
from rune.ops.subscript import absent

_MODES = ("fill", "clip", "wrap", "promise_in_bounds")


def _mode(name: str, mode: str | None) -> str:
    """Errors: ArgumentError for "raise", which no compiled program can honour, and others."""
    if mode is None:
        return "fill"
    if mode not in _MODES:
        raise ArgumentError(f"{name}: cannot use mode={mode!r} (one of {', '.join(_MODES)})")
    return mode


def _positions(name: str, indices: Any, size: Size, mode: str) -> Any:
    """Integer positions in 0…size-1, or outside where the mode says fill."""
    indices = value(name, indices)
    found = type_of(indices).dtype
    if found not in dtypes.INTEGER:
        raise DtypeError(f"{name}: cannot index with {type_of(indices)} (integer dtype required)")
    wide = found in (dtypes.i64, dtypes.u64, dtypes.u32)
    indices = c.astype(indices, dtypes.i64 if wide else dtypes.i32)
    count = size_value(size, type_of(indices).dtype)
    if mode == "wrap":
        return c.remainder(indices, count)
    if mode == "clip":
        return indices
    return ops.select(ops.lt(indices, constant(0, indices)), ops.add(indices, count), indices)


def take(
    a: Any, indices: Any, axis: int | None = None, out: None = None, mode: str | None = None,
    unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: Any = None,
) -> Any:  # fmt: skip
    """Elements (slices along `axis`) at `indices`; of the flattened array for None.

    Shapes: a [*A, N, *B], indices [*I] -> [*A, *I, *B].
    Errors: DtypeError for indices that are no integers. The two promises about the indices only
            allow a faster program; they are not needed.

    >>> import rune.numpy as rnp
    >>> rnp.take(rnp.array([10.0, 20.0]), rnp.array([1, -2, 5]))
    Array([20., 10., nan], f32[3], cpu:0)
    """
    refuse("take", out=out)
    kind = _mode("take", mode)
    x = value("take", a)
    x, at = (c.reshape(x, -1), 0) if axis is None else (x, c.normalised_axis("take", axis, rank(x)))
    shape = type_of(x).shape
    places = _positions("take", indices, shape[at], kind)
    batch = rank(places)
    others = tuple(i for i in range(len(shape) - 1 + batch) if not at <= i < at + batch)
    return ops.gather(
        x, ops.reshape(places, shape=(*type_of(places).shape, 1)), absent(x, fill_value),
        dims=IndexDims(others, (at,), (at,)),
        slice_sizes=tuple(1 if i == at else d for i, d in enumerate(shape)),
        mode="clip" if kind == "wrap" else kind,
    )  # fmt: skip


def take_along_axis(
    arr: Any, indices: Any, axis: int | None = -1, mode: str | None = None, fill_value: Any = None
) -> Any:
    """For every place of `indices`, the element at that position along `axis`.

    Shapes: arr [*A, N, *B], indices [*A, M, *B] -> [*A, M, *B]; other axes broadcast.

    >>> import rune.numpy as rnp
    >>> rnp.take_along_axis(rnp.array([[1, 2], [3, 4]]), rnp.array([[1], [0]]), axis=1)
    Array([[2],
           [3]], i32[2,1], cpu:0)
    """
    kind = _mode("take_along_axis", mode)
    x, places = value("take_along_axis", arr), value("take_along_axis", indices)
    if axis is None:
        x, axis = c.reshape(x, -1), 0
    at = c.normalised_axis("take_along_axis", axis, rank(x))
    if rank(places) != rank(x):
        raise ShapeError(
            f"take_along_axis: cannot index {type_of(x)} by {type_of(places)} (ranks differ)"
        )
    places = _positions("take_along_axis", places, type_of(x).shape[at], kind)
    x, places = _others_broadcast(x, places, at)
    others = tuple(i for i in range(rank(x)) if i != at)
    return ops.gather(
        x, ops.reshape(places, shape=(*type_of(places).shape, 1)), absent(x, fill_value),
        dims=IndexDims((), (at,), (at,), others, others), slice_sizes=(1,) * rank(x),
        mode="clip" if kind == "wrap" else kind,
    )  # fmt: skip


def _others_broadcast(x: Any, places: Any, axis: int) -> tuple[Any, Any]:
    shapes = [type_of(v).shape for v in (x, places)]
    thin = [tuple(1 if i == axis else d for i, d in enumerate(s)) for s in shapes]
    common = broadcast_shape("take_along_axis", *thin)
    return tuple(
        broadcast_to(
            "take_along_axis", v, tuple(s[i] if i == axis else d for i, d in enumerate(common))
        )
        for v, s in zip((x, places), shapes, strict=True)
    )  # type: ignore[return-value]
