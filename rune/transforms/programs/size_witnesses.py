"""Witnesses: arrays of no bytes whose shape gives a program a size that its other inputs lack.

The transpose of a sum over f32[n] takes a scalar and returns f32[n]: no input has n in its shape.
For one compiled program to serve every n, the size comes in as the shape of one more input,
bool[n,0]. So does a size that a jitted function closes over.

Invariant: every size that a program in an equation mentions can be read from its inputs' shapes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rune import dims, dtypes
from rune.core.memo import per_program
from rune.core.program import Program, Var
from rune.core.sizes import Sizes, mentioned_sizes, untold_sizes
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.ops.family import broadcast


def with_witnesses(program: Program, sizes: Sizes) -> tuple[Program, list[Value]]:
    """A program whose inputs have all its sizes in their shapes, and the new leading inputs.

    sizes: the sizes in the current context, by name; a size that is missing means itself.
    """
    completion = _completed(program)
    if completion is None:
        return program, []
    closed_program, untold = completion
    return closed_program, [_witness(sizes.get(name, dim)) for name, dim in untold.items()]


@per_program
def _completed(program: Program) -> tuple[Program, Sizes] | None:
    untold = untold_sizes(program)
    if not untold:
        return None  # not the program itself, which would keep itself alive through its memo
    witnesses = (Var(ArrayType((dim, 0), dtypes.bool_)) for dim in untold.values())
    return replace(program, inputs=(*witnesses, *program.inputs)), untold


def _witness(size: Size) -> Value:
    return broadcast(np.False_, shape=(size, 0), axes=())


def own_size(size: Size, *programs: Program) -> Size:
    """An outer size as a new size of the programs, under a name that none of them uses.

    Sizes of the programs and outer sizes may have equal names and different values. If the programs
    have sizes, a number becomes a size too, so that they serve every number of lanes.
    """
    used_names, name = {n for p in programs for n in mentioned_sizes(p)}, "lanes"
    if size == 0 or (isinstance(size, int) and not used_names):
        return size
    while name in used_names:
        name += "_"
    # From 1 on, because a size of 0 has returned above.
    low, high = (1, None) if isinstance(size, int) else dims.bounds(size)
    return dims.symbol(name, low or 0, high)
