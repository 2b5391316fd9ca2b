"""Calls of routines that factor matrices, or solve by them: their sizes, shapes and meanings.

cholesky            [batch, n, n] -> [batch, n, n]
triangular_solve    [batch, n, n], [batch, n, k] -> [batch, n, k]
lu                  [batch, m, n] -> [batch, m, n], i32[batch, min(m, n)], i32[batch, m]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rune.lowering.plan import Call
from rune.ops.linalg.cholesky import factored
from rune.ops.linalg.lu_numpy import factored as factored_with_pivots
from rune.ops.linalg.triangular import solve_in_numpy

ROUTINES = {"cholesky": factored, "triangular_solve": solve_in_numpy, "lu": factored_with_pivots}


@dataclass(frozen=True, slots=True)
class Factor:
    """One call. Sizes that a routine does not have are 0."""

    routine: str
    batch: int
    rows: int
    columns: int
    sides: int = 0
    lower: int = 1
    unit_diagonal: int = 0

    @property
    def results(self) -> list[tuple[int, ...]]:
        """Shapes of the results."""
        batch, m, n = self.batch, self.rows, self.columns
        match self.routine:
            case "triangular_solve":
                return [(batch, m, self.sides)]
            case "lu":
                return [(batch, m, n), (batch, min(m, n)), (batch, m)]
            case _:
                return [(batch, m, n)]

    @property
    def operands(self) -> list[tuple[int, ...]]:
        """Shapes of the operands."""
        matrix = (self.batch, self.rows, self.columns)
        return [matrix, (self.batch, self.rows, self.sides)] if self.routine == "triangular_solve" else [matrix]

    @property
    def flops(self) -> int:
        """Scalar operations, of which a multiply-add is two."""
        m, n, k = self.rows, self.columns, min(self.rows, self.columns)
        match self.routine:
            case "triangular_solve":
                each = n * n * self.sides
            case "lu":
                each = 2 * m * n * k - (m + n) * k * k + 2 * k**3 // 3
            case _:
                each = n**3 // 3
        return self.batch * each


def is_factor(call: Call) -> bool:
    """Whether a step calls one of these routines."""
    return call.routine in ROUTINES


def factor_of(call: Call) -> Factor:
    """The sizes of a call."""
    return Factor(call.routine, **{name: x for name, x in call.parameters if isinstance(x, int)})


def factor_in_numpy(factor: Factor, arrays: Sequence[np.ndarray]) -> None:
    """The routine on flat arrays: results, then operands."""
    count = len(factor.results)
    operands = [x.reshape(shape) for x, shape in zip(arrays[count:], factor.operands, strict=True)]
    flags = {"lower": bool(factor.lower), "unit_diagonal": bool(factor.unit_diagonal)}
    values = ROUTINES[factor.routine](*operands, **(flags if factor.routine == "triangular_solve" else {}))
    for out, value in zip(arrays, values if count > 1 else [values], strict=False):
        out[...] = value.reshape(-1)
