"""Running a program: the stages before its compiled code, in order.

    keys      key_reuse.py         records the keys that the program uses; a second use is an error
    moves     segments.py          runs a program that moves values in parts, one for each device
    mesh      sharding/            runs a program that mentions a mesh on the devices of the mesh
    layouts   inspect/layouts.py   reports the layouts that a program asks for
    faults    nans_and_bounds.py   runs a watched program instead, and raises what it reports
    then      executables.py       compiles, and runs on buffers

Each stage decides whether a program needs it under the current settings, and passes its calls on to
the later stages. Keys come before moves, so that the parts need not be checked one by one; faults
come after moves, since each part, and each device of a mesh, reports its own. A program that needs
no stage is executed at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rune import config
from rune.array import CPU, Array, Place
from rune.config import Config
from rune.core.memo import per_program
from rune.core.program import Atom, Equation, Program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.sharding import Mesh, NamedSharding, PartitionSpec
from rune.sharding.memory import Spread
from rune.transforms.checks.key_reuse import note_program
from rune.transforms.checks.nans_and_bounds import is_watching, watched_program, without_faults
from rune.transforms.compile.executables import Schedules, execute
from rune.transforms.compile.segments import run_segments
from rune.transforms.compile.transfer import devices_within
from rune.transforms.inspect.layouts import has_inspections, report, report_at
from rune.transforms.programs.call_rules import of_results
from rune.transforms.sharding.blocks import Region, Specs
from rune.transforms.sharding.constraint import CONSTRAINTS
from rune.transforms.sharding.localize import input_specs, localized, meshes_within
from rune.transforms.sharding.refusal import require_there
from rune.transforms.sharding.reshard import layout_of
from rune.transforms.sharding.run import MeshProgram, mesh_program
from rune.transforms.sharding.watched import run_watched

Run = Callable[..., list[Array]]  # (program, args, place, donations=()) -> results


class Stage(NamedTuple):
    """A check or a rewrite before a program runs.

    run: as `run_program`, with the run by the later stages as its first argument.
    """

    is_needed: Callable[[Program, Config, Place], bool]
    run: Callable[..., list[Array]]


def run_program(
    program: Program, args: Sequence[Value], place: Place, donations: tuple[int, ...] = (), schedules: Schedules = ()
) -> list[Array]:
    """The results of the program on concrete arguments.

    schedules: for its kernels. A stage runs other programs, with other kernels.
    """
    return _run_from(0, program, args, place, donations, schedules)


def _run_from(
    number: int,
    program: Program,
    args: Sequence[Value],
    place: Place,
    donations: tuple[int, ...] = (),
    schedules: Schedules = (),
) -> list[Array]:
    """The results by the stages from this number on."""
    settings = config.current()
    for stage in STAGES[number:]:
        # The later stages continue after this one, so that none runs twice.
        number += 1
        if stage.is_needed(program, settings, place):
            later = functools.partial(_run_from, number)
            return stage.run(later, program, args, place, donations)
    return execute(program, args, place, donations, schedules)


def needs_stages(program: Program) -> bool:
    """Whether a run of the program is more than its compiled code."""
    settings = config.current()
    # As if on one device: callers look for a mesh in the place of the call themselves.
    return any(stage.is_needed(program, settings, CPU) for stage in STAGES)


def _note_keys(
    later: Run, program: Program, args: Sequence[Value], place: Place, donations: tuple[int, ...]
) -> list[Array]:
    note_program(program, args)
    return later(program, args, place, donations)


def _on_mesh(
    later: Run, program: Program, args: Sequence[Value], place: Place, donations: tuple[int, ...]
) -> list[Array]:
    """The devices of the mesh run their parts, and no later stage."""
    # The faults that a later stage would look for are checked here, on each device.
    settings = config.current()
    places = tuple([a.place if type(a) is Array else CPU for a in args])
    if is_watching(settings):
        mesh, local, in_specs, out_specs = _for_places(program, places, settings.check_bounds, False)
        return run_watched(local, mesh, in_specs, out_specs, args)
    on_devices = _program_on_mesh(program, places, donations, settings.check_stages, settings.profile)
    return on_devices(args, donations)


class OnMesh(NamedTuple):
    """The program that each device of a mesh runs on its blocks, and how arrays are split."""

    mesh: Mesh
    local: Program
    in_specs: Specs
    out_specs: Specs


def on_mesh(program: Program, args: Sequence[Value]) -> OnMesh | None:
    """The run of the program by the devices of a mesh, for these arguments; None without a mesh."""
    return on_mesh_of(program, tuple(a.place if type(a) is Array else CPU for a in args))


def on_mesh_of(program: Program, places: tuple[Place, ...]) -> OnMesh | None:
    """The same for arguments at these places."""
    if not meshes_within(program) and not any(isinstance(p.device, Spread) for p in places):
        return None
    return _for_places(program, places)


@per_program
def _program_on_mesh(
    program: Program, places: tuple[Place, ...], donations: tuple[int, ...], *settings: bool
) -> MeshProgram:
    """The program of the devices for arguments at these places."""
    # The settings are only part of the memo's key: compiled code depends on them.
    mesh, local, in_specs, out_specs = _for_places(program, places)
    return mesh_program(local, mesh, in_specs, out_specs, donations)


@per_program
def _for_places(
    program: Program, places: tuple[Place, ...], is_watched: bool = False, has_spans: bool = True
) -> OnMesh:
    spreads = (p.device.sharding.mesh for p in places if isinstance(p.device, Spread))
    # One mesh per program: `localized` refuses a second one.
    mesh = next(iter((*meshes_within(program), *spreads)))
    in_specs = tuple(
        _spec_on(mesh, t, place, spec)
        for t, place, spec in zip(program.input_types, places, input_specs(program, mesh), strict=True)
    )
    everywhere = Region(mesh, mesh.axis_names, is_watched=is_watched, has_spans=has_spans)
    local, shortest_specs = localized(program, everywhere, in_specs, (None,) * len(program.outputs))
    out_specs = map(_as_written, shortest_specs, program.outputs, _wordings(program, mesh, places))
    # In the body of a shard_map a value is what one device has, and not split.
    report(local, NamedSharding(mesh, PartitionSpec()))
    return OnMesh(mesh, local, in_specs, tuple(out_specs))


def _as_written(spec: PartitionSpec, atom: Atom, wordings: Sequence[PartitionSpec]) -> PartitionSpec:
    """The first of these specs that lays out the value in the same way, or the spec itself."""
    layout = layout_of(spec, atom.type.ndim)
    return next((w for w in wordings if layout_of(w, atom.type.ndim) == layout), spec)


def _wordings(program: Program, mesh: Mesh, places: Sequence[Place]) -> list[list[PartitionSpec]]:
    """For each result the specs whose words it takes: that of `out_shardings`, or of an argument.

    As in JAX, only the first argument that the program reads counts, for results of its rank.
    """
    _, is_read = of_results(program, (True,) * len(program.outputs))
    first = next(((v, p) for v, p, read in zip(program.inputs, places, is_read, strict=True) if read), None)
    constraints: dict[Atom, Equation] = {e.results[0]: e for e in program.equations if e.primitive in CONSTRAINTS}
    wordings: list[list[PartitionSpec]] = []
    for atom in program.outputs:
        equation = constraints.get(atom)
        specs = [] if equation is None else [equation.params["sharding"].spec.settled()]
        if first is not None and first[0].type.ndim == atom.type.ndim:
            specs += _spec_of_place(mesh, first[1])
        wordings.append(specs)
    return wordings


def _spec_of_place(mesh: Mesh, place: Place) -> list[PartitionSpec]:
    """The spec of arguments that are committed to this mesh."""
    if place.committed and isinstance(place.device, Spread) and place.device.sharding.mesh == mesh:
        return [place.device.sharding.spec]
    return []


def _spec_on(mesh: Mesh, type: ArrayType, place: Place, spec: PartitionSpec) -> PartitionSpec:
    """The layout of an argument: its own if it is on this mesh; otherwise that of the program.

    Errors: DeviceError for an array that is committed to other devices.
    """
    # A free argument follows to the mesh, in the layout that the program uses it in.
    if not place.committed:
        return spec
    if isinstance(place.device, Spread) and place.device.sharding.mesh == mesh:
        return place.device.sharding.spec
    require_there("jit", type, place, mesh)
    return spec


def _report_layouts(
    later: Run, program: Program, args: Sequence[Value], place: Place, donations: tuple[int, ...]
) -> list[Array]:
    report_at(program, place)
    return later(program, args, place, donations)


def _watch(
    later: Run, program: Program, args: Sequence[Value], place: Place, donations: tuple[int, ...]
) -> list[Array]:
    watched_run = watched_program(program)
    *results, site, index = later(watched_run.program, args, place, donations)
    return without_faults(watched_run.sites, results, int(site), int(index))


STAGES = (
    Stage(lambda program, settings, place: settings.check_keys, _note_keys),
    Stage(lambda program, settings, place: bool(devices_within(program)), run_segments),
    Stage(lambda program, settings, place: isinstance(place.device, Spread) or bool(meshes_within(program)), _on_mesh),
    Stage(lambda program, settings, place: has_inspections(program), _report_layouts),
    Stage(lambda program, settings, place: is_watching(settings), _watch),
)
