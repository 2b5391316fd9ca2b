"""Build a stream: the threads of a group take a tile of rows through the keys, tile after tile.

The rows of a group lie along one axis of the domain, its keys along the axis that is summed over.

    for each tile of keys
      each thread: some rows by some keys of the scores, in registers
      each thread: the largest score of its rows, as the tile has them in shared memory
      what was summed up is made smaller where the peak has grown; the weights go to shared memory
      each thread: its rows of all sums, by some columns, in registers
    what is made of the sums is written

What a score's dot reads by row lies in shared memory from the start, what it reads by key is put
there tile by tile: neighbouring threads then read neighbours, whichever way it lies.

Invariant: sums are made in one fixed order. No score is written to memory but a group's own.
Source: Dao et al. 2022, arXiv:2205.14135.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rune import dims, dtypes
from rune.dims import Dim, Size
from rune.lowering.build import loops
from rune.lowering.build.conditions import less
from rune.lowering.build.streams.frame import THREAD, Frame, Place
from rune.lowering.build.streams.results import results
from rune.lowering.build.streams.scores import peaks, point, values
from rune.lowering.build.streams.staging import staged_keys, staged_rows
from rune.lowering.build.streams.sums import added, corrected, initial, weights
from rune.lowering.build.streams.tile import Tile, choose_tile, names_needed, slice_of
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Cast, Expr, Load, Local, Op, const, of_size
from rune.lowering.kernel.nodes import (
    Accumulate,
    AddressSpace,
    Alloc,
    Assign,
    Barrier,
    For,
    If,
    Kind,
    Let,
    Stmt,
    Store,
    Var,
)
from rune.lowering.kernel.rewrite import map_expr, rename, replace_symbols
from rune.lowering.kernels import Axis, Kernel, Statement, Stream


def build_stream(kernel: Kernel, target: Target) -> tuple[Stmt, ...]:
    """The loops of a flat kernel with a stream."""
    (at,) = (n for n, s in enumerate(kernel.body) if isinstance(s, Stream))
    stream, before = kernel.body[at], tuple(s for s in kernel.body[:at] if isinstance(s, Let))
    assert isinstance(stream, Stream)
    assert len(before) == at
    frame = Frame(kernel, stream, choose_tile(kernel, stream, target), before)
    return tuple(_loops(frame, kernel.body[at + 1 :]))


def _loops(frame: Frame, after: Sequence[Statement]) -> list[Stmt]:
    """The loops of the kernel, with the statements behind the stream."""
    inside: list[Stmt] = []
    rows: list[Size] = []
    for i in range(frame.tile.thread_rows):
        clamp, row = frame.inside(f"row_{i}", frame.first_row + frame.row_of(i), frame.row_axis, frame.tile.rows)
        inside += clamp
        rows.append(row)
    places = [_row_place(frame, i, row) for i, row in enumerate(rows)]
    for place in places:
        inside += place.lets(frame.before)
    inside += staged_rows(frame)
    if frame.tile.staged_rows and not frame.tile.staged_keys:
        inside.append(Barrier())
    inside += initial(frame)
    inside += _tiles(frame, places)
    inside += corrected(frame)
    inside += results(frame, after, places)
    point = [*frame.shared.values(), For(THREAD, frame.tile.threads, Kind.WORKGROUP, tuple(inside))]
    return loops.nest(frame.domain, [Kind.GRID] * len(frame.kernel.domain), point)


def _row_place(frame: Frame, number: int, row: Size) -> Place:
    """The place of a row of a thread."""
    return Place({frame.row_axis.name: row}, {let.name: f"{let.name}_r{number}" for let in frame.before})


def _tiles(frame: Frame, places: Sequence[Place]) -> list[Stmt]:
    """The loop over tiles of keys, within those over the other axes of the stream."""
    body: list[Stmt] = []
    if frame.tile.staged_keys:
        body += [*staged_keys(frame), Barrier()]
    elif frame.stream.peak is None:
        # Weights are stored again while other threads may still add those of the last tile.
        body.append(Barrier())
    keys: list[Size] = []
    for j in range(frame.tile.thread_keys):
        clamp, key = frame.inside(f"key_{j}", frame.first_key + frame.column_of(j), frame.key_axis, frame.tile.keys)
        body += clamp
        keys.append(key)
    body += frame.count()
    points = [[point(frame, places[i], i, j, key) for j, key in enumerate(keys)] for i in range(len(places))]
    body += values(frame, frame.stream.scores, points)
    body += peaks(frame, points)
    body += values(frame, frame.stream.weights, points)
    body += weights(frame, points)
    body.append(Barrier())
    body.append(added(frame, places))
    outer = frame.stream.axes[:-1]
    count = -(-frame.key_axis.size // frame.tile.keys)
    nest = loops.nest([*outer, Axis(frame.tile_name, count)], [Kind.SERIAL] * (1 + len(outer)), body)
    return nest
