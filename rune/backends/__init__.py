"""Executors: one file per API. A missing driver is a fact, not a failure.

`devices()` lists what is there; `missing()` says why the rest is not. Drivers are imported
lazily inside their own file. A third party adds a backend by an entry point in the group
`rune.backends` whose object has `probe` and `open_device`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from rune.backends.base import Backend
from rune.errors import DeviceError
from rune.lowering.codegen.target import Target


class BackendFile(Protocol):
    """What a backend's module offers."""

    def probe(self) -> tuple[list[Target], str | None]:
        """The devices that are there, and why there is none. Never raises."""
        ...

    def open_device(self, target: Target) -> Backend:
        """The backend of one device."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Device:
    """One device. Compared by its target; the driver is opened on first use."""

    target: Target
    file: Any = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The name by which it is asked for, "cpu:0"."""
        return self.target.name

    @property
    def backend(self) -> Backend:
        """The open backend, one per device and process."""
        return _open(self)

    def __repr__(self) -> str:
        return f"{self.name} ({self.target.description})"


@functools.cache
def _open(device: Device) -> Backend:
    return device.file.open_device(device.target)


# One file each, the default first. They and their drivers are imported when first asked for.
_NAMES = ("cpu", "opencl", "reference", "null")


def _files() -> dict[str, Any]:
    found: dict[str, Any] = {name: import_module(f"rune.backends.{name}") for name in _NAMES}
    for entry in import_module("importlib.metadata").entry_points(group="rune.backends"):
        found[entry.name] = entry.load()
    return found


@functools.cache
def _probe() -> tuple[dict[str, Device], dict[str, str]]:
    present: dict[str, Device] = {}
    absent: dict[str, str] = {}
    for name, file in _files().items():
        targets, why = file.probe()
        present.update((t.name, Device(t, file)) for t in targets)
        if not targets:
            absent[name] = why or "no device found"
    return present, absent


def devices() -> Sequence[Device]:
    """The devices that are there, the default first; reference and null are for checking.

    >>> devices()[0].name
    'cpu:0'
    """
    return tuple(_probe()[0].values())


def missing() -> dict[str, str]:
    """Why a backend has no device, by the backend's name."""
    return dict(_probe()[1])


@functools.cache
def device_named(name: str) -> Device:
    """The device of that name; a backend's name means its first device.

    Errors: DeviceError lists the devices there are and why the one asked for is missing.
    """
    present, absent = _probe()
    for candidate in (name, f"{name}:0"):
        if candidate in present:
            return present[candidate]
    why = absent.get(name.split(":")[0])
    raise DeviceError(
        f"device: cannot find {name!r} (there are {', '.join(present)})",
        hint=f"{name.split(':')[0]}: {why}" if why else None,
    )
