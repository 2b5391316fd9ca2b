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

from dataclasses import replace

import numpy as np

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.carried import carries_var
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import Alloc, Barrier, Fetch, For, If, KernelCode, Kind, MatrixProduct, Stmt, Store
from rune.lowering.kernel.rewrite import Body, expressions, map_bodies, names_bound, unique_names, walk, walk_expr
from rune.lowering.passes import Pass
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class _Touch:
    """An access in a loop: its memory (one name for all aliases), index, and whether it writes."""

    memory: str
    index: Size
    writes: bool


def _touches(loop: For, memory: dict[str, str]) -> list[_Touch]:
    touches = []
    for stmt in walk(loop.body):
        if isinstance(stmt, Store):
            # Aliases get one name, since two names of one element must not look independent.
            touches.append(_Touch(memory.get(stmt.buffer, stmt.buffer), stmt.index, True))
        for expr in expressions(stmt):
            for part in walk_expr(expr):
                if isinstance(part, Load):
                    name = memory.get(part.buffer, part.buffer)
                    touches.append(_Touch(name, part.indices[0], False))
    return touches


def _stride(index: Size, var: str) -> int | None:
    # Also None where the variable occurs inside a division: there is no fixed step.
    step = dims.coefficient(index, var)
    return step if isinstance(step, int) else None


def is_independent(loop: For, memory: dict[str, str]) -> bool:
    """Whether no iteration accesses an element that another one writes, or carries a Var."""
    # Only innermost loops; scratch would be needed once per lane.
    if any(isinstance(s, (Alloc, Barrier, Fetch, For, MatrixProduct)) for s in walk(loop.body)):
        return False
    local_names = names_bound(loop.body)
    touches = [t for t in _touches(loop, memory) if t.memory not in local_names]
    for name in {t.memory for t in touches if t.writes}:
        places = {t.index for t in touches if t.memory == name}
        # A single place, which is a different element in every iteration.
        if len(places) != 1 or not _stride(places.pop(), loop.var):
            return False
    return not carries_var(loop)


def is_contiguous(loop: For, memory: dict[str, str]) -> bool:
    """Whether all accesses of the loop have stride 1 or 0 in its variable, and some stride 1."""
    touches = _touches(loop, memory)
    strides = [_stride(t.index, loop.var) for t in touches]
    # At least one stride of 1: a loop that only touches one element gains nothing.
    return 1 in strides and all(s in (0, 1) for s in strides)


def vectorize(target: Target) -> Pass[KernelCode]:
    """The pass for one target, whose vector registers decide how long a loop must be."""

    def run(code: KernelCode) -> KernelCode:
        unique = unique_names(code)
        memory = {b: a for a, b in unique.aliases}
        one_thread = target.threads_per_workgroup == 1

        def stmt(s: Stmt, outer_grid: bool) -> Stmt:
            inside = outer_grid or (isinstance(s, For) and s.kind is Kind.GRID)
            s = map_bodies(s, lambda body: visit(body, inside))
            # Cores share the outermost grid loop, so it never becomes a vector loop.
            kinds = (Kind.SERIAL, Kind.GRID) if one_thread and outer_grid else (Kind.SERIAL,)
            if not isinstance(s, For) or s.kind not in kinds or not _is_long(s, target):
                return s
            good = is_independent(s, memory) and is_contiguous(s, memory)
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
    return [e.dtype for s in walk(loop.body) for x in expressions(s) for e in walk_expr(x) if isinstance(e, Load)]
