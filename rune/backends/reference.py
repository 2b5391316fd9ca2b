"""The reference executor: kernel code interpreted in NumPy, with every check on.

It is slow, and defines the meaning of kernel code for all other executors. Each call checks bounds,
races and uninitialised reads; recording checks the plan. The arena starts as 0xff bytes, which are
NaN in every float dtype, so that a read of bytes that no step has written shows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from rune.backends.shared import host_memory
from rune.backends.shared.callbacks import fill, function_of, is_callback
from rune.backends.shared.checking import CheckingBackend, CheckingExecutable, checking_target
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
from rune.backends.shared.plan_check import check_plan
from rune.backends.shared.pool import MemoryStats
from rune.backends.shared.timing import Meter, TimedWalker
from rune.core.types import ArrayType
from rune.errors import ArgumentError, OutOfMemory
from rune.lowering.codegen.target import Target
from rune.lowering.factors import factor_in_numpy, factor_of, is_factor
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernelize.walks import concrete_parameters, strided_product
from rune.lowering.plan import Call, Copy, Launch, Plan, Space
from rune.lowering.steps import transform_kind, transform_sizes
from rune.ops.complex_numbers import WHOLE
from rune.records import dataclass

TARGET = checking_target("reference", "NumPy interpreter of kernel code, every check on")


def probe() -> tuple[list[Target], str | None]:
    """The one reference device."""
    return [TARGET], None


def open_device(target: Target) -> ReferenceBackend:
    """The reference device."""
    return ReferenceBackend(target)


@dataclass(frozen=True, slots=True)
class ReferenceBackend(CheckingBackend):
    """The reference device, whose buffers are NumPy arrays."""

    def alloc(self, type: ArrayType) -> np.ndarray:
        """An uninitialised NumPy array."""
        return _empty(type)

    def copy_in(self, array: np.ndarray) -> np.ndarray:
        """A contiguous copy."""
        buffer = host_memory.empty(array.shape, array.dtype)
        # A copy, because the caller may change the host array afterwards.
        buffer[...] = array
        return buffer

    def copy_out(self, buffer: np.ndarray, type: ArrayType) -> np.ndarray:
        """A copy."""
        return buffer.reshape(static_shape(type)).copy()

    def record(self, plan: Plan) -> ReferenceExecutable:
        """The plan, checked. Errors: CheckError."""
        check_plan(plan)
        return ReferenceExecutable(plan, Concretes(plan), self.work)

    @property
    def has_clock(self) -> bool:
        """Never: the host is the device."""
        return False

    def record_timed(self, plan: Plan, meter: Meter) -> ReferenceExecutable:
        """The plan, checked, with its steps timed. Errors: CheckError."""
        check_plan(plan)
        return ReferenceExecutable(plan, Concretes(plan), self.work, meter)

    def memory_stats(self) -> MemoryStats:
        """Counts of host memory, in which its arrays lie."""
        return host_memory.stats()


def _empty(type: ArrayType) -> np.ndarray:
    return host_memory.empty(static_shape(type), type.dtype)


def _reuse(array: np.ndarray, type: ArrayType) -> np.ndarray:
    return array.view(type.dtype).reshape(static_shape(type))


@dataclass(slots=True)
class ReferenceExecutable(CheckingExecutable):
    """A checked plan, ready to be interpreted; `meter` records the time of each step."""

    meter: Meter | None = None

    def run(self, arguments: Sequence[np.ndarray], donated: Sequence[int]) -> list[np.ndarray]:
        """Run the plan on NumPy arrays.

        Errors: OutOfMemory, since the interpreter holds all points of a loop at once.
        """
        concrete = self.concretes([a.shape for a in arguments])
        self.check_arguments(arguments)
        results = result_buffers(self.plan, concrete, arguments, donated, _empty, _reuse)
        # All ones is NaN in every float dtype, so reading memory before it is written shows.
        arena = np.full(concrete.arena_bytes, 0xFF, np.uint8)
        try:
            run(concrete.steps, self._walker(concrete, arguments, results, arena))
        except OutOfMemory:  # raised by a callback, and complete
            raise
        except MemoryError as error:
            raise OutOfMemory(
                f"{self.plan.name}: cannot interpret the program ({error})",
                hint="the reference executor holds all points of a loop at once; use smaller sizes",
            ) from error
        return results

    def _walker(
        self, concrete: Concrete, arguments: Sequence[np.ndarray], results: list[np.ndarray], arena: np.ndarray
    ) -> _Run | TimedWalker:
        walker = _Run(self.plan, concrete, list(arguments), results, arena)
        if self.meter is None:
            return walker
        return TimedWalker(walker, partial(_seconds, walker), self.meter, concrete.sizes)

    def check_arguments(self, arguments: Sequence[np.ndarray]) -> None:
        """Errors: ArgumentError for an array of another dtype, or one that is not contiguous."""
        for number, (array, type_) in enumerate(zip(arguments, self.plan.arguments, strict=True)):
            if array.dtype != type_.dtype or not array.flags.c_contiguous:
                actual = ArrayType(array.shape, array.dtype)
                requirement = "contiguous" if array.dtype == type_.dtype else f"{type_}, not {actual}"
                misfit = f"argument {number} must be {requirement}"
                raise ArgumentError(f"{self.plan.name}: cannot run with this argument ({misfit})")


def _seconds(walker: _Run, step: ConcreteStep) -> float:
    """Run a step; returns the seconds that it took."""
    start = time.perf_counter()
    walker.step(step)
    return time.perf_counter() - start


@dataclass(slots=True)
class _Run:
    """Interprets the steps of one call."""

    plan: Plan
    concrete: Concrete
    arguments: list[np.ndarray]
    results: list[np.ndarray]
    arena: np.ndarray

    def array(self, place: Place) -> np.ndarray:
        """The place as a flat view of its memory."""
        match place.space:
            case Space.ARGUMENT:
                return self.arguments[place.number].reshape(-1).view(place.type.dtype)
            case Space.RESULT:
                return self.results[place.number].reshape(-1).view(place.type.dtype)
            case Space.ARENA:
                # A slice is a view, so steps share the arena's bytes as they do on a device.
                memory = self.arena[place.offset : place.offset + place.bytes]
                return memory.view(place.type.dtype)

    def read(self, place: Place) -> int:
        """The number in a place."""
        return int(self.array(place)[0])

    def write(self, place: Place, number: int) -> None:
        """Store a number in a place."""
        self.array(place)[0] = number

    def step(self, step: ConcreteStep) -> None:
        """Interpret one step."""
        arrays = [self.array(p) for p in step.places]
        match step.step:
            case Launch(kernel=kernel):
                code = self.plan.kernels[kernel]
                interpret(code, arrays, {name: self.concrete.sizes[name] for name in code.sizes})
            case Call() as call if is_callback(call):
                types = [p.type for p in step.places]
                fill(function_of(call), arrays, types, len(call.outputs))
            case Call(routine="strided_dot", parameters=parameters):
                out, a, b = arrays
                walks = concrete_parameters(dict(parameters), self.concrete.sizes)
                out[...] = strided_product(a, b, walks).reshape(-1)
            case Call(routine="line_fft") as call:
                transform(arrays, transform_sizes(call), transform_kind(call))
            case Call() as call if is_factor(call):
                factor_in_numpy(factor_of(call), arrays)
            case Call(parameters=parameters):
                out, a, b = arrays
                shapes = dot_shapes(dict(parameters), self.concrete.sizes)
                dot(out, a, b, shapes, dict(parameters))
            case Copy():
                target, source = arrays
                target[...] = source


def transform(arrays: Sequence[np.ndarray], shape: tuple[int, ...], kind: str = "fft") -> None:
    """The `line_fft` routine on flat arrays.

    Four arrays: real and imaginary parts of the result, then those of the operand. Two arrays: the
    result and the operand, complex ones interleaved.
    """
    if len(arrays) == 2:
        outer, n, inner = shape
        is_real = {"rfft": (False, True), "irfft": (True, False)}.get(kind, (False, False))
        out, x = (v if real else v.view(WHOLE[v.dtype]) for v, real in zip(arrays, is_real, strict=True))
        # NumPy's functions of one axis have the names of the kinds.
        result = getattr(np.fft, kind)(x.reshape(outer, -1, inner), n, axis=1)
        out[...] = result.reshape(-1)
        return
    out_real, out_imag, real, imag = (x.reshape(shape) for x in arrays)
    # Never the inverse: with parts apart it is written as an exchange of them (fourier/lines.py).
    spectrum = np.fft.fft(real + 1j * imag, axis=1)
    out_real[...], out_imag[...] = spectrum.real, spectrum.imag


def dot(
    out: np.ndarray, a: np.ndarray, b: np.ndarray, shapes: Sequence[tuple[int, ...]], parameters: dict[str, object]
) -> None:
    """The `dot` routine on flat arrays: out [batch, m, n] = a @ b."""
    lhs, rhs = a.reshape(shapes[0]), b.reshape(shapes[1])
    # Axis 0 is the batch.
    lhs = lhs.swapaxes(1, 2) if parameters["trans_a"] else lhs
    rhs = rhs.swapaxes(1, 2) if parameters["trans_b"] else rhs
    out[...] = np.matmul(lhs, rhs).reshape(-1)
