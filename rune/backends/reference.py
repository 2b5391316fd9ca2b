"""The reference executor: kernel code interpreted in NumPy, with every check on.

Slow, and the meaning of all others: bounds, races, uninitialised reads and the plan itself are
checked at every call. The arena starts as 0xff bytes, which are NaN for every float, so that a
read of what no step has written shows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.backends.null import check_plan
from rune.backends.shared import host_memory
from rune.backends.shared.callbacks import fill, function_of, is_callback
from rune.backends.shared.executor import (
    Concrete,
    Concretes,
    ConcreteStep,
    Place,
    dot_shapes,
    result_buffers,
    run,
    static_shape,
)
from rune.backends.shared.pool import MemoryStats
from rune.backends.shared.work import Work, WorkStats
from rune.core.types import ArrayType
from rune.errors import ArgumentError, OutOfMemory
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.text import to_text
from rune.lowering.kernelize.walks import concrete_parameters, strided_product
from rune.lowering.plan import Call, Copy, Launch, Plan, Space

if TYPE_CHECKING:
    from rune.backends.shared.timing import Meter


@dataclass(slots=True)
class ReferenceExecutable:
    """A checked plan, ready to be interpreted."""

    plan: Plan
    concretes: Concretes
    work: Work
    meter: Meter | None = None

    def __call__(
        self, arguments: Sequence[np.ndarray], donated: Sequence[int] = ()
    ) -> list[np.ndarray]:
        """Run the plan on NumPy arrays. Errors: OutOfMemory, for all points of a loop are held."""
        self.work.begin()
        try:
            return self._run(arguments, donated)
        finally:
            self.work.end()

    def _run(self, arguments: Sequence[np.ndarray], donated: Sequence[int]) -> list[np.ndarray]:
        made = self.concretes([a.shape for a in arguments])
        self.check_arguments(arguments)
        results = result_buffers(self.plan, made, arguments, donated, _empty, _reuse)
        arena = np.full(made.arena_bytes, 0xFF, np.uint8)
        try:
            walker = _Run(self.plan, made, list(arguments), results, arena)
            run(made.steps, walker if self.meter is None else _TimedRun(walker, self.meter))
        except OutOfMemory:  # of a callback
            raise
        except MemoryError as error:
            raise OutOfMemory(
                f"{self.plan.name}: cannot interpret the program ({error})",
                hint="the reference executor holds all points of a loop at once; use smaller sizes",
            ) from error
        return results

    def check_arguments(self, arguments: Sequence[np.ndarray]) -> None:
        for number, (array, type_) in enumerate(zip(arguments, self.plan.arguments, strict=True)):
            if array.dtype != type_.dtype or not array.flags.c_contiguous:
                given = f"argument {number} is {type_}, given is {array.dtype}{list(array.shape)}"
                raise ArgumentError(f"{self.plan.name}: cannot run with this argument ({given})")

    def sources(self) -> dict[str, str]:
        """The kernels as kernel code."""
        return {name: to_text(code) for name, code in self.plan.kernels.items()}


@dataclass(slots=True)
class _Run:
    plan: Plan
    made: Concrete
    arguments: list[np.ndarray]
    results: list[np.ndarray]
    arena: np.ndarray

    def array(self, place: Place) -> np.ndarray:
        """The place as a flat array that shares its memory."""
        match place.space:
            case Space.ARGUMENT:
                return self.arguments[place.number].reshape(-1).view(place.type.dtype)
            case Space.RESULT:
                return self.results[place.number].reshape(-1).view(place.type.dtype)
            case Space.ARENA:
                memory = self.arena[place.offset : place.offset + place.bytes]
                return memory.view(place.type.dtype)

    def read(self, place: Place) -> int:
        """The number in a place."""
        return int(self.array(place)[0])

    def write(self, place: Place, number: int) -> None:
        """Put a number into a place."""
        self.array(place)[0] = number

    def step(self, step: ConcreteStep) -> None:
        """Interpret one step."""
        arrays = [self.array(p) for p in step.places]
        match step.step:
            case Launch(kernel=kernel):
                code = self.plan.kernels[kernel]
                interpret(code, arrays, {name: self.made.sizes[name] for name in code.sizes})
            case Call() as call if is_callback(call):
                types = [p.type for p in step.places]
                fill(function_of(call), arrays, types, len(call.outputs))
            case Call(routine="strided_dot", parameters=parameters):
                out, a, b = arrays
                given = concrete_parameters(dict(parameters), self.made.sizes)
                out[...] = strided_product(a, b, given).reshape(-1)
            case Call(parameters=parameters):
                out, a, b = arrays
                shapes = dot_shapes(dict(parameters), self.made.sizes)
                dot(out, a, b, shapes, dict(parameters))
            case Copy():
                target, source = arrays
                target[...] = source


@dataclass(slots=True)
class _TimedRun:
    """Tells a meter of its steps."""

    run: _Run
    meter: Meter

    def read(self, place: Place) -> int:
        """The number in a place."""
        return self.run.read(place)

    def write(self, place: Place, number: int) -> None:
        """Put a number into a place."""
        self.run.write(place, number)

    def step(self, step: ConcreteStep) -> None:
        """Interpret one step."""
        start = time.perf_counter()
        self.run.step(step)
        self.meter.add(step.step, self.run.made.sizes, time.perf_counter() - start)


def dot(
    out: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    shapes: Sequence[tuple[int, ...]],
    parameters: dict[str, object],
) -> None:
    """The `dot` routine on flat arrays: out [batch, m, n] = a @ b."""
    left, right = a.reshape(shapes[0]), b.reshape(shapes[1])
    left = left.swapaxes(1, 2) if parameters["trans_a"] else left
    right = right.swapaxes(1, 2) if parameters["trans_b"] else right
    out[...] = np.matmul(left, right).reshape(-1)


def _empty(type: ArrayType) -> np.ndarray:
    return host_memory.empty(static_shape(type), type.dtype)


def _reuse(array: np.ndarray, type: ArrayType) -> np.ndarray:
    return array.view(type.dtype).reshape(static_shape(type))


@dataclass(frozen=True, slots=True)
class ReferenceBackend:
    """NumPy arrays are its buffers."""

    target: Target
    work: Work = field(default_factory=Work, compare=False)

    def alloc(self, type: ArrayType) -> np.ndarray:
        """An uninitialised NumPy array."""
        return _empty(type)

    def copy_in(self, array: np.ndarray) -> np.ndarray:
        """A contiguous copy."""
        made = host_memory.empty(array.shape, array.dtype)
        made[...] = array
        return made

    def copy_out(self, buffer: np.ndarray, type: ArrayType) -> np.ndarray:
        """A copy."""
        return buffer.reshape(static_shape(type)).copy()

    def record(self, plan: Plan) -> ReferenceExecutable:
        """The plan, checked. Errors: CheckError."""
        check_plan(plan)
        return ReferenceExecutable(plan, Concretes(plan), self.work)

    def record_timed(self, plan: Plan, meter: Meter) -> ReferenceExecutable:
        """The plan, checked, with its steps timed. Errors: CheckError."""
        check_plan(plan)
        return ReferenceExecutable(plan, Concretes(plan), self.work, meter)

    def synchronize(self) -> None:
        """Nothing is ever pending."""

    def memory_stats(self) -> MemoryStats:
        """Those of the host's memory, which is where its arrays are."""
        return host_memory.stats()

    def work_stats(self) -> WorkStats:
        """Counts of calls until now."""
        return self.work.stats()


TARGET = Target(
    name="reference:0",
    backend="reference",
    language="none",
    description="NumPy interpreter of kernel code, every check on",
    dtypes=frozenset(dtypes.ANY),
    vector_bytes=16,
    cores=1,
    threads_per_workgroup=1024,
    shared_bytes=1 << 15,
    scratch_bytes=1 << 16,
    routines=frozenset({"dot"}),
)


def probe() -> tuple[list[Target], str | None]:
    """The one reference device."""
    return [TARGET], None


def open_device(target: Target) -> ReferenceBackend:
    """The reference device."""
    return ReferenceBackend(target)
