"""Chosen writes: write only what a select would keep, and copy no array.

Before   %3 = select %c, %x, %y;  %4 = scatter %3, %i, %u;  %5 = select %c, %4, %x
After    %3 = gather %x, %i;  %4 = select %c, %u, %3;  %5 = scatter %x, %i, %4

vmap produces such code for a loop whose lanes finish at different steps, and users write
`where(ok, x.at[i].set(u), x)`. A select over whole arrays becomes a select over the updates: where
%c is false, the write puts back the value that it replaces. Then the scatter may happen in place,
if nothing else reads %x.

A chain of writes on either side is followed down to the array with which both sides began. %c must
be constant within the windows of the writes: one value for each lane, or one for all.

Invariant: every value keeps its bits.
Cost:      linear in the number of equations, and in the lengths of chains of writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rune import dims
from rune.core.evaluate import restaged
from rune.core.interpreter import is_differentiable, literal_like, type_of
from rune.core.primitive import Primitive
from rune.core.program import Program, Var
from rune.core.staging import Stage, StageTracer
from rune.core.values import Value
from rune.lowering.passes import Pass
from rune.ops import (
    broadcast,
    dynamic_slice,
    dynamic_update_slice,
    fit,
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    select,
    stop_gradient,
)
from rune.records import dataclass

Params = Mapping[str, Any]
# The primitive, arguments and parameters by which a value is computed; no primitive for an input.
Definition = tuple[Primitive | None, Sequence[Value], Params]
SCATTERS = (scatter, scatter_add, scatter_max, scatter_min, scatter_mul)
WRITES = frozenset((*SCATTERS, dynamic_update_slice))


@dataclass(frozen=True, slots=True)
class Choice:
    """The condition of a select: `value`, broadcast along the axes of the result that it lacks."""

    value: Value
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """A write into an array: a scatter, or the update of a window.

    operands: those of its equation, the array first
    on_true:  whether it counts where the condition is true, or where it is false
    """

    primitive: Primitive
    operands: Sequence[Value]
    params: Params
    on_true: bool

    @property
    def updates(self) -> Value:
        """The elements that are written."""
        return self.operands[1 if self.primitive is dynamic_update_slice else 2]

    def axis(self, axis: int) -> int | None:
        """The axis of the updates that corresponds to an axis of the array, or None."""
        array, updates = type_of(self.operands[0]), type_of(self.updates)
        if self.primitive is dynamic_update_slice:
            return axis if array.shape[axis] == updates.shape[axis] else None
        where, sizes = self.params["dims"], self.params["slice_sizes"]
        if axis in where.operand_batching:
            batch = [i for i in range(updates.ndim) if i not in where.offset]
            return batch[where.indices_batching[where.operand_batching.index(axis)]]
        is_whole = sizes[axis] == array.shape[axis] and axis not in where.start_map
        window = where.window_axes(array.ndim)
        return where.offset[window.index(axis)] if is_whole and axis in window else None

    def replaced_elements(self, array: Value) -> Value:
        """The elements of the array that the updates would replace."""
        if self.primitive is dynamic_update_slice:
            return dynamic_slice(array, *self.operands[2:], sizes=type_of(self.updates).shape)
        return gather(array, self.operands[1], literal_like(0, array), **self.params)

    def neutral(self, array: Value) -> Value:
        """Updates that leave the array as it is."""
        # Adding 0.0 would turn -0.0 into 0.0; -0.0 changes no number.
        if self.primitive is scatter_add:
            return literal_like(-0.0 if is_differentiable(array) else 0, array)
        return literal_like(1, array) if self.primitive is scatter_mul else self.replaced_elements(array)

    def on(self, array: Value, updates: Value) -> Value:
        """The same write of other updates into another array."""
        others = self.operands[2:] if self.primitive is dynamic_update_slice else [self.operands[1]]
        operands = [updates, *others] if self.primitive is dynamic_update_slice else [*others, updates]
        return self.primitive(array, *operands, **self.params)


class _Chosen(Stage):
    """Writes a program again, and writes where a select would choose."""

    __slots__ = ("definitions", "has_changed")

    def __init__(self) -> None:
        super().__init__(None)
        self.definitions: dict[Var, Definition] = {}
        self.has_changed = False

    def process(self, primitive: Primitive, args: Sequence[Value], params: Params) -> object:
        """The equation itself, or for a select between writes the write of selected updates."""
        if primitive is select:
            array = self.written(*args)
            if array is not None:
                self.has_changed = True
                return array
        out = self.write(primitive, args, params)
        if not primitive.multiple_results:
            self.definitions[out.variable] = primitive, args, params
        return out

    def written(self, condition: Value, yes: Value, no: Value) -> Value | None:
        """The array with the writes of both sides, each where it counts; None if impossible."""
        # A chain is found from its end, so its writes are applied in reverse.
        base, writes = self.chain(yes, condition, on_true=True)
        other, more = self.chain(no, condition, on_true=False)
        both = [*reversed(writes), *reversed(more)]
        if not _same(base, other) or not both:
            return None
        choice = self.choice(condition)
        axes = [_axes(choice, w) for w in both]
        array = base
        for write, where in zip(both, axes, strict=True):
            if where is None:
                return None
            mask = broadcast(choice.value, shape=type_of(write.updates).shape, axes=where)
            neutral_updates = fit(write.neutral(array), type_of(write.updates).shape)
            sides = (write.updates, neutral_updates) if write.on_true else (neutral_updates, write.updates)
            array = write.on(array, select(mask, *sides))
        return array

    def chain(self, value: Value, condition: Value, *, on_true: bool) -> tuple[Value, list[Write]]:
        """The array below a chain of writes, and the writes, for points with this outcome."""
        writes: list[Write] = []
        while True:
            primitive, args, params = self.definition(value)
            if primitive in WRITES:
                writes.append(Write(primitive, args, params, on_true))
                value = args[0]
            elif primitive is select and _same(args[0], condition):
                value = args[1 if on_true else 2]
            elif primitive is select and _same(self.unstopped(args[1]), self.unstopped(args[2])):
                value = args[1]
            elif primitive is stop_gradient:
                value = args[0]
            else:
                return value, writes

    def unstopped(self, value: Value) -> Value:
        """The value without `stop_gradient`: derivatives have been taken."""
        primitive, args, _ = self.definition(value)
        return args[0] if primitive is stop_gradient else value

    def definition(self, value: Value) -> Definition:
        """The definition of a value; empty for an input."""
        nothing: Definition = None, (), {}
        return self.definitions.get(value.variable, nothing) if isinstance(value, StageTracer) else nothing

    def choice(self, condition: Value) -> Choice:
        """The condition without the axes along which a broadcast repeats it."""
        primitive, args, params = self.definition(condition)
        if primitive is broadcast:
            return Choice(args[0], params["axes"])
        return Choice(condition, tuple(range(type_of(condition).ndim)))


def _axes(choice: Choice, write: Write) -> tuple[int, ...] | None:
    """The axes of the updates that are a condition's axes; None if it varies within a window."""
    array, updates = type_of(write.operands[0]), type_of(write.updates)
    if dims.at_most(dims.product(array.shape), dims.product(updates.shape)):
        return None  # the whole array is written anyway
    axes = [write.axis(a) for a in choice.axes]
    places = tuple(a for a in axes if a is not None)
    return places if len(places) == len(axes) and list(places) == sorted(set(places)) else None


def _same(a: object, b: object) -> bool:
    """Whether two values are the same variable."""
    return isinstance(a, StageTracer) and isinstance(b, StageTracer) and a.variable is b.variable


def chosen_writes(program: Program) -> Program:
    """The program with writes in place of selects over whole arrays."""
    primitives = {e.primitive for e in program.equations}
    if select not in primitives or not primitives & WRITES:
        return program
    stage = _Chosen()
    new_program = restaged(program, stage)
    return new_program if stage.has_changed else program


PASS = Pass("chosen-writes", "write where a select over the whole array would choose", chosen_writes)
