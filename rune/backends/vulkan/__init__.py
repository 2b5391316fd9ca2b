"""Vulkan through the `vulkan` package: any GPU with Vulkan 1.2, and software drivers.

    driver     the API: instance, physical devices      items      the parts of a call
    device     one open device: queue, clock, handles   schedule   plan -> items
    memory     blocks of memory, copies in and out      record     -> command buffers
    memory_types   which types of memory they are in    replay     a call of a plan
    pipeline   modules -> pipelines                     stamps     times of launches
    commands   a command buffer and its barriers        session    a device until it is lost
    aside      copies on a second queue                 clock      the progress of a queue

Kernels are SPIR-V (lowering/codegen/spirv) and have no descriptors: a launch pushes the address of
its argument table. All work goes through one queue, in order, except for copies on a second one.

Invariant: handles never leave this package. After the device was lost, the next array or call opens
it again; older arrays raise DeviceError.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import dtypes, locks
from rune.backends.shared.executor import size_bytes, static_shape
from rune.backends.shared.forks import Loaded
from rune.backends.shared.join import Join
from rune.backends.shared.pool import MemoryStats
from rune.backends.shared.queued import bytes_of
from rune.backends.shared.timing import Meter
from rune.backends.shared.turns import DeviceBuffer
from rune.backends.shared.work import Work, WorkStats
from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.driver import Failure, Physical, instance, no_such_device, physical_devices
from rune.backends.vulkan.memory import VulkanMemory
from rune.backends.vulkan.replay import VulkanExecutable
from rune.backends.vulkan.session import Session, session_on
from rune.core.types import ArrayType
from rune.errors import DeviceError
from rune.lowering.codegen.target import LLVMPIPE_ROUNDS, Target, natively
from rune.lowering.plan import Plan
from rune.records import dataclass

_LOADED = Loaded("vulkan")
_GPU_CORES = 32  # an assumption, since Vulkan does not report it
_GET_DRIVER = "apt install libvulkan1 mesa-vulkan-drivers, or the vendor's driver"
_INTEGERS = frozenset({dtypes.i32, dtypes.u32, dtypes.i64, dtypes.u64})
_BY_FEATURE = {  # dtypes by the features that they need
    frozenset({"shaderInt8", "storageBuffer8BitAccess"}): {dtypes.bool_, dtypes.i8, dtypes.u8},
    frozenset({"shaderInt16", "storageBuffer16BitAccess"}): {dtypes.i16, dtypes.u16},
    frozenset({"shaderFloat64"}): {dtypes.f64},
}
_CONTROLS = {
    "denormals": "shaderDenormPreserveFloat",
    "specials": "shaderSignedZeroInfNanPreserveFloat",
    "nearest": "shaderRoundingModeRTEFloat",
}
_FLOAT_BITS = (16, 32, 64)
# Vulkan allows inexact results here ("Precision of core instructions"): quotients within 2.5 ulps,
# for divisors up to 2^126, and square roots through 1/√x. And NVIDIA's driver (580) takes denormals
# for 0 in comparisons and conversions, though sums and products keep them.
_LOOSE = frozenset({"div", "sqrt", "comparisons"})
# The widths that must share one setting, by VkShaderFloatControlsIndependence.
_TOGETHER: dict[int, tuple[tuple[int, ...], ...]] = {
    0: ((32,), (16, 64)),  # 32_BIT_ONLY
    1: ((16,), (32,), (64,)),  # ALL
    2: (_FLOAT_BITS,),  # NONE
}


def _usable() -> list[Physical]:
    return [p for p in physical_devices(instance()) if p.why_not() is None]


def probe() -> tuple[list[Target], str | None]:
    """The Vulkan devices with the features that rune needs, GPUs first."""
    try:
        _LOADED.check()
        # The number counts only devices that rune can use, as in `open_device`.
        targets = [_target(number, physical) for number, physical in enumerate(_usable())]
        lacking = [f"{p.name}: {p.why_not()}" for p in physical_devices(instance())]
    except ImportError as error:
        return [], f"the package vulkan cannot be imported ({error}); pip install 'rune-ml[vulkan]'"
    except OSError as error:
        return [], f"there is no Vulkan loader ({error}); {_GET_DRIVER}"
    except Exception as error:  # a driver may fail in any way, and `probe` must never raise
        return [], f"no Vulkan driver works ({error}); {_GET_DRIVER}"
    if targets:
        return targets, None
    return [], "; ".join(lacking) or f"there is no Vulkan driver; {_GET_DRIVER}"


def _target(number: int, physical: Physical) -> Target:
    by_feature = [types for features, types in _BY_FEATURE.items() if features <= physical.features]
    return Target(
        name=f"vulkan:{number}",
        backend="vulkan",
        language="spirv",
        description=f"{physical.name} ({physical.driver})",
        dtypes=_INTEGERS.union({dtypes.f32}, *by_feature),
        vector_bytes=16,
        cores=physical.cores or _GPU_CORES,
        threads_per_workgroup=physical.threads_per_workgroup,
        shared_bytes=physical.shared_bytes,
        # A CPU driver runs threads in vector lanes, and accesses their private arrays lane by lane:
        # no faster than memory.
        scratch_bytes=1 << 12 if physical.cores is None else 0,
        routines=frozenset(),
        launch_groups=physical.launch_groups,
        float_controls=_float_controls(physical.float_controls),
        subgroup_threads=physical.subgroup_threads,
        # Vulkan has no query for it; see kernel/rounds.py.
        loop_rounds=LLVMPIPE_ROUNDS if physical.is_llvmpipe else None,
        native=_native(physical),
        loose=_loose(physical),
        is_processor=physical.cores is not None,
        submission_work=physical.submission_work,
    )


def _native(physical: Physical) -> frozenset[tuple[str, Any]]:
    """The native operations. Vulkan has no query for fma, which all GPUs have."""
    features, extensions = physical.features, physical.extensions
    words = [dtypes.i32, dtypes.u32]
    floats = [dtypes.f32, *[dtypes.f64] * ("shaderFloat64" in features)]
    return natively(
        fma=floats,
        arithmetic=floats + [dtypes.f16] * ("shaderFloat16" in features),
        atomic_add=words
        + [dtypes.i64, dtypes.u64] * ("shaderBufferInt64Atomics" in features)
        + [dtypes.f32] * ("VK_EXT_shader_atomic_float" in extensions),
        atomic_min=words,
        # On CPUs only, where the threads of a subgroup are known to be neighbours.
        shuffle=[dtypes.f32] * (physical.shuffles and physical.cores is not None),
        line=[dtypes.f32] * (physical.shuffles and physical.is_llvmpipe),
        matrix=[dtypes.f16] * ("VK_KHR_cooperative_matrix" in extensions),
    )


def _loose(physical: Physical) -> frozenset[str]:
    """The operations that may be less exact than IEEE 754 requires; none on Mesa's CPU device."""
    if physical.is_llvmpipe:
        return frozenset()
    keeps = ("denormals", 32) in _float_controls(physical.float_controls)
    return _LOOSE if keeps else _LOOSE | {"denormals"}


def _float_controls(known: Any) -> frozenset[tuple[str, int]]:
    """The float controls of the driver, by name and width."""
    # Widths that must share a setting count only if all of them have the control.
    apart = {"nearest": known.roundingModeIndependence, "denormals": known.denormBehaviorIndependence}
    controls: set[tuple[str, int]] = set()
    for name, prefix in _CONTROLS.items():
        for bits in _TOGETHER[apart.get(name, 1)]:
            if all(getattr(known, f"{prefix}{b}") for b in bits):
                controls |= {(name, b) for b in bits}
    return frozenset(controls)


def open_device(target: Target) -> VulkanBackend:
    """The device that `probe` listed under this name."""
    _LOADED.check()
    physical_devices = _usable()
    number = int(target.name.split(":")[1])
    if number >= len(physical_devices):
        raise no_such_device(target.name, len(physical_devices))
    return VulkanBackend(target, physical_devices[number])


class VulkanBackend:
    """One Vulkan device."""

    def __init__(self, target: Target, physical: Physical):
        self.target, self.physical = target, physical
        self.work = Work()
        self.check = _LOADED.check
        self._opening = locks.lock()
        self._session = self._open()

    def _open(self) -> Session:
        try:
            with self.physical.instance.opening():
                return session_on(VulkanDevice(self.physical, self.target.name), self.work)
        except Failure as failure:
            name = self.target.name
            raise DeviceError(f"device: cannot open {name} ({failure})") from failure

    def session(self) -> Session:
        """The current session, a new one if the device was lost. Errors: DeviceError in a child."""
        _LOADED.check()
        session = self._session
        if session.device.loss is None:
            return session
        with self._opening:
            # Another thread may have reopened the device while this one waited for the lock.
            if self._session is session:
                self._session = self._open()
            return self._session

    def alloc(self, type: ArrayType, maker: str = "alloc") -> DeviceBuffer:
        """Uninitialised device memory for one array, made by `maker`. Errors: OutOfMemory."""
        session = self.session()
        block = session.memory.pool.take(size_bytes(type), (type, maker))
        return DeviceBuffer(block, type, static_shape(type))

    def copy_in(self, array: np.ndarray) -> DeviceBuffer:
        """The array on the device; the host array may change after the return."""
        session, type = self.session(), ArrayType(array.shape, array.dtype)
        block = session.memory.upload(bytes_of(array), (type, "copy_in"))
        # Reading the array back has to wait for this submission.
        block.writer = session.device.submissions
        return DeviceBuffer(block, type, array.shape)

    def copy_in_aside(self, array: np.ndarray) -> tuple[DeviceBuffer, Join]:
        """The array on the device, by a copy in another queue; the join makes programs wait for it.

        The same as `copy_in` where the host writes arrays itself, or there is no second queue.
        """
        session, type = self.session(), ArrayType(array.shape, array.dtype)
        if session.aside is None or not array.size:
            return self.copy_in(array), Join()
        block = session.memory.pool.take(array.nbytes, (type, "copy_in"))
        try:
            wait = session.aside.send(block, bytes_of(array))
        except Failure as failure:
            raise session.device.failure(failure.code, "copy an array") from failure
        return DeviceBuffer(block, type, array.shape), Join(wait, block)

    def copy_out(self, buffer: DeviceBuffer, type: ArrayType) -> np.ndarray:
        """The contents as a new host array, after waiting for the submission that writes them."""
        block, host = buffer.memory, np.empty(size_bytes(type), np.uint8)
        memory: VulkanMemory = block.handle.home
        _LOADED.check()
        if memory.device.loss is not None:
            raise memory.device.lost_error()
        memory.read(block, 0, host, block.writer)
        return host.view(type.dtype).reshape(static_shape(type))

    def record(self, plan: Plan) -> VulkanExecutable:
        """The plan, compiled. Errors: CompileError."""
        return VulkanExecutable(self, plan)

    @property
    def has_clock(self) -> bool:
        """Whether steps are timed by the device's own clock."""
        return self.physical.stamp_bits > 0

    def record_timed(self, plan: Plan, meter: Meter) -> VulkanExecutable:
        """The plan, compiled with its steps timed. Errors: CompileError."""
        return VulkanExecutable(self, plan, meter)

    def synchronize(self) -> None:
        """Wait until all submitted work has ended."""
        _LOADED.check()
        if self._session.device.loss is None:
            self._session.device.synchronize()

    def close(self) -> None:
        """Wait for pending work, then destroy the device and everything on it."""
        self._session.device.close()

    def lacks(self) -> tuple[str, ...]:
        """A sentence for each thing that the driver lacks, and its replacement."""
        if self._session.aside is not None or self._session.memory.is_shared:
            return ()
        return ("no second queue, prefetched arrays are copied between programs",)

    def memory_stats(self) -> MemoryStats:
        """Counts of memory: of arrays, of staged copies, and of argument tables."""
        memory = self._session.memory
        pools = {"tables": memory.tables, "staging": memory.staging, "device": memory.pool}
        # One pool may serve several purposes; "device" comes last, so that its name wins.
        names = {pool: name for name, pool in pools.items()}
        aside = {} if self._session.aside is None else {"aside": self._session.aside.stats()}
        return MemoryStats.of(**{name: pool.stats() for pool, name in reversed(names.items())}, **aside)

    def work_stats(self) -> WorkStats:
        """Counts of calls so far."""
        return self.work.stats()
