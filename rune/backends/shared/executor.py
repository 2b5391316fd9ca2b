"""The sizes of one call, and the concrete plan for them: shared by all executors.

A plan may be symbolic; a call is not. `size_values` reads the sizes from the arguments' shapes and
checks them; `concrete` evaluates offsets, shapes and bytes once per distinct sizes, and places the
memory of the plans within loops and branches in this plan's memory. `run` walks the steps of an
executor whose host decides which step is next.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from rune import dims
from rune.backends.shared.bounded import Bounded
from rune.core.sizes import Arguments, read_sizes
from rune.core.types import ArrayType
from rune.dims import Dim, Size
from rune.errors import ArgumentError
from rune.lowering.plan import Branch, Copy, Loop, Plan, Slot, Space, Step, is_one_place, slots_of
from rune.lowering.size_values import too_large
from rune.records import dataclass

Shape = tuple[int, ...]
Number = Any  # an int; a Size in a plan for all sizes, whose numbers a host computes


@dataclass(frozen=True, slots=True)
class Place:
    """A slot of one call: `bytes` from `offset` on in the arena, or an entire argument or
    result."""

    space: Space
    number: int
    offset: Number
    bytes: Number
    type: ArrayType

    @property
    def memory(self) -> tuple[Space, int, Number, Number]:
        """The bytes, without their type."""
        return self.space, self.number, self.offset, self.bytes


@dataclass(frozen=True, slots=True)
class ConcreteStep:
    """A step and its places: a launch's in the order of the kernel's parameters, of other steps the
    outputs, then the inputs."""

    step: Step
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class ConcreteLoop:
    """A loop. Its programs occur once, or twice where carries alternate: for even and for odd
    steps.

    `settle` follows an odd number of steps, and moves the carries that are then in the wrong place.
    """

    step: Loop
    count: Number | None
    arrays: tuple[Place, ...]  # of state that is uninitialised before the first step
    counter: Place
    holds: Place | None
    conditions: tuple[Steps, ...]
    bodies: tuple[Steps, ...]
    settle: Steps


@dataclass(frozen=True, slots=True)
class ConcreteBranch:
    """A branch, and the place that holds its index."""

    step: Branch
    number: Place
    branches: tuple[Steps, ...]


Steps = tuple[ConcreteStep | ConcreteLoop | ConcreteBranch, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Concrete:
    """A plan for one choice of sizes. Compared by identity: executors use it as a key."""

    sizes: Mapping[str, int]
    steps: Steps
    results: tuple[ArrayType, ...]
    arena_bytes: Number


def evaluate(x: Size, sizes: Mapping[str, int]) -> int:
    """The value of a size."""
    return dims.evaluate(x, sizes) if isinstance(x, Dim) else x


def concrete_type(type: ArrayType, sizes: Mapping[str, int]) -> ArrayType:
    """The type with integers in place of its symbolic dimensions."""
    # Most plans have no symbolic sizes, and their types need no new object.
    if not type.is_symbolic:
        return type
    return type.with_shape(tuple(evaluate(d, sizes) for d in type.shape))


def size_bytes(type: ArrayType) -> int:
    """Bytes of an array of static shape."""
    return math.prod(evaluate(d, {}) for d in type.shape) * type.dtype.itemsize


def static_shape(type: ArrayType) -> Shape:
    """The shape of a type without symbolic dimensions."""
    return tuple(evaluate(d, {}) for d in type.shape)


def size_values(plan: Plan, shapes: Sequence[Shape]) -> dict[str, int]:
    """The plan's symbolic sizes, read from the arguments' shapes.

    Errors: ArgumentError for a wrong number of arguments; DimensionError for a size outside its
    range, "f: cannot run with n = 0 (n in 1..4096; axis 0 of argument 0)", and for shapes that
    contradict each other.
    """
    if len(shapes) != len(plan.arguments):
        counts = f"{len(shapes)} given, {len(plan.arguments)} expected"
        raise ArgumentError(f"{plan.name}: cannot run with these arguments ({counts})")
    arguments = Arguments(f"{plan.name}: cannot run", plan.arguments, shapes)
    # The order matters: a size may be read with a factor that mentions an earlier one.
    sizes = {n: evaluate(x, {}) for n, x in read_sizes(arguments, plan.size_sources).items()}
    for excess in too_large(plan.limits, sizes):
        hint = "give the size a dtype that holds it, or use it as a float"
        arguments.refuse(f"with {excess}", hint)
    return sizes


def concrete(plan: Plan, sizes: Mapping[str, int] | None) -> Concrete:
    """The plan for these sizes; for None a plan for all sizes, whose numbers are Sizes."""
    arguments = (Slot(Space.ARGUMENT, t, n) for n, t in enumerate(plan.arguments))
    results = (Slot(Space.RESULT, t, n) for n, t in enumerate(plan.results))
    argument_places = tuple(_own_place(s, sizes) for s in arguments)
    result_places = tuple(_own_place(s, sizes) for s in results)
    frame = _Frame(sizes, argument_places, result_places, 0)
    types = tuple(_own_type(t, sizes) for t in plan.results)
    return Concrete(dict(sizes or {}), frame.steps(plan), types, _value(plan.arena_bytes, sizes))


def _value(x: Size, sizes: Mapping[str, int] | None) -> Number:
    return x if sizes is None else evaluate(x, sizes)


def _own_type(type: ArrayType, sizes: Mapping[str, int] | None) -> ArrayType:
    return type if sizes is None else concrete_type(type, sizes)


def _own_place(slot: Slot, sizes: Mapping[str, int] | None) -> Place:
    type_ = _own_type(slot.type, sizes)
    nbytes = dims.product(type_.shape) * type_.dtype.itemsize
    return Place(slot.space, slot.number, _value(slot.offset, sizes), nbytes, type_)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The places of one plan's arguments, results and arena in the memory of the outermost plan."""

    sizes: Mapping[str, int] | None
    arguments: tuple[Place, ...]
    results: tuple[Place, ...]
    base: Number

    def place(self, slot: Slot) -> Place:
        """The place of a slot, with the slot's own type and bytes."""
        local = _own_place(slot, self.sizes)
        if slot.space is Space.ARENA:
            # Offsets of an inner plan count from its own arena, which begins at `base` in the outer
            # one.
            return replace(local, offset=self.base + local.offset)
        outer = self.arguments if slot.space is Space.ARGUMENT else self.results
        # A slot that does not exist keeps its number, so that `check_plan` can name it.
        known = slot.number < len(outer)
        return replace(outer[slot.number], bytes=local.bytes, type=local.type) if known else local

    def places(self, slots: Iterable[Slot]) -> tuple[Place, ...]:
        """The places of slots."""
        return tuple(map(self.place, slots))

    def steps(self, plan: Plan) -> Steps:
        """The steps of the plan, without copies between slots that share one place in this
        frame."""
        concrete_steps: list[Any] = []
        for step in plan.steps:
            match step:
                case Loop():
                    concrete_steps.append(self.loop(step))
                case Branch():
                    concrete_steps.append(self.branch(step))
                case _:
                    places = self.places(slots_of(step))
                    # Two slots of a body are one place of the loop where the body works in place.
                    if not (_is_copy_between(step) and places[0].memory == places[1].memory):
                        concrete_steps.append(ConcreteStep(step, places))
        return tuple(concrete_steps)

    def loop(self, step: Loop) -> ConcreteLoop:
        """A loop, with its inner steps."""
        # Arguments are the counter, the constants, then the state.
        arguments, state = self.places(step.arguments), self.places(step.state)
        results = self.places(step.results)
        constants = arguments[: len(arguments) - len(state)]
        is_in_place = all(a.memory == b.memory for a, b in zip(state, results, strict=True))
        # One step's results are the next one's state, so the two swap roles after every step.
        turns = [(state, results), (results, state)][: 1 if is_in_place else 2]
        base = self.base + _value(step.offset, self.sizes)
        frames = [
            _Frame(self.sizes, (*constants, *state_places), result_places, base)
            for state_places, result_places in turns
        ]
        pairs = zip(step.state, step.results, state, results, strict=True)
        condition, holds = step.condition, [s for s in (step.holds,) if s is not None]
        return ConcreteLoop(
            step,
            None if step.count is None else _value(step.count, self.sizes),
            arguments[len(arguments) - step.arrays :],
            arguments[0],
            self.place(holds[0]) if holds else None,
            () if condition is None else tuple(replace(f, results=self.places(holds)).steps(condition) for f in frames),
            tuple(f.steps(step.body) for f in frames),
            # After an odd number of steps the final values lie where the results are, and must be
            # moved.
            tuple(ConcreteStep(Copy(a, b), (x, y)) for a, b, x, y in pairs if x.memory != y.memory),
        )

    def branch(self, step: Branch) -> ConcreteBranch:
        """A branch, with its inner steps."""
        base = self.base + _value(step.offset, self.sizes)
        places = self.places(step.arguments), self.places(step.results)
        within = _Frame(self.sizes, *places, base)
        branches = tuple(map(within.steps, step.branches))
        return ConcreteBranch(step, self.place(step.number), branches)


def all_concrete(steps: Steps) -> Iterator[ConcreteStep]:
    """The launches, calls and copies among the steps and their inner steps."""
    for step in steps:
        match step:
            case ConcreteStep():
                yield step
            case ConcreteBranch(branches=branches):
                yield from all_concrete(tuple(itertools.chain(*branches)))
            case ConcreteLoop(conditions=conditions, bodies=bodies, settle=settle):
                yield from all_concrete(tuple(itertools.chain(*conditions, *bodies, settle)))


def _is_copy_between(step: Step) -> bool:
    return isinstance(step, Copy) and not is_one_place(step.target, step.source)


# --- walking ----------------------------------------------------------------------------------


class Walker(Protocol):
    """An executor whose host runs one step after the other."""

    def step(self, step: ConcreteStep) -> None:
        """Run one step."""
        ...

    def write(self, place: Place, number: int) -> None:
        """Store an i32."""
        ...

    def read(self, place: Place) -> int:
        """An i32 or bool, after all earlier steps have finished."""
        ...


def run(steps: Steps, walker: Walker) -> None:
    """Run the steps; loops and branches decide which."""
    for step in walk(steps, walker):
        walker.step(step)


def walk(steps: Steps, walker: Walker) -> Iterator[ConcreteStep]:
    """The steps to run, in order. The caller must run each before it asks for the next one."""
    for item in steps:
        match item:
            case ConcreteStep():
                yield item
            case ConcreteBranch(branches=branches):
                last = len(branches) - 1
                # A read waits for the device, so a branch without alternatives reads nothing.
                number = walker.read(item.number) if last else 0
                # An index out of range selects the nearest branch, as lax.switch does.
                yield from walk(branches[min(max(number, 0), last)], walker)
            case ConcreteLoop():
                yield from _walk_loop(item, walker)


def _walk_loop(loop: ConcreteLoop, walker: Walker) -> Iterator[ConcreteStep]:
    turns, t = len(loop.bodies), 0
    while t != loop.count:
        # Before the condition, which may read the counter as well as the body.
        walker.write(loop.counter, t)
        if loop.holds is not None:
            # Conditions alternate like bodies: they read the carries where the last step put them.
            yield from walk(loop.conditions[t % len(loop.conditions)], walker)
            if not walker.read(loop.holds):
                break
        yield from walk(loop.bodies[t % turns], walker)
        t += 1
    if t % turns:
        yield from walk(loop.settle, walker)


class Concretes:
    """The most recent concrete plans of one executable, by the arguments' shapes."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self._plans: Bounded[tuple[Shape, ...], Concrete] = Bounded()

    def __call__(self, shapes: Sequence[Shape]) -> Concrete:
        """The concrete plan for arguments of these shapes."""
        key = tuple(shapes)
        concrete_plan = self._plans.get(key)
        if concrete_plan is None:
            concrete_plan = self._plans.keep(key, concrete(self.plan, size_values(self.plan, key)))
        return concrete_plan


def result_buffers(
    plan: Plan,
    concrete_plan: Concrete,
    arguments: Sequence[object],
    donated: Sequence[int],
    alloc: Callable[[ArrayType], Any],
    reuse: Callable[[Any, ArrayType], Any],
) -> list[Any]:
    """A buffer per result: a donated argument's memory where the plan allows it, else new
    memory."""
    # The plan lists which arguments a result may overwrite, the caller which it gives up.
    donors = {result: argument for argument, result in plan.donations if argument in donated}
    return [
        reuse(arguments[donors[number]], type_) if number in donors else alloc(type_)
        for number, type_ in enumerate(concrete_plan.results)
    ]


def dot_shapes(parameters: Mapping[str, Any], sizes: Mapping[str, int]) -> tuple[Shape, Shape, Shape]:
    """Shapes in memory of the operands and the result of the `dot` routine: a, b, out.

    a is [batch, m, k], or [batch, k, m] with trans_a; b is [batch, k, n] or [batch, n, k].
    """
    batch, m, n, k = (evaluate(parameters[name], sizes) for name in ("batch", "m", "n", "k"))
    a = (batch, k, m) if parameters["trans_a"] else (batch, m, k)
    b = (batch, n, k) if parameters["trans_b"] else (batch, k, n)
    return a, b, (batch, m, n)
