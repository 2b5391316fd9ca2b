"""CUDA: context, memory, streams and events (driver.py), NVRTC, and graphs, by cuda-bindings.

The context is the device's primary one, which other libraries of the process use too. A thread has
it current only inside `entered`, so theirs stays as it was. All work of a device is in one stream,
in order: intermediates share one arena, and memory that returned to the pool may serve again at
once. A plan is compiled as one module and replayed as one graph (graph.py, run.py).

A kernel's fault loses the context, and with it all arrays on the device: every later use is a
DeviceError that says so, while other devices go on working.
Invariant: handles never leave this file and its parts. Nothing is imported before a driver is seen.
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
from rune.backends.shared.queued import Arena, DeviceBuffer, QueuedBackend, Turns
from rune.backends.shared.sources import Sources, compile_sources
from rune.backends.shared.timing import Meter
from rune.backends.shared.work import Work
from rune.core.types import ArrayType
from rune.errors import DeviceError
from rune.lowering.codegen.c.cuda import OPTIONS, dialect_for
from rune.lowering.codegen.c.render import Rendered, assemble, render
from rune.lowering.codegen.target import Target
from rune.lowering.meetings import Grid
from rune.lowering.plan import Plan

# 2 MiB: small blocks are cut from raw ones of this size (shared/pool.py).
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
    except Exception as error:  # a driver may fail in any way: the reason is reported
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
    """Which of the driver's devices it is."""
    return int(target.name.split(":")[1])


class _Entered:
    """The context is current in this thread; what the driver refuses is a DeviceError."""

    __slots__ = ("_backend",)

    def __init__(self, backend: CudaBackend):
        self._backend = backend

    def __enter__(self) -> None:
        self._backend.check()
        # The thread may have another library's context current, which `pop` gives back.
        self._backend.context.push()

    def __exit__(self, kind: object, error: Any, traceback: object) -> None:
        backend = self._backend
        refused = isinstance(error, (backend.driver.Error, Refused))
        if refused:
            backend.examine(error)
        try:
            backend.context.pop()
        except backend.driver.Error:
            if backend.lost is None:
                raise
        if refused:
            raise backend.failure(error) from error


class CudaBackend(Sharing, QueuedBackend):
    """One CUDA device of a driver."""

    def __init__(self, target: Target, driver: Driver, device: Device):
        self.target, self.driver, self.number = target, driver, _number(target)
        self.turns = Turns(target.name)  # from writing the table to enqueueing what reads it
        self.work = Work()
        self.lost: str | None = None  # why, once the context is
        self.entered = _Entered(self)
        self.exchanges = losses.Exchanges()  # with other devices
        self.retired: Retired = deque()
        self._retiring = locks.lock()
        self.architecture = architecture(device.compute_capability(), supported())
        self.context = device.retain_primary_context()
        # Kept for the life of the process: when pycuda's object dies, it releases the primary
        # context as if it owned it, which fails with a printed message.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.context))
        with self.entered:
            self.stream = driver.Stream()
            self.functions = functions()
        self.context_handle, self.stream_handle = int(self.context.handle), int(self.stream.handle)
        self._own: Program | None = None
        self._marks: Marks | None = None
        self._gate: Gate | None = None
        self._aside: Aside | None = None
        self._conditions: Program | str | None = None
        self.staging = Staging(driver, self.stream, self.settle)
        self.pool = Pool(
            target.name,
            self._raw_alloc,
            self._raw_free,
            limit_bytes=device.total_memory(),
            slab_bytes=_SLAB_BYTES,
            settle=self.synchronize,
            settle_others=self.settle_others,
            free_bytes=self._free_bytes,
        )
        self.arena = Arena(self.pool)
        self.loans = Loans(self.marker)

    # --- errors ------------------------------------------------------------------------------

    def check(self) -> None:
        """Errors: DeviceError in a forked child, and once the context is lost."""
        _loaded.check()
        if self.lost is not None:
            raise DeviceError(
                f"{self.target.name}: cannot be used (its context was lost: {self.lost})",
                hint="arrays on it are gone; use another device, or start the process again",
            )

    def examine(self, error: Exception) -> None:
        """After an error: a context that cannot even be waited for is lost."""
        try:
            self.driver.Context.synchronize()
        except self.driver.Error:
            self.lost = str(error)

    def failure(self, error: Exception) -> DeviceError:
        """What the user sees of a driver's error."""
        hint = "the context is lost, and all arrays on the device" if self.lost else None
        return DeviceError(f"{self.target.name}: cannot go on ({error})", hint=hint)

    def refuse(self, function: str, code: int) -> None:
        """Raise the error that a function of the driver has returned. Errors: DeviceError."""
        with self.entered:
            raise Refused(f"{function}: the driver answers {code}")

    # --- memory ------------------------------------------------------------------------------

    def _raw_alloc(self, nbytes: int) -> Chunk:
        with self.entered:
            try:
                allocation = self.driver.mem_alloc(nbytes)
            except self.driver.MemoryError as error:
                raise MemoryError from error
        return Chunk(int(allocation), allocation)

    def _raw_free(self, handle: Chunk) -> None:
        with self.entered:
            if handle.allocation is not None:
                handle.allocation.free()

    def _free_bytes(self) -> int:
        with self.entered:
            return self.driver.mem_get_info()[0]

    def send(self, block: Block, offset: int, data: np.ndarray) -> None:
        """Enqueue a copy through pinned memory."""
        with self.entered:
            self.staging.send(address(block) + offset, data)

    def copy_in_aside(self, array: np.ndarray) -> tuple[DeviceBuffer, Join]:
        """The array on the device, by a copy beside programs, which wait for it by the join."""
        buffer = self.alloc(ArrayType(array.shape, array.dtype), "copy_in")
        if not array.size:
            return buffer, Join()
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        with self.entered:
            join = self.aside.send(address(buffer.memory), data)

        def joined() -> None:
            with self.entered:
                join()

        return buffer, Join(joined, buffer.memory)

    @property
    def aside(self) -> Aside:
        """Its stream for copies."""
        if self._aside is None:
            self._aside = Aside(self.driver, self.stream, self.settle)
        return self._aside

    def start_fetch(self, block: Block, offset: int, nbytes: int) -> Callable[[], np.ndarray]:
        """Begin to copy bytes to the host through pinned memory."""
        host = np.empty(nbytes, np.uint8)
        with self.entered:
            landed = self.staging.fetch(host, address(block) + offset)

        def finish() -> np.ndarray:
            with self.entered:
                landed()
            return host

        return finish

    def _event(self) -> Event:
        """An event behind all that was enqueued.

        It has to go where the context is current: elsewhere pycuda destroys it only in the thread
        that opened the device, and leaks it in any other.
        """
        event = self.driver.Event(self.driver.event_flags.DISABLE_TIMING)
        event.record(self.stream)
        return event

    @property
    def marks(self) -> Marks:
        """Events behind calls that are played from lists."""
        if self._marks is None:
            with self.entered:
                self._marks = Marks(self)
        return self._marks

    @property
    def gate(self) -> Gate:
        """In its stream, for those who measure."""
        if self._gate is None:
            with self.entered:
                self._gate = Gate(self)
        return self._gate

    def pinned_table(self, nbytes: int) -> int:
        """Pinned memory for a table that is copied at once. Errors: DeviceError."""
        if self.staging.has_table(nbytes):
            return self.staging.table(nbytes)
        with self.entered:
            return self.staging.table(nbytes)

    def synchronize(self) -> None:
        """Wait for the stream to drain."""
        with self.entered:
            self.settle()
            self.stream.synchronize()

    def settle(self) -> None:
        """Wait until it is in no collective. Errors: DeviceError if one will never end."""
        losses.settle(self)

    def memory_stats(self) -> MemoryStats:
        """Counts of the pools until now."""
        with self.entered:
            aside = {} if self._aside is None else {"aside": self._aside.stats()}
            return MemoryStats.of(device=self.pool.stats(), pinned=self.staging.stats(), **aside)

    def marker(self) -> Callable[[], bool]:
        """Whether all that was enqueued until now has ended."""
        if self.lost is not None:
            return lambda: True
        with self.entered:
            waiting = [self._event()]

        def has_ended() -> bool:
            if waiting:  # else it has, whatever became of the device since
                with self.entered:
                    if waiting and waiting[0].query():
                        waiting.clear()
            return not waiting

        return has_ended

    # --- programs ----------------------------------------------------------------------------

    def record(self, plan: Plan) -> CudaExecutable:
        """The plan as one module, and one for each kernel that a user wrote.

        Errors: CompileError with the numbered source.
        """
        return CudaExecutable(self, plan, *self._compiled(plan))

    def record_timed(self, plan: Plan, meter: Meter) -> CudaExecutable:
        """The plan with its steps timed. Errors: CompileError."""
        return CudaExecutable(self, plan, *self._compiled(plan), meter)

    def adopted(self, executable: Executable) -> CudaExecutable | None:
        """The same code as one of this device, where both devices are of one kind."""
        if type(executable) is not CudaExecutable or executable.meter is not None:
            return None
        return executable.on(self) if replace(executable.backend.target, name=self.target.name) == self.target else None

    def is_brief(self, executable: Executable) -> bool:
        """Never, though a call returns at once: the host may have to wait within it."""
        return False

    def meetings(self) -> str:
        """The way that collectives between CUDA devices take."""
        nccl = library.find()
        return f"through the host ({nccl}; {_INSTALL_NCCL})" if isinstance(nccl, str) else f"through {nccl}"

    def together(self, executables: Sequence[Executable], grid: Grid) -> Crew | None:
        """The executables as a crew that meets through NCCL, where all are of CUDA devices."""
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
        """Loaded code for an architecture, from disk where that is kept."""
        key = disk_cache.key_of("cuda", full_version(), arch, *OPTIONS, "", source)
        image = disk_cache.load(key)
        if image is None:
            image = compile_source(source, name, arch)
            disk_cache.store(key, image)
        with self.entered:
            self._destroy_retired()
            return Program(image, self.retired)

    def _destroy_retired(self) -> None:
        """Destroy what has no owner any more, when nothing runs that may use it."""
        with self._retiring:
            count = len(self.retired)  # what comes on the list from now on may still run
            if count:
                self.settle()
                self.stream.synchronize()
            for _ in range(count):
                call(*self.retired.popleft())

    @property
    def own(self) -> Program:
        """Rune's own kernels of steps."""
        if self._own is None:
            self._own = self.build(STEPS, "rune's own kernels", self.architecture)
        return self._own

    @property
    def conditions(self) -> Program | str:
        """Rune's own kernels of conditions, or the reason why the host walks loops instead."""
        if self._conditions is None:
            oldest = min(release(call("cuDriverGetVersion")), version())
            self._conditions = conditions.load(self.build, self.architecture, oldest)
        return self._conditions

    def lacks(self) -> tuple[str, ...]:
        """What the driver cannot do, and what is done instead."""
        with self.entered:
            why = self.conditions
        return (f"no loops in graphs, the host walks them ({why})",) if isinstance(why, str) else ()
