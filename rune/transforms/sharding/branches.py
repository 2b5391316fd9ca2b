"""Branches whose operands and results keep their layouts.

A result is split as the branches split it; if only some branches split it, the others do so too,
which costs nothing. Operands that a branch needs in another layout are converted inside it, and so
only if it runs.

Invariant: all devices take the same branch, since its number is an unsplit value.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from rune.core.evaluate import eval_program
from rune.core.interpreter import current
from rune.core.program import Program
from rune.core.staging import Staged
from rune.core.values import Value
from rune.ops.branch import bind_branch
from rune.ops.loop import stage_within
from rune.transforms.sharding.agreement import agreed
from rune.transforms.sharding.block import Block, Layouts
from rune.transforms.sharding.reshard import Layout, cut_less, cut_more
from rune.transforms.sharding.scattered_sums import economical_stage


def local_branch(outside: Layouts, args: Sequence[Value], branches: Sequence[Program]) -> list[Block]:
    """The results of the branch with this number; each device runs its part of the branch."""
    number, *operands = args
    # Branches are first written in their own layouts, and again if their results must be converted.
    free = [_local(outside, b, operands, None) for b in branches]
    layouts = [functools.reduce(_joined, column) for column in zip(*(results for _, results in free), strict=True)]
    local_branches = [
        branch if results == layouts else _local(outside, program, operands, layouts)[0]
        for program, (branch, results) in zip(branches, free, strict=True)
    ]
    types = branches[0].output_types
    outs = bind_branch(agreed(outside.everything(number), outside.region), (), local_branches)
    return [Block(outside, o, t, layout) for o, t, layout in zip(outs, types, layouts, strict=True)]


def _joined(a: Layout, b: Layout) -> Layout:
    """The common layout of a result that two branches have in layouts a and b."""
    return cut_less(cut_more(a, b), cut_more(b, a))


def _local(
    outside: Layouts, program: Program, operands: Sequence[Value], layouts: Sequence[Layout] | None
) -> tuple[Staged, list[Layout]]:
    """A branch without inputs that yields blocks in these layouts, and the layouts of its results.

    layouts: None for the layouts that result from those of the operands
    """
    results: list[Layout] = []

    def run() -> list[Value]:
        inside = outside.within(current())
        # A branch gets its operands as captured values, so each converts only those that it reads.
        blocks = [_within(inside, x) for x in operands]
        outs = inside.trace(eval_program, program, blocks)
        results.extend(inside.layout(o) for o in outs)
        return [inside.at(o, layout) for o, layout in zip(outs, layouts or results, strict=True)]

    return economical_stage(stage_within(run, [], program.name)), results


def _within(inside: Layouts, value: Value) -> Value:
    """An operand, as a branch sees it."""
    return value.within(inside) if isinstance(value, Block) else value
