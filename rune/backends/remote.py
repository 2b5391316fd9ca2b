"""Devices of other processes: a program names them in a mesh, and their own processes run them.

Each process calls its own devices "cpu:0", and those of process 1 "1/cpu:0". The processes tell
each other which there are when they join.
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
    """In place of the module of a backend: nothing runs here."""

    def open_device(self, target: Target) -> NoReturn:
        """Errors: DeviceError, always."""
        raise DeviceError(
            f"device: cannot use {target.name} here (it belongs to another process)",
            hint="a program on a mesh uses the devices of all its processes",
        )


ELSEWHERE = Elsewhere()


def introduced(here: Sequence[Device]) -> tuple[Device, ...]:
    """The devices of all processes, those of process 0 first: what each says that it has.

    Errors: DistributedError if a process says nothing.
    """
    message = json.dumps([[d.name, d.target.description] for d in here]).encode()
    messages = processes.converse("distributed", "devices", message)
    index = processes.current().index
    return tuple(
        device
        for number, said in messages.items()
        for device in (here if number == index else _elsewhere(number, json.loads(bytes(said)), here[0].target))
    )


def _elsewhere(process: int, said: Sequence[tuple[str, str]], like: Target) -> list[Device]:
    """Devices that a process says it has. They compute on the dtypes of a device of this one."""
    targets = (
        replace(like, name=f"{process}/{name}", backend=name.partition(":")[0], description=description)
        for name, description in said
    )
    return [Device(target, ELSEWHERE, process=process) for target in targets]
