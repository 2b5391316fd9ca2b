"""What executors share: the sizes of one call, and the plan made concrete for them.

A plan may be symbolic; a call is not. `size_values` reads the sizes off the arguments' shapes and
checks them; `concrete` evaluates offsets, shapes and bytes once per distinct sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rune import dims
from rune.core.types import ArrayType
from rune.dims import Dim, Size
from rune.errors import ArgumentError, DimensionError
from rune.lowering.plan import Call, Copy, Launch, Plan, Slot, Space, Step

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A slot of one call: `bytes` from `offset` on in the arena, or a whole argument or result."""

    space: Space
    number: int
    offset: int
    bytes: int
    type: ArrayType


@dataclass(frozen=True, slots=True)
class ConcreteStep:
    """A step, and its places: of a launch in the order of the kernel's parameters, else the
    outputs, then the inputs."""

    step: Step
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Concrete:
    """A plan for one choice of sizes."""

    sizes: Mapping[str, int]
    steps: tuple[ConcreteStep, ...]
    results: tuple[ArrayType, ...]
    arena_bytes: int


def evaluate(x: Size, sizes: Mapping[str, int]) -> int:
    """The value of a size."""
    return dims.evaluate(x, sizes) if isinstance(x, Dim) else x


def concrete_type(type: ArrayType, sizes: Mapping[str, int]) -> ArrayType:
    """The type with integers for its symbolic dimensions."""
    if not type.is_symbolic:
        return type
    return type.with_shape(tuple(evaluate(d, sizes) for d in type.shape))


def size_bytes(type: ArrayType) -> int:
    """Bytes of an array of static shape."""
    return math.prod(evaluate(d, {}) for d in type.shape) * type.dtype.itemsize


def static_shape(type: ArrayType) -> Shape:
    """The shape of a type without symbolic dimensions."""
    return tuple(evaluate(d, {}) for d in type.shape)


def slots_of(step: Step) -> tuple[Slot, ...]:
    """The slots of a step: of a launch in the order of its parameters, else outputs, inputs."""
    match step:
        case Launch(slots=slots):
            return slots
        case Call(outputs=outputs, inputs=inputs):
            return (*outputs, *inputs)
        case Copy(target=target, source=source):
            return (target, source)


def size_values(plan: Plan, shapes: Sequence[Shape]) -> dict[str, int]:
    """The plan's symbolic sizes, read off the arguments' shapes.

    Errors: ArgumentError for a wrong number of arguments; DimensionError for a size out of its
    range, "f: cannot run with n = 0 (n in 1..4096; axis 0 of argument 0)", and for shapes that
    do not fit together.
    """
    if len(shapes) != len(plan.arguments):
        given = f"{len(shapes)} given, {len(plan.arguments)} taken"
        raise ArgumentError(f"{plan.name}: cannot run with these arguments ({given})")
    sizes: dict[str, int] = {}
    for s in plan.size_sources:
        value = sizes[s.name] = shapes[s.argument][s.axis]
        if value < s.low or (s.high is not None and value > s.high):
            limits = f"{s.name} in {s.low}..{'' if s.high is None else s.high}"
            raise DimensionError(
                f"{plan.name}: cannot run with {s.name} = {value} "
                f"({limits}; axis {s.axis} of argument {s.argument})"
            )
    for number, (type_, shape) in enumerate(zip(plan.arguments, shapes, strict=True)):
        wanted = static_shape(concrete_type(type_, sizes))
        if wanted != tuple(shape):
            where = f"argument {number} is {type_} with {sizes}, given is {list(shape)}"
            raise DimensionError(f"{plan.name}: cannot run with these shapes ({where})")
    return sizes


def concrete(plan: Plan, sizes: Mapping[str, int]) -> Concrete:
    """The plan for these sizes."""

    def place(slot: Slot) -> Place:
        type_ = concrete_type(slot.type, sizes)
        return Place(
            slot.space, slot.number, evaluate(slot.offset, sizes), size_bytes(type_), type_
        )

    return Concrete(
        dict(sizes),
        tuple(ConcreteStep(s, tuple(place(x) for x in slots_of(s))) for s in plan.steps),
        tuple(concrete_type(t, sizes) for t in plan.results),
        evaluate(plan.arena_bytes, sizes),
    )


class Concretes:
    """The concrete plans of one executable, by the shapes of a call."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self._made: dict[tuple[Shape, ...], Concrete] = {}

    def __call__(self, shapes: Sequence[Shape]) -> Concrete:
        """The concrete plan for arguments of these shapes."""
        key = tuple(shapes)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = concrete(self.plan, size_values(self.plan, key))
        return found


def result_buffers(
    plan: Plan,
    made: Concrete,
    arguments: Sequence[Any],
    donated: Sequence[int],
    alloc: Callable[[ArrayType], Any],
    reuse: Callable[[Any, ArrayType], Any],
) -> list[Any]:
    """A buffer per result: the memory of a donated argument where the plan says so, else new."""
    lent = {result: argument for argument, result in plan.donations if argument in donated}
    return [
        reuse(arguments[lent[number]], type_) if number in lent else alloc(type_)
        for number, type_ in enumerate(made.results)
    ]


def dot_shapes(
    parameters: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[Shape, Shape, Shape]:
    """Shapes in memory of the `dot` routine's operands and result: a, b, out.

    a is [batch, m, k], or [batch, k, m] with trans_a; b is [batch, k, n] or [batch, n, k].
    """
    batch, m, n, k = (evaluate(parameters[name], sizes) for name in ("batch", "m", "n", "k"))
    a = (batch, k, m) if parameters["trans_a"] else (batch, m, k)
    b = (batch, n, k) if parameters["trans_b"] else (batch, k, n)
    return a, b, (batch, m, n)
