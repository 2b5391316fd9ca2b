"""Which parameter of a kernel is a vector that a matrix is multiplied by."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rune import dtypes
from rune.lowering.kernel.expr import Expr, Load, Op
from rune.lowering.kernel.nodes import Access, Accumulate, For, KernelCode, Param, Stmt
from rune.lowering.kernel.rewrite import Body, bodies, expressions, walk, walk_expr
from rune.records import dataclass

MOST_ELEMENTS = 4096  # of the vector: its copy lies on a thread's stack
LEAST_PRODUCTS, LEAST_USES = 2048, 32  # of all points, and of each element


_DTYPES = frozenset({dtypes.f32, dtypes.f64})


@dataclass(frozen=True, slots=True)
class TinyVector:
    """A parameter by whose elements all points multiply, and the sum of these products.

    loop: the identity of the loop after which the sum is complete
    """

    param: Param
    loop: int
    total: str


def tiny_vector(code: KernelCode) -> TinyVector | None:
    """The vector of the only sum of products in a kernel; None if there is none, or it is short."""
    sums = [(loops, s) for loops, s in _with_loops(code.body, ()) if isinstance(s, Accumulate) and s.contract]
    if len(sums) != 1:
        return None
    loops, addition = sums[0]
    extents = [loop.extent for loop in loops if isinstance(loop.extent, int)]
    around = _loop_of_sum(code.body, addition)
    if len(extents) < len(loops) or around is None:
        return None
    products = math.prod(extents)
    for factor in _factors(addition.value):
        param = _vector(code, factor)
        if param is not None and products >= max(LEAST_PRODUCTS, LEAST_USES * param.size):
            return TinyVector(param, id(around), addition.name)
    return None


def _with_loops(body: Body, loops: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], Stmt]]:
    """Every statement with the loops around it."""
    for stmt in body:
        yield loops, stmt
        inner = (*loops, stmt) if isinstance(stmt, For) else loops
        for inside in bodies(stmt):
            yield from _with_loops(inside, inner)


def _loop_of_sum(body: Body, addition: Accumulate) -> For | None:
    """The outermost loop that adds to the sum and does not declare it."""
    for stmt in walk(body):
        for inside in bodies(stmt) or ():
            names = {getattr(s, "name", None) for s in inside}
            around = [s for s in inside if isinstance(s, For) and any(x is addition for x in walk(s.body))]
            if addition.name in names and around:
                return around[0]
    return None


def _factors(value: Expr) -> tuple[Expr, ...]:
    return value.args if isinstance(value, Op) and value.name == "mul" else ()


def _vector(code: KernelCode, factor: Expr) -> Param | None:
    """The parameter that a factor loads an element of; None if something else reads it, too."""
    if not isinstance(factor, Load) or factor.guard is not None or factor.dtype not in _DTYPES:
        return None
    param = next((p for p in code.params if p.name == factor.buffer), None)
    if param is None or param.access is not Access.READ or code.buffers_at(param.name) != {param.name}:
        return None
    if not isinstance(param.size, int) or not 0 < param.size <= MOST_ELEMENTS:
        return None
    parts = (part for s in walk(code.body) for e in expressions(s) for part in walk_expr(e))
    reads = sum(isinstance(part, Load) and part.buffer == param.name for part in parts)
    return param if reads == 1 else None
