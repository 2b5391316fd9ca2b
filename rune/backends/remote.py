"""Devices of other processes: a mesh may contain them, and their own processes run their part.

In each process its own devices are "cpu:0" and so on, and those of process 1 "1/cpu:0". Processes
exchange the lists of their devices when they join.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from rune import processes
from rune.backends import Device
from rune.errors import DeviceError
from rune.lowering.codegen.target import Target


class Elsewhere:
    """Stands for the module of a backend whose devices belong to another process."""

    def open_device(self, target: Target) -> NoReturn:
        """Errors: DeviceError, always."""
        raise DeviceError(
            f"device: cannot use {target.name} here (it belongs to another process)",
            hint="a program on a mesh uses the devices of all its processes",
        )


ELSEWHERE = Elsewhere()


def introduced(local_devices: Sequence[Device]) -> tuple[Device, ...]:
    """The devices of all processes, those of process 0 first.

    Errors: DistributedError if a process does not answer.
    """
    message = json.dumps([[d.name, d.target.description] for d in local_devices]).encode()
    messages = processes.converse("distributed", "devices", message)
    index = processes.current().index
    return tuple(
        device
        for number, entries in messages.items()
        for device in (
            local_devices
            if number == index
            else _elsewhere(number, json.loads(bytes(entries)), local_devices[0].target)
        )
    )


def _elsewhere(process: int, entries: Sequence[tuple[str, str]], like: Target) -> list[Device]:
    """The devices in a process's list. They are assumed to support the dtypes of a local device."""
    targets = (
        replace(like, name=f"{process}/{name}", backend=name.partition(":")[0], description=description)
        for name, description in entries
    )
    return [Device(target, ELSEWHERE, process=process) for target in targets]
