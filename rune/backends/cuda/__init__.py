"""CUDA: context, memory, streams and events (driver.py), NVRTC, and graphs, by cuda-bindings.

The context is the device's primary one, which other libraries of the process use too. It is current
in a thread only inside `in_context`, so other libraries' contexts are not disturbed. All work of a
device is in one stream, in order: so intermediates can share one arena, and memory that returned to
the pool can be used again at once. A plan is compiled as one module and replayed as one graph
(graph.py, run.py).

A kernel's fault loses the context, and with it all arrays on the device: every later use raises
DeviceError, while other devices continue to work.
Invariant: handles never leave this package. Nothing is imported before a driver was found.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rune import locks
from rune.backends.cuda import conditions
from rune.backends.cuda.aside import Aside
from rune.backends.cuda.by_bindings import Refused, call
from rune.backends.cuda.compiler import architecture, compile_source, full_version, supported, version
from rune.backends.cuda.devices import INSTALL, load, mismatch, missing, release, target_of
from rune.backends.cuda.driver import Device, Driver, Event
from rune.backends.cuda.gate import Gate
from rune.backends.cuda.kernels import STEPS
from rune.backends.cuda.launch import Program, Retired
from rune.backends.cuda.loans import Chunk, Loans, Sharing
from rune.backends.cuda.native import Marks, functions
from rune.backends.cuda.nccl import library, losses
from rune.backends.cuda.nccl.crew import Crew, crew_for
from rune.backends.cuda.run import CudaExecutable, address
from rune.backends.cuda.staging import Staging
from rune.backends.shared import disk_cache
from rune.backends.shared.callbacks import refuse_routines
from rune.backends.shared.forks import Loaded
from rune.backends.shared.join import Join
from rune.backends.shared.pool import Block, MemoryStats, Pool
from rune.backends.shared.protocol import Executable
from rune.backends.shared.queued import QueuedBackend, bytes_of
from rune.backends.shared.sources import Sources, compile_sources
from rune.backends.shared.timing import Meter
from rune.backends.shared.turns import Arena, DeviceBuffer, Turns
from rune.backends.shared.work import Work
from rune.core.types import ArrayType
from rune.errors import DeviceError
from rune.lowering.codegen.c.cuda import OPTIONS, dialect_for
from rune.lowering.codegen.c.render import Rendered, assemble, render
from rune.lowering.codegen.target import Target
from rune.lowering.meetings import Grid
from rune.lowering.plan import Plan

# Small blocks are cut from raw ones (shared/pool.py) of 2 MiB, the unit of cuMemAlloc.
_SLAB_BYTES = 1 << 21
_INSTALL_NCCL = "pip install 'rune-ml[nccl]'"
_loaded = Loaded("cuda")


def probe() -> tuple[list[Target], str | None]:
    """The CUDA devices, in the driver's order."""
    why = missing()
    if why is not None:
        return [], why
    try:
        _loaded.check()
        why = mismatch(version(), release(load().get_driver_version()))
        if why is not None:
            return [], why
        targets = [target_of(n, load()) for n in range(load().Device.count())]
    except ImportError as error:
        return [], f"cuda-bindings, NVRTC or pycuda cannot be loaded ({error}); {INSTALL}"
    except Exception as error:  # a driver may fail in any way, and `probe` must never raise
        return [], f"the NVIDIA driver fails ({type(error).__name__}: {error})"
    return targets, None if targets else "the NVIDIA driver has no device"


def open_device(target: Target) -> CudaBackend:
    """The device that `probe` listed under this name."""
    _loaded.check()
    number, count = _number(target), load().Device.count()
    if number >= count:
        raise DeviceError(f"device: cannot open {target.name} ({count} CUDA devices)")
    return CudaBackend(target, load(), load().Device(number))


def _number(target: Target) -> int:
    """The driver's number of the device."""
    return int(target.name.split(":")[1])


class _Entered:
    """Makes the context current in this thread, and turns the driver's errors into DeviceErrors."""

    __slots__ = ("_backend",)

    def __init__(self, backend: CudaBackend):
        self._backend = backend

    def __enter__(self) -> None:
        self._backend.check()
        # The thread may have another library's context current, which `pop` makes current again.
        self._backend.context.push()

    def __exit__(self, kind: object, error: Any, traceback: object) -> None:
        backend = self._backend
        is_refusal = isinstance(error, (backend.driver.Error, Refused))
        # While the context is current: `examine` waits for it.
        if is_refusal:
            backend.examine(error)
        try:
            backend.context.pop()
        except backend.driver.Error:
            if backend.turns.loss is None:
                raise
        if is_refusal:
            raise backend.failure(error) from error


class CudaBackend(Sharing, QueuedBackend):
    """One CUDA device of a driver."""

    def __init__(self, target: Target, driver: Driver, device: Device):
        self.target, self.driver, self.number = target, driver, _number(target)
        self.turns = Turns(target.name)  # held from writing the table to enqueueing its readers
        self.work = Work()
        self.in_context = _Entered(self)
        self.exchanges = losses.Exchanges()  # with other devices
        self.retired_handles: Retired = deque()
        self._retiring = locks.lock()
        self.architecture = architecture(device.compute_capability(), supported())
        self.context = device.retain_primary_context()
        # Kept for the life of the process: when pycuda's object dies, it releases the primary
        # context as if it owned it, which fails with a printed message.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.context))
        self._step_kernels: Program | None = None
        self._marks: Marks | None = None
        self._gate: Gate | None = None
        self._conditions: Program | str | None = None
        with self.in_context:
            self.stream = driver.Stream()
            self.functions = functions()
        self.context_handle, self.stream_handle = int(self.context.handle), int(self.stream.handle)
        self._aside: Aside | None = None
        self.staging = Staging(driver, self.stream, self.settle)
        self.pool = Pool(
            target.name,
            self._raw_alloc,
            self._raw_free,
            limit_bytes=device.total_memory(),
            slab_bytes=_SLAB_BYTES,
            # cuMemFree waits for the device by itself, but not with an end: a collective may hang.
            settle=self.synchronize,
            settle_others=self.settle_others,
            free_bytes=self._free_bytes,
            number=lambda handle, offset: handle.address + offset,
        )
        self.arena = Arena(self.pool)
        self.loans = Loans(self.marker)

    # --- errors ------------------------------------------------------------------------------

    def check(self) -> None:
        """Errors: DeviceError in a forked child, and once the context is lost."""
        _loaded.check()
        if self.turns.loss is not None:
            raise DeviceError(
                f"{self.target.name}: cannot be used (its context was lost: {self.turns.loss})",
                hint="arrays on it are gone; use another device, or start the process again",
            )

    def examine(self, error: Exception) -> None:
        """After an error, find out whether the context is lost: if so, waiting for it fails too."""
        try:
            self.driver.Context.synchronize()
        except self.driver.Error:
            self.turns.loss = str(error)

    def failure(self, error: Exception) -> DeviceError:
        """The error that users see for a driver's error."""
        hint = "the context is lost, and all arrays on the device" if self.turns.loss else None
        return DeviceError(f"{self.target.name}: cannot go on ({error})", hint=hint)

    def refuse(self, function: str, code: int) -> None:
        """Raise the error that a function of the driver has returned. Errors: DeviceError."""
        with self.in_context:
            raise Refused(f"{function}: the driver answers {code}")

    # --- memory ------------------------------------------------------------------------------

    def _raw_alloc(self, nbytes: int) -> Chunk:
        with self.in_context:
            try:
                allocation = self.driver.mem_alloc(nbytes)
            except self.driver.MemoryError as error:
                raise MemoryError from error  # the pool then frees its cache and tries again
        return Chunk(int(allocation), allocation)

    def _raw_free(self, handle: Chunk) -> None:
        with self.in_context:
            if handle.allocation is not None:
                handle.allocation.free()

    def _free_bytes(self) -> int:
        with self.in_context:
            return self.driver.mem_get_info()[0]

    def send(self, block: Block, offset: int, data: np.ndarray) -> None:
        """Enqueue a copy through pinned memory."""
        with self.in_context:
            self.staging.send(address(block) + offset, data)

    def copy_in_aside(self, array: np.ndarray) -> tuple[DeviceBuffer, Join]:
        """The array on the device, by a copy on another stream; the join makes programs wait."""
        buffer = self.alloc(ArrayType(array.shape, array.dtype), "copy_in")
        if not array.size:
            return buffer, Join()
        with self.in_context:
            join = self.aside.send(address(buffer.memory), bytes_of(array))

        def joined() -> None:
            with self.in_context:
                join()

        return buffer, Join(joined, buffer.memory)

    @property
    def aside(self) -> Aside:
        """The stream for copies to the device, created on first use."""
        if self._aside is None:
            self._aside = Aside(self.driver, self.stream, self.settle)
        return self._aside

    def start_fetch(self, block: Block, offset: int, nbytes: int) -> Callable[[], np.ndarray]:
        """Begin to copy bytes to the host through pinned memory."""
        host = np.empty(nbytes, np.uint8)
        with self.in_context:
            wait_for_copy = self.staging.fetch(host, address(block) + offset)

        def finish() -> np.ndarray:
            with self.in_context:
                wait_for_copy()
            return host

        return finish

    def _event(self) -> Event:
        """An event behind all enqueued work.

        It must die where the context is current: elsewhere pycuda destroys it only in the thread
        that opened the device, and leaks it in any other.
        """
        event = self.driver.Event(self.driver.event_flags.DISABLE_TIMING)
        event.record(self.stream)
        return event

    @property
    def marks(self) -> Marks:
        """The events behind calls that are replayed as call lists."""
        if self._marks is None:
            with self.in_context:
                self._marks = Marks(self)
        return self._marks

    @property
    def gate(self) -> Gate:
        """The gate of the stream, for measurements."""
        if self._gate is None:
            with self.in_context:
                self._gate = Gate(self)
        return self._gate

    def pinned_table(self, nbytes: int) -> int:
        """Pinned memory for one table, copied before the next is taken. Errors: DeviceError."""
        if self.staging.has_table(nbytes):
            return self.staging.table(nbytes)
        with self.in_context:
            return self.staging.table(nbytes)

    def synchronize(self) -> None:
        """Wait for the stream to drain."""
        with self.in_context:
            self.settle()
            self.stream.synchronize()

    def settle(self) -> None:
        """Wait until all of its collectives have ended. Errors: DeviceError if one never will."""
        losses.settle(self)

    def memory_stats(self) -> MemoryStats:
        """Counts of the pools so far."""
        with self.in_context:
            aside = {} if self._aside is None else {"aside": self._aside.stats()}
            return MemoryStats.of(device=self.pool.stats(), pinned=self.staging.stats(), **aside)

    def marker(self) -> Callable[[], bool]:
        """A function that says whether all work enqueued until now has ended."""
        if self.turns.loss is not None:
            return lambda: True
        with self.in_context:
            waiting = [self._event()]

        def has_ended() -> bool:
            if waiting:  # else it has ended, even if the device was lost since
                with self.in_context:
                    if waiting and waiting[0].query():
                        waiting.clear()
            return not waiting

        return has_ended

    # --- programs ----------------------------------------------------------------------------

    def record(self, plan: Plan) -> CudaExecutable:
        """The plan as one module, with one more for each kernel that a user wrote.

        Errors: CompileError with the numbered source.
        """
        return CudaExecutable(self, plan, *self._compiled(plan))

    def record_timed(self, plan: Plan, meter: Meter) -> CudaExecutable:
        """The plan with its steps timed. Errors: CompileError."""
        return CudaExecutable(self, plan, *self._compiled(plan), meter)

    def adopted(self, executable: Executable) -> CudaExecutable | None:
        """The same code as an executable of this device, where both devices are of one kind."""
        if type(executable) is not CudaExecutable or executable.meter is not None:
            return None
        return executable.on(self) if replace(executable.backend.target, name=self.target.name) == self.target else None

    def is_brief(self, executable: Executable) -> bool:
        """False: a call may have to wait for pinned memory, or for a number."""
        return False

    def meetings(self) -> str:
        """How CUDA devices exchange values in collectives."""
        nccl = library.find()
        return f"through the host ({nccl}; {_INSTALL_NCCL})" if isinstance(nccl, str) else f"through {nccl}"

    def together(self, executables: Sequence[Executable], grid: Grid) -> Crew | None:
        """The executables as a crew that meets through NCCL, if all are of CUDA devices."""
        return crew_for(executables, grid)

    def _compiled(self, plan: Plan) -> tuple[dict[str, Rendered], Program, Sources[Program]]:
        self.check()
        refuse_routines(plan, self.target)
        dialect = dialect_for(self.target)
        kernels = {name: render(code, dialect) for name, code in plan.kernels.items()}
        build = partial(self.build, arch=self.architecture)
        program = build(assemble(list(kernels.values()), dialect), plan.name)
        return kernels, program, compile_sources(plan, self.target, dialect, build)

    def build(self, source: str, name: str, arch: str) -> Program:
        """Loaded code for an architecture, from the disk cache if it is there."""
        # NVRTC's patch version too: the same source may compile to other code.
        key = disk_cache.key_of("cuda", full_version(), arch, *OPTIONS, "", source)
        image = disk_cache.load(key)
        if image is None:
            image = compile_source(source, name, arch)
            disk_cache.store(key, image)
        with self.in_context:
            self._destroy_retired()
            return Program(image, self.retired_handles)

    def _destroy_retired(self) -> None:
        """Destroy handles without an owner, once nothing runs that may use them."""
        with self._retiring:
            count = len(self.retired_handles)  # handles added from now on may still be in use
            if count:
                self.settle()
                self.stream.synchronize()
            for _ in range(count):
                call(*self.retired_handles.popleft())

    @property
    def step_kernels(self) -> Program:
        """Rune's own kernels, for copies and counters."""
        if self._step_kernels is None:
            self._step_kernels = self.build(STEPS, "rune's own kernels", self.architecture)
        return self._step_kernels

    @property
    def conditions(self) -> Program | str:
        """Rune's own kernels for conditions, or the reason why the host walks loops instead."""
        if self._conditions is None:
            oldest = min(release(call("cuDriverGetVersion")), version())
            self._conditions = conditions.load(self.build, self.architecture, oldest)
        return self._conditions

    def lacks(self) -> tuple[str, ...]:
        """A sentence for each function that the driver lacks, and its replacement."""
        with self.in_context:
            why = self.conditions
        return (f"no loops in graphs, the host walks them ({why})",) if isinstance(why, str) else ()
