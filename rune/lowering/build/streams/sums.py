"""The sums of a stream: how they answer to a peak, and how a tile of keys is added to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rune import dims
from rune.dims import Size
from rune.lowering.build.streams.frame import Frame, Place, base_of, equal
from rune.lowering.build.streams.tile import names_needed, slice_of
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Cast, Expr, Load, Local, Op, const
from rune.lowering.kernel.nodes import Accumulate, Assign, For, Kind, Let, Stmt, Store, Var
from rune.lowering.kernels import Sum
from rune.ops.family import wide


def initial(frame: Frame) -> Iterator[Stmt]:
    """The peaks and sums of no keys."""
    for i in range(frame.tile.thread_rows):
        if frame.stream.peak is not None:
            dtype = frame.stream.peak.value.dtype
            yield Var(frame.peak_name(i), COMBINE["max"].identity(dtype))
        for total in frame.stream.sums:
            for name in frame.sum_names(total, i):
                yield Var(name, const(0, total.weight.dtype))


def scaled(frame: Frame, i: int, before: Expr, after: Expr, same: Expr, suffix: str) -> Iterator[Stmt]:
    """The sums of a row, made with one peak, as they are with another. `same`: they stay."""
    for degree in sorted({s.degree for s in frame.stream.sums} - {0}):
        factor = f"shrink{suffix}_{i}_{degree}"
        yield Let(factor, _shrinkage(before, after, degree, same))
        for total in frame.stream.sums:
            for name in frame.sum_names(total, i) if total.degree == degree else ():
                dtype = total.weight.dtype
                scale: Expr = Local(factor, wide(before.dtype))
                scale = scale if dtype == scale.dtype else Cast(scale, dtype)
                yield Assign(name, Op("mul", (Local(name, dtype), scale), dtype))


def corrected(frame: Frame) -> Iterator[Stmt]:
    """The sums with the peak itself: a row of -inf counted as 0 so far."""
    if frame.stream.peak is None:
        return
    for i in range(frame.tile.thread_rows):
        peak = Local(frame.peak_name(i), frame.stream.peak.value.dtype)
        base = base_of(peak)
        yield from scaled(frame, i, base, peak, equal(base, peak), "_last")


def weights(frame: Frame, points: Sequence[Sequence[Place]]) -> Iterator[Stmt]:
    """The weights of every row and key of a thread, for all."""
    for weight, tile in frame.weight_tiles().items():
        for i, row in enumerate(points):
            for j, place in enumerate(row):
                yield Store(tile, frame.cell(frame.row_of(i), frame.column_of(j)), place.expr(weight))


def added(frame: Frame, places: Sequence[Place]) -> For:
    """The keys of a tile, added to the sums of every row and column of a thread."""
    name = f"{frame.key_axis.name}_key"
    key = dims.symbol(name, 0, frame.keys_here - 1)
    rows = range(frame.tile.thread_rows)
    body: list[Stmt] = []
    tiles = frame.weight_tiles()
    for weight, tile in tiles.items():
        for i in rows:
            load = Load(tile, (frame.cell(frame.row_of(i), key),), weight.dtype)
            body.append(Let(f"{tile}_{i}", load))
    for total in frame.stream.sums:
        body += _rows_added(frame, total, tiles[total.weight], frame.first_key + key, places)
    return For(name, frame.keys_here, Kind.SERIAL, tuple(body))


def _rows_added(frame: Frame, total: Sum, tile: str, key: Size, places: Sequence[Place]) -> Iterator[Stmt]:
    """One key, added to a sum."""
    dtype, rows = total.weight.dtype, range(frame.tile.thread_rows)
    if total.factor is None:
        for i in rows:
            yield Accumulate(frame.sum_names(total, i)[0], "add", Local(f"{tile}_{i}", dtype))
        return
    lets = [*frame.before, *(p for p in frame.parts() if isinstance(p, Let)), *total.lets]
    by_row = frame.row_axis.name in names_needed(total.factor, lets)
    for n in range(len(frame.sum_names(total, 0))):
        columns: dict[str, Size] = {}
        for axis in total.columns:
            clamp, columns[axis.name] = frame.inside(
                f"{total.name}_column_{n}", frame.column_of(n), axis, frame.tile.across
            )
            yield from clamp
        for i in rows if by_row else (0,):
            at = {**places[i].sizes, frame.key_axis.name: key, **columns}
            yield from _factor(frame, total, f"{total.name}_factor_{i}_{n}", at, lets)
        for i in rows:
            factor = Local(f"{total.name}_factor_{i if by_row else 0}_{n}", dtype)
            product = Op("mul", (Local(f"{tile}_{i}", dtype), factor), dtype)
            yield Accumulate(frame.sum_names(total, i)[n], "add", product, contract=True)


def _factor(frame: Frame, total: Sum, name: str, at: Mapping[str, Size], lets: Sequence[Let]) -> list[Stmt]:
    """What a key multiplies its weight with, in one column."""
    assert total.factor is not None
    needed = slice_of(total.factor, lets)
    place = Place(at, {let.name: f"{let.name}_{name}" for let in needed})
    return [*place.lets(needed), Let(name, place.expr(total.factor))]


def _shrinkage(before: Expr, after: Expr, degree: int, same: Expr) -> Expr:
    """exp(degree * (before - after)), or 1."""
    dtype = wide(before.dtype)
    operands = (before, after) if dtype == before.dtype else (Cast(before, dtype), Cast(after, dtype))
    difference: Expr = Op("sub", operands, dtype)
    if degree != 1:
        difference = Op("mul", (const(degree, dtype), difference), dtype)
    return Op("select", (same, const(1, dtype), Op("exp", (difference,), dtype)), dtype)
