"""OpenCL through pyopencl: one context, one in-order queue and one memory pool per device.

A plan becomes one program, whose binary is kept on disk; run.py enqueues it. Intermediates share
one arena per device, which grows to the largest plan: commands run in order, so each call can use
the arena of the one before it, and memory that returned to the pool. Copies to a busy device go
through pinned memory (staging.py), so that the host need not wait; a second queue copies while
programs run (aside.py). PoCL reads short declarations instead of its header (header.py).

RUNE_OPENCL_PARTS=2 splits each device into two equal parts, which are listed as devices after the
undivided ones.
Invariant: handles never leave this package.
"""

from __future__ import annotations

import functools
import os
import warnings
from array import array
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from rune import dtypes
from rune.backends.opencl.aside import Aside
from rune.backends.opencl.functions import Functions, functions
from rune.backends.opencl.header import DECLARED, OF_THE_DRIVER, TRIAL, Header
from rune.backends.opencl.run import OpenCLExecutable, has_ended
from rune.backends.opencl.staging import Staging
from rune.backends.opencl.waiting import Abandoned, wait_for
from rune.backends.shared import disk_cache
from rune.backends.shared.callbacks import refuse_routines
from rune.backends.shared.forks import Loaded
from rune.backends.shared.join import Join
from rune.backends.shared.pool import Block, MemoryStats, Pool
from rune.backends.shared.queued import QueuedBackend, bytes_of
from rune.backends.shared.refusal import refusal
from rune.backends.shared.sources import Sources, compile_sources
from rune.backends.shared.timing import Meter
from rune.backends.shared.turns import Arena, DeviceBuffer, Turns
from rune.backends.shared.work import Work
from rune.core.types import ArrayType
from rune.errors import DeviceError
from rune.lowering.codegen.c.opencl import OPENCL_C
from rune.lowering.codegen.c.render import Rendered, assemble, render
from rune.lowering.codegen.target import DISCRETE_WORK, INTEGRATED_WORK, Target, natively
from rune.lowering.plan import Plan

_ALWAYS = frozenset(OPENCL_C.scalars) - {dtypes.f64}
_KEPT_BYTES = 1 << 28  # cached on a device that shares the host's memory
_SMALLEST = "__kernel void smallest(__global int *x) { x[get_global_id(0)] = 0; }"
_loaded = Loaded("opencl")


@functools.cache
def _driver() -> Any:
    """pyopencl, imported on first use, without its warnings, which users cannot act on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyopencl

        return pyopencl


_POCL = "Portable Computing Language"
# Platforms that keep compiled kernels on disk themselves. Asked for a program's binary, PoCL
# compiles every kernel of it, and later each kernel once more for the workgroup of its launch.
CACHING = frozenset({_POCL})


def _handles() -> list[object]:
    """The devices that can compile and run, GPUs first, then the requested sub-devices."""
    _loaded.check()
    _functions()  # a library without them has no device
    usable = [d for d in _available() if _fault(d) is None]
    devices = sorted(usable, key=lambda d: not d.type & _driver().device_type.GPU)
    parts = int(os.environ.get("RUNE_OPENCL_PARTS", "1"))
    return devices + [part for d in devices for part in _parts(d, parts)]


@functools.cache
def _functions() -> Functions:
    return functions(_driver())


def _available() -> list:
    """The devices that their platforms report as available."""
    devices = [d for platform in _driver().get_platforms() for d in platform.get_devices()]
    return [d for d in devices if d.available and d.compiler_available]


class Named(Protocol):
    """A platform."""

    name: str


class OfPlatform(Protocol):
    """A device that names its platform."""

    platform: Named


@functools.cache
def _fault(device: OfPlatform) -> str | None:
    """Why no kernel can be built for the device; None where one can.

    A driver may list a processor that its compiler is too old for: PoCL 3.0 has LLVM 14, which does
    not know AMD Zen 5. The trial costs 10 to 20 ms in each process, since PoCL keeps it on disk.
    """
    return None if _header(device) is DECLARED else _build_error(device, _SMALLEST, ["-w"])


@functools.cache
def _header(device: OfPlatform) -> Header:
    """The header of rune's programs on a device."""
    options = ["-cl-std=CL1.2", "-w", *DECLARED.options]
    is_pocl = device.platform.name == _POCL
    is_declared = is_pocl and _build_error(device, DECLARED.text + TRIAL, options) is None
    return DECLARED if is_declared else OF_THE_DRIVER


def _build_error(device: object, source: str, options: list[str]) -> str | None:
    """The first error of the driver's compiler; None if it builds the program."""
    cl = _driver()
    try:
        cl.Program(cl.Context([device]), source).build(options, cache_dir=False)
    except cl.Error as error:
        return _first_error(str(error))
    return None


def _first_error(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("error")), lines[0] if lines else "no reason given")


def _parts(device: Any, count: int) -> list[object]:
    """The device in `count` equal parts; none if it cannot be split like that."""
    kind = _driver().device_partition_property.EQUALLY
    units = device.max_compute_units // max(1, count)
    if count <= 1 or units == 0 or kind not in device.partition_properties:
        return []
    return device.create_sub_devices([kind, units])[:count]


def probe() -> tuple[list[Target], str | None]:
    """The OpenCL devices of all platforms, GPUs first."""
    try:
        targets = [_target(number, handle) for number, handle in enumerate(_handles())]
    except ImportError as error:
        return [], f"pyopencl cannot be imported ({error}); pip install 'rune-ml[opencl]'"
    except Exception as error:  # a driver may fail in any way, and `probe` must never raise
        return [], f"no OpenCL platform ({type(error).__name__}: {error})"
    return targets, None if targets else _why_none()


def _why_none() -> str:
    faults = {
        f"{d.platform.name.strip()} {d.driver_version} builds no kernel for {d.name.strip()} ({_fault(d)})"
        for d in _available()
    }
    hint = "another driver may: on Debian and Ubuntu, apt install pocl-opencl-icd"
    if not faults:
        return "the OpenCL platforms have no usable device"
    return "; ".join([*sorted(faults), hint])


def _target(number: int, device: Any) -> Target:
    has_f64 = "cl_khr_fp64" in device.extensions.split()
    work = INTEGRATED_WORK if device.host_unified_memory else DISCRETE_WORK
    part = f", {device.max_compute_units} units of it" if device.parent_device else ""
    return Target(
        name=f"opencl:{number}",
        backend="opencl",
        language="opencl",
        description=f"{device.name.strip()} ({device.platform.name.strip()}){part}",
        dtypes=_ALWAYS | {dtypes.f64} if has_f64 else _ALWAYS,
        vector_bytes=4 * max(1, device.native_vector_width_float),
        cores=device.max_compute_units,
        threads_per_workgroup=device.max_work_group_size,
        shared_bytes=device.local_mem_size,
        scratch_bytes=1 << 15 if _is_cpu(device) else 1 << 12,
        routines=frozenset({"opencl_source"}),
        subgroup_threads=1 if _is_cpu(device) else 32,
        native=_native(device, has_f64),
        is_processor=_is_cpu(device),
        submission_work=None if _is_cpu(device) else work,
        driver=f"{device.platform.version} {device.driver_version}",
    )


def _native(device: Any, has_f64: bool) -> frozenset[tuple[str, np.dtype]]:
    """The operations that the driver reports as native."""
    extensions, fma_flag = device.extensions.split(), _driver().device_fp_config.FMA
    words = [dtypes.i32, dtypes.u32]
    longs = [dtypes.i64, dtypes.u64]
    fma = [dtypes.f32] * bool(device.single_fp_config & fma_flag)
    fma += [dtypes.f64] * bool(has_f64 and device.double_fp_config & fma_flag)
    return natively(
        fma=fma,
        arithmetic=[dtypes.f32, *[dtypes.f64] * has_f64, *[dtypes.f16] * ("cl_khr_fp16" in extensions)],
        atomic_add=words + longs * ("cl_khr_int64_base_atomics" in extensions),
        atomic_min=words + longs * ("cl_khr_int64_extended_atomics" in extensions),
    )


def _is_cpu(device: Any) -> bool:
    return bool(device.type & _driver().device_type.CPU)


def open_device(target: Target) -> OpenCLBackend:
    """The device that `probe` listed under this name."""
    handles = _handles()
    number = int(target.name.split(":")[1])
    if number >= len(handles):
        raise DeviceError(f"device: cannot open {target.name} ({len(handles)} OpenCL devices)")
    return OpenCLBackend(target, handles[number])


class Releasable(Protocol):
    """Memory of the driver."""

    def release(self) -> object: ...


class OpenCLBackend(QueuedBackend):
    """One OpenCL device."""

    def __init__(self, target: Target, device: Any):
        self.cl = _driver()
        self.target = target
        self.device = device
        self.context = self.cl.Context([device])
        self.queue = self.cl.CommandQueue(self.context)
        self.turns = Turns(target.name)  # held from setting arguments to enqueueing
        self.work = Work()
        self.functions = _functions()
        self.header = _header(device.parent_device or device)
        self.frees = array("q", [0])  # how often memory was returned to the driver
        self.check = _loaded.check
        self.pool = Pool(
            target.name,
            self._raw_alloc,
            self._raw_free,
            limit_bytes=device.global_mem_size,
            largest_bytes=device.max_mem_alloc_size,
            kept_bytes=_KEPT_BYTES if device.host_unified_memory else None,
            number=lambda handle, _: handle.int_ptr,
        )
        self.arena = Arena(self.pool)
        self.staging = Staging(self, self.queue)
        self._aside: Aside | None = None
        self.abandoned_events = Abandoned()

    # --- memory ------------------------------------------------------------------------------

    def _raw_alloc(self, nbytes: int) -> Any:
        try:
            return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, nbytes)
        except (self.cl.MemoryError, self.cl.RuntimeError) as error:
            raise MemoryError from error

    def _raw_free(self, handle: Releasable) -> None:
        handle.release()
        self.frees[0] += 1

    def send(self, block: Block, offset: int, data: np.ndarray) -> None:
        """Write bytes to the block, after all enqueued work.

        Directly where nothing is pending for which the copy would have to wait.
        """
        # `marker` knows only of calls; this copy would also wait for a joined copy.
        if self.marker()() and not (self._aside and self._aside.is_awaited):
            self.cl.enqueue_copy(self.queue, block.handle, data, dst_offset=offset, is_blocking=True)
        else:
            self.staging.send(block, offset, data)

    def copy_in_aside(self, array: np.ndarray) -> tuple[DeviceBuffer, Join]:
        """The array on the device, by a copy in another queue. Programs wait for it by the join."""
        buffer = self.alloc(ArrayType(array.shape, array.dtype), "copy_in")
        if not array.size:
            return buffer, Join()
        try:
            wait = self.aside.send(buffer.memory, bytes_of(array))
        except self.cl.MemoryError as error:
            raise self.pool.out_of_memory(array.nbytes) from error
        return buffer, Join(wait, buffer.memory)

    @property
    def aside(self) -> Aside:
        """The queue for copies to the device, created on first use."""
        if self._aside is None:
            self._aside = Aside(self)
        return self._aside

    def start_fetch(self, block: Block, offset: int, nbytes: int) -> Callable[[], np.ndarray]:
        """Begin to copy bytes to the host. pyopencl's event keeps the host's memory alive."""
        host, handle = np.empty(nbytes, np.uint8), block.handle
        event = self.cl.enqueue_copy(self.queue, host, handle, src_offset=offset, is_blocking=False)
        self.queue.flush()

        def finish() -> np.ndarray:
            self.abandoned_events.wait_for(event)
            return host

        return finish

    def synchronize(self) -> None:
        """Wait for the queue to drain."""
        self.check()
        self.drain()

    def drain(self) -> None:
        """Wait for all work enqueued until now."""
        # By a marker and not by `finish`, during which Ctrl-C would not be handled.
        event = self.cl.enqueue_marker(self.queue)
        self.queue.flush()
        wait_for(event)

    def memory_stats(self) -> MemoryStats:
        """Counts of the pool so far, and of the pinned memory for copies."""
        aside = {} if self._aside is None else {"aside": self._aside.stats()}
        return MemoryStats.of(device=self.pool.stats(), pinned=self.staging.stats(), **aside)

    def marker(self) -> Callable[[], bool]:
        """A function that says whether all calls enqueued until now have ended."""
        # The queue is in order, so the last call's event suffices, and costs no marker.
        return has_ended(self.turns.last)

    # --- programs ----------------------------------------------------------------------------

    def record(self, plan: Plan) -> OpenCLExecutable:
        """The plan as one OpenCL program. Errors: CompileError with the numbered source."""
        return OpenCLExecutable(self, plan, *self._compiled(plan))

    def record_timed(self, plan: Plan, meter: Meter) -> OpenCLExecutable:
        """The plan with its steps timed. Errors: CompileError."""
        return OpenCLExecutable(self, plan, *self._compiled(plan), meter)

    def _compiled(self, plan: Plan) -> tuple[dict[str, Rendered], object, Sources[object]]:
        self.check()
        refuse_routines(plan, self.target)
        kernels = {name: render(code, OPENCL_C) for name, code in plan.kernels.items()}
        program = self.build(assemble(list(kernels.values()), OPENCL_C), plan.name, self.header)
        return kernels, program, compile_sources(plan, self.target, OPENCL_C, self.build)

    @functools.cached_property
    def timing_queue(self) -> Any:
        """A queue that records times of its commands, which the usual one does not pay for."""
        properties = self.cl.command_queue_properties.PROFILING_ENABLE
        return self.cl.CommandQueue(self.context, properties=properties)

    def build(self, source: str, name: str, header: Header = OF_THE_DRIVER) -> Any:
        """A compiled program, from the disk cache if its binary is there."""
        cl, device = self.cl, self.device
        options = ["-cl-std=CL1.2", "-w", *header.options]
        if device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        # All that may change the binary: a driver's version, but also the size of a sub-device.
        platform = device.platform
        key = disk_cache.key_of(
            "opencl",
            platform.name,
            platform.version,
            device.name,
            device.version,
            device.driver_version,
            str(device.max_compute_units),
            *options,
            header.text,
            source,
        )
        binary = disk_cache.load(key)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # pyopencl warns of a compiler's mere remarks
                return self._from_disk(binary, options) or self._from_source(key, header.text + source, options)
        except cl.RuntimeError as error:
            action = f"opencl: cannot compile {name} for {self.target.name}"
            raise refusal(action, source, str(error)) from error

    def _from_disk(self, binary: bytes | None, options: list[str]) -> Any | None:
        """The program of a stored binary; None if there is none, or if the driver refuses it."""
        if binary is None:
            return None
        try:
            return self.cl.Program(self.context, [self.device], [binary]).build(options)
        except self.cl.Error:
            return None

    def _from_source(self, key: bytes, source: str, options: list[str]) -> Any:
        cl: Any = self.cl
        program = cl.Program(self.context, source).build(options, cache_dir=False)
        is_kept = self.device.platform.name in CACHING
        if disk_cache.current() is not None and not is_kept:
            (binary,) = program.get_info(cl.program_info.BINARIES)
            disk_cache.store(key, binary)
        return program
