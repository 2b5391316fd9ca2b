"""WebGPU through wgpu-py and the wgpu-native that it includes: over Vulkan, Metal or D3D12.

One device, one queue and one memory pool for each adapter. Every kernel is a WGSL module, and every
call of a plan one command encoder (run.py). Limits are raised to the adapter's own.
There are no 64-bit types, and a buffer may be no larger than one binding.
OpenGL is not initialised: its adapters duplicate those of the other APIs, and its drivers look for
a display and do not survive a fork.

Invariant: handles never leave this package.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from typing import Any

import numpy as np

from rune import dtypes
from rune.backends.shared.call_list import CallList, Notes
from rune.backends.shared.callbacks import refuse_routines
from rune.backends.shared.forks import Loaded
from rune.backends.shared.interrupts import deferred
from rune.backends.shared.pool import Block, MemoryStats, Pool
from rune.backends.shared.queued import QueuedBackend
from rune.backends.shared.refusal import refusal
from rune.backends.shared.timing import Meter
from rune.backends.shared.turns import Arena, Turns
from rune.backends.shared.work import Work
from rune.backends.wgpu.guard import Guard
from rune.backends.wgpu.read import Reads
from rune.backends.wgpu.run import POSITIONS, WgpuExecutable, padded
from rune.backends.wgpu.script import function_of, handle_of
from rune.backends.wgpu.stamps import STAMPS
from rune.errors import DeviceError
from rune.lowering.codegen.target import (
    DISCRETE_WORK,
    INTEGRATED_WORK,
    LLVMPIPE_ROUNDS,
    PROCESSOR_WORK,
    Target,
    natively,
)
from rune.lowering.codegen.wgsl.expr import STORED
from rune.lowering.codegen.wgsl.render import Rendered
from rune.lowering.plan import Plan
from rune.records import dataclass

_KINDS = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "CPU", "Unknown")  # in this order
_KEPT_BYTES = 1 << 28  # cached on a device that shares the host's memory
_SUBMISSION_WORK = {"CPU": PROCESSOR_WORK, "DiscreteGPU": DISCRETE_WORK}
_CORES = 16  # of a GPU: WebGPU does not say how many there are
# WGSL allows a driver (15.7, "Floating point evaluation") to take denormals for 0, to divide within
# 2.5 ulps, for divisors up to 2^126, and to compute square roots through 1/√x. A module cannot ask
# for more. NVIDIA's driver does all three; Mesa's CPU device computes as IEEE 754 requires.
_LOOSE = frozenset({"div", "sqrt", "denormals"})
_loaded = Loaded("wgpu")


@functools.cache
def _driver() -> Any:
    """wgpu with its native library, imported on first use."""
    import wgpu

    with suppress(RuntimeError):  # someone has used wgpu before, and all APIs are initialised
        import_module("wgpu.backends.wgpu_native.extras").set_instance_extras(backends=["Primary"])
    return wgpu


@functools.cache
def _adapters() -> list[Any]:
    """The adapters of all APIs except OpenGL, the fastest kind first."""
    _loaded.check()
    with _without_display():
        adapters = _driver().gpu.enumerate_adapters_sync()
    return sorted((a for a in adapters if a.info["backend_type"] != "OpenGL"), key=_rank)


@contextmanager
def _without_display() -> Iterator[None]:
    """Disables Mesa's layer that orders GPUs, which prints to stderr if there is no display.

    Only inside the block, and not if the user has set a variable to choose a GPU by this layer.
    """
    if {"NODEVICE_SELECT", "MESA_VK_DEVICE_SELECT"} & os.environ.keys():
        yield
        return
    os.environ["NODEVICE_SELECT"] = "1"
    try:
        yield
    finally:
        del os.environ["NODEVICE_SELECT"]


def _rank(adapter: Any) -> int:
    kind = adapter.info["adapter_type"]
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)


def _limit(adapter: Any, name: str) -> int:
    """The adapter's limit of that name."""
    return int(adapter.limits[f"max-{name.replace('_', '-')}"])


def probe() -> tuple[list[Target], str | None]:
    """The adapters of all APIs, discrete GPUs first."""
    try:
        targets = [_target(number, adapter) for number, adapter in enumerate(_adapters())]
    except ImportError as error:
        return [], f"wgpu cannot be imported ({error}); pip install 'rune-ml[wgpu]'"
    except Exception as error:  # a driver may fail in any way, and `probe` must never raise
        return [], f"no WebGPU adapter ({type(error).__name__}: {error})"
    return targets, None if targets else "no API offers an adapter; install a driver for the GPU"


def _target(number: int, adapter: Any) -> Target:
    info = adapter.info
    return Target(
        name=f"wgpu:{number}",
        backend="wgpu",
        language="wgsl",
        description=f"{info['device'].strip()} ({info['backend_type']})",
        dtypes=STORED,
        vector_bytes=4,
        cores=os.cpu_count() or 1 if info["adapter_type"] == "CPU" else _CORES,
        threads_per_workgroup=_limit(adapter, "compute_invocations_per_workgroup"),
        # rune counts elements of one byte, each of which takes a word in workgroup memory.
        shared_bytes=_limit(adapter, "compute_workgroup_storage_size") // 4,
        scratch_bytes=1 << 12,
        routines=frozenset(),
        launch_groups=_limit(adapter, "compute_workgroups_per_dimension"),
        native=_native(adapter),
        loose=frozenset() if info["device"].startswith("llvmpipe") else _LOOSE,
        loop_rounds=LLVMPIPE_ROUNDS if info["device"].startswith("llvmpipe") else None,
        is_processor=info["adapter_type"] == "CPU",
        submission_work=_SUBMISSION_WORK.get(info["adapter_type"], INTEGRATED_WORK),
        driver=info["description"],
    )


def _native(adapter: Any) -> frozenset[tuple[str, np.dtype]]:
    """The native operations of the adapter; the renderer does not use all of them."""
    words, has = [dtypes.i32, dtypes.u32], adapter.features
    return natively(
        fma=[dtypes.f32],
        arithmetic=[dtypes.f32, *[dtypes.f16] * ("shader-f16" in has)],
        atomic_add=words + [dtypes.f32] * ("shader-float32-atomic" in has),
        atomic_min=words,
    )


def open_device(target: Target) -> WgpuBackend:
    """The device that `probe` listed under this name."""
    adapters, number = _adapters(), int(target.name.split(":")[1])
    if number >= len(adapters):
        raise DeviceError(f"device: cannot open {target.name} ({len(adapters)} WebGPU adapters)")
    return WgpuBackend(target, adapters[number])


@dataclass(slots=True)  # a class, because every call enters one and a generator takes longer
class _Failing:
    """Converts the driver's errors inside the block to rune's."""

    backend: WgpuBackend
    action: str

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception):
            self.backend.translate(error, self.action)


class WgpuBackend(QueuedBackend):
    """One WebGPU device."""

    def __init__(self, target: Target, adapter: Any):
        self.wgpu = _driver()
        self.target = target
        with self.failing("device"):
            # An undefined limit is reported as the largest u32, and must not be requested.
            limits = {k: v for k, v in adapter.limits.items() if v < (1 << 32) - 1}
            features = [STAMPS] if STAMPS in adapter.features else []
            self.device = adapter.request_device_sync(required_limits=limits, required_features=features)
        self.queue, self.guard = self.device.queue, Guard()
        self.turns = Turns(target.name)  # held while a call is being encoded
        self.work = Work()
        self.check = _loaded.check
        self.most_memories = _limit(adapter, "storage_buffers_per_shader_stage")
        self.most_groups = target.launch_groups
        largest = _limit(adapter, "storage_buffer_binding_size")
        on_host = adapter.info["adapter_type"] in ("CPU", "IntegratedGPU")
        self.pool = Pool(
            target.name,
            self._raw_alloc,
            lambda handle: handle.destroy(),
            settle=self.synchronize,
            largest_bytes=min(largest, _limit(adapter, "buffer_size"), POSITIONS) // 4 * 4,
            kept_bytes=_KEPT_BYTES if on_host else None,
            number=lambda handle, _: id(handle),
        )
        self.reads = Reads(self, self.pool.largest_bytes or largest)
        self.shared_arena = Arena(self.pool)
        self._layouts: dict[int, Any] = {}
        self._numbers: Any = None

    def failing(self, action: str) -> AbstractContextManager[None]:
        """Inside the block, the driver's errors become rune's."""
        return _Failing(self, action)

    def translate(self, error: Exception, action: str) -> None:
        """Raise rune's error for one of the driver; return for any other. Errors: DeviceError,
        MemoryError."""
        # The pool catches it, frees its cache and tries again.
        if isinstance(error, self.wgpu.GPUOutOfMemoryError):
            raise MemoryError from error
        if isinstance(error, self.wgpu.GPUError):
            raise self.refusal(action, error) from error

    def refusal(self, action: str, error: Exception) -> DeviceError:
        """rune's error for one of the driver."""
        words = " ".join(str(error).split())
        is_lost = re.search(r"\blost\b|destroyed", words, re.IGNORECASE)
        problem = "the device is lost" if is_lost else "the driver refuses"
        return DeviceError(
            f"{action}: cannot use {self.target.name} ({problem}: {words})",
            hint="other devices still work; this one needs a new process" if is_lost else None,
        )

    # --- memory ------------------------------------------------------------------------------

    def _raw_alloc(self, nbytes: int) -> Any:
        usage = self.wgpu.BufferUsage
        with self.failing("alloc"), deferred():  # wgpu-py's objects are not safe to interrupt
            return self.device.create_buffer(size=nbytes, usage=usage.STORAGE | usage.COPY_SRC | usage.COPY_DST)

    def arena(self, nbytes: int) -> Block:
        """The memory that all plans of the device share for their intermediates."""
        return self.shared_arena(padded(nbytes))

    def room(self, nbytes: int) -> int:
        """The bytes to request: WebGPU copies whole words."""
        return padded(nbytes)

    def send(self, block: Block, offset: int, data: np.ndarray) -> None:
        """Write bytes to the device, after all submitted work."""
        # The last word may be padded: `room` has reserved all of it.
        if data.size % 4:
            data = np.pad(data, (0, -data.size % 4))
        with self.failing("copy_in"):
            self.queue.write_buffer(block.handle, offset, data)

    def start_fetch(self, block: Block, offset: int, nbytes: int) -> Callable[[], np.ndarray]:
        """Begin to copy bytes to the host."""
        return self.reads.begin(block.handle, offset, nbytes, padded(nbytes))

    def fetch(self, handle: Any, offset: int, nbytes: int) -> np.ndarray:
        """Bytes from the device, after waiting for all submitted work."""
        if not nbytes:
            return np.empty(0, np.uint8)
        return self.reads.begin(handle, offset, nbytes, padded(nbytes))()

    def synchronize(self) -> None:
        """Wait for the queue to drain."""
        self.check()
        self.fetch(self.numbers(1), 0, 4)  # the queue is in order, so this read is the last command

    def memory_stats(self) -> MemoryStats:
        """Counts of the pools so far."""
        return MemoryStats.of(device=self.pool.stats(), staging=self.reads.stats())

    def marker(self) -> Callable[[], bool]:
        """A function that says whether the queue is empty: the API has no finer progress."""
        return self.is_idle

    def is_idle(self, *_: object) -> bool:
        """Whether the queue is empty: a call that has ended may look as if it had not."""
        self._poll.play()
        return bool(self._poll.status(0))

    @functools.cached_property
    def _poll(self) -> CallList:
        """A call of wgpuDevicePoll without waiting, which returns whether the queue is empty."""
        notes = Notes()
        handle, zero = notes.constant(handle_of(self.device)), notes.constant(0)
        notes.call(function_of("wgpuDevicePoll"), handle, zero, zero)
        return notes.list()

    def numbers(self, count: int) -> Any:
        """A buffer that holds 0, 1, 2, ... as i32, at least `count` of them."""
        # The step number of a loop is copied from here: writes of the queue would not be in the
        # order of the encoder's commands.
        if self._numbers is None or self._numbers.size < 4 * count:
            numbers = np.arange(max(64, 1 << (count - 1).bit_length()), dtype=np.int32)
            usage = self.wgpu.BufferUsage.COPY_SRC
            self._numbers = self.device.create_buffer_with_data(data=numbers, usage=usage)
        return self._numbers

    # --- programs ----------------------------------------------------------------------------

    @property
    def has_clock(self) -> bool:
        """Whether steps are timed by the device's own clock."""
        return STAMPS in self.device.features

    def record(self, plan: Plan) -> WgpuExecutable:
        """The plan with its kernels compiled. Errors: CompileError with the numbered source."""
        self.check()
        refuse_routines(plan, self.target)
        return WgpuExecutable(self, plan)

    def record_timed(self, plan: Plan, meter: Meter) -> WgpuExecutable:
        """The plan with its steps timed. Errors: CompileError."""
        self.check()
        refuse_routines(plan, self.target)
        return WgpuExecutable(self, plan, meter)

    def pipeline(self, kernel: Rendered) -> Any:
        """A compiled kernel. Errors: CompileError with the numbered source."""
        try:
            module = self.device.create_shader_module(code=kernel.text)
            return self.device.create_compute_pipeline(
                layout=self.layout(len(set(kernel.memories)))[1], compute={"module": module, "entry_point": kernel.name}
            )
        except self.wgpu.GPUError as error:
            action = f"wgpu: cannot compile {kernel.name} for {self.target.name}"
            raise refusal(action, kernel.text, _remarks(str(error))) from error

    def layout(self, memories: int) -> tuple[Any, Any]:
        """The layouts of bind group and pipeline for kernels with this many memories."""
        # Explicit and shared: automatic layouts would tie a bind group to one pipeline.
        if memories not in self._layouts:
            kinds = ["uniform"] + ["storage"] * memories
            stage = self.wgpu.ShaderStage.COMPUTE
            entries = [
                {"binding": number, "visibility": stage, "buffer": {"type": kind}} for number, kind in enumerate(kinds)
            ]
            group = self.device.create_bind_group_layout(entries=entries)
            pipeline_layout = self.device.create_pipeline_layout(bind_group_layouts=[group])
            self._layouts[memories] = group, pipeline_layout
        return self._layouts[memories]


def _remarks(report: str) -> str:
    """naga's report as `file:line:column: error: words`.

    >>> _remarks("Shader '' parsing error: no x\\n  ┌─ wgsl:1:12\\n")
    "wgsl:1:12: error: Shader '' parsing error: no x"
    """
    words = re.search(r"^(Shader .*?)$", report, re.MULTILINE)
    places = re.findall(r"┌─ (?:wgsl)?:(\d+:\d+)", report)
    message = words[1] if words else report
    return "\n".join(f"wgsl:{place}: error: {message}" for place in places) or message
