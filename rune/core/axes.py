"""Named axes: `vmap(f, axis_name="i")` gives the lanes of f a name for collectives.

An interpreter names an axis. Its size is looked up from the current interpreter outwards, so an
inner axis hides an outer one of the same name. An axis that a program mentions is free in it: the
program has a meaning only inside that axis, and the programs being staged between the two record
that they depend on it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from rune.context import innermost, inside
from rune.core.abstract_mesh import Name
from rune.core.higher import calls, inner_first
from rune.core.interpreter import Axis, Interpreter, current
from rune.core.memo import per_program
from rune.core.primitive import Collective, Primitive
from rune.core.program import Equation, Program
from rune.dims import Size
from rune.errors import UnboundAxisError
from rune.records import dataclass

R = TypeVar("R")
Memo = Callable[[Callable[..., Any]], Callable[..., Any]]  # per_program or per_programs


@dataclass(frozen=True, slots=True)
class LaneAxis:
    """An axis of lanes.

    name:    of the lanes in collectives; None if they have none
    devices: the lanes are distributed evenly over so many devices; with several of them an
             enclosing axis of a mesh has the same name
    split:   the mesh axes that split the lanes wherever a program lays out its values
    """

    name: Name | None
    devices: int = 1
    split: tuple[Name, ...] = ()


def batching(axis: LaneAxis | None) -> inside[LaneAxis]:
    """A block in which the batch rule of this axis runs: programs are batched for the axis."""
    return inside(LaneAxis, axis)


def own_axis() -> LaneAxis | None:
    """The axis whose batch rule is running: for a rule that batches a function, now or later."""
    return innermost(LaneAxis)


def batched_axis(program: Program) -> LaneAxis | None:
    """The axis for which a batch rule is batching a program, if that makes a difference to it."""
    axis = own_axis()
    return axis if axis is not None and (axis.split or axis.name in free_axes(program)) else None


def per_program_and_lanes(rewrite: Callable[..., R], memo: Memo = per_program) -> Callable[..., R]:
    """The memo for a rewrite that batches programs: the axis of the lanes is part of the key."""
    for_axis = memo(lambda programs, _, *key: rewrite(programs, *key))

    @functools.wraps(rewrite)
    def remembered(programs: object, *key: Hashable) -> R:
        return for_axis(programs, own_axis(), *key)

    return remembered


def named_axis(name: Name, operation: str = "collective") -> Axis:
    """The axis of that name here, for an operation. Errors: UnboundAxisError if no transformation
    names it.
    """
    inner_interpreters: list[Interpreter] = []
    interpreter: Interpreter | None = current()
    axis = interpreter.named_axis(name)
    while axis is None:
        inner_interpreters.append(interpreter)
        interpreter = interpreter.parent
        if interpreter is None:
            raise UnboundAxisError(
                f"{operation}: cannot find the axis {name!r} (no transformation around names it)",
                hint=f"rune.vmap(f, axis_name={name!r}) names the axis of its lanes, shard_map those of a mesh",
            )
        axis = interpreter.named_axis(name)
    # A trace between here and the axis is only valid inside this axis.
    for inner in inner_interpreters:
        inner.axes[name] = axis
    return axis


def axis_size(name: Name, operation: str = "collective") -> Size:
    """The number of lanes of the axis of that name here. Errors: as named_axis."""
    return named_axis(name, operation).size


def is_typed(name: Name) -> bool:
    """Whether the types of values here tell if these vary along the axis of this name."""
    interpreter: Interpreter | None = current()
    while interpreter is not None:
        axis = interpreter.named_axis(name)
        if axis is not None:
            return axis.is_typed
        interpreter = interpreter.parent
    return False


def fits(axes: Mapping[Name, Axis]) -> bool:
    """Whether each of these names has the same axis here."""
    try:
        return all(named_axis(name) == axis for name, axis in axes.items())
    except UnboundAxisError:
        return False


@inner_first
def free_axes(program: Program) -> frozenset[Name]:
    """The names of the axes that the equations of a program mention, inner programs included."""
    return frozenset().union(*map(_mentioned, program.equations))


def _mentioned(equation: Equation) -> frozenset[Name]:
    return mentioned(equation.primitive, equation.operands, equation.params)


def names_of(axis_name: Name) -> tuple[Name, ...]:
    """The names of the axes of a collective: a tuple is of several, the first outermost."""
    return axis_name if isinstance(axis_name, tuple) else (axis_name,)


def mentioned(primitive: Primitive, args: Sequence[object], params: Mapping[str, object]) -> frozenset[Name]:
    """The names of the axes that an equation mentions, itself or in the programs it holds."""
    own_names = names_of(params["axis_name"]) if isinstance(primitive, Collective) else ()
    inner_axes = (free_axes(c.program) - c.binds for c in calls(primitive, args, params))
    return frozenset(own_names).union(*inner_axes)
