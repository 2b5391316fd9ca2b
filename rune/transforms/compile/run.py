"""From a program to something that runs: lower, compile, remember.

The cache belongs to the program: whole programs are compared by identity, never by a hash, and
what was compiled goes when the program goes. Lowering and compiling happen once per program,
device, donation and configuration. A program that moves values is run in parts (partition.py).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from rune import config, counts, locks
from rune.array import CPU, Array, Place, check_range, committed_to, default_place, free_on, on, put
from rune.backends import Device, device_named
from rune.backends.shared.protocol import Executable
from rune.core.interpreter import type_of
from rune.core.program import Literal, Program
from rune.core.sizes import match_sizes
from rune.core.types import ArrayType
from rune.transforms.arguments import unshared
from rune.transforms.checks.key_reuse import note_program
from rune.transforms.checks.nans_and_bounds import is_watching, without_faults
from rune.transforms.compile.partition import Partition, Result, Segment, Transfer, partition
from rune.transforms.compile.placement import placement
from rune.transforms.compile.trace_cache import count_bytes
from rune.transforms.compile.transfer import has_moves
from rune.transforms.programs.memo import per_program
from rune.transforms.programs.size_witnesses import with_witnesses

_lock = locks.reentrant()


@functools.cache
def _compiler() -> Any:
    """The lowering, loaded when a program is first compiled, so that `import rune` stays light."""
    return locks.load("rune.lowering.pipeline")


@functools.cache
def cached() -> Any:
    """What describes calls for native code, loaded when one is made for the second time."""
    return locks.load("rune.transforms.compile.native_calls")


CODE_BYTES = 64 << 10  # of machine code with what LLVM or a driver holds for it, and ...
TEXT_COPIES = 3  # ... this for each byte of its source


@per_program
def _compiled(
    program: Program, device: Device, donated: tuple[int, ...], check: bool, profile: bool
) -> Executable:
    next(counts.compiles)
    lowered = _compiler().stages(program, device.target, donated, check=check)
    if check:
        locks.load("rune.backends.shared.plan_check").check_plan(lowered.plan)
    if profile:
        profiled = locks.load("rune.backends.shared.timing")
        executable = profiled.record(lowered, device.name, device.backend)
    else:
        executable = device.backend.record(lowered.plan)
    # The program holds what was compiled of it.
    count_bytes(program, CODE_BYTES + TEXT_COPIES * sum(map(len, executable.sources().values())))
    return executable


def compiled(program: Program, device: Device, donated: tuple[int, ...] = ()) -> Executable:
    """The executable of `program` on `device`, compiled on first use."""
    settings = config.current()
    with _lock:
        return _compiled(program, device, donated, settings.check_stages, settings.profile)


def device_for(device: Device | None) -> Device:
    """The device record: None means the CPU executor."""
    return device_named("cpu:0") if device is None else device


def buffer_on(value: Any, device: Device | None) -> Any:
    """The buffer of `value` on `device` (None: the CPU), copied there if it is elsewhere.

    Native code reads dense arrays: a view left by an eager transpose is made dense once, in place.
    """
    if type(value) is not Array:
        value_type = type_of(value)
        if type(value) is int:
            check_range(np.asarray(value), value_type.dtype)
        host = np.asarray(value, value_type.dtype, order="C")
        host = host if host.flags.aligned else host.copy()  # a field of a file's records
        return put(host, value_type, free_on(device)).buffer
    if device is None and value.place.device is None:
        value.make_dense()
    return value.buffer_on(device)


def run_program(
    program: Program, args: Sequence[Any], place: Place, donated: tuple[int, ...] = ()
) -> list[Array]:
    """The results of the compiled program on concrete arguments."""
    note_program(program, args)
    if has_moves(program):
        return _run_parts(program, args, place)
    return _run_on(program, args, place, donated)


def place_of_call(name: str, program: Program, args: Sequence[Any]) -> Place:
    """Where a program runs on these arguments; one that moves values starts at the default device.

    Errors: DeviceError for arguments that are committed to different devices, which only a
    program that moves values may take.
    """
    return default_place() if has_moves(program) else placement(name, args)


def _run_on(
    program: Program, args: Sequence[Any], place: Place, donated: tuple[int, ...] = ()
) -> list[Array]:
    if is_watching():
        settings = config.current()
        wanted = settings.check_bounds, settings.check_nans, settings.check_infs
        watched = _watched(program, wanted)
        return without_faults(watched.sites, _run_as_is(watched.program, args, place, donated))
    return _run_as_is(program, args, place, donated)


@functools.cache
def _watch() -> Any:
    return locks.load("rune.lowering.watch")


def watched_families() -> frozenset[str]:
    """The families of primitives whose results are looked at."""
    return _watch().COMPUTING


@per_program
def _watched(program: Program, wanted: tuple[bool, bool, bool]) -> Any:
    return _watch().watched(program, _watch().Wanted(*wanted))


def _run_as_is(
    program: Program, args: Sequence[Any], place: Place, donated: tuple[int, ...]
) -> list[Array]:
    device = place.device
    executable = compiled(program, device_for(device), donated)
    lent = tuple(n for n in donated if _may_lend(args[n], device))
    buffers = [buffer_on(a, device) for a in args]
    return run_executable(executable, program.output_types, buffers, place, lent)


def partitioned(program: Program, args: Sequence[Any], place: Place) -> Partition:
    """The partition for these arguments: they are free where the call's place was asked for."""
    free = (None,) * len(args) if place.committed else tuple(map(_committed_to, args))
    return partition(program, device_for(place.device).name, free)


def _committed_to(value: Any) -> str | None:
    known = type(value) is Array and value.committed
    return value.device.name if known else None


def _run_parts(program: Program, args: Sequence[Any], place: Place) -> list[Array]:
    """The results of a program that moves values, segment by segment."""
    parts = partitioned(program, args, place)
    sizes = match_sizes(
        program.input_types, [type_of(a) for a in args], f"{program.name}: cannot run"
    )
    held: dict[tuple[Any, str], Array] = {}
    start_values = [*zip(parts.inputs, args, strict=True)]
    start_values += [((var, parts.home), value) for var, value in parts.constants]
    for (var, name), value in start_values:
        device = on(name)
        # A result may be the argument itself, which must not be memory that the user can write.
        value = unshared(value)
        held[var, name] = Array(buffer_on(value, device), type_of(value), committed_to(device))
    for step, spent in zip(parts.steps, parts.spent, strict=True):
        match step:
            case Transfer(value=value, source=source, target=target):
                array = held[value, source]
                held[value, target] = put(array.numpy(), array.type, committed_to(on(target)))
            case Segment(device=name):
                closed_program, witnesses = with_witnesses(step.program, sizes)
                inputs = [held[var, name] for var in step.program.inputs]
                outs = _run_on(closed_program, [*witnesses, *inputs], committed_to(on(name)))
                held.update(zip(((v, name) for v in step.results), outs, strict=True))
        for copy in spent:
            held.pop(copy, None)
    return [_result(r, held, place) for r in parts.results]


def _result(result: Result, held: Mapping[tuple[Any, str], Array], place: Place) -> Array:
    """An output; what is free is at home."""
    where = committed_to(on(result.device)) if result.committed else place
    if isinstance(result.atom, Literal):
        return put(np.asarray(result.atom.value), result.atom.type, where)
    array = held[result.atom, result.device]
    return Array(array.buffer, array.type, where)


def _may_lend(value: Any, device: Device | None) -> bool:
    """Memory may be given to a result if it is an Array's and nothing else can see it."""
    return type(value) is Array and value.place.device is device and value.is_sole_owner


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
    return [*map(Array, results, sized(types, results), repeat(place))]


def sized(types: Sequence[ArrayType], buffers: Sequence[Any]) -> list[ArrayType]:
    """The types, with the sizes of the buffers for symbolic ones."""
    return [
        t.with_shape(tuple(b.shape)) if t.is_symbolic else t
        for t, b in zip(types, buffers, strict=True)
    ]
