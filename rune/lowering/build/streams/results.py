"""The results of a stream: what is computed from its sums, and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rune import dims
from rune.lowering.build.conditions import less
from rune.lowering.build.streams.frame import Frame, Place
from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.nodes import If, Let, Stmt, Store
from rune.lowering.kernel.rewrite import map_expr
from rune.lowering.kernels import Statement, Write


def results(frame: Frame, after: Sequence[Statement], places: Sequence[Place]) -> Iterator[Stmt]:
    """The statements after the stream, for every row of a thread."""
    for i, place in enumerate(places):
        body: list[Stmt] = []
        names = {s.name: f"{s.name}_{i}_total" for s in frame.scalar_sums}
        if frame.stream.peak is not None:
            names[frame.stream.peak.name] = frame.peak_name(i)
        names |= {s.name: f"{s.name}_r{i}" for s in after if isinstance(s, Let)}
        row_place = Place(place.sizes, {**place.names, **names})
        for statement in after:
            if isinstance(statement, Let):
                body += row_place.lets((statement,))
            else:
                assert isinstance(statement, Write)
                body += _written(frame, statement, row_place, i)
        # Rows beyond the end have been computed as copies of the last one.
        row = frame.first_row + frame.row_of(i)
        full = dims.divides(frame.tile.rows, frame.row_axis.size) is True
        yield from body if full else [If(less(row, frame.row_axis.size), tuple(body))]


def _written(frame: Frame, write: Write, place: Place, i: int) -> list[Stmt]:
    """A write of a single value of a row, or of those columns that the thread has."""
    # All threads of a row have its scalars; the first of them writes.
    if not write.axes:
        store = [*place.lets(write.lets), _store(frame, write, place, i, 0)]
        first = frame.tile.across == 1
        return store if first else [If(less(frame.thread % frame.tile.across, 1), tuple(store))]
    (axis,) = write.axes
    assert isinstance(axis.size, int)
    out: list[Stmt] = []
    run = frame.tile.column_run(axis.size)
    for first in range(0, frame.tile.thread_columns(axis.size), run):
        lets: list[Stmt] = []
        stores: list[Stmt] = []
        for n in range(first, first + run):
            names = {let.name: f"{let.name}_{n}" for let in write.lets}
            at = {**place.sizes, axis.name: frame.column_of(n, axis.size)}
            column_place = Place(at, {**place.names, **names})
            lets += column_place.lets(write.lets)
            stores.append(_store(frame, write, column_place, i, n))
        # Columns of a run are inside or beyond the end together, so one condition is enough.
        inside = axis.size % (run * frame.tile.across) == 0
        condition = less(frame.column_of(first, axis.size), axis.size)
        out += [*lets, *stores] if inside else [If(condition, (*lets, *stores))]
    return out


def _store(frame: Frame, write: Write, place: Place, i: int, n: int) -> Stmt:
    """The store of a value that may read sums, which are variables of the thread."""
    rows = {s.name: s for s in frame.stream.sums if s.columns}

    def sums(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in rows:
            return Local(frame.sum_names(rows[expr.buffer], i)[n], expr.dtype)
        return expr

    (index,) = write.indices
    store = Store(write.output, place.index(index), map_expr(sums, place.expr(write.value)))
    if write.condition is None:
        return store
    return If(map_expr(sums, place.expr(write.condition)), (store,))
