"""What of a kernel runs in vector lanes: loops, the width of vectors, tiles; what cores share.

Before   for i in 512 { for j in 64 { y[i, j] = x[j, i] } }       code for a processor
After    j in 16 lanes, and x[j, i] by tiles along i              what the renderer writes
"""

from __future__ import annotations

from rune.lowering.kernel.nodes import KernelCode, Kind
from rune.lowering.kernel.rewrite import perfect_nest
from rune.lowering.lanes.choose import choose
from rune.lowering.lanes.division import Division, division
from rune.lowering.lanes.transposed import Transposed, find_transposed
from rune.lowering.lanes.width import lanes_filled, lanes_of_register, registers_of_vector
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """Loops in lanes, by identity; the lanes of a vector; tiles, if any.

    division: what cores share
    cost: instructions in all
    """

    loops: frozenset[int]
    lanes: int
    transposed: Transposed | None
    division: Division
    cost: float


def layout(code: KernelCode, vector_bytes: int) -> Layout:
    """The layout of a kernel for registers of so many bytes."""
    lanes = lanes_of_register(code, vector_bytes)
    aliases = frozenset(name for pair in code.aliases for name in pair)
    choice = choose(code.body, lanes, aliases, frozenset(code.ordered))
    grid, inner = perfect_nest(code.body, Kind.GRID)
    loops, transposed = choice.loops, find_transposed(code, grid, inner)
    if transposed is not None and transposed.last.var in code.ordered:
        transposed = None
    # Tiles need their last axis in lanes, so they overrule the choice by cost.
    if transposed is not None:
        loops = frozenset({id(transposed.last)})
    # After the choice of loops, whose costs are those of single registers.
    lanes = lanes_filled(code, loops, lanes)
    lanes *= registers_of_vector(code, loops, lanes)
    return Layout(loops, lanes, transposed, division(grid, transposed, lanes), choice.cost)


__all__ = ["Layout", "layout"]
