"""Executors: one package per API. A missing driver is not an error.

`devices()` lists the devices; `missing()` gives the reason for each backend without any. A driver
is imported only in its own package, when it is first needed. A third party adds a backend by an
entry point in the group `rune.backends` whose object has `probe` and `open_device`; if that fails,
the backend counts as missing, with the reason.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import field
from importlib import import_module
from typing import Any, ClassVar, Protocol

from rune import config, locks, processes
from rune.backends.shared.pool import MemoryStats
from rune.backends.shared.protocol import Backend, CountsMemory, CountsWork
from rune.backends.shared.work import WorkStats
from rune.errors import ArgumentError, DeviceError
from rune.lowering.codegen.target import Target
from rune.options import variable_of
from rune.records import dataclass


class BackendFile(Protocol):
    """The interface of a backend's module."""

    def probe(self) -> tuple[list[Target], str | None]:
        """The available devices, and the reason if there are none. Never raises."""
        ...

    def open_device(self, target: Target) -> Backend:
        """The backend of one device."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Device:
    """One device. Compared by its target; the driver is opened on first use.

    process: the number of the process to which it belongs; None for this one
    Errors: none.

    >>> import rune
    >>> isinstance(rune.devices("cpu")[0], rune.Device)
    True
    """

    target: Target
    # The backend's module, or the object of an entry point. Not compared: the target identifies it.
    file: Any = field(repr=False, compare=False)
    process: int | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """The name by which users refer to it, "cpu:0"."""
        return self.target.name

    @property
    def platform(self) -> str:
        """JAX's name of the platform: "cpu", "gpu" for CUDA, else the backend's name."""
        backend = self.target.backend
        return next((p for p, name in _PLATFORMS.items() if name == backend), backend)

    @property
    def device_kind(self) -> str:
        """The driver's description of the device."""
        return self.target.description

    @property
    def id(self) -> int:
        """Its number among the devices of its backend."""
        return int(self.name.partition(":")[2] or 0)

    local_hardware_id = id

    def memory_stats(self) -> dict[str, int] | None:
        """Bytes in use now and at most, in this process; None if the backend does not count
        them."""
        if not isinstance(self.backend, CountsMemory):
            return None
        stats = self.backend.memory_stats()
        return {"bytes_in_use": stats.live_bytes, "peak_bytes_in_use": stats.peak_bytes}

    def addressable_memories(self) -> list[Memory]:
        """Its memories that this process reaches: the one it has."""
        return [Memory(self)] if self.is_local else []

    def default_memory(self) -> Memory:
        """The memory of arrays that name none."""
        return Memory(self)

    def memory(self, kind: str) -> Memory:
        """The memory of a kind. Errors: ArgumentError for any but "device"."""
        if kind != Memory.kind:
            raise ArgumentError(f'Device.memory: cannot use {kind!r} ({self.name} has one memory, "device")')
        return Memory(self)

    @property
    def client(self) -> Client:
        """What runs the programs of its platform."""
        return Client(self.platform)

    @property
    def is_local(self) -> bool:
        """Whether it belongs to this process."""
        return self.process is None

    @property
    def process_index(self) -> int:
        """The number of the process to which it belongs."""
        return processes.current().index if self.process is None else self.process

    @property
    def backend(self) -> Backend:
        """The open backend, one per device and process."""
        return _open(self)

    def __repr__(self) -> str:
        return f"{self.name} ({self.target.description})"


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a device, its only one.

    Errors: none.

    >>> import rune
    >>> rune.devices("cpu")[0].default_memory().kind
    'device'
    """

    device: Device
    kind: ClassVar[str] = "device"

    @property
    def platform(self) -> str:
        """JAX's name of the device's platform."""
        return self.device.platform

    @property
    def process_index(self) -> int:
        """The number of the process to which the device belongs."""
        return self.device.process_index

    def addressable_by_devices(self) -> list[Device]:
        """The devices whose programs read it."""
        return [self.device]


@dataclass(frozen=True, slots=True)
class Client:
    """The client of one platform, which names the runtime: rune. Libraries ask for its name.

    Errors: none.

    >>> import rune
    >>> rune.devices("cpu")[0].client.runtime_type
    'rune'
    """

    platform: str
    runtime_type: ClassVar[str] = "rune"

    @property
    def platform_version(self) -> str:
        """The platform, and what compiles for it."""
        return f"{self.platform}, rune"

    def process_index(self) -> int:
        """The number of this process."""
        return processes.current().index

    def devices(self) -> list[Device]:
        """The devices of the platform, in all processes."""
        cluster_devices = [d for d in everywhere() if d.platform == self.platform]
        return cluster_devices or list(devices(platform_name(self.platform)))

    def local_devices(self) -> list[Device]:
        """The devices of the platform in this process."""
        return [d for d in self.devices() if d.process_index == processes.current().index]

    def device_count(self) -> int:
        """The number of devices of the platform, in all processes."""
        return len(self.devices())

    def local_device_count(self) -> int:
        """The number of devices of the platform in this process."""
        return len(self.local_devices())


@functools.cache
def _open(device: Device) -> Backend:
    backend = device.file.open_device(device.target)
    _open_backends.append(backend)
    return backend


_open_backends: list[Backend] = []


def effects_barrier() -> None:
    """Wait until all devices have finished their work, prints and callbacks included.

    Errors: those of the work.

    >>> import rune
    >>> rune.jit(lambda x: rune.debug.print("x = {}", x))(1.0)
    x = 1.0
    >>> rune.effects_barrier()
    """
    for backend in list(_open_backends):
        backend.synchronize()


# The default first. Each is imported, with its driver, on first use.
_NAMES = ("cpu", "cuda", "opencl", "vulkan", "wgpu", "reference", "null")


@functools.cache
def _entry_points() -> dict[str, Any]:
    """Entry points of other packages by name. A name that is taken is made longer."""
    entries: dict[str, Any] = {}
    for entry in import_module("importlib.metadata").entry_points(group="rune.backends"):
        is_ambiguous = entry.name in _NAMES or entry.name in entries
        # Kept under a longer name, so that `missing()` can report it.
        entries[f"{entry.name} of {entry.value}" if is_ambiguous else entry.name] = entry
    return entries


@functools.cache
def _probe(name: str) -> tuple[tuple[Device, ...], str | None]:
    """The devices of one backend. One at a time, so that no other driver is loaded."""
    if name not in _NAMES:
        return _probe_foreign(name, _entry_points()[name])
    # Imported under rune's own lock, since several threads may probe at once.
    file: Any = locks.load(f"rune.backends.{name}")
    targets, why = file.probe()
    return tuple(Device(t, file) for t in targets), why


def _probe_foreign(name: str, entry: Any) -> tuple[tuple[Device, ...], str | None]:
    """The devices of another package's backend; any failure becomes a reason."""
    if name != entry.name:
        return (), f"another backend has the name {entry.name}"
    try:
        file: BackendFile = entry.load()
        targets, why = file.probe()
        # `device_named` looks for a device in the backend of its name, so it would never find one
        # whose name begins otherwise.
        astray = [t.name for t in targets if {t.backend, t.name.split(":")[0]} != {name}]
    except Exception as error:
        return (), f"{entry.value} fails ({type(error).__name__}: {error})"
    if astray:
        return (), f"{entry.value} gives its devices another name ({', '.join(astray)})"
    return tuple(Device(t, file) for t in targets), why


def _names() -> tuple[str, ...]:
    return (*_NAMES, *_entry_points())


# JAX's names of platforms, where they differ from the backend's name.
_PLATFORMS = {"gpu": "cuda"}


def platform_name(platform: str | None) -> str | None:
    """The backend of a JAX platform: "gpu" is "cuda". None for None.

    Errors: ArgumentError if it is not a string.
    """
    if not isinstance(platform, str | None):
        raise ArgumentError(f"devices: cannot look for {type(platform).__name__} {platform!r} (the name of a backend)")
    return None if platform is None else _PLATFORMS.get(platform, platform)


def devices(backend: str | None = None) -> Sequence[Device]:
    """The available devices, the default first; reference and null are for checking.

    backend: only those of one backend ("gpu" is CUDA); no other driver is loaded.
    Errors: DeviceError for a backend without devices.

    >>> devices()[0].name
    'cpu:0'
    """
    # Without a name every backend is probed, and all drivers are loaded.
    if backend is None:
        return tuple(device for name in _names() for device in _probe(name)[0])
    first = device_named(platform_name(backend) or "")
    return _probe(first.target.backend)[0]


_everywhere: list[Device] = []


def everywhere() -> Sequence[Device]:
    """The devices of all processes of the program; empty if there is only one process."""
    return tuple(_everywhere)


def introduce(devices: Sequence[Device]) -> None:
    """Set the devices of all processes."""
    _everywhere[:] = devices


def missing() -> dict[str, str]:
    """The reasons why backends have no device, by the backend's name.

    Errors: none.

    >>> import rune
    >>> "cpu" in rune.missing()
    False
    """
    probes = {name: _probe(name) for name in _names()}
    return {name: why or "no device found" for name, (targets, why) in probes.items() if not targets}


@functools.cache
def device_named(name: str) -> Device:
    """The device of that name; a backend's name means its first device.

    Errors: DeviceError lists the available devices, and why the one with this name is missing.
    """
    backend = name.split(":")[0]
    if backend in _NAMES or backend in _entry_points():
        for device in _probe(backend)[0]:
            # "cuda" is "cuda:0".
            if device.name in (name, f"{name}:0"):
                return device
    for device in _everywhere:
        if device.name == name:
            return device
    why = missing().get(backend)
    hints = [f"{backend}: {why}"] if why else []
    # The user may have forgotten that a variable chose the device.
    if name == config.of_environment("device"):
        hints.append(f"{variable_of('device')} names it")
    raise DeviceError(
        f"device: cannot find {name!r} (there are {', '.join(d.name for d in devices())})",
        hint="; ".join(hints) or None,
    )


def require_cpu_devices(count: int) -> None:
    """Divide the CPU into `count` devices, unless its devices are in use already.

    Errors: DeviceError if another number is in use: arrays and compiled code belong to them.
    """
    with config.setting(cpu_devices=count):
        cpus = _probe("cpu")[0]
    if cpus and len(cpus) != count:
        raise DeviceError(
            f"configure: cannot make {count} devices of the CPU (it is in use as {len(cpus)})",
            hint=f"say so before the first array, or set {variable_of('cpu_devices')}={count}",
        )


def device_of(device: str | Device) -> Device:
    """The device for a device or its name.

    Errors: those of device_named; ArgumentError for any other type.

    >>> device_of("cpu").name
    'cpu:0'
    """
    if isinstance(device, str):
        return device_named(device)
    if not isinstance(device, Device):
        raise ArgumentError(
            f"device: cannot use {type(device).__name__} as a device (a device or its name)",
            hint="rune.devices() lists those there are",
        )
    return device


def memory_stats(device: str | Device | None = None) -> MemoryStats:
    """Memory of one device in this process: bytes live and cached, the peak, allocations.

    device: the device or its name; None is the default device. On the CPU, live bytes are those of
            all arrays, those of eager operations too; allocations are the large ones of compiled
            programs, and the peak is theirs or the largest that this function has seen.
    Errors: DeviceError for an unknown device, or if its backend does not count memory.

    >>> memory_stats("null").live_bytes
    0
    """
    place = _chosen(device)
    backend = place.backend
    if isinstance(backend, CountsMemory):
        return backend.memory_stats()
    raise DeviceError(
        f"memory_stats: cannot report the memory of {place.name} (the backend {place.target.backend} counts none)"
    )


def work_stats(device: str | Device | None = None) -> WorkStats:
    """Work of one device in this process: calls of compiled programs, and those that have ended.

    Both totals only grow; `in_flight` is their difference, and 0 when the device is idle.

    device: the device or its name; None is the default device.
    Errors: DeviceError for an unknown device, or if its backend does not count work.

    >>> import rune
    >>> before = work_stats("reference").finished
    >>> _ = rune.jit(lambda x: x + 1.0, device="reference")(1.0)
    >>> work_stats("reference").finished - before, work_stats("reference").in_flight
    (1, 0)
    """
    place = _chosen(device)
    backend = place.backend
    if isinstance(backend, CountsWork):
        return backend.work_stats()
    raise DeviceError(
        f"work_stats: cannot report the work of {place.name} (the backend {place.target.backend} counts none)"
    )


def _chosen(device: str | Device | None) -> Device:
    place = device or config.current().device or "cpu:0"
    return device_of(place)
