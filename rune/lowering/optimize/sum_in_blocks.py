"""Sum in blocks: a loop that adds to one accumulator many times has an accumulator for each block.

Before   for k in n vector { s add= x[k] }
After    for k_block in -(-n // 8192) serial {
           k_rounds: i64 = min(8192_i64, index(n - 8192*k_block))
           var s_block: f32 = 0_f32
           for k in k_rounds vector { s_block add= x[8192*k_block + k] }
           s add= s_block
         }

A count of ones in f32 stops at 2**24, and loses digits long before. Sums to few points over known
and bounded sizes are cut into several kernels (kernelize/two_step.py); other long loops are cut
here, and so are their loops over blocks, where these are many. A loop over neighbours in memory
runs in lanes, each with an accumulator, and so has larger blocks than one down a column.

Invariant: values stay the same except for the order of Accumulate; loops that are certainly short
           stay.
Cost:      linear in the code.
Not done:  running sums, which are written in blocks (build/loops.py); loops that the threads of a
           group share, where each sums up a hundredth part (PoCL runs two nested ones in turn).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from rune import dims, dtypes
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Local, Op, const, of_size
from rune.lowering.kernel.nodes import Accumulate, Assign, For, If, KernelCode, Kind, Let, Stmt, Var
from rune.lowering.kernel.rewrite import (
    Body,
    all_names,
    loop_symbol,
    map_stmts,
    names_bound,
    names_used,
    rename,
    reserve,
    unique_names,
    walk,
)
from rune.lowering.optimize.vectorize import is_contiguous
from rune.lowering.passes import Pass
from rune.ops.long_sums import BLOCK, OPEN
from rune.records import replace

# An f64 counts to 2**53 before a one is lost, which no loop reaches.
NARROW = dtypes.FLOATING - {dtypes.f64}
LANES = 64  # accumulators of a loop over neighbours in memory: four vector registers of 16
LONGEST = 512  # additions to one accumulator that need no blocks
# A tile of a product has as many sums as a thread has registers, and no room for their blocks.
FEW_SUMS, LONGEST_OF_MANY = 8, 1 << 16
OPEN_ROUNDS = 32  # assumed for an inner loop of unknown length


def sum_in_blocks(code: KernelCode) -> KernelCode:
    """The code with long sums of narrow floats in blocks."""
    loops = [s for s in walk(code.body) if isinstance(s, For)]
    is_shared = any(s.kind is Kind.WORKGROUP for s in loops)
    # Checked first, because most kernels have no long loop and renaming is not free.
    if is_shared or not any(map(_may_be_long, loops)):
        return code
    unique = unique_names(code)
    bound = all_names(unique)

    def in_blocks(stmt: Stmt) -> Body:
        if isinstance(stmt, For) and _may_be_long(stmt):
            sums = _sums(stmt)
            stmt = _in_blocks(stmt, _most_additions(stmt, sums), sums, bound)
        return (stmt,)

    body = map_stmts(in_blocks, unique.body)
    return code if body == unique.body else replace(unique, body=body)


def _may_be_long(loop: For) -> bool:
    """Whether a thread may run enough rounds of the loop nest for one sum to lose digits."""
    high = dims.bounds(loop.extent)[1]
    return loop.kind in (Kind.SERIAL, Kind.VECTOR) and (high is None or high * _rounds(loop.body) > LONGEST)


def _most_additions(loop: For, sums: Iterable[str]) -> int:
    """How often the loop may add to a Var."""
    high = dims.bounds(loop.extent)[1]
    count = (high or OPEN) * _per_round(loop, sums)
    return count if isinstance(loop.extent, int) else min(count, OPEN)


def _per_round(loop: For, sums: Iterable[str]) -> int:
    """How often a round of the loop may add to a Var."""
    return max((_additions(loop.body, name) for name in sums), default=0)


def _rounds(body: Body) -> int:
    """Rounds of the inner loops for one round of the body, as far as known; at least one."""
    loops = [s for s in body if isinstance(s, For)]
    return max([1, *((dims.bounds(s.extent)[1] or 1) * _rounds(s.body) for s in loops)])


def _sums(loop: For) -> dict[str, np.dtype]:
    """The Vars of narrow floats that the loop only adds to."""
    inside = list(walk(loop.body))
    # A Var read in the loop is a running sum, whose value matters in every round.
    others = names_used(loop.body) | names_bound(loop.body)
    others |= {s.name for s in inside if isinstance(s, Assign)}
    return {
        s.name: s.value.dtype
        for s in inside
        if isinstance(s, Accumulate) and s.combine == "add" and s.name not in others and s.value.dtype in NARROW
    }


def _additions(body: Body, name: str) -> int:
    """How often the body may add to one accumulator of a Var."""
    count = 0
    for stmt in body:
        match stmt:
            case Accumulate(name=other):
                count += other == name
            case For(extent=extent, body=inner):
                rounds = dims.bounds(extent)[1] or OPEN_ROUNDS
                count += -(-rounds // _accumulators(stmt)) * _additions(inner, name)
            case If(body=inner, orelse=orelse):
                count += max(_additions(inner, name), _additions(orelse, name))
    return count


def _accumulators(loop: For) -> int:
    """How many accumulators a sum over the loop has: as many as lanes, if it can run in lanes."""
    is_innermost = not any(isinstance(s, For) for s in walk(loop.body))
    return LANES if is_innermost and is_contiguous(loop) else 1


def _in_blocks(loop: For, additions: int, sums: Mapping[str, np.dtype], bound: set[str]) -> For:
    """A loop over blocks, each a loop that adds to Vars of its own; over blocks of them, if many.

    additions: how often the loop adds to a Var, as far as known
    """
    accumulators = _accumulators(loop)
    if additions <= (LONGEST if len(sums) <= FEW_SUMS else LONGEST_OF_MANY) * accumulators:
        return loop
    per_round = _per_round(loop, sums)
    size = max(1, BLOCK * accumulators // per_round)
    block, rounds = reserve(f"{loop.var}_block", bound), reserve(f"{loop.var}_rounds", bound)
    names = {name: reserve(f"{name}_block", bound) for name in sums}
    blocks = -(-loop.extent // size)
    first = dims.symbol(block, 0, blocks - 1) * size
    length = Op("min", (const(size, dtypes.i64), of_size(loop.extent - first)), dtypes.i64)
    # The last block may be shorter, so the extent is a Let with these bounds.
    one = replace(loop, extent=dims.symbol(rounds, 1, size))
    inner = rename(loop.body, names, {loop.var: first + loop_symbol(one)})
    body = (
        Let(rounds, length),
        *(Var(new, COMBINE["add"].identity(sums[name])) for name, new in names.items()),
        replace(one, body=inner),
        *(Accumulate(name, "add", Local(new, sums[name])) for name, new in names.items()),
    )
    return _in_blocks(For(block, blocks, Kind.SERIAL, body), -(-additions // (size * per_round)), sums, bound)


PASS = Pass("sum-in-blocks", "sum up long loops block by block", sum_in_blocks)
