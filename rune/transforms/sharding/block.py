"""Block: one device's part of an array, while the program of that device is written.

Its interpreter brings it to other layouts: a block is computed again from parts of the operands, or
exchanged, whichever sends less.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Self, TypeGuard

from rune.core.interpreter import Interpreter, type_of, use
from rune.core.lower import Bitcast, Convert, Position, Scalar, View
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.ops.arithmetic import add
from rune.ops.family import zeros_like
from rune.ops.indexing import scatter_add
from rune.records import dataclass
from rune.sharding import PartitionSpec
from rune.transforms.programs.call_rules import Params
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.border_rules import size_of
from rune.transforms.sharding.by_index import READS, ByIndex
from rune.transforms.sharding.cuts import (
    Cuts,
    Operand,
    bytes_between,
    cuts_for,
    cuts_of_result,
    indexed_cut,
    operand_layouts,
    with_sizes_of,
    within,
)
from rune.transforms.sharding.letters import Letters
from rune.transforms.sharding.reshard import Layout, layout_of, resharded, spec_of, uncut
from rune.transforms.sharding.spans import Spans, even_span, exchanged, joined
from rune.transforms.tracers import ValueTracer

# Operations whose elements are as quick to compute again as to receive.
_OF_ELEMENTS = Scalar | Convert | Bitcast | View | Position
MOST_LINKS = 4  # of a chain of operations that are computed again


@dataclass(frozen=True, slots=True)
class Computed:
    """The operation that computed a block: parts of its operands give a part of it."""

    primitive: Primitive
    args: Sequence[Value]
    params: Params
    letters: Letters


@dataclass(frozen=True, slots=True)
class Outside:
    """The origin of a block that a loop reads: it is laid out outside the loop, once."""

    interpreter: Layouts
    block: Block


class Block(ValueTracer):
    """One device's part of an array; the type is the array's.

    value:  the part in its layout; with spans, the device's elements by these
    spans:  how devices share an array with axes that they do not divide; empty for others
    source: the origin of blocks in other layouts, if not this block
    copies: the blocks in other layouts that were needed so far
    bytes_to_all: of an operation on neighbours, what a device sends so that all have all of it
    operation: what computed it, for other elements of it
    """

    __slots__ = ("array_type", "bytes_to_all", "copies", "layout", "operation", "source", "spans", "value")

    def __init__(
        self,
        interpreter: Layouts,
        value: Value,
        array_type: ArrayType,
        layout: Layout,
        source: Computed | Outside | None = None,
        spans: Spans = (),
        bytes_to_all: float = 0.0,
        operation: Computed | None = None,
    ):
        self.interpreter, self.value, self.frame = interpreter, value, None
        self.array_type, self.layout, self.source = array_type, layout, source
        self.spans, self.bytes_to_all = spans, bytes_to_all
        self.operation = source if isinstance(source, Computed) else operation
        # The block itself too, so that `Layouts.at` finds every layout in one place.
        self.copies: dict[Layout, Value] = {} if spans else {layout: value}

    def within(self, interpreter: Layouts, source: Outside | None = None) -> Block:
        """The same part, as the interpreter of an inner program has it."""
        return Block(interpreter, self.value, self.array_type, self.layout, source, self.spans, self.bytes_to_all)

    @property
    def type(self) -> ArrayType:
        """The array's type."""
        return self.array_type


class Layouts(Interpreter):
    """An interpreter of blocks: the device's part of a value in any layout.

    The rules of operations take it; Localize adds what it does with each operation.
    """

    __slots__ = ("region", "runs")

    def __init__(self, parent: Interpreter, region: Region, runs: int | None = 1):
        super().__init__(parent)
        self.region, self.runs = region, runs

    def block(self, value: Value, type: ArrayType, spec: PartitionSpec) -> Block:
        """The tracer of a block."""
        return Block(self, value, type, layout_of(spec, type.ndim))

    def layout(self, value: Value) -> Layout:
        """The layout of a value."""
        return value.layout if self.owns(value) else uncut(type_of(value).ndim)

    def within(self, parent: Interpreter, runs: int | None = 1) -> Self:
        """An interpreter for a program that an equation of this one holds.

        runs: how often the equation runs it; None if that is unknown
        """
        total = None if self.runs is None or runs is None else self.runs * runs
        return type(self)(parent, self.region, total)

    def operand(self, value: Value) -> Operand:
        """A value as an operand. What a loop reads from outside is sent once for all its steps."""
        is_outside = self.owns(value) and isinstance(value.source, Outside)
        often = 1.0 if not is_outside else 0.0 if self.runs is None else 1 / max(self.runs, 1)
        return Operand(type_of(value), self.layout(value), often)

    def at(self, value: Value, target: Layout) -> Value:
        """The device's part of a value in another layout."""
        if not self.owns(value):
            return resharded(value, self.region.mesh, uncut(type_of(value).ndim), target)
        # A chain of operations may be long, so it is walked with a stack of its own: a block waits
        # until its operands have copies in the layouts that it needs.
        pending = [(value, target)]
        while pending:
            block, layout = pending[-1]
            if block.layout not in block.copies:
                if isinstance(block.source, Computed) and layout != block.layout:
                    pending.append((block, block.layout))
                    continue
                if not isinstance(block.source, Computed):
                    block.copies[block.layout] = self._settled(block)
            source, cuts = block.source, self._cuts_back(block, layout)
            operands: list[tuple[Block, Layout]] = []
            if cuts is not None and isinstance(source, Computed):
                targets = zip(source.args, operand_layouts(source.letters, cuts), strict=True)
                operands = [(a, at) for a, at in targets if self.owns(a) and at not in a.copies]
            if operands:
                pending += operands
                continue
            if layout not in block.copies:
                block.copies[layout] = self._copy(block, layout, cuts)
            pending.pop()
        return value.copies[target]

    def owns(self, value: Value) -> TypeGuard[Block]:
        """Whether a value is a block of this interpreter."""
        return isinstance(value, Block) and value.interpreter is self

    def _cuts_back(self, block: Block, target: Layout) -> Cuts | None:
        """The cuts for computing a block in another layout; None if it is exchanged instead."""
        source = block.source
        if target in block.copies or not isinstance(source, Computed):
            return None
        # With spans a block has no other layout yet; of one in equal parts all is computed again.
        if not block.copies or (block.bytes_to_all and target == uncut(block.type.ndim)):
            return {}
        cuts = cuts_for(target, source.letters, [*map(self.operand, source.args)], block.type, self.region)
        return self._cuts_again(source, target, self._exchanged(block, target)) if cuts is None else cuts

    def _cuts_again(self, operation: Computed, target: Layout, limit: float, links: int = MOST_LINKS) -> Cuts | None:
        """The cuts for computing a result again from operands of which less is sent, or None.

        limit: the bytes that are sent otherwise
        """
        letters = operation.letters
        if not isinstance(operation.primitive.lower, _OF_ELEMENTS) or letters.indexed or not links:
            return None
        cuts = cuts_of_result(target, letters, self.region)
        if cuts is None:
            return None
        sides = zip(operation.args, operand_layouts(letters, cuts), strict=True)
        return cuts if sum(self._sent(a, layout, links - 1) for a, layout in sides) < limit else None

    def _sent(self, value: Value, target: Layout, links: int) -> float:
        """The bytes that a device sends for its part of a value in a layout."""
        if not self.owns(value) or target in value.copies:
            return 0.0
        limit, source = self._exchanged(value, target), value.source
        if not limit or not isinstance(source, Computed):
            return limit
        cuts = self._cuts_again(source, target, limit, links)
        if cuts is None:
            return limit
        sides = zip(source.args, operand_layouts(source.letters, cuts), strict=True)
        return sum(self._sent(a, layout, links - 1) for a, layout in sides)

    def _exchanged(self, block: Block, target: Layout) -> float:
        """The bytes that a device sends to bring a block from the nearest layout to another."""
        often, layouts = self.operand(block).often, block.copies or (block.layout,)
        return often * min(bytes_between(block.type, at, target, self.region) for at in layouts)

    def _copy(self, block: Block, target: Layout, cuts: Cuts | None) -> Value:
        match block.source:
            case Computed() as operation if cuts is not None:
                return self.parts(operation, cuts, [(block.type, target)])[0]
            # A value from outside a loop is converted there, once for all steps.
            case Outside(interpreter, outside):
                assert interpreter.parent is not None
                with use(interpreter.parent):
                    return interpreter.at(outside, target)
        # A value gathered once need not be gathered again.
        layout = min(block.copies, key=lambda at: bytes_between(block.type, at, target, self.region))
        return resharded(block.copies[layout], self.region.mesh, layout, target)

    def everything(self, value: Value) -> Value:
        """All of a value, on every device."""
        return self.at(value, uncut(type_of(value).ndim))

    def with_whole_axes(self, value: Value, near: Sequence[bool]) -> Value:
        """The device's elements of a value, joined along the axes that are not exchanged."""
        if not self.owns(value) or not value.spans:
            layout = value.layout if self.owns(value) else ((),) * len(near)
            return self.at(value, tuple(names if n else () for names, n in zip(layout, near, strict=True)))
        part = value.value
        for axis, span in enumerate(value.spans):
            if span is not None and not near[axis]:
                part = joined(part, axis, span, size_of(value.type, axis), self.region)
        return part

    def _settled(self, block: Block) -> Value:
        """A block that has spans, in its layout: in equal parts of axes, or whole along them."""
        if isinstance(block.source, Outside):
            interpreter = block.source.interpreter
            assert interpreter.parent is not None
            with use(interpreter.parent):
                return interpreter.at(block.source.block, block.layout)
        part = self.with_whole_axes(block, [bool(names) for names in block.layout])
        for axis, (span, names) in enumerate(zip(block.spans, block.layout, strict=True)):
            if span is not None and names:
                size = size_of(block.type, axis)
                part = exchanged(part, axis, span, even_span(names, size, self.region), size, self.region)
        return part

    def parts(self, operation: Computed, cuts: Cuts, results: Sequence[tuple[ArrayType, Layout]]) -> list[Value]:
        """A device's part of an operation with these cuts."""
        primitive, letters = operation.primitive, operation.letters
        (type, layout), inner = results[0], within(letters, cuts)
        inner_layout = tuple(inner.get(letter, ()) for letter in letters.results[0])
        indexed = indexed_cut(letters, cuts)
        params = with_sizes_of(primitive, operation.params, self.region.block(type, spec_of(inner_layout)), indexed)
        layouts = operand_layouts(letters, cuts)
        operands = [self.at(a, layout) for a, layout in zip(operation.args, layouts, strict=True)]
        reductions = [(unite, name) for letter, unite in letters.reductions.items() for name in cuts.get(letter, ())]
        # The array that is added to counts once: devices add their parts to zeros first.
        start = operands[0] if reductions and primitive is scatter_add else None
        if start is not None:
            operands[0] = zeros_like(start)
        if indexed:
            by_index = ByIndex(primitive, type_of(operation.args[0]), indexed, self.region)
            finish = functools.partial(resharded, mesh=self.region.mesh, source=inner_layout, target=layout)
            is_read = primitive in READS
            values = [by_index.read(operands, params, finish) if is_read else by_index.write(operands, params)]
        else:
            outs = primitive(*operands, **params)
            values = list(outs) if primitive.multiple_results else [outs]
        for unite, name in reductions:
            values = [unite(v, axis_name=name) for v in values]
        return values if start is None else [add(start, v) for v in values]
