"""Running a partition: its segments one after another, each on its device, with copies between.

A value is dropped after the step that reads it last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rune.array import Array, Place, committed_to, on, put
from rune.core.interpreter import type_of
from rune.core.program import Literal, Program
from rune.core.sizes import match_sizes
from rune.core.values import Value
from rune.transforms.arguments import unshared
from rune.transforms.compile.executables import buffer_on, device_for
from rune.transforms.compile.partition import Partition, Result, Segment, Transfer, partition
from rune.transforms.programs.size_witnesses import with_witnesses
from rune.transforms.sharding.refusal import devices_of


def partitioned(program: Program, args: Sequence[Value], place: Place) -> Partition:
    """The partition for these arguments, which are free if the user chose the place of the call."""
    # If the call itself has a device, its arguments move there.
    free = (None,) * len(args) if place.committed else tuple(map(_committed_to, args))
    return partition(program, device_for(place.device).name, free)


def _committed_to(value: Value) -> str | None:
    if type(value) is not Array or not value.committed:
        return None
    # The mesh of one device is that device here, so that its arrays meet those that move there.
    devices = devices_of(value.place)
    return next(iter(devices)).name if len(devices) == 1 else value.device.name


def run_segments(
    run: Callable[[Program, Sequence[Value], Place], list[Array]],
    program: Program,
    args: Sequence[Value],
    place: Place,
    donations: tuple[int, ...],
) -> list[Array]:
    """The results of a program that moves values; `run` runs each segment. Nothing is donated."""
    parts = partitioned(program, args, place)
    types = [type_of(a) for a in args]
    sizes = match_sizes(program.input_types, types, f"{program.name}: cannot run")
    # Keyed by variable and device, because a value may be on several devices at once.
    env: dict[tuple[object, str], Array] = {}
    start_values = [*zip(parts.inputs, args, strict=True)]
    start_values += [((var, parts.home), value) for var, value in parts.constants]
    for (var, name), value in start_values:
        device = on(name)
        # An argument may become a result, so it must not be memory that the user can write to.
        value = unshared(value)
        env[var, name] = Array(buffer_on(value, device), type_of(value), committed_to(device))
    for step, last_reads in zip(parts.steps, parts.last_reads, strict=True):
        match step:
            case Transfer(value=value, source=source, target=target):
                array = env[value, source]
                env[value, target] = put(array.numpy(), array.type, committed_to(on(target)))
            case Segment(device=name):
                # A segment's inputs may not determine all sizes of the whole program.
                closed_program, witnesses = with_witnesses(step.program, sizes)
                inputs = [env[var, name] for var in step.program.inputs]
                outs = run(closed_program, [*witnesses, *inputs], committed_to(on(name)))
                env.update(zip(((v, name) for v in step.results), outs, strict=True))
        for copy in last_reads:
            env.pop(copy, None)
    return [_result(r, env, place) for r in parts.results]


def _result(result: Result, env: Mapping[tuple[object, str], Array], place: Place) -> Array:
    """An output of the program; a free output is at home."""
    where = committed_to(on(result.device)) if result.is_committed else place
    if isinstance(result.atom, Literal):
        return put(np.asarray(result.atom.value), result.atom.type, where)
    array = env[result.atom, result.device]
    return Array(array.buffer, array.type, where)
