"""Chooses the function for a routine's arrays, its sizes, and the division of the work."""

from __future__ import annotations

from rune.backends.cpu.gemm.shape import Shape
from rune.lowering.factors import Factor
from rune.ops.linalg.dense import MOST_SMALL
from rune.records import dataclass

BLOCK = 32  # rows and columns of a diagonal block, a multiple of any vector's lanes
PANEL = 64  # the most parts of right sides that are solved at once


@dataclass(frozen=True, slots=True)
class Task:
    """The function for a routine's arrays, its sizes, and the division of the work."""

    function: str
    sizes: tuple[int, ...]
    total: int  # parts of the work
    operations: int  # an estimate, for one part


def task_of(factor: Factor, shape: Shape) -> Task:
    """The function for a factorisation of these sizes."""
    batch, (m, n, k) = factor.batch, (factor.rows, factor.columns, factor.sides)
    # The last group ends with the last matrix, so lanes need at least one full vector of matrices.
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
            # A tile would compute a whole vector of sides.
            if k == 1 and factor.parts == 1:
                return Task("solve_column", (n, k, *flags), batch, work)
            # Cores share panels and never a sum, so results do not depend on how many there are.
            panels = -(-k // (PANEL // factor.parts))
            return Task("solve", (n, k, *flags, panels), batch * panels, work // panels)
        case "geqrf":
            return Task("geqrf", (m, n), batch, m * n * min(m, n))
        case "reflections_product":
            return Task("reflections_product", (m, n, k), batch, 2 * m * n * k)
        case _:
            work = m * n * min(m, n) // 3
            return Task("lu_lanes", (batch, m, n), groups, work) if few else Task("lu", (m, n), batch, work)
