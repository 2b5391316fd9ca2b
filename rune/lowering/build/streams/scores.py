"""The scores of a tile: dots of some rows by some keys for each thread, and their peaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rune import dims, dtypes
from rune.dims import Size
from rune.lowering.build import loops
from rune.lowering.build.streams.frame import Frame, Place, base_of, equal, is_least
from rune.lowering.build.streams.sums import scaled
from rune.lowering.build.streams.tile import slice_of
from rune.lowering.kernel.expr import Expr, Load, Local, Op, const
from rune.lowering.kernel.nodes import Accumulate, Assign, Barrier, For, Kind, Let, Stmt, Store, Var
from rune.lowering.kernels import Reduce


def point(frame: Frame, row: Place, i: int, j: int, key: Size) -> Place:
    """The place of a row and a key of a thread."""
    bound = [p.name for p in frame.parts()] + [
        let.name for p in frame.parts() if isinstance(p, Reduce) for let in p.lets
    ]
    names = {name: f"{name}_{i}_{j}" for name in bound}
    if frame.stream.peak is not None:
        names[frame.stream.peak.name] = f"{frame.stream.peak.name}_base_{i}"
    return Place({**row.sizes, frame.key_axis.name: key}, {**row.names, **names})


def values(frame: Frame, parts: Sequence[Let | Reduce], points: Sequence[Sequence[Place]]) -> Iterator[Stmt]:
    """Scalars of every row and key of a thread."""
    flat = [p for row in points for p in row]
    for part in parts:
        if isinstance(part, Let):
            for place in flat:
                yield from place.lets((part,))
        else:
            yield from _dots(frame, part, points)


def _dots(frame: Frame, dot: Reduce, points: Sequence[Sequence[Place]]) -> Iterator[Stmt]:
    """A dot of every row and key of a thread, in one loop."""
    inner: list[Stmt] = []
    for i, row in enumerate(points):
        for j, place in enumerate(row):
            total = place.names[dot.name]
            yield Var(f"{total}_acc", const(0, dot.dtype))
            inner += _summand(frame, dot, place, i, j, f"{total}_acc")
    yield from loops.nest(dot.axes, [Kind.SERIAL] * len(dot.axes), inner)
    for row in points:
        for place in row:
            total = place.names[dot.name]
            yield Let(total, Local(f"{total}_acc", dot.dtype))


def _summand(frame: Frame, dot: Reduce, place: Place, i: int, j: int, total: str) -> list[Stmt]:
    """One product of a dot, its operands from shared memory where they are there."""
    held: dict[Expr, Load] = {}
    for staged, name, count, at in (
        (frame.tile.staged_rows, "rows", frame.tile.rows, frame.row_of(i)),
        (frame.tile.staged_keys, "keys", frame.tile.keys, frame.column_of(j)),
    ):
        for other, operand in staged:
            if other is dot:
                index = dot.axes[0].symbol * (count + 1) + at
                held[operand] = Load(f"{dot.name}_{name}", (index,), operand.dtype)
    assert isinstance(dot.value, Op)
    factors = [held.get(a) or place.expr(a) for a in dot.value.args]
    needed = [let for a in dot.value.args if a not in held for let in slice_of(a, dot.lets)]
    lets = place.lets(dict.fromkeys(needed))
    return [*lets, Accumulate(total, "add", Op("mul", tuple(factors), dot.dtype), contract=True)]


def peaks(frame: Frame, points: Sequence[Sequence[Place]]) -> Iterator[Stmt]:
    """The largest scores with those of the tile, and sums that answer to them."""
    peak = frame.stream.peak
    if peak is None:
        return
    dtype = peak.value.dtype
    tile = frame.scores(f"{peak.name}_scores", dtype)
    for i, row in enumerate(points):
        for j, place in enumerate(row):
            yield Store(tile, frame.cell(frame.row_of(i), frame.column_of(j)), place.expr(peak.value))
    yield Barrier()
    key = dims.symbol("key", 0, frame.keys_here - 1)
    for i in range(len(points)):
        yield Var(f"{peak.name}_top_{i}", Local(frame.peak_name(i), dtype))
    tops = tuple(
        Accumulate(f"{peak.name}_top_{i}", "max", Load(tile, (frame.cell(frame.row_of(i), key),), dtype))
        for i in range(len(points))
    )
    yield For("key", frame.keys_here, Kind.SERIAL, tops)
    for i in range(len(points)):
        yield from _raised(frame, i, dtype)


def _raised(frame: Frame, i: int, dtype: np.dtype) -> Iterator[Stmt]:
    """The new peak of a row, and its sums as they are with it."""
    assert frame.stream.peak is not None
    name = frame.stream.peak.name
    before, after = Local(frame.peak_name(i), dtype), Local(f"{name}_top_{i}", dtype)
    yield Let(f"{name}_base_{i}", base_of(after))
    base = Local(f"{name}_base_{i}", dtype)
    # Before the first score above -inf there is nothing to shrink, and 0 · exp(-base) may be NaN.
    same = Op("or", (is_least(before), equal(before, base)), dtypes.bool_)
    yield from scaled(frame, i, before, base, same, "")
    yield Assign(frame.peak_name(i), after)
