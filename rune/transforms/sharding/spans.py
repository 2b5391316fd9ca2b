"""Spans: the elements of an axis that each device has, where they are not equal parts of it.

Device d of n along a mesh axis has the elements from d * share + first on, `width` of them.

    x       0 1 2 3 | 4 5 6 7        two devices, share 4, first 0, width 4
    x[1:]   . 0 1 2 | 3 4 5 6        the same memory by the index in the slice: first -1

Elements before the axis or behind it are there so that all devices have arrays of one shape; their
values have no meaning. Neighbours may have the same elements.

Invariant: first <= 0, width >= share, and the last device reaches the end of the axis; so each
           element of the axis is on some device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rune import dtypes
from rune.core.axes import Name
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.ops.arithmetic import add, ge, logical_and, logical_or, lt, mul, select, zero_like
from rune.ops.collectives import axis_index, ppermute
from rune.ops.creation import iota
from rune.ops.family import broadcast, reshape, size_value
from rune.ops.movement import concatenate, pad, slice_
from rune.ops.windows import dynamic_slice
from rune.records import dataclass
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.reshard import gathered


@dataclass(frozen=True, slots=True)
class Span:
    """The elements that each device along a mesh axis has, or needs, of an axis of an array."""

    name: Name
    share: int
    first: int
    width: int

    def shifted(self, by: int) -> Span:
        """The same elements by an index that is larger by so much."""
        return Span(self.name, self.share, self.first + by, self.width)

    def is_even(self, length: int, region: Region) -> bool:
        """Whether they are equal parts of the axis."""
        return self == Span(self.name, self.share, 0, self.share) and self.share * _devices(self, region) == length


Spans = tuple[Span | None, ...]  # None: an axis that every device has whole


def covering(span: Span, length: int, region: Region) -> Span:
    """The shortest span, near to this one, that has all elements of an axis of this length."""
    shares = span.share * _devices(span, region)
    first = 0 if shares == length else min(span.first, 0)
    return Span(span.name, span.share, first, span.share + max(0, length - first - shares))


def _devices(span: Span, region: Region) -> int:
    return region.mesh.shape[span.name]


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


def sent(source: Span | None, target: Span | None, region: Region) -> int:
    """How many elements along the axis a device sends, so that each has the target."""
    if source is None:
        return 0
    devices = _devices(source, region)
    others = (devices - 1) * source.share
    if target is None or not _are_aligned(source, target):
        return others
    return min(others, sum(p.high - p.low for p in _pieces(source, target) if p.hop % devices))


def bytes_to_all(type: ArrayType, spans: Spans, region: Region) -> float:
    """The bytes that a device sends so that all devices have all of an array."""
    sizes = [span.width if span else size for span, size in zip(spans, type.shape, strict=True)]
    devices = math.prod(_devices(span, region) for span in spans if span)
    return (devices - 1) * type.dtype.itemsize * math.prod(size for size in sizes if isinstance(size, int))


def is_exchanged(source: Span | None, target: Span | None, region: Region) -> bool:
    """Whether the devices send borders, and not all that they have."""
    if source is None or target is None or not _are_aligned(source, target):
        return False
    return source == target or sent(source, target, region) < (_devices(source, region) - 1) * source.share


def _are_aligned(source: Span, target: Span) -> bool:
    return (source.name, source.share) == (target.name, target.share)


def exchanged(block: Value, axis: int, source: Span, target: Span, region: Region) -> Value:
    """The target's elements from those of the source. The axis is a ring if its parts are equal."""
    if source == target:
        return block
    parts: list[Value] = []
    for piece in _pieces(source, target):
        part = cropped(block, axis, piece.low, piece.high)
        parts.append(_from_device(part, source, piece.hop, region))
    return parts[0] if len(parts) == 1 else concatenate(*parts, axis=axis)


def _from_device(part: Value, span: Span, hop: int, region: Region) -> Value:
    """What the device has that is so many places further on; the first follows the last."""
    devices = _devices(span, region)
    ring = tuple(((d + hop) % devices, d) for d in range(devices))
    return ppermute(part, permutation=ring, axis_name=span.name) if hop % devices else part


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
    end = (_devices(span, region) - 1) * span.share + span.first + span.width
    low, high = max(0, -span.first), max(0, end - length)
    lows, highs = (tuple(n if a == axis else 0 for a in range(len(shape))) for n in (low, high))
    padded = pad(array, zero_like(array), low=lows, high=highs, interior=(0,) * len(shape))
    start = add(_start(span), _integer(low))
    starts = [start if n == axis else _integer(0) for n in range(len(shape))]
    sizes = tuple(span.width if n == axis else size for n, size in enumerate(shape))
    return dynamic_slice(padded, *starts, sizes=sizes)


def joined(block: Value, axis: int, span: Span, length: int, region: Region) -> Value:
    """The elements of an axis on every device, from those that each has."""
    devices, more = _devices(span, region), span.width - span.share
    all_blocks = gathered(block, axis, span.name, devices)
    shape = type_of(all_blocks).shape
    before, after = shape[:axis], shape[axis + 1 :]
    if more:
        blocks = cropped(reshape(all_blocks, shape=(*before, devices, span.width, *after)), axis + 1, 0, span.share)
        shares = reshape(blocks, shape=(*before, devices * span.share, *after))
        end = devices * span.width
        all_blocks = concatenate(shares, cropped(all_blocks, axis, end - more, end), axis=axis)
    return cropped(all_blocks, axis, -span.first, length - span.first)


def is_within(block: Value, axis: int, span: Span, low: int, high: int) -> Value:
    """Where the index of an element along the axis is at least low and less than high."""
    shape = type_of(block).shape
    index = add(_places(span.width), _start(span))
    return broadcast(logical_and(ge(index, _integer(low)), lt(index, _integer(high))), shape=shape, axes=(axis,))


def counted_once(block: Value, axis: int, span: Span, length: int, fill: Value, region: Region) -> Value:
    """The elements, with `fill` for those outside of the axis or counted by another device.

    Each device counts its first share, and the last all that it has.
    """
    if span.is_even(length, region):
        return block
    mask = is_within(block, axis, span, 0, length)
    if span.width > span.share:
        is_last = ge(axis_index(axis_name=span.name), _integer(_devices(span, region) - 1))
        is_first = lt(_places(span.width), _integer(span.share))
        counted = logical_or(is_first, broadcast(is_last, shape=(span.width,), axes=()))
        mask = logical_and(mask, broadcast(counted, shape=type_of(block).shape, axes=(axis,)))
    return select(mask, block, broadcast(fill, shape=type_of(block).shape, axes=()))


def _places(width: int) -> Value:
    return iota(shape=(width,), axis=0, dtype=np.dtype(dtypes.i32))


def _start(span: Span) -> Value:
    """The index of this device's first element."""
    return add(mul(axis_index(axis_name=span.name), _integer(span.share)), _integer(span.first))


def _integer(number: int) -> Value:
    return size_value(number, np.dtype(dtypes.i32))
