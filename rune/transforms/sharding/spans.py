"""Spans: the elements of an axis that each device has, where they are not equal parts of it.

Device d of n along mesh axes has the elements from d * share + first on, `width` of them.

    x       0 1 2 3 | 4 5 6 7        two devices, share 4, first 0, width 4
    x[1:]   . 0 1 2 | 3 4 5 6        the same memory by the index in the slice: first -1

Elements before the axis or behind it are there so that all devices have arrays of one shape; their
values have no meaning. Neighbours may have the same elements.

Invariant: first <= 0, width >= share, and the last device reaches the end of the axis; so each
           element of the axis is on some device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from rune import dtypes
from rune.core.axes import Name
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.ops.arithmetic import add, ge, logical_and, logical_or, lt, mul, select, zero_like
from rune.ops.collectives import ppermute
from rune.ops.creation import iota
from rune.ops.family import broadcast, reshape, size_value
from rune.ops.movement import concatenate, pad, reverse, slice_
from rune.ops.windows import dynamic_slice
from rune.records import dataclass
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.reshard import device_number, gathered
from rune.transforms.sharding.rounds import Rounds, rounds
from rune.transforms.sharding.span import Span, devices_of

Spans = tuple[Span | None, ...]  # None: an axis that every device has whole


def covering(span: Span, length: int, region: Region) -> Span:
    """The shortest span, near to this one, that has all elements of an axis of this length."""
    shares = span.share * devices_of(span, region)
    first = 0 if shares == length else min(span.first, 0)
    return Span(span.names, span.share, first, span.share + max(0, length - first - shares))


def even_span(names: tuple[Name, ...], length: int, region: Region) -> Span:
    """The span of parts that are equal but for the last ones, which may reach behind the axis."""
    share = -(-length // region.size(names))
    return Span(names, share, 0, share)


# --- exchanges ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    """The elements low to high of the window of the device that is `hop` places further on."""

    hop: int
    low: int
    high: int


def _pieces(source: Span, target: Span) -> Iterator[_Piece]:
    """The pieces of a target in order; where several devices have one, the nearest sends it."""
    place, end, share = target.first - source.first, target.first - source.first + target.width, source.share
    while place < end:
        # What is in front is in the first share of a window, what is behind in its last.
        hop = place // share if place < 0 else 0 if place < source.width else (place - source.width) // share + 1
        piece_end = min((hop + 1) * share if hop < 0 else source.width + hop * share, end)
        yield _Piece(hop, place - hop * share, piece_end - hop * share)
        place = piece_end


def sent(source: Span | None, target: Span | None, length: int, region: Region) -> int:
    """How many elements a device sends, so that each has the target, on an axis of this length."""
    if source is None:
        return 0
    devices = devices_of(source, region)
    others = (devices - 1) * source.share
    if target is None or source.names != target.names:
        return others
    plan = _plan(source, target, length, region)
    return min(others, plan.sent if isinstance(plan, Rounds) else _elements(plan, devices))


def _plan(source: Span, target: Span, length: int, region: Region) -> Rounds | Sequence[_Piece]:
    """How the target is exchanged: in rounds, or with all devices sending alike around a ring."""
    devices = devices_of(source, region)
    pieces = [*_pieces(source, _aligned(source, target, region))]
    plan = None if source.share == target.share else rounds(source, target, length, devices)
    if plan is None:
        return pieces
    messages = sum(p.hop % devices != 0 for p in pieces)
    # A message has a price of its own, so that a few bytes less are not worth another one.
    return plan if plan.sent <= _elements(pieces, devices) and len(plan.pairs) <= messages else pieces


def _elements(pieces: Sequence[_Piece], devices: int) -> int:
    """How many elements of these pieces are on other devices."""
    return sum(p.high - p.low for p in pieces if p.hop % devices)


def bytes_to_all(type: ArrayType, spans: Spans, region: Region) -> float:
    """The bytes that a device sends so that all devices have all of an array."""
    sizes = [span.width if span else size for span, size in zip(spans, type.shape, strict=True)]
    devices = math.prod(devices_of(span, region) for span in spans if span)
    return (devices - 1) * type.dtype.itemsize * math.prod(size for size in sizes if isinstance(size, int))


def is_exchanged(source: Span | None, target: Span | None, length: int, region: Region) -> bool:
    """Whether the devices send borders, and not all that they have."""
    if source is None or target is None or source.names != target.names:
        return False
    return source == target or sent(source, target, length, region) < (devices_of(source, region) - 1) * source.share


def _aligned(source: Span, target: Span, region: Region) -> Span:
    """The span with the share of the source in which each device has its elements of the target."""
    last = (devices_of(source, region) - 1) * (target.share - source.share)
    return Span(source.names, source.share, target.first + min(0, last), target.width + abs(last))


def exchanged(block: Value, axis: int, source: Span, target: Span, length: int, region: Region) -> Value:
    """The target's elements from those of the source, on an axis of this length.

    With the same share the axis is a ring if its parts are equal.
    """
    if source == target:
        return block
    plan = _plan(source, target, length, region)
    if isinstance(plan, Rounds):
        return _in_rounds(block, axis, source, plan, target.width, region)
    if source.share != target.share:
        # Each needs another part of its neighbours' elements, and gets what any of them needs.
        wide = _aligned(source, target, region)
        step = _integer(target.share - source.share)
        start = add(mul(_number(source, region), step), _integer(target.first - wide.first))
        return _window_at(exchanged(block, axis, source, wide, length, region), axis, start, target.width)
    parts: list[Value] = []
    for piece in plan:
        part = cropped(block, axis, piece.low, piece.high)
        parts.append(_from_device(part, source, piece.hop, region))
    return parts[0] if len(parts) == 1 else concatenate(*parts, axis=axis)


def _in_rounds(block: Value, axis: int, source: Span, plan: Rounds, width: int, region: Region) -> Value:
    """The elements that the rounds bring, with those that the device has."""
    parts = [block]
    for pairs, starts in zip(plan.pairs, plan.starts, strict=True):
        message = _window_at(block, axis, _of_device(starts, source, region), plan.size)
        parts.append(_permuted(message, source, pairs))
    together = block if len(parts) == 1 else concatenate(*parts, axis=axis)
    chunks = [_window_at(together, axis, _of_device(starts, source, region), plan.size) for starts in plan.chunks]
    return cropped(chunks[0] if len(chunks) == 1 else concatenate(*chunks, axis=axis), axis, 0, width)


def _of_device(numbers: Sequence[int], span: Span, region: Region) -> Value:
    """This device's number."""
    if len(set(numbers)) == 1:
        return _integer(numbers[0])
    table = np.array(numbers, dtypes.i32)
    return reshape(dynamic_slice(table, _number(span, region), sizes=(1,)), shape=())


def _from_device(part: Value, span: Span, hop: int, region: Region) -> Value:
    """What the device has that is so many places further on; the first follows the last."""
    devices = devices_of(span, region)
    ring = tuple(((d + hop) % devices, d) for d in range(devices))
    return _permuted(part, span, ring) if hop % devices else part


def mirrored(block: Value, axis: int, span: Span, region: Region) -> Value:
    """The elements in the opposite order, on the device that is as far from the other end."""
    devices = devices_of(span, region)
    opposite = tuple((devices - 1 - d, d) for d in range(devices))
    return _permuted(reverse(block, axes=(axis,)), span, opposite)


def _permuted(part: Value, span: Span, permutation: tuple[tuple[int, int], ...]) -> Value:
    names = span.names
    return ppermute(part, permutation=permutation, axis_name=names[0] if len(names) == 1 else names)


# --- windows of one device ----------------------------------------------------------------------


def cropped(block: Value, axis: int, low: int, high: int) -> Value:
    """The elements low to high along an axis."""
    shape = type_of(block).shape
    if (low, high) == (0, shape[axis]):
        return block
    start = tuple(low if n == axis else 0 for n in range(len(shape)))
    limit = tuple(high if n == axis else size for n, size in enumerate(shape))
    return slice_(block, start=start, limit=limit, stride=(1,) * len(shape))


def part_of(array: Value, axis: int, span: Span, region: Region) -> Value:
    """This device's elements of an axis that it has whole; zeros where the axis has none."""
    shape = type_of(array).shape
    length = shape[axis]
    assert isinstance(length, int)
    end = (devices_of(span, region) - 1) * span.share + span.first + span.width
    low, high = max(0, -span.first), max(0, end - length)
    lows, highs = (tuple(n if a == axis else 0 for a in range(len(shape))) for n in (low, high))
    padded = pad(array, zero_like(array), low=lows, high=highs, interior=(0,) * len(shape))
    return _window_at(padded, axis, add(_start(span, region), _integer(low)), span.width)


def _window_at(block: Value, axis: int, start: Value, width: int) -> Value:
    shape = type_of(block).shape
    starts = [start if n == axis else _integer(0) for n in range(len(shape))]
    return dynamic_slice(block, *starts, sizes=tuple(width if n == axis else size for n, size in enumerate(shape)))


def joined(block: Value, axis: int, span: Span, length: int, region: Region) -> Value:
    """The elements of an axis on every device, from those that each has."""
    devices, more = devices_of(span, region), span.width - span.share
    all_blocks = block
    for name in reversed(span.names):
        all_blocks = gathered(all_blocks, axis, name, region.mesh.shape[name])
    shape = type_of(all_blocks).shape
    before, after = shape[:axis], shape[axis + 1 :]
    if more:
        blocks = cropped(reshape(all_blocks, shape=(*before, devices, span.width, *after)), axis + 1, 0, span.share)
        shares = reshape(blocks, shape=(*before, devices * span.share, *after))
        end = devices * span.width
        all_blocks = concatenate(shares, cropped(all_blocks, axis, end - more, end), axis=axis)
    return cropped(all_blocks, axis, -span.first, length - span.first)


def is_within(block: Value, axis: int, span: Span, low: int, high: int, region: Region) -> Value:
    """Where the index of an element along the axis is at least low and less than high."""
    shape = type_of(block).shape
    index = add(_places(span.width), _start(span, region))
    return broadcast(logical_and(ge(index, _integer(low)), lt(index, _integer(high))), shape=shape, axes=(axis,))


def counted_once(block: Value, axis: int, span: Span, length: int, fill: Value, region: Region) -> Value:
    """The elements, with `fill` for those outside of the axis or counted by another device.

    Each device counts its first share, and the last all that it has.
    """
    if span.is_even(length, region):
        return block
    mask = is_within(block, axis, span, 0, length, region)
    if span.width > span.share:
        is_last = ge(_number(span, region), _integer(devices_of(span, region) - 1))
        is_first = lt(_places(span.width), _integer(span.share))
        counted = logical_or(is_first, broadcast(is_last, shape=(span.width,), axes=()))
        mask = logical_and(mask, broadcast(counted, shape=type_of(block).shape, axes=(axis,)))
    return select(mask, block, broadcast(fill, shape=type_of(block).shape, axes=()))


def _places(width: int) -> Value:
    return iota(shape=(width,), axis=0, dtype=np.dtype(dtypes.i32))


def _start(span: Span, region: Region) -> Value:
    """The index of this device's first element."""
    return add(mul(_number(span, region), _integer(span.share)), _integer(span.first))


def _number(span: Span, region: Region) -> Value:
    return device_number(span.names, region.mesh, np.dtype(dtypes.i32))


def _integer(number: int) -> Value:
    return size_value(number, np.dtype(dtypes.i32))
