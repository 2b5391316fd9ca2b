"""Vectorize: mark the innermost loop that vector registers serve.

Before   for j in 512 serial { s add= x[512*i + j] }
After    for j in 512 vector { s add= x[512*i + j] }

A SERIAL loop becomes VECTOR if its iterations are independent except for Accumulate (legality), and
all memory that it accesses is contiguous in the loop variable, or the same for all iterations
(profit). With one thread per grid point (a CPU), so does the innermost of several GRID loops: the
outer ones keep the cores busy. VECTOR is a permission: renderers may still run it in order.

Invariant: values stay the same bit for bit, except for the order of Accumulate.
Cost:      linear in the code.
"""

from __future__ import annotations

import numpy as np

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.carried import carries_var
from rune.lowering.kernel.nodes import Alloc, Barrier, Fetch, For, If, KernelCode, Kind, MatrixProduct, Stmt, Store
from rune.lowering.kernel.rewrite import Body, expressions, loads, map_bodies, names_bound, unique_names, walk
from rune.lowering.passes import Pass
from rune.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class _Touch:
    """An access in a loop: its buffer, index, and whether it writes."""

    buffer: str
    index: Size
    writes: bool


def _touches(loop: For) -> list[_Touch]:
    touches = []
    for stmt in walk(loop.body):
        if isinstance(stmt, Store):
            touches.append(_Touch(stmt.buffer, stmt.index, True))
        touches += (_Touch(load.buffer, load.indices[0], False) for load in loads(expressions(stmt)))
    return touches


def _stride(index: Size, var: str) -> int | None:
    # Also None where the variable occurs inside a division: there is no fixed step.
    step = dims.coefficient(index, var)
    return step if isinstance(step, int) else None


def is_independent(loop: For, code: KernelCode) -> bool:
    """Whether no iteration accesses an element that another one writes, or carries a Var."""
    # Only innermost loops; scratch would be needed once per lane.
    if any(isinstance(s, (Alloc, Barrier, Fetch, For, MatrixProduct)) for s in walk(loop.body)):
        return False
    local_names = names_bound(loop.body)
    touches = [t for t in _touches(loop) if t.buffer not in local_names]
    for name in {t.buffer for t in touches if t.writes}:
        # Two names of one element must not look independent.
        names = code.buffers_at(name)
        places = {t.index for t in touches if t.buffer in names}
        # A single place, which is a different element in every iteration.
        if len(places) != 1 or not _stride(places.pop(), loop.var):
            return False
    return not carries_var(loop)


def is_contiguous(loop: For) -> bool:
    """Whether all accesses of the loop have stride 1 or 0 in its variable, and some stride 1."""
    strides = [_stride(t.index, loop.var) for t in _touches(loop)]
    # At least one stride of 1: a loop that only touches one element gains nothing.
    return 1 in strides and all(s in (0, 1) for s in strides)


def vectorize(target: Target) -> Pass[KernelCode]:
    """The pass for one target, whose vector registers decide how long a loop must be."""

    def run(code: KernelCode) -> KernelCode:
        unique = unique_names(code)
        one_thread = target.threads_per_workgroup == 1

        def stmt(s: Stmt, outer_grid: bool) -> Stmt:
            inside = outer_grid or (isinstance(s, For) and s.kind is Kind.GRID)
            s = map_bodies(s, lambda body: visit(body, inside))
            # Cores share the outermost grid loop, so it never becomes a vector loop.
            kinds = (Kind.SERIAL, Kind.GRID) if one_thread and outer_grid else (Kind.SERIAL,)
            if not isinstance(s, For) or s.kind not in kinds or not _is_long(s, target):
                return s
            good = is_independent(s, unique) and is_contiguous(s)
            return replace(s, kind=Kind.VECTOR) if good else s

        def visit(body: Body, outer_grid: bool) -> Body:
            return tuple(stmt(s, outer_grid) for s in body)

        body = visit(unique.body, False)
        return code if body == code.body else replace(unique, body=body)

    return Pass("vectorize", "mark the innermost loops that vector registers serve", run)


def _is_long(loop: For, target: Target) -> bool:
    """Whether the loop fills a vector register, as a symbolic extent is assumed to do."""
    if any(isinstance(s, (For, If)) for s in walk(loop.body)):
        return False
    # The widest dtype fills a register with the fewest elements; without loads, f32 is assumed.
    widest = max((t.itemsize for t in _element_types(loop)), default=4)
    return isinstance(loop.extent, Dim) or loop.extent >= max(2, target.vector_bytes // widest)


def _element_types(loop: For) -> list[np.dtype]:
    return [load.dtype for s in walk(loop.body) for load in loads(expressions(s))]
