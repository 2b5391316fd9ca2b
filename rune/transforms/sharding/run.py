"""A program on all devices of a mesh at once: each runs it on blocks of its own.

Every device has its executable, recorded from one plan for all devices of a kind. Where the program
has collectives, the devices meet at the table of the run (lowering/meetings.py).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from rune import config, counts
from rune.array import Array, committed_to
from rune.backends.shared.protocol import Backend, Buffer, Executable, SharesCode
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import CollectiveError
from rune.lowering.meetings import Table
from rune.sharding import Mesh, NamedSharding, PartitionSpec
from rune.sharding.memory import Blocks, Spread, spread
from rune.transforms.compile.executables import compiled
from rune.transforms.programs.memo import per_program
from rune.transforms.sharding.workers import run_each

Buffers = Sequence[Buffer]  # of one device: its blocks of the operands, or of the results
Specs = Sequence[PartitionSpec]


def run_blocks(program: Program, mesh: Mesh, in_specs: Specs, out_specs: Specs, args: Sequence[Value]) -> list[Array]:
    """The results, cut as `out_specs` say, of the program run on the blocks of its arguments.

    Errors: as of run_on_mesh.
    """
    operands = [_blocks_of(a, spread(NamedSharding(mesh, s))) for a, s in zip(args, in_specs, strict=True)]
    results = run_on_mesh(program, mesh, list(zip(*operands, strict=True)) or [()] * mesh.size)
    return [
        _array(blocks, t, NamedSharding(mesh, s))
        for blocks, t, s in zip(zip(*results, strict=True), program.output_types, out_specs, strict=True)
    ]


def _blocks_of(value: Value, devices: Spread) -> Buffers:
    """The block of each device."""
    if type(value) is Array:
        there = value.sharding
        if isinstance(there, NamedSharding) and _are_alike(there, devices.sharding, value.type.ndim):
            return value.buffer.buffers
        return value.buffer_on(devices).buffers
    host = np.array(value, type_of(value).dtype)
    return devices.backend.share(host).buffers


@functools.lru_cache(maxsize=4096)
def _are_alike(a: NamedSharding, b: NamedSharding, ndim: int) -> bool:
    """Whether the devices of both have the same blocks of an array of this rank, in one order."""
    return a == b or (a.mesh.in_order == b.mesh.in_order and a.is_equivalent_to(b, ndim))


def _array(blocks: Buffers, block_type: ArrayType, sharding: NamedSharding) -> Array:
    """The array of these blocks."""
    sizes = zip(blocks[0].shape, itertools.count())
    shape = tuple(d * sharding.parts(axis) for d, axis in sizes)
    return Array(Blocks(tuple(blocks), shape), block_type.with_shape(shape), committed_to(spread(sharding)))


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
