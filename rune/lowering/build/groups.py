"""Loops of groups of threads: squares that they turn, tiles they stage, points they share.

This is the interface between `build` and the modules that lay out such loops. It is loaded for the
first device with groups (late_modules.py): native code has none, and these modules are a third of
the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rune.lowering.build.barriers import insert_barriers
from rune.lowering.build.legal import is_legal, refuse
from rune.lowering.build.schedule import Schedule, Share
from rune.lowering.build.share_choice import choose_share
from rune.lowering.build.stage import staged
from rune.lowering.build.stage_choice import choose_stage
from rune.lowering.build.teams import multiplied_together
from rune.lowering.build.turn import choose_turn, turned
from rune.lowering.build.twice import staged_twice
from rune.lowering.build.units import multiplied
from rune.lowering.build.units_choice import choose_units
from rune.lowering.build.workgroups import placed, share_point
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.matrices import TEAM_ROWS
from rune.lowering.kernel.nodes import Stmt
from rune.lowering.kernels import Axis, Kernel


def turning(flat: Kernel, side: int, target: Target) -> Schedule | None:
    """The squares that a group turns, if they pay."""
    schedule = Schedule(turn=choose_turn(flat, side))
    return schedule if schedule.turn is not None and is_legal(flat, schedule, target) else None


def staging(flat: Kernel, target: Target) -> Schedule | None:
    """The tiles of a dot that a group reads into shared memory, if they pay."""
    return choose_units(flat, target) or choose_stage(flat, target)


def points(flat: Kernel, schedule: Schedule, output_dtypes: Mapping[str, np.dtype]) -> tuple[list[Axis], list[Stmt]]:
    """The axes of the grid and what one of its groups does, for a schedule with groups."""
    if schedule.turn is not None:
        return turned(flat, schedule.turn)
    tile, stage, units = schedule.tile, schedule.stage, schedule.units
    assert tile is not None
    assert stage is not None
    # Their number of rows tells units of four subgroups from those of one.
    if units is not None and units.rows == TEAM_ROWS:
        return multiplied_together(flat, tile, stage, units, output_dtypes)
    if units is not None:
        return multiplied(flat, tile, stage, output_dtypes)
    return staged_twice(flat, tile, stage, output_dtypes) if stage.twice else staged(flat, tile, stage, output_dtypes)


def shared(
    flat: Kernel, domain: Sequence[Axis], point: Sequence[Stmt], share: Share, target: Target
) -> tuple[Sequence[Axis], Sequence[Stmt], Sequence[Stmt]]:
    """The axes of the grid, a point that threads share, and its loops, which they divide."""
    domain, point = placed(point, domain, share)
    group = share_point(point, share, target)
    if group is None:
        memory = f"more memory is needed than the {target.shared_bytes} bytes of a group"
        refuse(flat, share, f"it has no loop that a group could divide like that, or {memory}")
    return domain, group.point, group.divided_loops


__all__ = ["choose_share", "insert_barriers", "points", "shared", "staging", "turning"]
