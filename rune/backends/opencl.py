"""OpenCL through pyopencl: one context and one in-order queue per device.

A plan becomes one program. Its kernels keep their arguments from call to call; only what changed
is set again. Intermediates share one arena per device, which grows to the largest plan: commands
run in order, so that one call's arena is free for the next. A buffer may be released while
commands still use it: the runtime keeps it until they end.

Invariant: handles never leave this file. Nothing is launched over an empty grid.
"""

from __future__ import annotations

import functools
import math
import re
import threading
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rune import dtypes
from rune.backends.executor import (
    Concrete,
    Concretes,
    ConcreteStep,
    Place,
    evaluate,
    result_buffers,
    size_bytes,
    static_shape,
)
from rune.core.types import ArrayType
from rune.errors import ArgumentError, CompileError, DeviceError, OutOfMemory
from rune.lowering.codegen.cstyle import Rendered, assemble, render
from rune.lowering.codegen.opencl_c import OPENCL_C
from rune.lowering.codegen.target import Target
from rune.lowering.plan import Call, Copy, Launch, Plan, Space

_ALWAYS = frozenset(OPENCL_C.scalars) - {dtypes.f64}
_WORKGROUP = 256  # threads, where the kernel leaves the choice


@functools.cache
def _driver() -> Any:
    """pyopencl, imported on first use; its own warnings are not the user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyopencl

        return pyopencl


def _handles() -> list[Any]:
    return [d for platform in _driver().get_platforms() for d in platform.get_devices()]


def probe() -> tuple[list[Target], str | None]:
    """The OpenCL devices of all platforms, GPUs first."""
    try:
        handles = _handles()
    except ImportError as error:
        return [], f"pyopencl cannot be imported ({error}); pip install pyopencl"
    except Exception as error:  # a driver may fail in any way: the reason is reported
        return [], f"no OpenCL platform ({type(error).__name__}: {error})"
    found = [_target(number, handle) for number, handle in enumerate(handles)]
    return found, None if found else "the OpenCL platforms have no device"


def _target(number: int, device: Any) -> Target:
    has_f64 = "cl_khr_fp64" in device.extensions.split()
    on_cpu = bool(device.type & _driver().device_type.CPU)
    return Target(
        name=f"opencl:{number}",
        backend="opencl",
        language="opencl",
        description=f"{device.name.strip()} ({device.platform.name.strip()})",
        dtypes=_ALWAYS | {dtypes.f64} if has_f64 else _ALWAYS,
        vector_bytes=4 * max(1, device.native_vector_width_float),
        cores=device.max_compute_units,
        threads_per_workgroup=device.max_work_group_size,
        shared_bytes=device.local_mem_size,
        scratch_bytes=1 << 15 if on_cpu else 1 << 12,
        routines=frozenset(),
    )


def open_device(target: Target) -> OpenCLBackend:
    """The device that `probe` listed under this name."""
    handles = _handles()
    number = int(target.name.split(":")[1])
    if number >= len(handles):
        raise DeviceError(f"device: cannot open {target.name} ({len(handles)} OpenCL devices)")
    return OpenCLBackend(target, handles[number])


@dataclass(slots=True, eq=False, weakref_slot=True)
class Memory:
    """A memory object of the driver."""

    handle: Any
    bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class OpenCLBuffer:
    """An array in device memory; the memory is freed with the last buffer that holds it."""

    memory: Memory
    type: ArrayType
    shape: tuple[int, ...]


class OpenCLBackend:
    """One OpenCL device."""

    def __init__(self, target: Target, device: Any):
        cl = _driver()
        self.target = target
        self.device = device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.lock = threading.Lock()
        self.used_bytes = 0
        self._arena: Memory | None = None

    # --- memory ------------------------------------------------------------------------------

    def allocate(self, asked: int) -> Memory:
        """Device memory. Errors: OutOfMemory."""
        cl = _driver()
        limit = min(self.device.max_mem_alloc_size, self.device.global_mem_size - self.used_bytes)
        if asked > limit:
            raise self._out_of_memory(asked)
        try:
            handle = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(1, asked))
        except (cl.MemoryError, cl.RuntimeError) as error:
            raise self._out_of_memory(asked) from error
        memory = Memory(handle, asked)
        self.used_bytes += asked
        weakref.finalize(memory, self._release, asked)
        return memory

    def _release(self, size: int) -> None:
        self.used_bytes -= size

    def _out_of_memory(self, asked: int) -> OutOfMemory:
        total, largest = self.device.global_mem_size, self.device.max_mem_alloc_size
        return OutOfMemory(
            f"alloc: cannot allocate {asked} B on {self.target.name} "
            f"(used {self.used_bytes} B, limit {total} B, of one buffer {largest} B)"
        )

    def arena(self, size: int) -> Memory:
        """The memory that all plans of the device share for their intermediates."""
        if self._arena is None or self._arena.bytes < size:
            self._arena = None
            self._arena = self.allocate(size)
        return self._arena

    def alloc(self, type: ArrayType) -> OpenCLBuffer:
        """Uninitialised device memory for one array."""
        return OpenCLBuffer(self.allocate(size_bytes(type)), type, static_shape(type))

    def copy_in(self, array: np.ndarray) -> OpenCLBuffer:
        """The array on the device; returns when the host array may change."""
        buffer = self.alloc(ArrayType(array.shape, array.dtype))
        if array.size:
            host = np.ascontiguousarray(array).view(np.uint8) if array.ndim else array
            _driver().enqueue_copy(self.queue, buffer.memory.handle, host, is_blocking=True)
        return buffer

    def copy_out(self, buffer: OpenCLBuffer, type: ArrayType) -> np.ndarray:
        """The contents as a new host array."""
        host = np.empty(size_bytes(type), np.uint8)
        if host.size:
            _driver().enqueue_copy(self.queue, host, buffer.memory.handle, is_blocking=True)
        return host.view(type.dtype).reshape(static_shape(type))

    def synchronize(self) -> None:
        """Wait for the queue to drain."""
        self.queue.finish()

    # --- plans -------------------------------------------------------------------------------

    def record(self, plan: Plan) -> OpenCLExecutable:
        """The plan as one OpenCL program. Errors: CompileError with the numbered source."""
        for step in plan.steps:
            if isinstance(step, Call):
                raise CompileError(f"record: cannot call {step.routine} on {self.target.name}")
        kernels = {name: render(code, OPENCL_C) for name, code in plan.kernels.items()}
        program = self.build(assemble(list(kernels.values()), OPENCL_C), plan.name)
        return OpenCLExecutable(self, plan, kernels, program)

    def build(self, source: str, name: str) -> Any:
        """A compiled program."""
        cl = _driver()
        options = ["-cl-std=CL1.2"]
        if self.device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a compiler's remarks are no errors
                return cl.Program(self.context, source).build(options)
        except cl.RuntimeError as error:
            where = f"{name} for {self.target.name}"
            raise CompileError(
                f"compile: cannot build {where} ({error})\n{_excerpt(source, str(error))}"
            ) from error


@dataclass(slots=True)
class _Kernel:
    """The kernel of one launch. `given` are the arguments it holds now."""

    handle: Any
    rendered: Rendered
    most_threads: int
    multiple: int
    given: list[Any] = field(default_factory=list)

    def set_arguments(self, values: Sequence[Any]) -> None:
        """Set what differs from the last call."""
        if not self.given:
            self.given = [None] * len(values)
        for number, value in enumerate(values):
            # Memory is held weakly: an argument of the last call must not outlive its array.
            held = weakref.ref(value) if isinstance(value, Memory) else value
            if self.given[number] != held:
                raw = value.handle if isinstance(value, Memory) else np.int64(value)
                self.handle.set_arg(number, raw)
                self.given[number] = held


class OpenCLExecutable:
    """A compiled plan."""

    def __init__(
        self, backend: OpenCLBackend, plan: Plan, kernels: dict[str, Rendered], program: Any
    ):
        self.plan = plan
        self._backend = backend
        self._rendered = kernels
        self._concretes = Concretes(plan)
        self._kernels = [
            self._kernel(program, kernels[step.kernel]) if isinstance(step, Launch) else None
            for step in plan.steps
        ]

    def _kernel(self, program: Any, rendered: Rendered) -> _Kernel:
        cl, device = _driver(), self._backend.device
        handle = cl.Kernel(program, rendered.name)
        info = cl.kernel_work_group_info
        most = handle.get_work_group_info(info.WORK_GROUP_SIZE, device)
        multiple = handle.get_work_group_info(info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
        on_cpu = device.type & cl.device_type.CPU
        return _Kernel(handle, rendered, most, 1 if on_cpu else multiple)

    def sources(self) -> dict[str, str]:
        """Each kernel as a program of its own, by name."""
        return {name: assemble([r], OPENCL_C) for name, r in self._rendered.items()}

    def __call__(
        self, arguments: Sequence[OpenCLBuffer], donated: Sequence[int] = ()
    ) -> list[OpenCLBuffer]:
        """Enqueue all steps; returns at once."""
        made = self._concretes([a.shape for a in arguments])
        for number, (buffer, type_) in enumerate(zip(arguments, self.plan.arguments, strict=True)):
            if buffer.type.dtype != type_.dtype:
                given = f"argument {number} is {type_}, given is {buffer.type}"
                raise ArgumentError(f"{self.plan.name}: cannot run with this argument ({given})")
        backend = self._backend
        results = result_buffers(self.plan, made, arguments, donated, backend.alloc, _reuse)
        with backend.lock:
            memories = {
                Space.ARGUMENT: [a.memory for a in arguments],
                Space.RESULT: [r.memory for r in results],
                Space.ARENA: [backend.arena(made.arena_bytes)] if made.arena_bytes else [],
            }
            for step, kernel in zip(made.steps, self._kernels, strict=True):
                self._enqueue(step, kernel, memories, made)
            backend.queue.flush()
        return results

    def _enqueue(
        self,
        step: ConcreteStep,
        kernel: _Kernel | None,
        memories: dict[Space, list[Memory]],
        made: Concrete,
    ) -> None:
        cl, queue = _driver(), self._backend.queue
        held = [memories[p.space][_number(p)] for p in step.places]
        if isinstance(step.step, Copy):
            target, source = step.places
            if target.bytes:
                cl.enqueue_copy(
                    queue, held[0].handle, held[1].handle, byte_count=target.bytes,
                    dst_offset=target.offset, src_offset=source.offset,
                )  # fmt: skip
            return
        assert kernel is not None
        grid = [evaluate(x, made.sizes) for x in kernel.rendered.grid] or [1]
        if 0 in grid:
            return
        values: list[Any] = []
        for memory, place in zip(held, step.places, strict=True):
            values += [memory, place.offset // place.type.dtype.itemsize]
        values += [made.sizes[name] for name in kernel.rendered.sizes]
        kernel.set_arguments(values)
        total, local = self._shape(kernel, grid)
        try:
            cl.enqueue_nd_range_kernel(queue, kernel.handle, total, local)
        except cl.MemoryError as error:
            raise self._backend._out_of_memory(made.arena_bytes) from error

    def _shape(self, kernel: _Kernel, grid: list[int]) -> tuple[list[int], list[int]]:
        """Global and local sizes: the kernel's own workgroup, or one that fills the device."""
        if kernel.rendered.workgroup:
            local = list(kernel.rendered.workgroup)
            dimensions = max(len(local), len(grid))
            local += [1] * (dimensions - len(local))
            groups = grid + [1] * (dimensions - len(grid))
            return [g * t for g, t in zip(groups, local, strict=True)], local
        points = math.prod(grid)
        per_core = points // (4 * self._backend.target.cores)
        threads = max(kernel.multiple, min(_WORKGROUP, 1 << per_core.bit_length() >> 1))
        left = min(threads, kernel.most_threads)
        local = []
        for extent in grid:
            local.append(min(left, 1 << (extent - 1).bit_length()))
            left //= local[-1]
        return [-(-g // t) * t for g, t in zip(grid, local, strict=True)], local


def _excerpt(source: str, log: str) -> str:
    """The functions that the compiler's log names by line, numbered; all where it names none."""
    lines = source.splitlines()
    named = {int(n) for n in re.findall(r":(\d+):\d+", log) if int(n) <= len(lines)}
    shown: set[int] = set()
    for number in named:
        first = last = number
        while first > 1 and lines[first - 2]:
            first -= 1
        while last < len(lines) and lines[last]:
            last += 1
        shown.update(range(first, last + 1))
    numbers = sorted(shown) or range(1, len(lines) + 1)
    return "\n".join(f"{n:4d}  {lines[n - 1]}" for n in numbers)


def _number(place: Place) -> int:
    return 0 if place.space is Space.ARENA else place.number


def _reuse(buffer: OpenCLBuffer, type: ArrayType) -> OpenCLBuffer:
    return OpenCLBuffer(buffer.memory, type, static_shape(type))
