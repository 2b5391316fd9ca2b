"""The moves of bytes that each place of a group makes in a collective.

An operand is rows of rows of bytes, and a collective consists of moves: COPY copies rows of one
operand, SUM adds the same rows of all operands, SHARE adds a part of all operands and gives the sum
to all places, and ZERO has no operand. So native code knows four kinds of moves, and no
collectives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rune.backends.cpu.crew import sums
from rune.backends.cpu.crew.perform import COPY, SHARE, SUM, ZERO
from rune.core.types import ArrayType
from rune.lowering.meetings import CollectiveCall, Params, axis_of
from rune.ops.lane_groups import Groups
from rune.records import dataclass

LINE_BYTES = 64  # of a cache line: two places never write to the same one
EXTREMES = ("psum", "pmax", "pmin")


@dataclass(frozen=True, slots=True)
class Rows:
    """The layout of rows of rows of `bytes`: their numbers, and their distances [B]."""

    bytes: int
    outer: int = 1
    outer_from: int = 0
    outer_to: int = 0
    inner: int = 1
    inner_from: int = 0
    inner_to: int = 0
    origin: int = 0  # of the first row in the operand
    target: int = 0  # and in the result


@dataclass(frozen=True, slots=True)
class Move:
    """One move of a place: from the operands of these places of the group to its own result."""

    kind: int
    sources: tuple[int, ...]
    rows: Rows
    function: int = 0


def is_known(call: CollectiveCall, types: Sequence[ArrayType]) -> bool:
    """Whether moves can do a collective on operands of these types."""
    kind = call.primitive.name
    # Moves are numbers of bytes, which are laid out before the first run.
    if any(t.is_symbolic for t in types):
        return False
    if kind in (*EXTREMES, "psum_scatter"):
        return all(sums.is_known("psum" if kind == "psum_scatter" else kind, t.dtype) for t in types)
    return kind in ("all_gather", "all_to_all", "ppermute")


def moves(call: CollectiveCall, type: ArrayType, place: int, size: int) -> list[Move]:
    """The moves of a place, in a group of this size, for one operand."""
    params = dict(call.params)
    group = next(g for g in _groups(params, size) if place in g)
    all_moves = _in_group(call.primitive.name, params, type, group, group.index(place))
    return [m for m in all_moves if m.rows.bytes and m.rows.outer and m.rows.inner]


def _groups(params: Params, size: int) -> Groups:
    groups = params.get("groups") or (tuple(range(size)),)
    assert isinstance(groups, tuple)
    return groups


def _in_group(kind: str, params: Params, type: ArrayType, group: Sequence[int], place: int) -> Iterator[Move]:
    group, count, shape = tuple(group), len(group), [int(n) for n in type.shape]
    item = type.dtype.itemsize
    if kind in EXTREMES:
        yield _shared(kind, type, group, place)
    elif kind == "psum_scatter":
        # A place needs its own rows of the sum alone, so each adds up its own.
        outer, inner = _around(shape, axis_of(params, "scatter_axis"), item)
        # The operand is [outer, count, inner]; a place gets the sum of its [outer, inner].
        rows = Rows(inner, outer, count * inner, inner, origin=place * inner)
        yield _combined("psum", type, SUM, group, rows)
    elif kind == "all_gather":
        axis = axis_of(params, "axis")
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis:]) * item
        for k, source in enumerate(group):
            yield Move(COPY, (source,), Rows(inner, outer, inner, count * inner, target=k * inner))
    elif kind == "all_to_all":
        rows = _transposed(shape, axis_of(params, "split_axis"), axis_of(params, "concat_axis"), count, item, place)
        for k, source in enumerate(group):
            yield Move(COPY, (source,), replace(rows, target=k * rows.target))
    else:
        permutation = params["permutation"]
        assert isinstance(permutation, tuple)
        sender = {receiver: sender for sender, receiver in permutation}
        # `ppermute` means zeros for a place that receives nothing.
        known = place in sender
        yield Move(COPY if known else ZERO, (sender.get(place, place),), Rows(math.prod(shape) * item))


def bytes_of(type: ArrayType) -> int:
    """The bytes of an array."""
    return math.prod(map(int, type.shape)) * type.dtype.itemsize


def _around(shape: Sequence[int], axis: int, item: int) -> tuple[int, int]:
    """The number of rows before an axis, and the bytes of one index of it."""
    return math.prod(shape[:axis]), math.prod(shape[axis + 1 :]) * item


def _shared(kind: str, type: ArrayType, group: tuple[int, ...], place: int) -> Move:
    """A part of the sum, for all places: full cache lines, about as many as the others have."""
    nbytes = bytes_of(type)
    ends = [nbytes * k // len(group) // LINE_BYTES * LINE_BYTES for k in range(len(group))] + [nbytes]
    begin, end = ends[place], ends[place + 1]
    return _combined(kind, type, SHARE, group, Rows(end - begin, origin=begin, target=begin))


def _combined(kind: str, type: ArrayType, move: int, group: tuple[int, ...], rows: Rows) -> Move:
    return Move(move, group, rows, sums.function(kind, type.dtype, len(group)))


def _transposed(shape: Sequence[int], split: int, concat: int, count: int, item: int, place: int) -> Rows:
    """Rows that one source has for a place. Their `target` is the distance between two sources.

    Shapes: operand [outer, count, inner, bytes] and result [outer, inner, count, bytes], or the
    other way round where the new axis comes first.
    """
    parts = [*shape[:split], *shape[split + 1 :]]
    low, high = sorted((split, concat))
    outer, inner, bytes = math.prod(parts[:low]), math.prod(parts[low:high]), math.prod(parts[high:]) * item
    step, block = inner * bytes, count * inner * bytes
    if split <= concat:
        return Rows(bytes, outer, block, block, inner, bytes, count * bytes, place * step, bytes)
    return Rows(bytes, outer, block, block, inner, count * bytes, bytes, place * bytes, step)
