"""Borders: operations on neighbours send what lies at the ends of blocks, and not the array.

    x[1:] - x[:-1]      each device sends the first element of its block to the one before it
    pad, concatenate    likewise

The devices do not divide axes like that of x[1:]; they have spans of them (spans.py), and a slice
moves nothing. Where operands have different spans, one is exchanged. A reader that knows nothing of
spans has the axis joined, on every device.

Invariant: never wrong and never refused: what neighbours cannot send for less is gathered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from rune import dtypes
from rune.core.axes import Name
from rune.core.interpreter import type_of, use
from rune.core.lower import Bitcast, Contraction, Convert, Cumulative, Parts, Reduction, Scalar, View
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.ops.indexing import gather
from rune.ops.movement import concatenate, pad, slice_
from rune.ops.windows import dynamic_slice, dynamic_update_slice
from rune.records import dataclass
from rune.transforms.programs.call_rules import Params
from rune.transforms.sharding.block import Block, Computed, Layouts, Outside
from rune.transforms.sharding.border_rules import Step, constant_starts, has_rule, reduced_spans, size_of
from rune.transforms.sharding.letters import Letters, letters_beside_indices
from rune.transforms.sharding.reshard import uncut
from rune.transforms.sharding.spans import (
    Span,
    Spans,
    bytes_to_all,
    covering,
    devices_of,
    even_span,
    exchanged,
    is_exchanged,
    part_of,
    sent,
)

_KINDS = Scalar | Convert | Bitcast | Parts | View | Reduction | Contraction | Cumulative
# Each element of a result is of one element of each operand, unless a contraction has sums.
_OF_ELEMENTS = Scalar | Convert | Bitcast | View | Contraction
MOST_LINKS = 8  # as many as between the products of a convolution's gradient and its windows


def bordered(local: Layouts, primitive: Primitive, args: Sequence[Value], params: Params) -> Block | None:
    """The result of an operation on neighbours along an axis that is split; None for others."""
    # Indices that are computed outside of an axis would be out of bounds.
    if not isinstance(primitive.lower, _KINDS) or primitive is gather or not local.region.has_spans:
        return None
    if primitive is dynamic_slice:
        return _at_constants(local, args, params["sizes"])
    blocks = [a for a in args if local.owns(a)]
    if primitive is slice_ and blocks and isinstance(blocks[0].source, Outside):
        return _from_outside(local, blocks[0].source, params)
    if not any(b.spans or (has_rule(primitive) and any(b.layout)) for b in blocks):
        return None
    step = _step(local, primitive, args, params)
    if step is None:
        return None
    ring = _ring(local, step, args) if primitive is concatenate else None
    if ring is not None:
        return ring
    if not any(b.spans for b in blocks) and not _is_along_cut(step):
        return None
    target = step.target()
    if not any(target) and not reduced_spans(step, target):
        return None
    if primitive is slice_ and not _is_most(step, target):
        return None
    operands = [_window(local, a, s) for a, s in zip(args, step.operands(target), strict=True)]
    operation = Computed(primitive, args, params, step.letters)
    return _block(local, operation, step.result, step.run(operands, target), target)


def _at_constants(local: Layouts, args: Sequence[Value], sizes: Shape) -> Block | None:
    """A window whose starts are constants, as a slice; None for others."""
    starts = constant_starts([*map(_constant, args[1:])], type_of(args[0]).shape, sizes)
    if starts is None:
        return None
    limits = (start + size for start, size in zip(starts, sizes, strict=True))
    params = {"start": starts, "limit": tuple(limits), "stride": (1,) * len(starts)}
    return bordered(local, slice_, args[:1], params)


def _ring(local: Layouts, step: Step, args: Sequence[Value]) -> Block | None:
    """A concatenation of parts that follow each other on the ring of one array: a part of the ring.

    So the borders of an array that is rolled, or padded by its other end, are sent once.
    """
    axis = step.params["axis"]
    parts = [_part(local, a, axis) for a in args]
    array, start, _ = parts[0]
    if array is None or any(a is not array for a, *_ in parts):
        return None
    if array.type.is_symbolic:
        return None
    size, source = size_of(array.type, axis), _spans(local, array)[axis]
    if any((low - high) % size for (*_, high), (_, low, _) in pairwise(parts)):
        return None
    if source is None or not source.is_even(size, local.region):
        return None
    # Where the result begins on the ring, counted in the shorter direction.
    first = start - size if 2 * start > size else start
    span = covering(source.shifted(-first), size_of(step.result, axis), local.region)
    if span.width > 3 * span.share or not is_exchanged(source, span.shifted(first), size, local.region):
        return None
    target = [*_spans(local, array)]
    target[axis] = span
    needed = tuple(span.shifted(first) if n == axis else s for n, s in enumerate(target))
    operation = Computed(concatenate, args, step.params, step.letters)
    return _block(local, operation, step.result, _window(local, array, needed), tuple(target))


def _part(local: Layouts, value: Value, axis: int) -> tuple[Block | None, int, int]:
    """The array of which a value is a part along one axis, and the bounds of the part."""
    if not local.owns(value):
        return None, 0, 0
    if value.operation is None or value.operation.primitive is not slice_:
        return value, 0, size_of(value.type, axis)
    (array,), params = value.operation.args, value.operation.params
    sides = zip(params["start"], params["limit"], params["stride"], type_of(array).shape, strict=True)
    is_part = all(side == (0, side[3], 1, side[3]) for n, side in enumerate(sides) if n != axis)
    if not local.owns(array) or params["stride"][axis] != 1 or not is_part:
        return value, 0, size_of(value.type, axis)
    return array, params["start"][axis], params["limit"][axis]


def _from_outside(local: Layouts, source: Outside, params: Params) -> Block | None:
    """A slice of what a loop reads, cut outside of it, so that its borders are sent there, once."""
    assert source.interpreter.parent is not None
    with use(source.interpreter.parent):
        block = bordered(source.interpreter, slice_, [source.block], params)
    if block is None:
        return None
    return block.within(local, replace(source, block=block))


def _step(
    local: Layouts, primitive: Primitive, args: Sequence[Value], params: Params, letters: Letters | None = None
) -> Step | None:
    """The operation with the spans of its operands; None if it cannot be done by spans.

    letters: beside indices, if they are known
    """
    types = [*map(type_of, args)]
    result = primitive.type_rule(*types, **params)
    if any(t.is_symbolic or t.dtype in dtypes.KEYS for t in (*types, result)):
        return None
    # Indices are of 32 bits, also those behind an axis.
    if not all(0 < size_of(t, axis) < 2**30 for t in (*types, result) for axis in range(t.ndim)):
        return None
    letters = letters or letters_beside_indices(primitive, types, params)
    if letters is None:
        return None
    starts: tuple[int, ...] | None = ()
    if primitive is dynamic_update_slice:
        starts = constant_starts([*map(_constant, args[2:])], types[0].shape, types[1].shape)
    if starts is None:
        return None
    return Step(primitive, params, types, starts, result, [_spans(local, a) for a in args], letters, local.region)


def _constant(value: Value) -> int | None:
    """The number of a constant of rank 0; None for other values."""
    is_integer = isinstance(value, np.ndarray | np.generic | int) and type_of(value).dtype in dtypes.INTEGER
    return int(value) if is_integer and not type_of(value).shape else None  # type: ignore[arg-type]


def _is_along_cut(step: Step) -> bool:
    """Whether an operand is split along an axis that letters leave whole."""
    axes = zip(step.letters.operands, step.spans, strict=True)
    return any(letter is None and span for letters, spans in axes for letter, span in zip(letters, spans, strict=True))


def _is_most(step: Step, target: Spans) -> bool:
    """Whether a slice has so much of each axis that a sum of its elements would send no less.

    Of n elements a sum sends 2 n (1 - 1 / devices); shares of them are gathered, if all are wanted.
    """
    (needed,) = step.operands(target)
    sides = zip(step.spans[0], needed, target, step.types[0].shape, step.result.shape, strict=True)
    for number, (a, b, span, size, n) in enumerate(sides):
        if a is None or not isinstance(n, int) or not isinstance(size, int):
            continue
        if b is None or span is None or 2 * n * step.params["stride"][number] < size:
            return False
        devices, elements = devices_of(a, step.region), sent(a, b, size, step.region)
        if devices * (elements + (devices - 1) * span.share) > 2 * n * (devices - 1):
            return False
    return True


def _spans(local: Layouts, value: Value) -> Spans:
    """The elements of a value that the devices have."""
    type = type_of(value)
    if not local.owns(value):
        return (None,) * type.ndim
    return value.spans or tuple(_equal_parts(local, type, axis, names) for axis, names in enumerate(value.layout))


def _equal_parts(local: Layouts, type: ArrayType, axis: int, names: tuple[Name, ...]) -> Span | None:
    return even_span(names, size_of(type, axis), local.region) if names else None


def _block(local: Layouts, operation: Computed, type: ArrayType, value: Value, target: Spans) -> Block:
    """The block of a result of which the devices have these spans."""
    region, args = local.region, operation.args
    layout = tuple(_names_of_parts(local, s, size_of(type, axis)) for axis, s in enumerate(target))
    joined_bytes = bytes_to_all(type, target, region)
    remade_bytes = sum(_bytes_to_all(local, a) for a in {id(a): a for a in args if local.owns(a)}.values())
    # What was only moved costs nothing to move again, and its operand may have been gathered.
    is_remade = remade_bytes < joined_bytes or (
        remade_bytes == joined_bytes and isinstance(operation.primitive.lower, View)
    )
    source, bytes_sent = (operation, remade_bytes) if is_remade else (None, joined_bytes)
    if all(s is None or s.is_even(size_of(type, axis), region) for axis, s in enumerate(target)):
        return Block(local, value, type, layout, source, (), bytes_sent, operation)
    if all(names for s, names in zip(target, layout, strict=True) if s):
        return Block(local, value, type, layout, None, target, joined_bytes, operation)
    return Block(local, value, type, uncut(type.ndim) if is_remade else layout, source, target, bytes_sent, operation)


def _names_of_parts(local: Layouts, span: Span | None, size: int) -> tuple[Name, ...]:
    """The mesh axes that split an axis in equal parts, if devices can exchange a span for these."""
    if span is None or size % devices_of(span, local.region):
        return ()
    parts = even_span(span.names, size, local.region)
    return span.names if is_exchanged(span, parts, size, local.region) else ()


def _bytes_to_all(local: Layouts, block: Block) -> float:
    """The bytes that a device sends so that all devices have all of a block."""
    if uncut(block.type.ndim) in block.copies:
        return 0.0
    total = block.bytes_to_all if block.spans else bytes_to_all(block.type, _spans(local, block), local.region)
    return local.operand(block).often * total


@dataclass(frozen=True, slots=True)
class _Link:
    """An operation of which one operand is split, and the spans of its result.

    number: of that operand
    """

    step: Step
    args: Sequence[Value]
    number: int
    target: Spans

    @property
    def operand(self) -> tuple[Value, Spans]:
        """The operand that is split, and its spans for the result."""
        return self.args[self.number], self.step.operands(self.target)[self.number]


def _window(local: Layouts, value: Value, target: Spans) -> Value:
    """The elements of a value by these spans: exchanged, or computed from fewer that are."""
    links: list[_Link] = []
    count, elements = 0, _sent_elements(local, value, target)
    source, needed = value, target
    while len(links) < MOST_LINKS and elements and (link := _link(local, source, needed)) is not None:
        links.append(link)
        source, needed = link.operand
        fewer = _sent_elements(local, source, needed)
        if 2 * fewer <= elements:
            count, elements = len(links), fewer
    result = _from_devices(local, *(links[count - 1].operand if count else (value, target)))
    for link in reversed(links[:count]):
        sides = enumerate(zip(link.args, link.step.operands(link.target), strict=True))
        operands = [result if n == link.number else _window(local, *side) for n, side in sides]
        result = link.step.run(operands, link.target)
    return result


def _link(local: Layouts, value: Value, target: Spans) -> _Link | None:
    """The operation that computes a value for other spans; None if it would compute much again."""
    operation = value.operation if local.owns(value) else None
    if operation is None or not isinstance(operation.primitive.lower, _OF_ELEMENTS):
        return None
    if operation.primitive is gather or operation.letters.reductions:
        return None
    splitting = [n for n, a in enumerate(operation.args) if any(_spans(local, a))]
    gaps = operation.params["interior"] if operation.primitive is pad else (0,) * len(target)
    # Each device needs as many elements of an operand, unless its share of them would be a part.
    if len(splitting) != 1 or any(span.share % (gap + 1) for span, gap in zip(target, gaps, strict=True) if span):
        return None
    operand = operation.args[splitting[0]]
    # An operand that is not much smaller, and that nothing has computed, leads nowhere.
    if local.owns(operand) and operand.operation is None and 2 * _elements(operand.type) > _elements(type_of(value)):
        return None
    letters = None if operation.letters.indexed else operation.letters
    step = _step(local, operation.primitive, operation.args, operation.params, letters)
    return step and _Link(step, operation.args, splitting[0], target)


def _elements(type: ArrayType) -> int:
    return math.prod(size_of(type, axis) for axis in range(type.ndim))


def _sent_elements(local: Layouts, value: Value, target: Spans) -> float:
    """How many elements a device sends so that each has those of the target."""
    spans, type = _spans(local, value), type_of(value)
    sizes = [span.share if span else size_of(type, axis) for axis, span in enumerate(spans)]
    sides = enumerate(zip(spans, target, strict=True))
    shares = (sent(a, b, size_of(type, axis), local.region) / a.share for axis, (a, b) in sides if a)
    return math.prod(sizes) * sum(shares)


def _from_devices(local: Layouts, value: Value, target: Spans) -> Value:
    """The elements of a value by these spans, from those that the devices have."""
    if not any(target):
        return local.everything(value)
    if local.owns(value) and isinstance(value.source, Outside):
        interpreter, block = value.source.interpreter, value.source.block
        assert interpreter.parent is not None
        with use(interpreter.parent):
            return _window(interpreter, block, target)
    spans, region = _spans(local, value), local.region
    sizes = [size if isinstance(size, int) else 0 for size in type_of(value).shape]
    near = [is_exchanged(a, b, size, region) for a, b, size in zip(spans, target, sizes, strict=True)]
    part = local.with_whole_axes(value, near)
    for axis, (source, needed) in enumerate(zip(spans, target, strict=True)):
        if near[axis] and source and needed:
            part = exchanged(part, axis, source, needed, sizes[axis], region)
        elif needed:
            part = part_of(part, axis, needed, region)
    return part
