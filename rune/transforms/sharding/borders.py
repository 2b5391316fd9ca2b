"""Borders: operations on neighbours send what lies at the ends of blocks, and not the array.

    x[1:] - x[:-1]      each device sends the first element of its block to the one before it
    pad, concatenate    likewise

The devices do not divide axes like that of x[1:]; they have spans of them (spans.py), and a slice
moves nothing. Where operands have different spans, one is exchanged. A reader that knows nothing of
spans has the axis joined, on every device.

Invariant: never wrong and never refused: what neighbours cannot send for less is gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rune import dtypes
from rune.core.interpreter import type_of, use
from rune.core.lower import Bitcast, Contraction, Convert, Cumulative, Parts, Reduction, Scalar, View
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.ops.indexing import gather
from rune.ops.movement import slice_
from rune.transforms.programs.call_rules import Params
from rune.transforms.sharding.block import Block, Outside
from rune.transforms.sharding.border_rules import Step, has_rule, reduced_spans, size_of
from rune.transforms.sharding.letters import letters_beside_indices
from rune.transforms.sharding.reshard import Layout
from rune.transforms.sharding.spans import Span, Spans, exchanged, is_exchanged, joined, part_of

if TYPE_CHECKING:
    from rune.transforms.sharding.localize import Localize

_KINDS = Scalar | Convert | Bitcast | Parts | View | Reduction | Contraction | Cumulative


def bordered(local: Localize, primitive: Primitive, args: Sequence[Value], params: Params) -> Block | None:
    """The result of an operation on neighbours along an axis that is split; None for others."""
    # Indices of elements outside of an axis would be out of bounds.
    if not isinstance(primitive.lower, _KINDS) or primitive is gather or local.region.is_watched:
        return None
    blocks = [a for a in args if local.owns(a)]
    if not any(b.spans or (has_rule(primitive) and any(b.layout)) for b in blocks):
        return None
    step = _step(local, primitive, args, params)
    if step is None or not (any(b.spans for b in blocks) or _is_along_cut(step)):
        return None
    target = step.target()
    if not any(target) and not reduced_spans(step, target):
        return None
    if primitive is slice_ and not _is_most(step, target):
        return None
    operands = [window(local, a, s) for a, s in zip(args, step.operands(target), strict=True)]
    return _block(local, step, step.run(operands, target), target)


def _step(local: Localize, primitive: Primitive, args: Sequence[Value], params: Params) -> Step | None:
    """The operation with the spans of its operands; None if it cannot be done by spans."""
    types = [*map(type_of, args)]
    result = primitive.type_rule(*types, **params)
    if any(t.is_symbolic or 0 in t.shape or t.dtype in dtypes.KEYS for t in (*types, result)):
        return None
    # ppermute goes along one axis of the mesh.
    if any(len(names) > 1 for a in args if local.owns(a) for names in a.layout):
        return None
    letters = letters_beside_indices(primitive, types, params)
    if letters is None:
        return None
    return Step(primitive, params, types, result, [_spans(local, a) for a in args], letters, local.region)


def _is_along_cut(step: Step) -> bool:
    """Whether an operand is split along an axis that letters leave whole."""
    axes = zip(step.letters.operands, step.spans, strict=True)
    return any(letter is None and span for letters, spans in axes for letter, span in zip(letters, spans, strict=True))


def _is_most(step: Step, target: Spans) -> bool:
    """Whether a slice has so much of each axis that a sum of its elements would send no less."""
    sides = zip(step.spans[0], target, step.types[0].shape, step.result.shape, step.params["stride"], strict=True)
    return all(b is not None and 2 * n * stride > size for a, b, size, n, stride in sides if a)


def _spans(local: Localize, value: Value) -> Spans:
    """The elements of a value that the devices have."""
    type = type_of(value)
    if not local.owns(value):
        return (None,) * type.ndim
    return value.spans or spans_of(local, type, value.layout)


def spans_of(local: Localize, type: ArrayType, layout: Layout) -> Spans:
    """The spans of equal parts."""
    mesh = local.region.mesh
    spans: list[Span | None] = []
    for axis, names in enumerate(layout):
        share = size_of(type, axis) // mesh.shape[names[0]] if names else 0
        spans.append(Span(names[0], share, 0, share) if names else None)
    return tuple(spans)


def _block(local: Localize, step: Step, value: Value, target: Spans) -> Block:
    type, region = step.result, local.region
    is_even = [s is not None and s.is_even(size_of(type, axis), region) for axis, s in enumerate(target)]
    layout = tuple((s.name,) if s and even else () for s, even in zip(target, is_even, strict=True))
    is_uneven = any(s and not even for s, even in zip(target, is_even, strict=True))
    return Block(local, value, type, layout, spans=target if is_uneven else ())


def window(local: Localize, value: Value, target: Spans) -> Value:
    """The elements of a value by these spans, from those that the devices have."""
    if not any(target):
        return local.everything(value) if target else value
    if local.owns(value) and isinstance(value.source, Outside):
        interpreter, block = value.source.interpreter, value.source.block
        assert interpreter.parent is not None
        with use(interpreter.parent):
            return window(interpreter, block, target)
    spans, region = _spans(local, value), local.region
    near = [is_exchanged(a, b, region) for a, b in zip(spans, target, strict=True)]
    part = _with_whole_axes(local, value, near)
    for axis, (source, needed) in enumerate(zip(spans, target, strict=True)):
        if near[axis] and source and needed:
            part = exchanged(part, axis, source, needed, region)
        elif needed:
            part = part_of(part, axis, needed, region)
    return part


def _with_whole_axes(local: Localize, value: Value, near: Sequence[bool]) -> Value:
    """The device's elements of a value, with axes whole of which it does not have what is near."""
    if not local.owns(value) or not value.spans:
        layout = value.layout if local.owns(value) else ((),) * len(near)
        return local.at(value, tuple(names if n else () for names, n in zip(layout, near, strict=True)))
    part = value.value
    for axis, span in enumerate(value.spans):
        if span is not None and not near[axis]:
            part = joined(part, axis, span, size_of(value.type, axis), local.region)
    return part


def settled(block: Block, local: Localize) -> Value:
    """A block that has spans, in its layout: whole along axes that are not in equal parts."""
    if isinstance(block.source, Outside):
        interpreter = block.source.interpreter
        assert interpreter.parent is not None
        with use(interpreter.parent):
            return interpreter.at(block.source.block, block.layout)
    return _with_whole_axes(local, block, [bool(names) for names in block.layout])
