"""The interpreter of vmap: every primitive by its batch rule, on all lanes at once.

A value with lanes has its batch axis in front, invisible to the function being batched. A value
without lanes is left unchanged, so values that do not depend on the lane are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from rune import dtypes
from rune.array import Array
from rune.core import axes
from rune.core.evaluate import eval_program
from rune.core.interpreter import Axis, Interpreter, current, type_of, use
from rune.core.memo import per_program
from rune.core.primitive import Collective, Primitive, Rule
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.values import Value
from rune.dims import Size
from rune.errors import MissingRule
from rune.ops import convert, iota
from rune.ops.movement import repeat_lane
from rune.transforms.batching.across import numbers, over_lanes_of_devices
from rune.transforms.tracers import ValueTracer


class BatchTracer(ValueTracer):
    """All lanes of a value; the batch axis leads `value` and is absent from `type`."""

    __slots__ = ("value",)

    def __init__(self, interpreter: Interpreter, value: Value):
        self.interpreter, self.value, self.frame = interpreter, value, None

    @property
    def type(self):
        """One lane's type."""
        # User code sees one lane, so the leading axis is not part of the type.
        lanes_type = type_of(self.value)
        return lanes_type.with_shape(lanes_type.shape[1:])

    def underlying(self) -> Value:
        """All lanes."""
        return self.value


class Batch(Interpreter):
    """Applies the batch rules of primitives, and those of collectives over its own axis."""

    __slots__ = ("axis", "size")

    def __init__(self, parent: Interpreter, size: Size, axis: axes.LaneAxis | None = None):
        super().__init__(parent)
        self.size, self.axis = size, axis

    def named_axis(self, name: axes.Name) -> Axis | None:
        """The axis of the lanes, if that is its name."""
        return Axis(self.size * self.axis.devices) if self.axis is not None and name == self.axis.name else None

    def split(self, value: Value) -> tuple[Value, bool]:
        """(value, is batched)."""
        # A tracer of an enclosing vmap is here one ordinary value, the same in all lanes.
        if isinstance(value, BatchTracer) and value.interpreter is self:
            return value.value, True
        return value, False

    def join(self, value: Value, is_batched: bool) -> Any:
        """A tracer where there are lanes."""
        return BatchTracer(self, value) if is_batched else value

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Any:
        """The primitive's batch rule, in the parent."""
        values, batched_args = zip(*map(self.split, args), strict=True) if args else ((), ())
        parent = self.parent
        assert parent is not None
        # A collective over this axis is computed here even if no operand has lanes: a psum of a
        # constant is the constant times the number of lanes.
        mentions_axis = self.axis is not None and self.axis.name in axes.mentioned(primitive, args, params)
        if not (any(batched_args) or mentions_axis):
            return parent.process(primitive, values, params)
        # In the parent, all lanes together are ordinary arrays.
        with use(parent), axes.batching(self.axis):
            out, is_batched = _rule(self, primitive, mentions_axis)(batched_args, self.size, *values, **params)
        if primitive.multiple_results:
            return [self.join(o, b) for o, b in zip(out, is_batched, strict=True)]
        return self.join(out, is_batched)


def _rule(batch: Batch, primitive: Primitive, mentions_axis: bool) -> Rule:
    """The function that applies the primitive to values with lanes."""
    # A collective that does not mention the axis of the lanes is batched like any operation.
    if mentions_axis and isinstance(primitive, Collective):
        return partial(_over_lanes, batch, primitive)
    if primitive.batch is None:
        raise MissingRule(f"vmap: cannot batch {primitive} (it has no batch rule)")
    return primitive.batch


def _over_lanes(
    batch: Batch, primitive: Collective, batched_args: Sequence[bool], size: Size, *values: Value, **params: Hashable
) -> tuple[Value, bool]:
    """A collective over the axis of the lanes."""
    if batch.axis is None or batch.axis.devices == 1:
        return primitive.over_lanes(batched_args, size, *values, **params)
    return over_lanes_of_devices(primitive, batch.axis.devices, batched_args, size, values, params)


def lane_numbers(batch: Batch) -> Value:
    """The lane numbers, a u32[size]. Bound in the parent."""
    if batch.axis is None or batch.axis.devices == 1:
        return iota(shape=(batch.size,), axis=0, dtype=dtypes.u32)
    return convert(numbers(batch.size, batch.axis.name), dtype=dtypes.u32, weak=False)


def batch_flat(
    function: Callable[..., Sequence[Value]],
    size: Size,
    args: Sequence[Value],
    batched_args: Sequence[bool],
    axis: axes.LaneAxis | None = None,
) -> tuple[list[Any], list[bool]]:
    """Outputs with leading batch axes, and which of them have one."""
    # A new interpreter for each call: nested vmaps must not mistake each other's tracers.
    interpreter = Batch(current(), size, axis)
    tracers = [interpreter.join(a, b) for a, b in zip(args, batched_args, strict=True)]
    pairs = interpreter.trace(lambda: [interpreter.split(o) for o in function(*tracers)])
    return [v for v, _ in pairs], [b for _, b in pairs]


def batch_program(
    program: Program, batched_inputs: tuple[bool, ...], size: Size, forced_outputs: tuple[bool, ...] = ()
) -> tuple[Program, tuple[bool, ...]]:
    """The program on all lanes, and which outputs have lanes.

    forced_outputs: which have lanes even if all lanes are equal; none by default.
    """
    # The axis is part of the memo's key only if the program mentions it.
    return _batch_program(program, batched_inputs, size, forced_outputs, axes.batched_axis(program))


@per_program
def _batch_program(
    program: Program,
    batched_inputs: tuple[bool, ...],
    size: Size,
    forced_outputs: tuple[bool, ...],
    axis: axes.LaneAxis | None,
) -> tuple[Program, tuple[bool, ...]]:
    out_batched: list[bool] = []
    types = [
        v.type.with_shape((size, *v.type.shape)) if b else v.type
        for v, b in zip(program.inputs, batched_inputs, strict=True)
    ]

    def run(*args: Value) -> list[Array]:
        outs, is_batched = batch_flat(lambda *xs: eval_program(program, xs), size, args, batched_inputs, axis)
        for i, is_forced in enumerate(forced_outputs):
            if is_forced and not is_batched[i]:
                # A carry must have the same type in every step, so a loop forces it to have lanes.
                outs[i], is_batched[i] = repeat_lane(outs[i], size), True
        out_batched.extend(is_batched)
        return outs

    lane_program = stage(run, types, f"vmap_{program.name}")
    return lane_program.with_captured(), tuple(out_batched)
