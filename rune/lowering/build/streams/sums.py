"""The sums of a stream: how they follow a peak, and how a tile of keys is added to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rune import dims, dtypes
from rune.dims import Size
from rune.lowering.build.conditions import less
from rune.lowering.build.streams.frame import Frame, Place, base_of, equal, is_least
from rune.lowering.build.streams.panels import Panel, names_needed, slice_of
from rune.lowering.build.streams.tile import columns_of
from rune.lowering.build.streams.units import UnitTile, unit_added, unit_weights
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Cast, Expr, Load, Local, Op, const
from rune.lowering.kernel.nodes import Accumulate, Assign, Barrier, For, If, Kind, Let, Stmt, Store, Var
from rune.lowering.kernels import Peak, Sum
from rune.ops.family import wide


def initial(frame: Frame) -> Iterator[Stmt]:
    """The peaks and sums before any key."""
    for i in range(frame.tile.thread_rows):
        if frame.stream.peak is not None:
            dtype = frame.stream.peak.value.dtype
            yield Var(frame.peak_name(i), COMBINE["max"].identity(dtype))
        for total in frame.stream.sums:
            for name in frame.sum_names(total, i):
                yield Var(name, const(0, total.weight.dtype))


def scaled(frame: Frame, i: int, before: Expr, after: Expr, same: Expr, suffix: str) -> Iterator[Stmt]:
    """The sums of a row, scaled from one peak to another; unchanged where `same` holds."""
    # Sums of one degree share the factor, and sums of degree 0 do not depend on the peak.
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
    """The sums scaled to the peak itself, the largest of all parts."""
    # So far a row of nothing but -inf had base 0; relative to -inf its sums are NaN, as they must.
    if frame.stream.peak is None:
        return
    if frame.tile.parts == 1:
        for i in range(frame.tile.thread_rows):
            peak = Local(frame.peak_name(i), frame.stream.peak.value.dtype)
            base = base_of(peak)
            yield from scaled(frame, i, base, peak, equal(base, peak), "_last")
        return
    yield from _corrected_in_parts(frame, frame.stream.peak)


def _corrected_in_parts(frame: Frame, peak: Peak) -> Iterator[Stmt]:
    """The sums of each part, scaled to the largest peak of all parts."""
    dtype, rows = peak.value.dtype, range(frame.tile.thread_rows)
    tile = frame.by_rows(f"{peak.name}_peaks", 1, dtype)
    stores = (Store(tile, frame.row_cell(frame.part, frame.row_of(i)), Local(frame.peak_name(i), dtype)) for i in rows)
    yield If(less(frame.across, 1), tuple(stores))
    yield Barrier()
    for i in rows:
        name, before = f"{peak.name}_all_{i}", Local(frame.peak_name(i), dtype)
        yield Var(name, before)
        for part in range(frame.tile.parts):
            yield Accumulate(name, "max", Load(tile, (frame.row_cell(part, frame.row_of(i)),), dtype))
        base, top = base_of(before), Local(name, dtype)
        # A part without scores above -inf has sums of 0, which a factor exp(-top) could make NaN.
        nothing = Op("and", (is_least(before), Op("ne", (top, before), dtypes.bool_)), dtypes.bool_)
        same = Op("or", (nothing, equal(base, top)), dtypes.bool_)
        yield from scaled(frame, i, base, top, same, "_last")
        yield Assign(frame.peak_name(i), top)


def gathered(frame: Frame) -> Iterator[Stmt]:
    """The sums of rows of columns of all parts, for the threads of the first part."""
    if frame.tile.parts == 1 or not frame.wide_sums:
        return
    names = {
        s.name: [name for i in range(frame.tile.thread_rows) for name in frame.sum_names(s, i)] for s in frame.wide_sums
    }
    stores: list[Stmt] = []
    sums: list[Stmt] = []
    for total in frame.wide_sums:
        lanes, count, dtype = frame.tile.lanes, len(names[total.name]), total.weight.dtype
        memory = frame.memory(f"{total.name}_gathered", (frame.tile.parts - 1) * count * lanes, dtype)
        for n, name in enumerate(names[total.name]):
            # The lane comes last, so that neighbouring threads access neighbours.
            at = ((frame.part - 1) * count + n) * lanes + frame.lane
            stores.append(Store(memory, at, Local(name, dtype)))
            for part in range(1, frame.tile.parts):
                at = ((part - 1) * count + n) * lanes + frame.lane
                sums.append(Accumulate(name, "add", Load(memory, (at,), dtype)))
    yield If(less(0, frame.part), tuple(stores))
    yield Barrier()
    yield If(less(frame.part, 1), tuple(sums))


def weights(frame: Frame, points: Sequence[Sequence[Place]]) -> Iterator[Stmt]:
    """The weights of every row and key of a thread, shared; scalars are added to its own sums."""
    if isinstance(frame.tile, UnitTile):
        yield from unit_weights(frame, points)
    else:
        yield from _stored(frame, points)
    for j in range(frame.tile.thread_keys):
        summands = [s for total in frame.scalar_sums for s in _scalars_added(frame, total, points, j)]
        # Keys beyond the end have been computed as copies of the last one.
        yield from [If(less(frame.key_at(j), frame.keys_here), tuple(summands))] if frame.count() else summands


def _stored(frame: Frame, points: Sequence[Sequence[Place]]) -> Iterator[Stmt]:
    """The weights of every row and key of a thread, stored for all threads of the part."""
    for weight, tile in frame.weight_tiles().items():
        for j in range(frame.tile.thread_keys):
            for i, row in enumerate(points):
                at = frame.row_cell(frame.part * frame.tile.keys + frame.key_at(j), frame.row_of(i))
                yield Store(tile, at, row[j].expr(weight))


def _scalars_added(frame: Frame, total: Sum, points: Sequence[Sequence[Place]], j: int) -> Iterator[Stmt]:
    """One key, added to a sum of scalars in every row."""
    lets = [*frame.before, *(p for p in frame.parts() if isinstance(p, Let)), *total.lets]
    for i, row in enumerate(points):
        value = row[j].expr(total.weight)
        if total.factor is not None:
            name = f"{total.name}_factor_{i}_{j}"
            yield from _factor(frame, total, name, row[j].sizes, lets)
            value = Op("mul", (value, Local(name, value.dtype)), value.dtype)
        yield Accumulate(frame.sum_names(total, i)[0], "add", value, contract=total.factor is not None)


def totals(frame: Frame) -> Iterator[Stmt]:
    """The scalar sums of a row, added up over all of its threads, by each of them."""
    tiles = {s.name: frame.by_rows(f"{s.name}_parts", frame.tile.across, s.weight.dtype) for s in frame.scalar_sums}
    rows = range(frame.tile.thread_rows)
    for total in frame.scalar_sums:
        for i in rows:
            at = frame.row_cell(frame.part * frame.tile.across + frame.across, frame.row_of(i))
            yield Store(tiles[total.name], at, Local(f"{total.name}_{i}", total.weight.dtype))
    yield from [Barrier()] if tiles else ()
    for total in frame.scalar_sums:
        dtype = total.weight.dtype
        for i in rows:
            yield Var(f"{total.name}_{i}_total", const(0, dtype))
        for x in range(frame.tile.parts * frame.tile.across):
            for i in rows:
                load = Load(tiles[total.name], (frame.row_cell(x, frame.row_of(i)),), dtype)
                yield Let(f"{total.name}_part_{x}_{i}", load)
            for i in rows:
                yield Accumulate(f"{total.name}_{i}_total", "add", Local(f"{total.name}_part_{x}_{i}", dtype))


def added(frame: Frame, places: Sequence[Place]) -> list[Stmt]:
    """The keys of a tile, added to the sums of every row and column of a thread."""
    if not frame.wide_sums:
        return []
    if isinstance(frame.tile, UnitTile):
        return unit_added(frame)
    name = f"{frame.key_axis.name}_key"
    key = dims.symbol(name, 0, frame.keys_here - 1)
    rows = range(frame.tile.thread_rows)
    body: list[Stmt] = []
    tiles = frame.weight_tiles()
    # Each weight is read once for a key, and used for all columns of the thread.
    for weight, tile in tiles.items():
        for i in rows:
            at = frame.row_cell(frame.part * frame.tile.keys + key, frame.row_of(i))
            body.append(Let(f"{tile}_{i}", Load(tile, (at,), weight.dtype)))
    for total in frame.wide_sums:
        panel = frame.panels.of_sums.get(total.name)
        if panel is None:
            body += _rows_added(frame, total, tiles[total.weight], frame.first_key + key, places)
        else:
            body += _lines_added(frame, total, panel, tiles[total.weight], key)
    return [For(name, frame.keys_here, Kind.SERIAL, tuple(body))]


def _lines_added(frame: Frame, total: Sum, panel: Panel, tile: str, key: Size) -> Iterator[Stmt]:
    """A line of a panel, added to a sum."""
    dtype, columns = total.weight.dtype, len(frame.sum_names(total, 0))
    places: list[Size] = []
    for n in range(columns):
        clamp, column = frame.column_inside(f"{total.name}_column", n, panel.elements)
        yield from clamp
        places.append(column)
    for n, column in enumerate(places):
        yield Let(f"{total.name}_factor_{n}", Load(panel.name, (frame.element(panel, key, column),), panel.value.dtype))
    for i in range(frame.tile.thread_rows):
        for n, name in enumerate(frame.sum_names(total, i)):
            factors = (Local(f"{tile}_{i}", dtype), Local(f"{total.name}_factor_{n}", dtype))
            yield Accumulate(name, "add", Op("mul", factors, dtype), contract=True)


def _rows_added(frame: Frame, total: Sum, tile: str, key: Size, places: Sequence[Place]) -> Iterator[Stmt]:
    """One key, added to a sum whose factors are read from memory."""
    dtype, rows = total.weight.dtype, range(frame.tile.thread_rows)
    assert total.factor is not None
    (axis,) = total.columns
    lets = [*frame.before, *(p for p in frame.parts() if isinstance(p, Let)), *total.lets]
    by_row = frame.row_axis.name in names_needed(total.factor, lets)
    for n in range(len(frame.sum_names(total, 0))):
        clamp, column = frame.column_inside(f"{total.name}_column", n, columns_of(total))
        yield from clamp
        # A factor that does not depend on the row is computed once for all rows.
        for i in rows if by_row else (0,):
            at = {**places[i].sizes, **frame.outer, frame.key_axis.name: key, axis.name: column}
            yield from _factor(frame, total, f"{total.name}_factor_{i}_{n}", at, lets)
        for i in rows:
            factor = Local(f"{total.name}_factor_{i if by_row else 0}_{n}", dtype)
            product = Op("mul", (Local(f"{tile}_{i}", dtype), factor), dtype)
            yield Accumulate(frame.sum_names(total, i)[n], "add", product, contract=True)


def _factor(frame: Frame, total: Sum, name: str, at: Mapping[str, Size], lets: Sequence[Let]) -> list[Stmt]:
    """The factor by which a key's weight is multiplied, in one column."""
    assert total.factor is not None
    factor_lets = slice_of(total.factor, lets)
    place = Place(at, {let.name: f"{let.name}_{name}" for let in factor_lets})
    return [*place.lets(factor_lets), Let(name, place.expr(total.factor))]


def _shrinkage(before: Expr, after: Expr, degree: int, same: Expr) -> Expr:
    """exp(degree * (before - after)), or 1."""
    dtype = wide(before.dtype)
    operands = (before, after) if dtype == before.dtype else (Cast(before, dtype), Cast(after, dtype))
    difference: Expr = Op("sub", operands, dtype)
    if degree != 1:
        difference = Op("mul", (const(degree, dtype), difference), dtype)
    return Op("select", (same, const(1, dtype), Op("exp", (difference,), dtype)), dtype)
