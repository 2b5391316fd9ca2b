"""A program on a mesh whose numbers and indices are checked on every device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune import ops
from rune.array import Array
from rune.core.program import Equation, Program, Var
from rune.core.values import Value
from rune.errors import BoundsError, NaNError
from rune.sharding import Mesh, PartitionSpec
from rune.transforms.checks.nans_and_bounds import watched_program, without_faults
from rune.transforms.programs.memo import per_program
from rune.transforms.sharding.blocks import Specs
from rune.transforms.sharding.run import mesh_program


def run_watched(program: Program, mesh: Mesh, in_specs: Specs, out_specs: Specs, args: Sequence[Value]) -> list[Array]:
    """The results of what each device runs on its blocks.

    Errors: BoundsError or NaNError, of the first device in the mesh that found a fault.
    """
    watched, state = watched_program(program), PartitionSpec(mesh.axis_names)
    run = mesh_program(_with_states(watched.program), mesh, in_specs, (*out_specs, state, state))
    *results, sites, indices = run(args)
    states = np.stack([sites.numpy(), indices.numpy()])
    faulty = np.flatnonzero(states[0])
    first = int(faulty[0]) if faulty.size else 0
    try:
        return without_faults(watched.sites, results, *map(int, states[:, first]))
    except (BoundsError, NaNError) as error:
        error.restate(f"{error.message} on {mesh.in_order[first].name}")
        raise


@per_program
def _with_states(program: Program) -> Program:
    """The program whose last two results, a fault's site and index, are one row for each device."""
    *outputs, site, index = program.outputs
    rows = [Var(atom.type.with_shape((1,))) for atom in (site, index)]
    stacked = [
        Equation(ops.reshape, (atom,), {"shape": (1,)}, (row,)) for atom, row in zip((site, index), rows, strict=True)
    ]
    return program.with_equations((*program.equations, *stacked), (*outputs, *rows))
