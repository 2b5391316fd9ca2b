"""Runs of a program on a mesh, with checks of numbers and indices on every device."""

from __future__ import annotations

from collections.abc import Sequence

from rune import ops
from rune.array import Array
from rune.core.memo import per_program
from rune.core.program import Equation, Program, Var
from rune.core.values import Value
from rune.errors import BoundsError, NaNError
from rune.sharding import Mesh, PartitionSpec
from rune.transforms.checks.nans_and_bounds import watched_program, without_faults
from rune.transforms.sharding.blocks import Specs
from rune.transforms.sharding.run import mesh_program


def run_watched(program: Program, mesh: Mesh, in_specs: Specs, out_specs: Specs, args: Sequence[Value]) -> list[Array]:
    """The results of the program that each device runs on its blocks.

    Errors: BoundsError or NaNError, of the first device of this process that found a fault.
    """
    watched_run, state = watched_program(program), PartitionSpec(mesh.axis_names)
    run = mesh_program(_with_states(watched_run.program), mesh, in_specs, (*out_specs, state, state))
    *results, sites, indices = run(args)
    # Each device has checked its own blocks, so one fault may be seen by some devices only.
    rows = list(zip(mesh.local_devices, _local_rows(sites), _local_rows(indices), strict=True))
    device, site, index = next((row for row in rows if row[1]), rows[0])
    try:
        without_faults(watched_run.sites, [r.addressable_data(0) for r in results], site, index)
    except (BoundsError, NaNError) as error:
        error.restate(f"{error.message} on {device.name}")
        raise
    return results


def _local_rows(states: Array) -> list[int]:
    """The value on each device of this process."""
    return [int(shard.data) for shard in states.addressable_shards]


@per_program
def _with_states(program: Program) -> Program:
    """The program whose last two results, a fault's site and index, are one row for each device."""
    *outputs, site, index = program.outputs
    rows = [Var(atom.type.with_shape((1,))) for atom in (site, index)]
    stack = [
        Equation(ops.reshape, (atom,), {"shape": (1,)}, (row,)) for atom, row in zip((site, index), rows, strict=True)
    ]
    return program.with_equations((*program.equations, *stack), (*outputs, *rows))
