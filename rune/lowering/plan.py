"""Plan: the ordered steps of one program over buffers with byte offsets in one arena.

    plan f on cpu  arena 4096 B  arguments (f32[512,64], f32[64]) results (f32[512]) {
      0: launch @scale  arena[0]:f32[512,64] <- argument 0, argument 1
      1: call dot(m=512, ...)  result 0:f32[512,1] <- arena[0]:f32[512,64], argument 1
    }

Sizes may be symbolic: offsets, grids and shapes are then evaluated for each call, from the values
that `size_sources` read from the arguments' shapes (core/sizes.py). A donated argument lends its
memory to a result. Loops and branches run inner plans, whose arguments and results are slots of the
outer plan, and whose arenas are a part of its arena.
Invariant: two buffers alive at the same step never share a byte (plan_check.py), except for the
pairs that a kernel's `aliases` declare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from rune.core.sizes import SizeSource
from rune.core.types import ArrayType
from rune.dims import Size
from rune.errors import Frame
from rune.lowering.kernel.nodes import KernelCode
from rune.profiling import counted
from rune.records import dataclass


class Space(StrEnum):
    """Where a slot lives."""

    ARGUMENT = "argument"
    RESULT = "result"
    ARENA = "arena"


@dataclass(frozen=True, slots=True)
class Slot:
    """One use of a buffer: `number` for arguments and results, `offset` [B] in the arena.

    The type is the step's view of the bytes, and may differ from that of the argument or result: a
    value and its reshape are one buffer. plan_types.py says which types fit.
    """

    space: Space
    type: ArrayType
    number: int = 0
    # Bytes from the start of the arena; 0 and unused elsewhere.
    offset: Size = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """Run a kernel of the plan, with slots in the order of its parameters."""

    # By name, because several steps may launch the same kernel.
    kernel: str
    slots: tuple[Slot, ...]
    frame: Frame | None = field(default=None, compare=False)  # the user's line it comes from


@dataclass(frozen=True, slots=True)
class Call:
    """Run a library routine (`dot` through BLAS): outputs, inputs, static parameters."""

    # Not compiled by rune: a name that the target lists among its routines.
    routine: str
    outputs: tuple[Slot, ...]
    inputs: tuple[Slot, ...]
    parameters: tuple[tuple[str, object], ...]
    frame: Frame | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy a slot to another of equal size, such as an argument that is a result."""

    target: Slot
    source: Slot


@dataclass(frozen=True, slots=True)
class Loop:
    """Run `body` repeatedly: `count` times, or as long as `condition` yields true.

    arguments:  of the body: its step number i32[], which the executor writes, constants, carries,
                arrays. The condition takes the first of them
    results:    of the body, one for each of the last arguments. If both are one slot, the body
                works in place; if not, the two take turns, and the loop ends with the last value
                in the argument's slot
    arrays:     how many of the last arguments have no value before the loop
    holds:      the slot of the condition's result
    offset:     where the arena of the inner plans begins [B]
    """

    arguments: tuple[Slot, ...]
    results: tuple[Slot, ...]
    arrays: int
    body: Plan
    condition: Plan | None
    holds: Slot | None
    count: Size | None
    offset: Size

    @property
    def state(self) -> tuple[Slot, ...]:
        """The arguments that the results replace: carries and arrays."""
        return self.arguments[len(self.arguments) - len(self.results) :]


@dataclass(frozen=True, slots=True)
class Branch:
    """Run the branch whose number i32[] is in a slot, or the nearest if that is out of range."""

    number: Slot
    arguments: tuple[Slot, ...]
    results: tuple[Slot, ...]
    branches: tuple[Plan, ...]
    offset: Size


Step = Launch | Call | Copy | Loop | Branch


def shared_donations(plans: Sequence[Plan]) -> tuple[tuple[int, int], ...]:
    """The (argument, result) pairs that may share memory, whichever of the plans runs."""
    first, *others = plans
    return tuple(pair for pair in first.donations if all(pair in plan.donations for plan in others))


def is_one_place(a: Slot, b: Slot) -> bool:
    """Whether two slots begin at the same byte, whatever their types are."""
    # Not the type: a value and its reshape are one buffer.
    return (a.space, a.number, a.offset) == (b.space, b.number, b.offset)


def slots_of(step: Step) -> tuple[Slot, ...]:
    """The slots of a step: in the order of a launch's parameters, or outputs before inputs.

    For a loop or branch, its arguments and results; slots of inner plans are not included.
    """
    match step:
        case Launch(slots=slots):
            return slots
        case Call(outputs=outputs, inputs=inputs):
            return (*outputs, *inputs)
        case Copy(target=target, source=source):
            return (target, source)
        case Loop(arguments=arguments, results=results, holds=holds):
            return (*arguments, *results, *(() if holds is None else (holds,)))
        case Branch(number=number, arguments=arguments, results=results):
            return (*results, number, *arguments)


def kernel_names(step: Step) -> tuple[str, ...]:
    """The kernels that a step runs, including those of its inner plans."""
    if isinstance(step, Launch):
        return (step.kernel,)
    return tuple(name for inner in inner_plans(step) for name in inner.kernels)


def all_steps(plan: Plan) -> Iterator[Step]:
    """The steps of a plan, each before those of its inner plans."""
    for step in plan.steps:
        yield step
        for inner in inner_plans(step):
            yield from all_steps(inner)


def inner_plans(step: Step) -> tuple[Plan, ...]:
    """The plans that a step runs: a condition, if there is one, and a body; or branches."""
    match step:
        case Loop(body=body, condition=condition):
            return (body,) if condition is None else (condition, body)
        case Branch(branches=branches):
            return branches
        case _:
            return ()


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """Steps, kernels, and the memory that they need. `donations` are (argument, result) pairs.

    The kernels are those of its own steps and of its inner plans.
    """

    name: str
    target: str
    arguments: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    steps: tuple[Step, ...]
    kernels: Mapping[str, KernelCode]
    arena_bytes: Size
    size_sources: tuple[SizeSource, ...] = ()
    donations: tuple[tuple[int, int], ...] = ()
    # No arena can be smaller; the difference to `arena_bytes` is lost in gaps.
    live_peak_bytes: Size = field(default=0)
    limits: tuple[tuple[Size, int], ...] = ()  # the most that sizes which become integers may be

    def __repr__(self) -> str:
        operands, results = (", ".join(map(str, types)) for types in (self.arguments, self.results))
        counts = f"{counted(len(self.steps), 'step')}, {counted(len(self.kernels), 'kernel')}"
        return f"Plan({self.name} on {self.target}: ({operands}) -> ({results}), {counts}, arena {self.arena_bytes} B)"


def buffer_type(plan: Plan, slot: Slot) -> ArrayType | None:
    """The type of the argument or result of a slot; None for the arena, or a wrong number."""
    types = plan.arguments if slot.space is Space.ARGUMENT else plan.results
    # plan_check.py reports a slot that has no argument.
    known = slot.space is not Space.ARENA and slot.number < len(types)
    return types[slot.number] if known else None
