"""Loops that a compiler should unroll, so that it loads ahead of the products it computes.

    for k in 16 serial {                    #pragma unroll 8
      a: f32 = a_panel[64*k + row]          for (int k = 0; k < 16; k++) {
      s add= a * b                            ...

A thread waits some 30 cycles for a load from shared memory. In a rolled loop it waits in every
round; unrolled, the loads of the next rounds are issued among the products of this one. GPU
compilers unroll a body of a hundred statements only twice, and the threads wait in between.
"""

from __future__ import annotations

from collections.abc import Container

from rune import dtypes
from rune.lowering.kernel.expr import Local
from rune.lowering.kernel.nodes import Accumulate, For, Kind, Let, Store
from rune.lowering.kernel.rewrite import Body, expressions, loads, walk

MOST_ROUNDS = 16
MOST_STATEMENTS = 1_536  # after unrolling: 24 KB of machine code


def rounds_ahead(loop: For, shared_arrays: Container[str]) -> int:
    """How many rounds to unroll; 1 leaves the loop as it is.

    shared_arrays: those that a group of threads shares
    """
    if loop.kind is not Kind.SERIAL or not isinstance(loop.extent, int) or not _adds_products(loop, shared_arrays):
        return 1
    most = min(loop.extent, MOST_ROUNDS, MOST_STATEMENTS // len(loop.body))
    return next((n for n in range(most, 1, -1) if loop.extent % n == 0), max(1, most))


def copied_sums(body: Body, shared_arrays: Container[str]) -> frozenset[str]:
    """The f32 locals that copy the sums of such loops and are stored unchanged.

    Sums that are stored as neighbours would get neighbouring registers, too, and at every product a
    sum would then share a register bank with its factors. A copy before the store leaves the sums
    where there are no conflicts. A value computed from a sum has another register anyway.
    """
    statements = list(walk(body))
    loops = (s for s in statements if isinstance(s, For) and rounds_ahead(s, shared_arrays) > 1)
    accumulations = (s for loop in loops for s in loop.body if isinstance(s, Accumulate))
    sums = {s.name for s in accumulations if s.value.dtype == dtypes.f32}
    stored_names = {s.value.name for s in statements if isinstance(s, Store) and isinstance(s.value, Local)}
    copies = (s for s in statements if isinstance(s, Let) and isinstance(s.value, Local) and s.value.name in sums)
    return frozenset(s.name for s in copies if s.name in stored_names)


def _adds_products(loop: For, shared_arrays: Container[str]) -> bool:
    """Whether a round reads shared memory, accumulates, and does nothing else."""
    read = loads(e for s in loop.body for e in expressions(s))
    return (
        all(isinstance(s, Let | Accumulate) for s in loop.body)
        and any(isinstance(s, Accumulate) for s in loop.body)
        and any(load.buffer in shared_arrays for load in read)
    )


__all__ = ["copied_sums", "rounds_ahead"]
