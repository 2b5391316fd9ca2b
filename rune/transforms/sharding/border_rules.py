"""Rules of borders: the elements of an operation's operands that a part of its result is made of.

    slice          y[i] = x[i * stride + start]
    pad            y[i] = x[(i - low) / (interior + 1)], or the value
    concatenate    y[i] = x[i - offset] of one of the operands
    shear          y[i, k] = x[i * stride + k * dilation], by positions i or by elements k
    reverse        y[i] = x[n - 1 - i]
    dynamic_update_slice at constants: y[i] = u[i - start], or x[i]

Others go by letters: an axis that operand and result share has the same spans in both, and each
element of an axis that is reduced is counted by one device. Elements outside of an operand are
replaced where they would be read.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.ops.arithmetic import select, zero_like
from rune.ops.collectives import pmax, psum
from rune.ops.family import fit
from rune.ops.movement import concatenate, pad, reverse, slice_
from rune.ops.scalars import order_limits
from rune.ops.sliding import shear
from rune.ops.windows import dynamic_update_slice
from rune.records import dataclass
from rune.transforms.programs.call_rules import Params
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.cuts import with_sizes_of
from rune.transforms.sharding.letters import Letters
from rune.transforms.sharding.spans import (
    Span,
    Spans,
    counted_once,
    covering,
    devices_of,
    even_span,
    is_within,
    mirrored,
    sent,
)


@dataclass(frozen=True, slots=True)
class Step:
    """An operation on operands of which the devices have spans.

    types:   of the operands
    starts:  where a window begins, for an operation that has one
    spans:   of the operands, as the devices have them
    letters: of the operation beside indices
    """

    primitive: Primitive
    params: Params
    types: Sequence[ArrayType]
    starts: Sequence[int]
    result: ArrayType
    spans: Sequence[Spans]
    letters: Letters
    region: Region

    def target(self) -> Spans:
        """The spans of the result for which least is sent."""
        axes = range(self.result.ndim)
        near = [self._fitting(axis, spans) for axis, spans in enumerate(_rule(self.primitive).results(self))]
        ranked = [sorted(spans, key=functools.partial(self._cost, axis)) for axis, spans in enumerate(near)]
        # A mesh axis can split only one axis of an array, so that their order decides.
        orders = [*([first, *axes] for first in axes), [*reversed(axes)]]
        targets = [*dict.fromkeys(_first_fitting(ranked, order) for order in orders)]
        return targets[0] if len(targets) == 1 else min(targets, key=self._bytes_sent, default=())

    def _fitting(self, axis: int, near: Sequence[Span | None]) -> list[Span]:
        """The spans that an axis of the result may have."""
        spans = [covering(span, size_of(self.result, axis), self.region) for span in near if span]
        spans += [self._middle(axis, span) for span in spans[1:]]
        # Where a device would have much more than its share, all of the axis is not more.
        return [span for span in spans if span.width <= 3 * span.share]

    def _bytes_sent(self, target: Spans) -> float:
        total = 0.0
        for type, spans, needed in zip(self.types, self.spans, self.operands(target), strict=True):
            sizes = [span.share if span else size_of(type, axis) for axis, span in enumerate(spans)]
            for axis, (a, b) in enumerate(zip(spans, needed, strict=True)):
                elements = sent(a, b, size_of(type, axis), self.region)
                total += type.dtype.itemsize * math.prod(sizes) * elements / (a.share if a else 1)
        return total

    def operands(self, target: Spans) -> list[Spans]:
        """The spans of the operands for a result of these spans."""
        return _rule(self.primitive).operands(self, target)

    def run(self, blocks: Sequence[Value], target: Spans) -> Value:
        """The device's elements of the result, from those of the operands."""
        return _rule(self.primitive).run(self, blocks, target)

    def _middle(self, axis: int, span: Span) -> Span:
        """The span in the middle of the shares, where a stencil is padded or added to its array."""
        shares, size = span.share * devices_of(span, self.region), size_of(self.result, axis)
        return covering(replace(span, first=(size - shares + 1) // 2), size, self.region)

    def _cost(self, axis: int, span: Span) -> tuple[int, int]:
        """The elements that are sent, and how far the span is from the middle."""
        operands = self.operands(tuple(span if n == axis else None for n in range(self.result.ndim)))
        sides = (side for x in zip(self.spans, operands, self.types, strict=True) for side in self._sides(*x))
        elements = sum(sent(*side, self.region) for side in sides if side[1] is not None)
        return elements, abs(span.first - self._middle(axis, span).first)

    @staticmethod
    def _sides(spans: Spans, needed: Spans, type: ArrayType) -> Iterator[tuple[Span | None, Span | None, int]]:
        """For each axis of an operand its span, that which is needed, and its length."""
        return ((a, b, size_of(type, axis)) for axis, (a, b) in enumerate(zip(spans, needed, strict=True)))


def _first_fitting(ranked: Sequence[Sequence[Span]], order: Sequence[int]) -> Spans:
    """For each axis, in this order, the first span whose mesh axes no other axis has."""
    target: dict[int, Span | None] = {}
    for axis in order:
        if axis not in target:
            names = {name for span in target.values() if span for name in span.names}
            target[axis] = next((span for span in ranked[axis] if names.isdisjoint(span.names)), None)
    return tuple(target[axis] for axis in range(len(ranked)))


@dataclass(frozen=True, slots=True)
class _Rule:
    """What an operation needs of its operands for its result.

    results: for each axis of the result, the spans for which some operand stays where it is
    """

    results: Callable[[Step], Sequence[Sequence[Span | None]]]
    operands: Callable[[Step, Spans], list[Spans]]
    run: Callable[[Step, Sequence[Value], Spans], Value]


def has_rule(primitive: Primitive) -> bool:
    """Whether letters say less of an operation than a rule of its own."""
    return primitive in _RULES


def _rule(primitive: Primitive) -> _Rule:
    return _RULES.get(primitive, _BY_LETTERS)


def size_of(type: ArrayType, axis: int) -> int:
    """A size that is known."""
    size = type.shape[axis]
    assert isinstance(size, int)
    return size


# --- slice --------------------------------------------------------------------------------------


def _sliced(span: Span | None, start: int, stride: int, size: int, region: Region) -> list[Span]:
    """The elements of a slice that the devices have already.

    If the stride does not divide the share: the nearest elements to those, and equal parts.
    """
    if span is None:
        return []
    first, end = -((start - span.first) // stride), -((start - span.first - span.width) // stride)
    if span.share % stride == 0:
        return [Span(span.names, span.share // stride, first, end - first)]
    share = -(-span.share // stride)
    return [*dict.fromkeys((even_span(span.names, size, region), Span(span.names, share, min(first, 0), share)))]


def _slice_results(step: Step) -> list[list[Span]]:
    sides = enumerate(zip(step.spans[0], step.params["start"], step.params["stride"], strict=True))
    return [_sliced(*side, size_of(step.result, axis), step.region) for axis, side in sides]


def _before_slice(span: Span | None, start: int, stride: int) -> Span | None:
    if span is None:
        return None
    return Span(span.names, span.share * stride, span.first * stride + start, (span.width - 1) * stride + 1)


def _slice_operands(step: Step, target: Spans) -> list[Spans]:
    return [tuple(map(_before_slice, target, step.params["start"], step.params["stride"]))]


def _slice_run(step: Step, blocks: Sequence[Value], target: Spans) -> Value:
    (block,) = blocks
    start = tuple(low if s is None else 0 for low, s in zip(step.params["start"], target, strict=True))
    ends = zip(step.params["limit"], target, type_of(block).shape, strict=True)
    limit = tuple(high if s is None else size for high, s, size in ends)
    return slice_(block, start=start, limit=limit, stride=step.params["stride"])


# --- pad ----------------------------------------------------------------------------------------


def _pad_results(step: Step) -> list[list[Span | None]]:
    return [[_padded(*axis)] for axis in zip(step.spans[0], step.params["low"], step.params["interior"], strict=True)]


def _padded(span: Span | None, low: int, interior: int) -> Span | None:
    gap = interior + 1
    return span and Span(span.names, span.share * gap, span.first * gap + low, span.width * gap)


def _before_padding(span: Span | None, low: int, interior: int) -> Span | None:
    if span is None:
        return None
    gap = interior + 1
    first, last = -((low - span.first) // gap), (span.first + span.width - 1 - low) // gap
    # A short span may lie in a gap, and is of one element that is not used.
    return Span(span.names, span.share // gap, first, max(last - first + 1, 1))


def _pad_operands(step: Step, target: Spans) -> list[Spans]:
    return [tuple(map(_before_padding, target, step.params["low"], step.params["interior"])), ()]


def _pad_run(step: Step, blocks: Sequence[Value], target: Spans) -> Value:
    block, value = blocks
    low, high, interior = list(step.params["low"]), list(step.params["high"]), step.params["interior"]
    for axis, (span, source) in enumerate(zip(target, step.operands(target)[0], strict=True)):
        if span is None or source is None:
            continue
        gap, size = interior[axis] + 1, size_of(step.types[0], axis)
        mask = is_within(block, axis, source, 0, size, step.region)
        block = select(mask, block, fit(value, type_of(block).shape))
        # The place of the block's first element in the result's part, and what is behind the last.
        low[axis] += source.first * gap - span.first
        high[axis] = span.width - low[axis] - ((source.width - 1) * gap + 1)
    return pad(block, value, low=tuple(low), high=tuple(high), interior=interior)


# --- concatenate --------------------------------------------------------------------------------


def _concatenate_results(step: Step) -> list[list[Span | None]]:
    shifted = [_shifted(step, spans, offset) for spans, offset in zip(step.spans, _offsets(step), strict=True)]
    return [list(column) for column in zip(*shifted, strict=True)]


def _concatenate_operands(step: Step, target: Spans) -> list[Spans]:
    return [_shifted(step, target, -offset) for offset in _offsets(step)]


def _offsets(step: Step) -> list[int]:
    sizes = [size_of(type, step.params["axis"]) for type in step.types]
    return [0, *accumulate(sizes[:-1])]


def _shifted(step: Step, spans: Spans, by: int) -> Spans:
    joined_axis = step.params["axis"]
    return tuple(span.shifted(by) if span and n == joined_axis else span for n, span in enumerate(spans))


def _concatenate_run(step: Step, blocks: Sequence[Value], target: Spans) -> Value:
    axis = step.params["axis"]
    span = target[axis]
    if span is None:
        return concatenate(*blocks, axis=axis)
    result, offsets = blocks[-1], _offsets(step)
    for block, end in zip(blocks[-2::-1], offsets[:0:-1], strict=True):
        result = select(is_within(block, axis, span, span.first, end, step.region), block, result)
    return result


# --- dynamic_update_slice -----------------------------------------------------------------------


def _update_results(step: Step) -> list[list[Span | None]]:
    array, update = step.spans[:2]
    # Updates that all devices have are written by each to its block, as by an index.
    if not any(update):
        return [[]] * step.result.ndim
    sides = zip(array, update, step.starts, strict=True)
    return [[a, b and b.shifted(start)] for a, b, start in sides]


def constant_starts(starts: Sequence[int | None], shape: Shape, window: Shape) -> tuple[int, ...] | None:
    """The indices where a window begins; None if the program computes one, or a size."""
    places: list[int] = []
    for start, size, length in zip(starts, shape, window, strict=True):
        if start is None or not isinstance(size, int) or not isinstance(length, int):
            return None
        places.append(max(0, min(start, size - length)))
    return tuple(places)


def _update_operands(step: Step, target: Spans) -> list[Spans]:
    shifted = tuple(span and span.shifted(-start) for span, start in zip(target, step.starts, strict=True))
    return [target, shifted, *[()] * step.result.ndim]


def _update_run(step: Step, blocks: Sequence[Value], target: Spans) -> Value:
    block, update, *starts = blocks
    places = [zero_like(start) if span else start for start, span in zip(starts, target, strict=True)]
    result = dynamic_update_slice(block, update, *places)
    for axis, (span, start) in enumerate(zip(target, step.starts, strict=True)):
        if span is not None:
            end = start + size_of(step.types[1], axis)
            result = select(is_within(result, axis, span, start, end, step.region), result, block)
    return result


# --- shear --------------------------------------------------------------------------------------


def _slides(step: Step) -> list[tuple[int, int, int, int]]:
    """For each axis with windows: it, that of the elements of a window, stride and dilation."""
    axes = step.params["axes"]
    windows = range(step.result.ndim - len(axes), step.result.ndim)
    return [*zip(axes, windows, step.params["strides"], step.params["dilations"], strict=True)]


def _shear_results(step: Step) -> list[list[Span | None]]:
    near = [[span] for span in step.spans[0]]
    for axis, window, stride, _ in _slides(step):
        span = step.spans[0][axis]
        near[axis] = [*_sliced(span, 0, stride, size_of(step.result, axis), step.region)]
        # The devices may divide the elements of a long window in place of its positions.
        near[window] = [span and even_span(span.names, size_of(step.result, window), step.region)]
    return near


def _shear_operands(step: Step, target: Spans) -> list[Spans]:
    operand = [*target]
    for axis, window, stride, dilation in _slides(step):
        positions, elements = target[axis], target[window]
        if positions is not None:
            before, reach = _before_slice(positions, 0, stride), (size_of(step.result, window) - 1) * dilation
        else:
            before, reach = _before_slice(elements, 0, dilation), (size_of(step.result, axis) - 1) * stride
        operand[axis] = before and replace(before, width=before.width + reach)
    return [tuple(operand)]


def _shear_run(step: Step, blocks: Sequence[Value], target: Spans) -> Value:
    return shear(*blocks, **step.params)


# --- reverse ------------------------------------------------------------------------------------


def _mirror(step: Step, spans: Spans) -> Spans:
    """The spans by the index from the other end."""

    def opposite(axis: int, span: Span | None) -> Span | None:
        if span is None or axis not in step.params["axes"]:
            return span
        others = (devices_of(span, step.region) - 1) * span.share
        return replace(span, first=size_of(step.result, axis) - others - span.first - span.width)

    return tuple(opposite(axis, span) for axis, span in enumerate(spans))


def _reverse_run(step: Step, blocks: Sequence[Value], target: Spans) -> Value:
    (block,) = blocks
    for axis in step.params["axes"]:
        span = target[axis]
        block = reverse(block, axes=(axis,)) if span is None else mirrored(block, axis, span, step.region)
    return block


# --- letters ------------------------------------------------------------------------------------


def _letter_results(step: Step) -> list[list[Span | None]]:
    near: dict[int | None, list[Span | None]] = {}
    for axes, spans, type in zip(step.letters.operands, step.spans, step.types, strict=True):
        for axis, (letter, span) in enumerate(zip(axes, spans, strict=True)):
            if letter is not None:
                steps = _steps(step, letter, type, axis)
                near.setdefault(letter, []).append(span and _of_parts(span, *steps))
    return [near.get(letter, []) for letter in step.letters.results[0]]


def _letter_operands(step: Step, target: Spans) -> list[Spans]:
    by_letter = {**dict(zip(step.letters.results[0], target, strict=True)), **reduced_spans(step, target), None: None}
    operands: list[Spans] = []
    for axes, type in zip(step.letters.operands, step.types, strict=True):
        spans = [by_letter.get(letter) for letter in axes]
        steps = [(1, 1) if letter is None else _steps(step, letter, type, axis) for axis, letter in enumerate(axes)]
        operands.append(tuple(s and _of_parts(s, *reversed(n)) for s, n in zip(spans, steps, strict=True)))
    return operands


def _steps(step: Step, letter: int, type: ArrayType, axis: int) -> tuple[int, int]:
    """How many elements of an operand's axis, and of the result's, a part of a letter has."""
    parts = step.letters.parts.get(letter)
    if parts is None:
        return 1, 1
    return size_of(type, axis) // parts, size_of(step.result, step.letters.results[0].index(letter)) // parts


def _of_parts(span: Span, source: int, target: int) -> Span | None:
    """The span in parts of another size; None if it begins or ends within a part."""
    if any(n % source for n in (span.share, span.first, span.width)):
        return None
    return Span(span.names, *(n // source * target for n in (span.share, span.first, span.width)))


def reduced_spans(step: Step, target: Spans) -> Mapping[int, Span]:
    """The spans of the letters that are reduced, one for each."""
    names = {name for span in target if span for name in span.names}
    reduced: dict[int, Span] = {}
    for axes, spans, type in zip(step.letters.operands, step.spans, step.types, strict=True):
        for axis, (letter, span) in enumerate(zip(axes, spans, strict=True)):
            if letter is None or span is None or letter in reduced or letter not in step.letters.reductions:
                continue
            if names.isdisjoint(span.names):
                reduced[letter] = covering(span, size_of(type, axis), step.region)
                names.update(span.names)
    return reduced


def _letter_run(step: Step, blocks: Sequence[Value], target: Spans) -> Value:
    reduced, reductions = reduced_spans(step, target), step.letters.reductions
    operands = list(blocks)
    for number, (axes, type) in enumerate(zip(step.letters.operands, step.types, strict=True)):
        for axis, letter in enumerate(axes):
            if letter is not None and letter in reduced:
                block, size = operands[number], size_of(type, axis)
                fill = _neutral(block, reductions[letter])
                operands[number] = counted_once(block, axis, reduced[letter], size, fill, step.region)
    shape = tuple(size if s is None else s.width for size, s in zip(step.result.shape, target, strict=True))
    result = step.primitive(*operands, **with_sizes_of(step.primitive, step.params, step.result.with_shape(shape)))
    for letter, span in reduced.items():
        for name in span.names:
            result = reductions[letter](result, axis_name=name)
    return result


def _neutral(block: Value, collective: Primitive) -> Value:
    """The number that changes no sum, maximum or minimum."""
    if collective is psum:
        return zero_like(block)
    least, greatest = order_limits(type_of(block).dtype)
    return literal_like(least if collective is pmax else greatest, block)


_BY_LETTERS = _Rule(_letter_results, _letter_operands, _letter_run)
_RULES: Mapping[Primitive, _Rule] = {
    slice_: _Rule(_slice_results, _slice_operands, _slice_run),
    pad: _Rule(_pad_results, _pad_operands, _pad_run),
    concatenate: _Rule(_concatenate_results, _concatenate_operands, _concatenate_run),
    dynamic_update_slice: _Rule(_update_results, _update_operands, _update_run),
    shear: _Rule(_shear_results, _shear_operands, _shear_run),
    reverse: _Rule(
        lambda step: [[span] for span in _mirror(step, step.spans[0])],
        lambda step, target: [_mirror(step, target)],
        _reverse_run,
    ),
}
