"""A program on all devices of a mesh at once: each runs it on blocks of its own.

Every device has its executable, recorded from one plan for all devices of a kind. Where the program
has collectives, the devices meet at the table of the run (lowering/meetings.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rune import config, counts
from rune.array import CPU, Array, free_on, on, put
from rune.backends.shared.protocol import Backend, Buffer, Executable, SharesCode
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import CollectiveError
from rune.lowering.meetings import Table
from rune.sharding import Mesh, NamedSharding, PartitionSpec
from rune.transforms.compile.executables import compiled
from rune.transforms.programs.memo import per_program
from rune.transforms.sharding.workers import run_each

Buffers = Sequence[Buffer]  # of one device: its blocks of the operands, or of the results
Specs = Sequence[PartitionSpec]


def run_blocks(program: Program, mesh: Mesh, in_specs: Specs, out_specs: Specs, args: Sequence[Value]) -> list[Array]:
    """The results, cut as `out_specs` say, of the program run on the blocks of its arguments.

    Errors: as of run_on_mesh; DeviceError for an argument that is committed elsewhere.
    """
    operands = [blocks_of(a, NamedSharding(mesh, s)) for a, s in zip(args, in_specs, strict=True)]
    results = run_on_mesh(program, mesh, list(zip(*operands, strict=True)) or [()] * mesh.size)
    return [
        from_blocks(blocks, t, NamedSharding(mesh, s))
        for blocks, t, s in zip(zip(*results, strict=True), program.output_types, out_specs, strict=True)
    ]


def blocks_of(value: Value, sharding: NamedSharding) -> list[Buffer]:
    """The buffer of each device."""
    type = type_of(value)
    data = value.numpy() if isinstance(value, Array) else np.asarray(value, type.dtype)
    return [
        put(np.array(data[block]), type, free_on(on(device))).buffer
        for device, block in sharding.devices_indices_map(data.shape).items()
    ]


def from_blocks(blocks: Buffers, type: ArrayType, sharding: NamedSharding) -> Array:
    """The array that the blocks are of."""
    parts = [Array(b, type, free_on(on(d))).numpy() for b, d in zip(blocks, sharding.mesh.in_order, strict=True)]
    shape = tuple(
        s * math.prod(sharding.mesh.shape[n] for n in sharding.spec.names(a)) for a, s in enumerate(parts[0].shape)
    )
    data = np.empty(shape, parts[0].dtype)
    for part, block in zip(parts, sharding.devices_indices_map(shape).values(), strict=True):
        data[block] = part
    return put(data, ArrayType(shape, type.dtype), CPU)


def executables_of(program: Program, mesh: Mesh) -> tuple[Executable, ...]:
    """The executable of each device, compiled on first use."""
    settings = config.current()
    return _executables(program, mesh, settings.check_stages, settings.profile)


@per_program
def _executables(program: Program, mesh: Mesh, *settings: bool) -> tuple[Executable, ...]:
    executables: list[Executable] = []
    for device in mesh.in_order:
        twins = (_twin(device.backend, e) for e in executables)
        executables.append(next((t for t in twins if t is not None), None) or compiled(program, device))
    return tuple(executables)


def _twin(backend: Backend, executable: Executable) -> Executable | None:
    """The executable on another device, if that can run its code."""
    return backend.adopted(executable) if isinstance(backend, SharesCode) else None


def run_on_mesh(program: Program, mesh: Mesh, blocks: Sequence[Buffers]) -> list[Buffers]:
    """The blocks of the results on each device, for those of the operands there.

    Errors: that of the device that failed first; CollectiveError if devices do not agree.
    """
    devices, executables = mesh.in_order, executables_of(program, mesh)
    table = Table(mesh.shape, [d.name for d in devices])

    def part(number: int) -> Buffers:
        with table.seat(number):
            return executables[number](blocks[number])

    try:
        results = run_each(devices, part)
    except CollectiveError as error:  # what others are told, when one has failed
        raise table.failure or error from None
    next(counts.runs)
    return results
