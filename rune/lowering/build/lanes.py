"""Lanes: choose the loop of native code that runs in vector lanes, in place of the renderer.

Before   code f(...) { for i in 512 grid { for j in 24 vector { ... } } }    j or i, by their cost
After    code f(...) ordered j { for i in 512 grid { for j in 24 vector { ... } } }        i alone

The renderer counts instructions; it does not know what a cache, a port or a gather costs. An
ordered loop runs one round after another, unless LLVM joins its rounds.

Invariant: the same loops; `ordered` says how they run, not what they compute.
"""

from __future__ import annotations

from rune.lowering.build.schedule import INNER, Lanes
from rune.lowering.kernel.nodes import For, KernelCode, Kind
from rune.lowering.kernel.rewrite import perfect_nest, walk


def ordered_loops(code: KernelCode, lanes: Lanes) -> tuple[str, ...]:
    """The names of the loops that do not run in lanes."""
    grid = [loop.var for loop in perfect_nest(code.body, Kind.GRID)[0]]
    if lanes.axis == INNER:
        return tuple(grid)
    # All other loops are ordered, so that the renderer can choose no other one.
    names = dict.fromkeys(s.var for s in walk(code.body) if isinstance(s, For))
    return tuple(name for name in names if name != lanes.axis)
