"""Witnesses: arrays of no bytes that tell a program a size which its other inputs do not.

The transpose of a sum over f32[n] takes a scalar and gives f32[n]: nothing that it takes tells n.
For one compiled program to serve every n, the size comes in as the shape of one more input,
bool[n,0]. So does a size that a jitted function closes over.

Invariant: the inputs of a program that an equation holds tell every size that the program mentions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rune import dims, dtypes
from rune.core.program import Program, Var
from rune.core.sizes import Sizes, mentioned_sizes, untold_sizes
from rune.core.types import ArrayType
from rune.dims import Size
from rune.ops.family import broadcast
from rune.transforms.programs.memo import per_program


def with_witnesses(program: Program, sizes: Sizes) -> tuple[Program, list[Any]]:
    """A program whose inputs tell all its sizes, and the values for its new leading inputs.

    sizes: what the sizes are in the current context; one that is not named is itself there.
    """
    completed = _completed(program)
    if completed is None:
        return program, []
    closed_program, untold = completed
    return closed_program, [_witness(sizes.get(name, dim)) for name, dim in untold.items()]


@per_program
def _completed(program: Program) -> tuple[Program, Sizes] | None:
    untold = untold_sizes(program)
    if not untold:
        return None  # and not the program, which would then keep its own entry alive
    witnesses = (Var(ArrayType((dim, 0), dtypes.bool_)) for dim in untold.values())
    return replace(program, inputs=(*witnesses, *program.inputs)), untold


def _witness(size: Size) -> Any:
    return broadcast(np.False_, shape=(size, 0), axes=())


def own_size(size: Size, *programs: Program) -> Size:
    """A size from outside as one of the programs' own, under a name that is free there.

    The programs' sizes and those around them may have the same names and different values.
    Programs with sizes get a number as a size too: they serve every number of lanes.
    """
    used_names, name = {n for p in programs for n in mentioned_sizes(p)}, "lanes"
    if size == 0 or (isinstance(size, int) and not used_names):
        return size
    while name in used_names:
        name += "_"
    low, high = (1, None) if isinstance(size, int) else dims.bounds(size)
    return dims.symbol(name, low or 0, high)
