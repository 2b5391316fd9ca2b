"""Build a stream: the threads of a group take a tile of rows through the keys, tile after tile.

The rows of a group lie along one axis of the domain, its keys along the axis that is summed over.

    for each tile of keys
      each thread: some rows by some keys of the scores, in registers
      each thread: the largest of its own scores; all threads of a row: the largest of these
      sums so far are scaled down where the peak has grown; the weights go to shared memory
      each thread: its rows of all sums, by some columns, in registers
    the results that depend on the sums are written

What dots read by row is in shared memory from the start. What they read by key is read ahead while
the threads compute: the keys of the next tile during the sums, factors during the scores.

Invariant: sums have one fixed order; scalars are first added up by each thread for its own keys.
Scores are written to no memory but the group's own.
Source: Dao et al. 2022, arXiv:2205.14135.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.dims import Size
from rune.lowering.build import loops
from rune.lowering.build.conditions import less
from rune.lowering.build.streams.choice import choose_tile
from rune.lowering.build.streams.frame import THREAD, Frame, Place
from rune.lowering.build.streams.results import results
from rune.lowering.build.streams.scores import largest, point, raised, values
from rune.lowering.build.streams.staging import Filling, filling
from rune.lowering.build.streams.sums import added, corrected, gathered, initial, totals, weights
from rune.lowering.build.streams.units import UnitTile
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import Barrier, For, If, Kind, Let, Stmt
from rune.lowering.kernels import Kernel, Statement, Stream


def build_stream(kernel: Kernel, target: Target) -> tuple[Stmt, ...]:
    """The loops of a flat kernel with a stream."""
    (at,) = (n for n, s in enumerate(kernel.body) if isinstance(s, Stream))
    stream, before = kernel.body[at], tuple(s for s in kernel.body[:at] if isinstance(s, Let))
    assert isinstance(stream, Stream)
    assert len(before) == at
    frame = Frame(kernel, stream, choose_tile(kernel, stream, target), before)
    return tuple(_loops(frame, kernel.body[at + 1 :]))


def _loops(frame: Frame, after: Sequence[Statement]) -> list[Stmt]:
    """The loops of the kernel, with the statements after the stream."""
    inside: list[Stmt] = []
    rows: list[Size] = []
    for i in range(frame.tile.thread_rows):
        clamp, row = frame.inside(f"row_{i}", frame.first_row + frame.row_of(i), frame.row_axis, frame.tile.rows)
        inside += clamp
        rows.append(row)
    places = [_row_place(frame, i, row) for i, row in enumerate(rows)]
    for place in places:
        inside += place.lets(frame.before)
    # Part p of a group begins with tile p, and may have none if there are fewer tiles than parts.
    clamp, first = frame.tile_number("first_tile", frame.part, frame.is_even)
    inside += clamp
    for panel_filling in (_rows(frame), _keys(frame, first, "_first")):
        inside += (*panel_filling.reads, *panel_filling.stores)
    inside += initial(frame)
    inside.append(For(frame.rounds.name, frame.rounds.size, Kind.SERIAL, tuple(_tile(frame, places))))
    inside += corrected(frame)
    inside += totals(frame)
    inside += gathered(frame)
    output = tuple(results(frame, after, places))
    # Only the first part has the sums of all parts (`gathered`).
    inside += output if frame.tile.parts == 1 else [If(less(frame.part, 1), output)]
    point = [*frame.group_memory.values(), For(THREAD, frame.tile.threads, Kind.WORKGROUP, tuple(inside))]
    return loops.nest(frame.domain, [Kind.GRID] * len(frame.kernel.domain), point)


def _row_place(frame: Frame, number: int, row: Size) -> Place:
    """The place of a row of a thread."""
    return Place({frame.row_axis.name: row}, {let.name: f"{let.name}_r{number}" for let in frame.before})


def _rows(frame: Frame) -> Filling:
    """The filling of panels that dots read by row, which stay for all tiles."""
    return filling(frame, frame.panels.rows, frame.first_row, {}, "")


def _keys(frame: Frame, number: Size, name: str) -> Filling:
    """The filling of panels that dots read of a tile of keys."""
    return filling(frame, frame.panels.keys, frame.key_of(number), frame.outer_of(number), name)


def _tile(frame: Frame, places: Sequence[Place]) -> list[Stmt]:
    """The statements of the threads for one tile of keys."""
    clamps, points = _points(frame, places)
    factors = filling(frame, frame.panels.factors, frame.first_key, frame.outer, "")
    clamp, following = _following(frame)
    add_up = added(frame, places)
    has_peak = frame.stream.peak is not None
    # After it all threads have read the last tile, and see what is stored of this one.
    body: list[Stmt] = [Barrier(), *frame.number()[0], *clamps, *clamp, *frame.count(), *factors.reads]
    # A fetch writes its panel at once, so it comes after the barrier; a load only fills a register.
    is_fetched = isinstance(frame.tile, UnitTile)
    body += () if add_up or is_fetched else following.reads
    body += values(frame, frame.stream.scores, points)
    body += [*largest(frame, points), *factors.stores, Barrier(), *raised(frame)] if has_peak else ()
    body += values(frame, frame.stream.weights, points)
    body += weights(frame, points)
    if add_up:
        body += [*(() if has_peak else factors.stores), Barrier(), *following.reads, *add_up]
    elif is_fetched:
        body += [Barrier(), *following.reads]
    # The next keys replace these. All threads have read them for scores before the barrier of the
    # sums; one more is needed if the sums read the same panels, or if there are none.
    if following.stores and (frame.panels.are_shared or not add_up):
        body.append(Barrier())
    return [*body, *following.stores]


def _points(frame: Frame, places: Sequence[Place]) -> tuple[list[Stmt], list[list[Place]]]:
    """The statements that clamp the keys of a thread, and the places of its rows and keys."""
    clamps: list[Stmt] = []
    keys: list[Size] = []
    for j in range(frame.tile.thread_keys):
        clamp, key = frame.inside(f"key_{j}", frame.first_key + frame.key_at(j), frame.key_axis, frame.tile.keys)
        clamps += clamp
        keys.append(key)
    return clamps, [[point(frame, place, i, j, key) for j, key in enumerate(keys)] for i, place in enumerate(places)]


def _following(frame: Frame) -> tuple[list[Stmt], Filling]:
    """The filling with the keys of the next tile; after the last tile, with its keys once more."""
    if frame.rounds.size == 1:
        return [], Filling()
    clamp, number = frame.number_after()
    next_keys = _keys(frame, number, "_next")
    return clamp if next_keys.reads or next_keys.stores else [], next_keys
