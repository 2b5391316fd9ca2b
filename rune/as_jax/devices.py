"""JAX's functions that list the devices of one platform, by default that of the default device."""

from __future__ import annotations

from collections.abc import Sequence

import rune
from rune import config, processes
from rune.backends import Device, everywhere, platform_name
from rune.errors import ArgumentError


def default_backend() -> str:
    """The platform of the default device: "cpu", "gpu", ..."""
    return rune.devices(_default())[0].platform


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a platform, in all processes. Errors: DeviceError if there are none."""
    platform = platform_name(backend) or _default()
    cluster_devices = [d for d in everywhere() if d.target.backend == platform]
    return cluster_devices or list(rune.devices(platform))


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of a platform that belong to a process, by default this one.

    Errors: ArgumentError for a process that does not exist.
    """
    number = host_id if process_index is None else process_index
    index = processes.current().index if number is None else number
    if index not in process_indices():
        raise ArgumentError(f"local_devices: cannot find process {index} (there are {len(process_indices())})")
    return [d for d in devices(backend) if d.process_index == index]


def device_count(backend: str | None = None) -> int:
    """The number of devices of a platform, in all processes."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of a platform in this process."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process."""
    return processes.current().index


def process_count(backend: str | None = None) -> int:
    """The number of processes that run the program."""
    return processes.current().count


def process_indices(backend: str | None = None) -> Sequence[int]:
    """The numbers of all processes."""
    return list(range(process_count()))


def _default() -> str:
    return (config.current().device or "cpu").partition(":")[0]
