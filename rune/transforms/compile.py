"""From a program to something that runs: lower, compile, remember.

The cache belongs to the program: whole programs are compared by identity, never by a hash, and
what was compiled goes when the program goes. Lowering and compiling happen once per program,
device, donation and configuration.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from rune import config, counts
from rune.array import CPU, Array, Place, free_on, put
from rune.backends import Device, device_named
from rune.backends.base import Executable
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.transforms.key_reuse import note_program
from rune.transforms.memo import per_program

_lock = threading.RLock()


@functools.cache
def _compiler() -> Any:
    """The lowering, loaded when a program is first compiled, so that `import rune` stays light."""
    return import_module("rune.lowering.pipeline")


@per_program
def _compiled(
    program: Program, device: Device, donated: tuple[int, ...], check: bool
) -> Executable:
    next(counts.compiles)
    plan = _compiler().lower(program, device.target, donated, check=check)
    if check:
        import_module("rune.backends.null").check_plan(plan)
    return device.backend.record(plan)


def compiled(program: Program, device: Device, donated: tuple[int, ...] = ()) -> Executable:
    """The executable of `program` on `device`, compiled on first use."""
    with _lock:
        return _compiled(program, device, donated, config.current().check_stages)


def device_for(device: Device | None) -> Device:
    """The device record: None means the CPU executor."""
    return device_named("cpu:0") if device is None else device


def buffer_on(value: Any, device: Device | None) -> Any:
    """The buffer of `value` on `device` (None: the CPU), copied there if it is elsewhere.

    Native code reads dense arrays: a view left by an eager transpose is made dense once, in place.
    """
    if not isinstance(value, Array):
        type = type_of(value)
        return put(np.asarray(value, type.dtype, order="C"), type, free_on(device)).buffer
    if device is None and value.device is None:
        value.make_dense()
    return value.buffer_on(device)


def run_program(
    program: Program, args: Sequence[Any], place: Place, donated: tuple[int, ...] = ()
) -> list[Array]:
    """The results of the compiled program on concrete arguments."""
    note_program(program, args)
    device = place.device
    executable = compiled(program, device_for(device), donated)
    lent = tuple(n for n in donated if _may_lend(args[n], device))
    buffers = [buffer_on(a, device) for a in args]
    return run_executable(executable, program.output_types, buffers, place, lent)


def _may_lend(value: Any, device: Device | None) -> bool:
    """Memory may be given to a result if it is an Array's and nothing else can see it."""
    return isinstance(value, Array) and value.device is device and value.is_sole_owner


def run_executable(
    executable: Executable,
    types: Sequence[ArrayType],
    buffers: Sequence[Any],
    place: Place = CPU,
    donated: tuple[int, ...] = (),
) -> list[Array]:
    """The results, of these types, of compiled code on buffers of its device."""
    results = executable(buffers, donated)
    next(counts.runs)
    return [
        Array(b, t if not t.is_symbolic else t.with_shape(tuple(b.shape)), place)
        for b, t in zip(results, types, strict=True)
    ]
