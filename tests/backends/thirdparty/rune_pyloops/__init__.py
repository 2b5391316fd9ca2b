"""A backend outside rune's tree: kernels become Python source, `compile()` makes them functions.

Far slower than rune's own executors, and readable: every kernel of a plan is a page of loops that
one may copy into an editor and step through. Buffers are NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rune import dtypes
from rune.backends.shared.executor import Concretes, ConcreteStep, Place, result_buffers, run, static_shape
from rune.core.types import ArrayType
from rune.errors import ArgumentError, CompileError, OutOfMemory
from rune.lowering.codegen.target import Target
from rune.lowering.plan import Copy, Launch, Plan, Space

from .render import NAMESPACE, render

TARGET = Target(
    name="pyloops:0",
    backend="pyloops",
    language="python",
    description="kernels as Python loops",
    dtypes=frozenset(dtypes.ANY),
    vector_bytes=16,
    cores=1,
    threads_per_workgroup=1,
    shared_bytes=0,
    scratch_bytes=1 << 16,
    routines=frozenset(),  # no "dot": matrix products arrive as kernels like any other
)


def probe() -> tuple[list[Target], str | None]:
    """The one device, which needs no driver."""
    return [TARGET], None


def open_device(target: Target) -> PyLoops:
    """The device."""
    return PyLoops(target)


@dataclass(frozen=True, slots=True)
class PyLoops:
    """NumPy arrays are its buffers."""

    target: Target

    def alloc(self, type: ArrayType) -> np.ndarray:
        """An uninitialised array."""
        try:
            return np.empty(static_shape(type), type.dtype)
        except MemoryError as error:
            raise OutOfMemory(f"alloc: cannot allocate {type} ({error})") from error

    def copy_in(self, array: np.ndarray) -> np.ndarray:
        """A dense copy."""
        return np.array(array, order="C")

    def copy_out(self, buffer: np.ndarray, type: ArrayType) -> np.ndarray:
        """A copy."""
        return buffer.reshape(static_shape(type)).copy()

    def record(self, plan: Plan) -> PyLoopsExecutable:
        """Every kernel of the plan as a function. Errors: CompileError with the source."""
        texts = {name: render(code) for name, code in plan.kernels.items()}
        functions = {name: _function(name, text) for name, text in texts.items()}
        return PyLoopsExecutable(plan, self, texts, functions, Concretes(plan))

    def synchronize(self) -> None:
        """Nothing is ever pending."""


def _function(name: str, text: str) -> Callable[..., None]:
    scope = dict(NAMESPACE)
    try:
        exec(compile(text, f"<kernel {name}>", "exec"), scope)
    except SyntaxError as error:
        listing = "\n".join(f"{n:4d}  {line}" for n, line in enumerate(text.splitlines(), 1))
        raise CompileError(f"compile: cannot build {name} ({error})\n{listing}") from error
    return scope[name]


@dataclass(frozen=True, slots=True)
class PyLoopsExecutable:
    """A compiled plan."""

    plan: Plan
    backend: PyLoops
    texts: dict[str, str]
    functions: dict[str, Callable[..., None]]
    concretes: Concretes

    def sources(self) -> dict[str, str]:
        """The Python source of each kernel."""
        return self.texts

    def __call__(self, arguments: Sequence[np.ndarray], donated: Sequence[int] = ()) -> list[np.ndarray]:
        """Run the steps, one after another."""
        concrete_plan = self.concretes([a.shape for a in arguments])
        for number, (argument, type_) in enumerate(zip(arguments, self.plan.arguments, strict=True)):
            if argument.dtype != type_.dtype:
                reason = f"argument {number} is {type_}, given is {argument.dtype}"
                raise ArgumentError(f"{self.plan.name}: cannot run with this argument ({reason})")
        results = result_buffers(self.plan, concrete_plan, arguments, donated, self.backend.alloc, _reuse)
        memory = {
            Space.ARGUMENT: arguments,
            Space.RESULT: results,
            Space.ARENA: [np.empty(concrete_plan.arena_bytes, np.uint8)],
        }
        with np.errstate(all="ignore"):
            run(concrete_plan.steps, _Call(self, concrete_plan.sizes, memory))
        return results


@dataclass(frozen=True, slots=True)
class _Call:
    """One run of a plan: what `run` asks for."""

    executable: PyLoopsExecutable
    sizes: Mapping[str, int]
    memory: Mapping[Space, Sequence[np.ndarray]]

    def flat(self, place: Place) -> np.ndarray:
        """The memory of a place as a flat array."""
        if place.space is not Space.ARENA:
            memory = self.memory[place.space][place.number].reshape(-1)
            return memory.view(place.type.dtype)
        (arena,) = self.memory[Space.ARENA]
        return arena[place.offset : place.offset + place.bytes].view(place.type.dtype)

    def step(self, step: ConcreteStep) -> None:
        """Run one step."""
        arrays = [self.flat(place) for place in step.places]
        match step.step:
            case Launch(kernel=kernel):
                code = self.executable.plan.kernels[kernel]
                function = self.executable.functions[kernel]
                function(*arrays, *(self.sizes[name] for name in code.sizes))
            case Copy():
                target, source = arrays
                target[...] = source
            case other:  # a routine, which the target has none of
                raise CompileError(f"{self.executable.plan.name}: cannot run {other} here")

    def write(self, place: Place, number: int) -> None:
        """Store the number of a loop's step."""
        self.flat(place)[0] = number

    def read(self, place: Place) -> int:
        """The value of a condition or of a branch's number."""
        return int(self.flat(place)[0])


def _reuse(buffer: np.ndarray, type: ArrayType) -> np.ndarray:
    return buffer.view(type.dtype).reshape(static_shape(type))
