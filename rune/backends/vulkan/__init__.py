"""Vulkan through the `vulkan` package: any GPU with Vulkan 1.2, and software drivers.

    driver     the API: instance, physical devices      items      what a call is of
    device     one open device: queue, clock, handles   schedule   plan -> items
    memory     blocks of memory, copies in and out      record     -> command buffers
    memory_types   which kinds of memory they are in    replay     a call of a plan
    pipeline   modules -> pipelines                     stamps     times of launches
    commands   a command buffer and its barriers        opened     a device until it is lost
    aside      copies beside programs                   clock      what a queue has done

Kernels are SPIR-V (lowering/codegen/spirv) and have no descriptors: a launch pushes the address
of its argument table. Everything goes through one queue, in order, but for copies beside programs.

Invariant: handles never leave this package. After a lost device the next array or call opens it
anew; arrays from before raise DeviceError.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import dtypes, locks
from rune.backends.shared.executor import size_bytes, static_shape
from rune.backends.shared.forks import Loaded
from rune.backends.shared.join import Join
from rune.backends.shared.pool import MemoryStats
from rune.backends.shared.timing import Meter
from rune.backends.shared.work import Work, WorkStats
from rune.backends.vulkan.aside import Aside
from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.driver import Failure, Physical, instance, no_such_device, physical_devices
from rune.backends.vulkan.memory import VulkanMemory, address_of
from rune.backends.vulkan.opened import Opened
from rune.backends.vulkan.pipeline import Pipelines
from rune.backends.vulkan.replay import VulkanBuffer, VulkanExecutable
from rune.core.types import ArrayType
from rune.errors import DeviceError
from rune.lowering.codegen.target import LLVMPIPE_ROUNDS, Target, natively
from rune.lowering.plan import Plan
from rune.records import dataclass

_LOADED = Loaded("vulkan")
_GPU_CORES = 32  # an assumption, since Vulkan does not tell
_GET_DRIVER = "apt install libvulkan1 mesa-vulkan-drivers, or the vendor's driver"
_INTEGERS = frozenset({dtypes.i32, dtypes.u32, dtypes.i64, dtypes.u64})
_BY_FEATURE = {  # the types that need all of some features
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
# What Vulkan leaves to a driver ("Precision of core instructions"): quotients within 2.5 ulps, for
# divisors up to 2^126, and a root by way of 1/√x. And NVIDIA's (580) takes denormals for 0 in
# comparisons and conversions, though sums and products keep them.
_LOOSE = frozenset({"div", "sqrt", "comparisons"})
# Which types have to be told the same, by VkShaderFloatControlsIndependence.
_TOGETHER: dict[int, tuple[tuple[int, ...], ...]] = {
    0: ((32,), (16, 64)),  # 32_BIT_ONLY
    1: ((16,), (32,), (64,)),  # ALL
    2: (_FLOAT_BITS,),  # NONE
}


def _usable() -> list[Physical]:
    return [p for p in physical_devices(instance()) if p.why_not() is None]


def probe() -> tuple[list[Target], str | None]:
    """The Vulkan devices that have what rune needs, GPUs first."""
    try:
        _LOADED.check()
        # The number counts only devices that rune can use, as in `open_device`.
        targets = [_target(number, physical) for number, physical in enumerate(_usable())]
        lacking = [f"{p.name}: {p.why_not()}" for p in physical_devices(instance())]
    except ImportError as error:
        return [], f"the package vulkan cannot be imported ({error}); pip install 'rune-ml[vulkan]'"
    except OSError as error:
        return [], f"there is no Vulkan loader ({error}); {_GET_DRIVER}"
    except Exception as error:  # a driver may fail in any way: the reason is reported
        return [], f"no Vulkan driver works ({error}); {_GET_DRIVER}"
    if targets:
        return targets, None
    return [], "; ".join(lacking) or f"there is no Vulkan driver; {_GET_DRIVER}"


def _target(number: int, physical: Physical) -> Target:
    by_feature = [types for needed, types in _BY_FEATURE.items() if needed <= physical.features]
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
        # A processor reads and writes an array of a thread lane by lane, as it does memory.
        scratch_bytes=1 << 12 if physical.cores is None else 0,
        routines=frozenset(),
        launch_groups=physical.launch_groups,
        float_controls=_float_controls(physical.float_controls),
        subgroup_threads=physical.subgroup_threads,
        # Vulkan has no query for it; see kernel/rounds.py.
        loop_rounds=LLVMPIPE_ROUNDS if physical.name.startswith("llvmpipe") else None,
        native=_native(physical),
        loose=_loose(physical),
        is_processor=physical.cores is not None,
        submission_work=physical.submission_work,
    )


def _native(physical: Physical) -> frozenset[tuple[str, Any]]:
    """What the driver says of single operations; it does not say of fma, which all GPUs have."""
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
        # Of processors, whose subgroups are known to be threads that are neighbours.
        shuffle=[dtypes.f32] * (physical.shuffles and physical.cores is not None),
        matrix=[dtypes.f16] * ("VK_KHR_cooperative_matrix" in extensions),
    )


def _loose(physical: Physical) -> frozenset[str]:
    """What a driver may do less exactly than IEEE 754 says; Mesa's CPU device does not."""
    if physical.name.startswith("llvmpipe"):
        return frozenset()
    keeps = ("denormals", 32) in _float_controls(physical.float_controls)
    return _LOOSE if keeps else _LOOSE | {"denormals"}


def _float_controls(known: Any) -> frozenset[tuple[str, int]]:
    """What the driver says that it can keep; of types that it ties together, for all of them."""
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
        self._opening = locks.lock()
        self._opened = self._open()

    def _open(self) -> Opened:
        try:
            device = VulkanDevice(self.physical, self.target.name)
            memory, copies = VulkanMemory(device), device.copies
            aside = Aside(device, memory, copies) if copies and not memory.is_shared else None
            return Opened(device, memory, Pipelines(device), aside)
        except Failure as failure:
            name = self.target.name
            raise DeviceError(f"device: cannot open {name} ({failure})") from failure

    def opened(self) -> Opened:
        """The device, open. Errors: DeviceError in a forked process."""
        _LOADED.check()
        opened = self._opened
        if opened.device.lost is None:
            return opened
        with self._opening:
            # Another thread may have reopened the device while this one waited for the lock.
            if self._opened is opened:
                self._opened = self._open()
            return self._opened

    def alloc(self, type: ArrayType, maker: str = "alloc") -> VulkanBuffer:
        """Uninitialised device memory for one array, made by `maker`. Errors: OutOfMemory."""
        opened = self.opened()
        block = opened.memory.pool.take(size_bytes(type), (type, maker))
        return VulkanBuffer(block, type, static_shape(type), opened, address_of(block))

    def copy_in(self, array: np.ndarray) -> VulkanBuffer:
        """The array on the device; the host array may change afterwards."""
        opened, type = self.opened(), ArrayType(array.shape, array.dtype)
        host = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        block = opened.memory.upload(host, (type, "copy_in"))
        # Reading the array back has to wait for this submission.
        written = opened.device.submitted
        return VulkanBuffer(block, type, array.shape, opened, address_of(block), written)

    def copy_in_aside(self, array: np.ndarray) -> tuple[VulkanBuffer, Join]:
        """The array on the device, by a copy beside programs, which wait for it by the join.

        Where the host writes arrays itself, or there is no other queue, as by `copy_in`.
        """
        opened, type = self.opened(), ArrayType(array.shape, array.dtype)
        if opened.aside is None or not array.size:
            return self.copy_in(array), Join()
        block = opened.memory.pool.take(array.nbytes, (type, "copy_in"))
        try:
            wait = opened.aside.send(block, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        except Failure as failure:
            raise opened.device.failure(failure.code, "copy an array") from failure
        return VulkanBuffer(block, type, array.shape, opened, address_of(block)), Join(wait, block)

    def copy_out(self, buffer: VulkanBuffer, type: ArrayType) -> np.ndarray:
        """The contents as a new host array, when what writes them is done."""
        device, host = buffer.opened.device, np.empty(size_bytes(type), np.uint8)
        _LOADED.check()
        if device.lost is not None:
            raise device.lost_error()
        buffer.opened.memory.read(buffer.memory, 0, host, buffer.written)
        return host.view(type.dtype).reshape(static_shape(type))

    def record(self, plan: Plan) -> VulkanExecutable:
        """The plan, compiled. Errors: CompileError."""
        return VulkanExecutable(self, plan)

    @property
    def has_clock(self) -> bool:
        """Whether times of steps are the device's own."""
        return self.physical.stamp_bits > 0

    def record_timed(self, plan: Plan, meter: Meter) -> VulkanExecutable:
        """The plan, its steps timed. Errors: CompileError."""
        return VulkanExecutable(self, plan, meter)

    def synchronize(self) -> None:
        """Wait until all that was submitted has ended."""
        _LOADED.check()
        if self._opened.device.lost is None:
            self._opened.device.synchronize()

    def close(self) -> None:
        """Destroy everything on it, once what is pending has ended."""
        self._opened.device.close()

    def lacks(self) -> tuple[str, ...]:
        """What the driver cannot do, and what is done instead."""
        if self._opened.aside is not None or self._opened.memory.is_shared:
            return ()
        return ("no second queue, prefetched arrays are copied between programs",)

    def memory_stats(self) -> MemoryStats:
        """Counts of the memory of arrays, of what copies go through, and of tables of arguments."""
        memory = self._opened.memory
        pools = {"tables": memory.tables, "staging": memory.staging, "device": memory.pool}
        # One pool may serve several ends: the last name is that of the first one.
        names = {pool: name for name, pool in pools.items()}
        aside = {} if self._opened.aside is None else {"aside": self._opened.aside.stats()}
        return MemoryStats.of(**{name: pool.stats() for pool, name in reversed(names.items())}, **aside)

    def work_stats(self) -> WorkStats:
        """Counts of calls until now."""
        return self.work.stats()
