"""Rules of borders: the elements of an operation's operands that a part of its result is made of.

    slice          y[i] = x[i * stride + start]
    pad            y[i] = x[(i - low) / (interior + 1)], or the value
    concatenate    y[i] = x[i - offset] of one of the operands

Others go by letters: an axis that operand and result share has the same spans in both, and each
element of an axis that is reduced is counted by one device. Elements outside of an operand are
replaced where they would be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.ops.arithmetic import select, zero_like
from rune.ops.collectives import pmax, psum
from rune.ops.family import fit
from rune.ops.movement import concatenate, pad, slice_
from rune.ops.scalars import order_limits
from rune.records import dataclass
from rune.transforms.programs.call_rules import Params
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.cuts import with_sizes_of
from rune.transforms.sharding.letters import Letters
from rune.transforms.sharding.spans import Span, Spans, counted_once, covering, is_within, sent


@dataclass(frozen=True, slots=True)
class Step:
    """An operation on operands of which the devices have spans.

    types:   of the operands
    spans:   of the operands, as the devices have them
    letters: of the operation beside indices
    """

    primitive: Primitive
    params: Params
    types: Sequence[ArrayType]
    result: ArrayType
    spans: Sequence[Spans]
    letters: Letters
    region: Region

    def target(self) -> Spans:
        """The spans of the result for which least is sent."""
        spans: list[Span | None] = []
        for axis, near in enumerate(_rule(self.primitive).results(self)):
            names = {span.name for span in spans if span}
            # A mesh axis can split only one axis of an array.
            fitting = [self._covering(axis, s) for s in near if s is not None and s.name not in names]
            fitting += [self._middle(axis, span) for span in fitting[1:]]
            # Where a device would have much more than its share, all of the axis is not more.
            fitting = [span for span in fitting if span.width <= 2 * span.share]
            spans.append(min(fitting, key=lambda span, axis=axis: self._cost(axis, span), default=None))
        return tuple(spans)

    def operands(self, target: Spans) -> list[Spans]:
        """The spans of the operands for a result of these spans."""
        return _rule(self.primitive).operands(self, target)

    def run(self, blocks: Sequence[Value], target: Spans) -> Value:
        """The device's elements of the result, from those of the operands."""
        return _rule(self.primitive).run(self, blocks, target)

    def _covering(self, axis: int, span: Span) -> Span:
        return covering(span, size_of(self.result, axis), self.region)

    def _middle(self, axis: int, span: Span) -> Span:
        """The span in the middle of the shares, where a stencil is padded or added to its array."""
        shares, size = span.share * self.region.mesh.shape[span.name], size_of(self.result, axis)
        return self._covering(axis, replace(span, first=(size - shares + 1) // 2))

    def _cost(self, axis: int, span: Span) -> tuple[int, int]:
        """The elements that are sent, and how far the span is from the middle."""
        operands = self.operands(tuple(span if n == axis else None for n in range(self.result.ndim)))
        pairs = (pair for sides in zip(self.spans, operands, strict=True) for pair in zip(*sides, strict=True))
        elements = sum(sent(source, needed, self.region) for source, needed in pairs if needed is not None)
        return elements, abs(span.first - self._middle(axis, span).first)


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


def _sliced(span: Span | None, start: int, stride: int) -> Span | None:
    """The elements of a slice that the devices have."""
    if span is None or span.share % stride:
        return None
    first, end = -((start - span.first) // stride), -((start - span.first - span.width) // stride)
    return Span(span.name, span.share // stride, first, end - first)


def _slice_results(step: Step) -> list[list[Span | None]]:
    return [[span] for span in map(_sliced, step.spans[0], step.params["start"], step.params["stride"])]


def _before_slice(span: Span | None, start: int, stride: int) -> Span | None:
    if span is None:
        return None
    return Span(span.name, span.share * stride, span.first * stride + start, (span.width - 1) * stride + 1)


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
    return span and Span(span.name, span.share * gap, span.first * gap + low, span.width * gap)


def _before_padding(span: Span | None, low: int, interior: int) -> Span | None:
    if span is None:
        return None
    gap = interior + 1
    first, last = -((low - span.first) // gap), (span.first + span.width - 1 - low) // gap
    # A short span may lie in a gap, and is of one element that is not used.
    return Span(span.name, span.share // gap, first, max(last - first + 1, 1))


def _pad_operands(step: Step, target: Spans) -> list[Spans]:
    return [tuple(map(_before_padding, target, step.params["low"], step.params["interior"])), ()]


def _pad_run(step: Step, blocks: Sequence[Value], target: Spans) -> Value:
    block, value = blocks
    low, high, interior = list(step.params["low"]), list(step.params["high"]), step.params["interior"]
    for axis, (span, source) in enumerate(zip(target, step.operands(target)[0], strict=True)):
        if span is None or source is None:
            continue
        gap, size = interior[axis] + 1, size_of(step.types[0], axis)
        mask = is_within(block, axis, source, 0, size)
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
        result = select(is_within(block, axis, span, span.first, end), block, result)
    return result


# --- letters ------------------------------------------------------------------------------------


def _letter_results(step: Step) -> list[list[Span | None]]:
    near: dict[int | None, list[Span | None]] = {}
    for axes, spans in zip(step.letters.operands, step.spans, strict=True):
        for letter, span in zip(axes, spans, strict=True):
            if letter is not None and letter not in step.letters.parts:
                near.setdefault(letter, []).append(span)
    return [near.get(letter, []) for letter in step.letters.results[0]]


def _letter_operands(step: Step, target: Spans) -> list[Spans]:
    by_letter = {**dict(zip(step.letters.results[0], target, strict=True)), **reduced_spans(step, target), None: None}
    return [tuple(by_letter.get(letter) for letter in axes) for axes in step.letters.operands]


def reduced_spans(step: Step, target: Spans) -> Mapping[int, Span]:
    """The spans of the letters that are reduced, one for each."""
    names = {span.name for span in target if span}
    reduced: dict[int, Span] = {}
    for axes, spans, type in zip(step.letters.operands, step.spans, step.types, strict=True):
        for axis, (letter, span) in enumerate(zip(axes, spans, strict=True)):
            if letter is None or span is None or letter in reduced or letter not in step.letters.reductions:
                continue
            if span.name not in names:
                reduced[letter] = covering(span, size_of(type, axis), step.region)
                names.add(span.name)
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
        result = reductions[letter](result, axis_name=span.name)
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
}
