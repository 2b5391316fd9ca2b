"""Block: one device's part of an array, while the program of that device is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.records import dataclass
from rune.transforms.programs.call_rules import Params
from rune.transforms.sharding.letters import Letters
from rune.transforms.sharding.reshard import Layout
from rune.transforms.sharding.spans import Spans
from rune.transforms.tracers import ValueTracer

if TYPE_CHECKING:
    from rune.transforms.sharding.localize import Localize


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

    interpreter: Localize
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
        interpreter: Localize,
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
        # The block itself too, so that `Localize.at` finds every layout in one place.
        self.copies: dict[Layout, Value] = {} if spans else {layout: value}

    def within(self, interpreter: Localize, source: Outside | None = None) -> Block:
        """The same part, as the interpreter of an inner program has it."""
        return Block(interpreter, self.value, self.array_type, self.layout, source, self.spans, self.bytes_to_all)

    @property
    def type(self) -> ArrayType:
        """The array's type."""
        return self.array_type
