"""From a program to something that runs: lower, compile, remember.

The cache belongs to the program: whole programs are compared by identity, never by a hash, and
what was compiled goes when the program goes. Lowering and compiling happen once per program,
device, donation and configuration.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from rune import config, counts
from rune.array import Array, put
from rune.backends import Device, device_named
from rune.backends.base import Executable
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.lowering.pipeline import lower
from rune.transforms.memo import per_program

_lock = threading.RLock()


@per_program
def _compiled(
    program: Program, device: Device, donated: tuple[int, ...], check: bool
) -> Executable:
    counts.count("compiles")
    plan = lower(program, device.target, donated, check=check)
    return device.backend.record(plan)


def compiled(program: Program, device: Device, donated: tuple[int, ...] = ()) -> Executable:
    """The executable of `program` on `device`, compiled on first use."""
    with _lock:
        return _compiled(program, device, donated, config.current().check_stages)


def device_for(device: Device | None) -> Device:
    """The device record: None means the CPU executor."""
    return device_named("cpu:0") if device is None else device


def buffer_on(value: Any, type: ArrayType, device: Device | None) -> Any:
    """The buffer of `value` on `device` (None: the CPU), copied there if it is a host value."""
    if isinstance(value, Array) and value.device is device:
        return value.buffer
    host = value.numpy() if isinstance(value, Array) else np.asarray(value, type.dtype)
    return put(host, type, device).buffer


def run_program(
    program: Program, args: Sequence[Any], device: Device | None, donated: tuple[int, ...] = ()
) -> list[Array]:
    """The results of the compiled program on concrete arguments."""
    executable = compiled(program, device_for(device), donated)
    buffers = [buffer_on(a, type_of(a), device) for a in args]
    counts.count("runs")
    return [
        Array(b, _result_type(t, b), device)
        for b, t in zip(executable(buffers, donated), program.output_types, strict=True)
    ]


def _result_type(type: ArrayType, buffer: Any) -> ArrayType:
    return type.with_shape(tuple(buffer.shape)) if type.is_symbolic else type
