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
import threading
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from rune import dtypes
from rune.backends.callbacks import fill, function_of, is_callback
from rune.backends.executor import (
    Concrete,
    Concretes,
    ConcreteStep,
    Place,
    all_concrete,
    evaluate,
    result_buffers,
    run,
    size_bytes,
    static_shape,
)
from rune.backends.refusal import refusal
from rune.core.types import ArrayType
from rune.errors import ArgumentError, CompileError, DeviceError, OutOfMemory
from rune.lowering.codegen.cstyle import Rendered, assemble, render
from rune.lowering.codegen.opencl_c import OPENCL_C
from rune.lowering.codegen.target import Target
from rune.lowering.plan import Call, Launch, Plan, Space, all_steps, slots_of

_ALWAYS = frozenset(OPENCL_C.scalars) - {dtypes.f64}
_WORKGROUP = 256  # threads, where the kernel leaves the choice
_SCRATCH_BYTES = 1 << 20  # private arrays of a workgroup's threads: on a CPU they share one stack


@functools.cache
def _driver() -> Any:
    """pyopencl, imported on first use; its own warnings are not the user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyopencl

        return pyopencl


def _handles() -> list[Any]:
    """The devices that can compile and run, GPUs first."""
    found = [d for platform in _driver().get_platforms() for d in platform.get_devices()]
    usable = [d for d in found if d.available and d.compiler_available]
    return sorted(usable, key=lambda d: not d.type & _driver().device_type.GPU)


def probe() -> tuple[list[Target], str | None]:
    """The OpenCL devices of all platforms, GPUs first."""
    try:
        found = [_target(number, handle) for number, handle in enumerate(_handles())]
    except ImportError as error:
        return [], f"pyopencl cannot be imported ({error}); pip install pyopencl"
    except Exception as error:  # a driver may fail in any way: the reason is reported
        return [], f"no OpenCL platform ({type(error).__name__}: {error})"
    return found, None if found else "the OpenCL platforms have no usable device"


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
        self.lock = threading.Lock()  # from setting arguments to enqueueing
        self.caller: int | None = None  # the thread in which a callback runs, under the lock
        self.used_bytes = 0
        self._counting = threading.RLock()  # a finalizer may run inside it
        self._arena: Memory | None = None

    # --- memory ------------------------------------------------------------------------------

    def allocate(self, asked: int) -> Memory:
        """Device memory. Errors: OutOfMemory."""
        cl = _driver()
        limit = min(self.device.max_mem_alloc_size, self.device.global_mem_size - self.used_bytes)
        if asked > limit:
            raise self.out_of_memory(asked)
        try:
            handle = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(1, asked))
        except (cl.MemoryError, cl.RuntimeError) as error:
            raise self.out_of_memory(asked) from error
        memory = Memory(handle, asked)
        self._count(asked)
        weakref.finalize(memory, self._count, -asked)
        return memory

    def _count(self, change: int) -> None:
        with self._counting:
            self.used_bytes += change

    def out_of_memory(self, asked: int) -> OutOfMemory:
        """The error to raise."""
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
        for step in all_steps(plan):
            if isinstance(step, Call) and not is_callback(step):
                raise CompileError(f"opencl: cannot call {step.routine} on {self.target.name}")
        kernels = {name: render(code, OPENCL_C) for name, code in plan.kernels.items()}
        program = self.build(assemble(list(kernels.values()), OPENCL_C), plan.name)
        return OpenCLExecutable(self, plan, kernels, program)

    def build(self, source: str, name: str) -> Any:
        """A compiled program."""
        cl = _driver()
        options = ["-cl-std=CL1.2", "-w"]
        if self.device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a compiler's remarks are no errors
                return cl.Program(self.context, source).build(options)
        except cl.RuntimeError as error:
            action = f"opencl: cannot compile {name} for {self.target.name}"
            raise refusal(action, source, str(error)) from error


@dataclass(slots=True)
class _Kernel:
    """The kernel of one launch; it keeps its arguments from call to call.

    `memory` is held weakly: an argument of the last call must not outlive its array.
    """

    handle: Any
    rendered: Rendered
    most_threads: int
    multiple: int
    memory: list[weakref.ref[Memory] | None]
    numbers: tuple[int, ...] = ()

    def set_arguments(self, memory: Sequence[Memory], numbers: tuple[int, ...]) -> None:
        """Set what differs from the last call: pairs of buffer and offset, then sizes."""
        for position, new in enumerate(memory):
            old = self.memory[position]
            if old is None or old() is not new:
                self.handle.set_arg(2 * position, new.handle)
                self.memory[position] = weakref.ref(new)
        if self.numbers != numbers:
            count = len(memory)
            for position, number in enumerate(numbers):
                argument = 2 * position + 1 if position < count else position + count
                self.handle.set_arg(argument, np.int64(number))
            self.numbers = numbers


@dataclass(frozen=True, slots=True)
class _Command:
    """A step for one choice of sizes, all but its buffers: `held` says which those are."""

    held: tuple[tuple[Space, int], ...]
    kernel: _Kernel | None = None  # None: a copy
    numbers: tuple[int, ...] = ()  # element offsets, then sizes
    total: tuple[int, ...] = ()
    local: tuple[int, ...] = ()
    copied: tuple[int, int, int] = (0, 0, 0)  # bytes, offset in the target, in the source


_Commands = dict[int, _Command | None]  # by id of the concrete step


@dataclass(frozen=True, slots=True)
class _Walker:
    """Enqueues the commands of one call, as loops and branches say. Only `read` waits."""

    executable: OpenCLExecutable
    commands: _Commands
    memory: Mapping[Space, Sequence[Memory]]

    def step(self, step: ConcreteStep) -> None:
        """Enqueue a kernel or copy, or call Python."""
        if isinstance(step.step, Call):
            self.call_back(step.step, step.places)
            return
        command = self.commands[id(step)]
        if command is not None:
            held = [self.memory[space][number] for space, number in command.held]
            self.executable.enqueue(command, held)

    def write(self, place: Place, number: int) -> None:
        """Enqueue the store of an i32."""
        handle, queue = self.memory[place.space][place.number].handle, self.executable.queue
        _driver().enqueue_fill_buffer(queue, handle, np.int32(number), place.offset, place.bytes)

    def call_back(self, call: Call, places: Sequence[Place]) -> None:
        """Wait for what a Python function takes, call it, and copy in what it gives."""
        queue, count = self.executable.queue, len(call.outputs)
        hosts = [np.zeros(p.bytes, np.uint8) for p in places]
        for host, place in zip(hosts[count:], places[count:], strict=True):
            if place.bytes:
                handle = self.memory[place.space][place.number].handle
                at = {"src_offset": place.offset, "is_blocking": True}
                _driver().enqueue_copy(queue, host, handle, **at)
        with self.executable.calling_back():
            arrays = [h.view(p.type.dtype) for h, p in zip(hosts, places, strict=True)]
            fill(function_of(call), arrays, [p.type for p in places], count)
        for host, place in zip(hosts[:count], places):
            if place.bytes:
                handle = self.memory[place.space][place.number].handle
                at = {"dst_offset": place.offset, "is_blocking": True}
                _driver().enqueue_copy(queue, handle, host, **at)

    def read(self, place: Place) -> int:
        """Wait for all that was enqueued; the number there."""
        host = np.empty((), place.type.dtype)
        handle, queue = self.memory[place.space][place.number].handle, self.executable.queue
        _driver().enqueue_copy(queue, host, handle, src_offset=place.offset, is_blocking=True)
        return int(host)


class OpenCLExecutable:
    """A compiled plan."""

    def __init__(
        self, backend: OpenCLBackend, plan: Plan, kernels: dict[str, Rendered], program: Any
    ):
        self.plan = plan
        self._backend = backend
        self._rendered = kernels
        self._concretes = Concretes(plan)
        self._kernels = {
            id(step): self._kernel(program, kernels[step.kernel])
            for step in all_steps(plan)
            if isinstance(step, Launch)
        }
        slots = (slot for step in all_steps(plan) for slot in slots_of(step))
        self._uses_arena = any(slot.space is Space.ARENA for slot in slots)
        self._commands: dict[int, _Commands] = {}  # by id of the concrete plan, kept above

    def _kernel(self, program: Any, rendered: Rendered) -> _Kernel:
        cl, device = _driver(), self._backend.device
        handle = cl.Kernel(program, rendered.name)
        info = cl.kernel_work_group_info
        most = handle.get_work_group_info(info.WORK_GROUP_SIZE, device)
        multiple = handle.get_work_group_info(info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
        on_cpu = device.type & cl.device_type.CPU
        unset: list[weakref.ref[Memory] | None] = [None] * len(rendered.params)
        return _Kernel(handle, rendered, most, 1 if on_cpu else multiple, unset)

    @property
    def queue(self) -> Any:
        """The device's queue."""
        return self._backend.queue

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
        if backend.caller == threading.get_ident():
            raise DeviceError(
                f"{self.plan.name}: cannot run on {backend.target.name} from a callback "
                "(the device waits for the program that calls back)",
                hint="compute with NumPy in callbacks, or on another device",
            )
        results = result_buffers(self.plan, made, arguments, donated, backend.alloc, _reuse)
        with backend.lock:
            memory = {
                Space.ARGUMENT: [a.memory for a in arguments],
                Space.RESULT: [r.memory for r in results],
                Space.ARENA: [backend.arena(made.arena_bytes)] if self._uses_arena else [],
            }
            run(made.steps, _Walker(self, self._prepared(made), memory))
            backend.queue.flush()
        return results

    @contextmanager
    def calling_back(self) -> Iterator[None]:
        """While a callback runs, its thread holds the lock and must not ask for it again."""
        self._backend.caller = threading.get_ident()
        try:
            yield
        finally:
            self._backend.caller = None

    def _prepared(self, made: Concrete) -> _Commands:
        if id(made) not in self._commands:
            steps = all_concrete(made.steps)
            self._commands[id(made)] = {
                id(s): self.command(s, made) for s in steps if not isinstance(s.step, Call)
            }
        return self._commands[id(made)]

    def command(self, step: ConcreteStep, made: Concrete) -> _Command | None:
        """The step's command; None where there is nothing to do."""
        places, kernel = step.places, self._kernels.get(id(step.step))
        held = tuple((p.space, 0 if p.space is Space.ARENA else p.number) for p in places)
        if kernel is None:
            target, source = places
            copied = (target.bytes, target.offset, source.offset)
            # Nothing of no size exists: the arena may not even have been allocated.
            return _Command(held, copied=copied) if target.bytes else None
        grid = [evaluate(x, made.sizes) for x in kernel.rendered.grid] or [1]
        if 0 in grid:
            return None
        sizes = [made.sizes[name] for name in kernel.rendered.sizes]
        offsets = [p.offset // p.type.dtype.itemsize for p in places]
        total, local = self._shape(kernel, grid)
        return _Command(held, kernel, (*offsets, *sizes), tuple(total), tuple(local))

    def enqueue(self, command: _Command, memory: Sequence[Memory]) -> None:
        """Enqueue one command."""
        cl, queue, kernel = _driver(), self._backend.queue, command.kernel
        try:
            if kernel is None:
                size, to, at = command.copied
                target, source = (m.handle for m in memory)
                if (target, to) != (source, at):  # else donated memory, which is there already
                    cl.enqueue_copy(
                        queue, target, source, byte_count=size, dst_offset=to, src_offset=at
                    )
            else:
                kernel.set_arguments(memory, command.numbers)
                cl.enqueue_nd_range_kernel(queue, kernel.handle, command.total, command.local)
        except cl.MemoryError as error:
            raise self._backend.out_of_memory(sum(m.bytes for m in memory)) from error

    def _shape(self, kernel: _Kernel, grid: list[int]) -> tuple[list[int], list[int]]:
        """Global and local sizes: the kernel's own workgroup, or one that fills the device."""
        if kernel.rendered.workgroup:
            local = list(kernel.rendered.workgroup)
            dimensions = max(len(local), len(grid))
            local += [1] * (dimensions - len(local))
            groups = grid + [1] * (dimensions - len(grid))
            return [g * t for g, t in zip(groups, local, strict=True)], local
        per_core = math.prod(grid) // (4 * self._backend.target.cores)
        room = _SCRATCH_BYTES // max(1, kernel.rendered.scratch_bytes)
        most = min(_WORKGROUP, _power_of_two_in(per_core), _power_of_two_in(room))
        threads = max(kernel.multiple, most)
        left = min(threads, kernel.most_threads)
        local = []
        for extent in grid:
            local.append(min(left, _power_of_two_in(2 * extent - 1)))
            left //= local[-1]
        return [-(-g // t) * t for g, t in zip(grid, local, strict=True)], local


def _power_of_two_in(x: int) -> int:
    """The largest power of two that is at most x, and at least 1."""
    return 1 << max(0, x.bit_length() - 1)


def _reuse(buffer: OpenCLBuffer, type: ArrayType) -> OpenCLBuffer:
    return OpenCLBuffer(buffer.memory, type, static_shape(type))
