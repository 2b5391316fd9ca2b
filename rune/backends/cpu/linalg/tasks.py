"""What a routine's arrays lead to: which function, of which sizes, and how the work is divided."""

from __future__ import annotations

from rune.backends.cpu.gemm.shape import Shape
from rune.lowering.factors import Factor
from rune.ops.linalg.dense import MOST_SMALL
from rune.records import dataclass

BLOCK = 32  # rows and columns of a diagonal block, a multiple of any vector's lanes
PANEL = 64  # parts of the right sides that are solved together


@dataclass(frozen=True, slots=True)
class Task:
    """What a routine's arrays lead to: a function, its sizes, and how the work is divided."""

    function: str
    sizes: tuple[int, ...]
    total: int  # parts of the work
    operations: int  # of a part, about


def task_of(factor: Factor, shape: Shape) -> Task:
    """The function for a factorisation of these sizes."""
    batch, (m, n, k) = factor.batch, (factor.rows, factor.columns, factor.sides)
    few = max(m, n, k) <= MOST_SMALL and batch >= shape.lanes
    groups = -(-batch // shape.lanes)
    match factor.routine:
        case "cholesky":
            work = n**3 // 6
            if few:
                return Task("cholesky_lanes", (batch, n), groups, work)
            return Task("cholesky", (n,), batch, work)
        case "triangular_solve":
            flags, work = (factor.lower, factor.unit_diagonal), n * n * k // 2
            if few:
                return Task("solve_lanes", (batch, n, k, *flags), groups, work)
            if k == 1 and factor.parts == 1:
                return Task("solve_column", (n, k, *flags), batch, work)
            panels = -(-k // (PANEL // factor.parts))
            return Task("solve", (n, k, *flags, panels), batch * panels, work // panels)
        case "geqrf":
            return Task("geqrf", (m, n), batch, m * n * min(m, n))
        case "reflections_product":
            return Task("reflections_product", (m, n, k), batch, 2 * m * n * k)
        case _:
            work = m * n * min(m, n) // 3
            return Task("lu_lanes", (batch, m, n), groups, work) if few else Task("lu", (m, n), batch, work)
