"""A program on all devices of a mesh at once: each runs it on its own blocks.

Every device has its executable; CPU devices of one core each run the same code. For collectives,
the devices meet at the table of the run (lowering/meetings.py). On a mesh of several processes each
process runs its own devices.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from rune import config, counts
from rune.array import Array, Place, committed_to
from rune.backends.shared.protocol import Backend, Buffer, Executable, RunsTogether, SharesCode, Together
from rune.core.interpreter import type_of
from rune.core.memo import per_program
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import CollectiveError, RuneError
from rune.lowering.crossings import Crossing, Itinerary
from rune.lowering.meetings import Grid, Table
from rune.records import dataclass
from rune.sharding import Mesh, NamedSharding
from rune.sharding.memory import Blocks, Spread, on_all_devices, spread
from rune.transforms.compile.executables import compiled
from rune.transforms.compile.lending import lending
from rune.transforms.sharding.blocks import Specs
from rune.transforms.sharding.donation import lendable
from rune.transforms.sharding.exchanges import exchanges
from rune.transforms.sharding.workers import run_each, turns

Buffers = Sequence[Buffer]  # for one device: its blocks of the operands, or of the results


@dataclass(frozen=True, slots=True, eq=False)
class MeshProgram:
    """The executables of the devices of a mesh, and the places of operands and results.

    executables: for each device of this process, in the order of the mesh
    block_types: the types of the results, on each device
    in_turn:     whether the caller's thread runs them one after another, as it does if each is over
                 before another thread could start it, and they do not communicate
    together:    runs all of them without Python's threads; None if they need Python
    itinerary:   the way to the devices of other processes; None if none is needed
    """

    mesh: Mesh
    executables: tuple[Executable, ...]
    operands: tuple[Spread, ...]
    results: tuple[Place, ...]
    block_types: tuple[ArrayType, ...]
    in_turn: bool
    together: Together | None
    itinerary: Itinerary | None

    def __call__(self, args: Sequence[Value], donations: Sequence[int] = ()) -> list[Array]:
        """The results. donations: arguments whose blocks the results may use.

        Errors: that of the device that failed first; CollectiveError if devices do not agree.
        """
        lenders = lendable(args, donations) if donations else ()
        operands = [_blocks_of(a, devices) for a, devices in zip(args, self.operands, strict=True)]
        blocks = list(zip(*operands, strict=True)) or [()] * len(self.executables)
        crossing = None if self.itinerary is None else Crossing(self.itinerary, _numbers_of_host(args))
        with lending(args, lenders):
            results = self._run(blocks, lenders, crossing)
            if crossing is not None:
                crossing.agree()  # without a collective, results of the others still have to be awaited
        next(counts.runs)
        return [*map(_array, zip(*results, strict=True), self.block_types, self.results)]

    def _run(self, blocks: Sequence[Buffers], lenders: Sequence[int], crossing: Crossing | None) -> Sequence[Buffers]:
        """The results of each device for its blocks."""
        if self.in_turn:
            return [run(operands, lenders) for run, operands in zip(self.executables, blocks, strict=True)]
        if self.together is not None:
            with turns(self.mesh.in_order):
                return self.together(blocks, lenders)
        table = Table(self.mesh.shape, self.mesh.names, crossing)
        # The table counts the devices of all processes.
        numbers = [n for n, device in enumerate(self.mesh.in_order) if device.is_local]
        devices = self.mesh.local_devices
        try:
            return run_each(devices, lambda n: table.run(numbers[n], self.executables[n], blocks[n], lenders))
        # The other devices only report that they waited in vain: the user needs the first failure.
        except CollectiveError as error:
            failure = table.failure or error
            if isinstance(failure, RuneError):
                failure.locate()
            raise failure from None


def mesh_program(
    program: Program, mesh: Mesh, in_specs: Specs, out_specs: Specs, donations: tuple[int, ...] = ()
) -> MeshProgram:
    """The program for all devices, compiled on first use, for blocks by these specs."""
    settings = config.current()
    return _mesh_program(program, mesh, in_specs, out_specs, donations, settings.check_stages, settings.profile)


@per_program
def _mesh_program(
    program: Program, mesh: Mesh, in_specs: Specs, out_specs: Specs, donations: tuple[int, ...], *settings: bool
) -> MeshProgram:
    # `settings` are only part of the memo's key: compiled code depends on them.
    executables = _executables(program, mesh, donations)
    backends = [d.backend for d in mesh.local_devices]
    in_turn = all(isinstance(b, SharesCode) and b.is_brief(e) for b, e in zip(backends, executables, strict=True))
    return MeshProgram(
        mesh,
        executables,
        tuple(spread(NamedSharding(mesh, s)) for s in in_specs),
        tuple(committed_to(spread(NamedSharding(mesh, s))) for s in out_specs),
        program.output_types,
        in_turn,
        None if in_turn or mesh.is_multi_process else _together(executables, mesh),
        _itinerary(program, mesh),
    )


def _itinerary(program: Program, mesh: Mesh) -> Itinerary | None:
    """The way to the devices of other processes; None in a program without collectives."""
    if not mesh.is_multi_process or not exchanges(program, mesh):
        return None
    return Itinerary.of(mesh.homes, f"{mesh!r} of {', '.join(mesh.names)}", str(program))


def _together(executables: Sequence[Executable], mesh: Mesh) -> Together | None:
    """The executables as one, if the backend of the first can run them all."""
    backend = mesh.in_order[0].backend
    names = tuple(d.name for d in mesh.in_order)
    return backend.together(executables, Grid(mesh.shape, names)) if isinstance(backend, RunsTogether) else None


def _executables(program: Program, mesh: Mesh, donations: tuple[int, ...]) -> tuple[Executable, ...]:
    executables: list[Executable] = []
    for device in mesh.local_devices:
        twins = (_twin(device.backend, e) for e in executables)
        executables.append(next((t for t in twins if t is not None), None) or compiled(program, device, donations))
    return tuple(executables)


def _twin(backend: Backend, executable: Executable) -> Executable | None:
    """The executable on another device, if that can run its code."""
    # Devices that share code compile it once for all of them.
    return backend.adopted(executable) if isinstance(backend, SharesCode) else None


def _numbers_of_host(args: Sequence[Value]) -> list[object]:
    """The numbers among the arguments that are on no device yet: each process has its own."""
    # Host numbers are not sent: each process must pass the same, which the crossing compares.
    arrays = (a.rank0() if type(a) is Array else np.asarray(a) for a in args)
    return [x.item() for x in arrays if x is not None and not x.ndim]


def _blocks_of(value: Value, devices: Spread) -> Buffers:
    """The block of each device."""
    if type(value) is not Array:
        return devices.backend.share(np.array(value, type_of(value).dtype)).local
    device = value.place.device
    if device is not devices and isinstance(device, Spread):
        # Shardings with other words may mean the same blocks, which then need not be copied.
        if _are_alike(device.sharding, devices.sharding, value.type.ndim):
            return value.buffer.local
    return value.buffer_on(devices).local


@functools.lru_cache(maxsize=4096)
def _are_alike(a: NamedSharding, b: NamedSharding, ndim: int) -> bool:
    """Whether the devices of both have the same blocks of an array of this rank, in one order."""
    return a.mesh.in_order == b.mesh.in_order and a.is_equivalent_to(b, ndim)


def _array(blocks: Buffers, block_type: ArrayType, place: Place) -> Array:
    """The array of these blocks, of the devices of this process."""
    assert isinstance(place.device, Spread)
    shape = _shape(tuple(blocks[0].shape), place)
    buffers = on_all_devices(blocks, place.device.sharding.mesh)
    return Array(Blocks(buffers, shape), block_type.with_shape(shape), place)


@functools.lru_cache(maxsize=4096)
def _shape(block: tuple[int, ...], place: Place) -> tuple[int, ...]:
    """The shape of the array whose blocks have this shape."""
    assert isinstance(place.device, Spread)
    parts = map(place.device.sharding.parts, range(len(block)))
    return tuple(d * n for d, n in zip(block, parts, strict=True))
