"""Calls of routines that factor matrices, or solve with factors: sizes, shapes and meanings.

In memory a complex matrix has one more axis, for the two parts.

cholesky            [batch, n, n] -> [batch, n, n]
triangular_solve    [batch, n, n], [batch, n, k] -> [batch, n, k]
lu                  [batch, m, n] -> [batch, m, n], i32[batch, min(m, n)], i32[batch, m]
geqrf               [batch, m, n] -> [batch, m, n], [batch, min(m, n)]
reflections_product [batch, m, n], [batch, n] -> [batch, m, k]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune.lowering.plan import Call
from rune.ops.complex_numbers import WHOLE
from rune.ops.linalg import lu_numpy, qr_numpy
from rune.ops.linalg.cholesky import factored
from rune.ops.linalg.triangular import solve_in_numpy
from rune.records import dataclass

ROUTINES = ("cholesky", "triangular_solve", "lu", "geqrf", "reflections_product")


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
    parts: int = 1  # of a number; 2 for a complex number, along the last axis

    @property
    def results(self) -> list[tuple[int, ...]]:
        """Shapes of the results."""
        batch, m, n = self.batch, self.rows, self.columns
        match self.routine:
            case "triangular_solve" | "reflections_product":
                return [self._of_numbers(batch, m, self.sides)]
            case "geqrf":
                return [self._of_numbers(batch, m, n), self._of_numbers(batch, min(m, n))]
            case "lu":
                return [self._of_numbers(batch, m, n), (batch, min(m, n)), (batch, m)]
            case _:
                return [self._of_numbers(batch, m, n)]

    @property
    def operands(self) -> list[tuple[int, ...]]:
        """Shapes of the operands."""
        matrix = self._of_numbers(self.batch, self.rows, self.columns)
        match self.routine:
            case "triangular_solve":
                return [matrix, self._of_numbers(self.batch, self.rows, self.sides)]
            case "reflections_product":
                return [matrix, self._of_numbers(self.batch, self.columns)]
            case _:
                return [matrix]

    def _of_numbers(self, *shape: int) -> tuple[int, ...]:
        return shape if self.parts == 1 else (*shape, self.parts)

    @property
    def flops(self) -> int:
        """Scalar operations, counting a multiply-add as two."""
        m, n, k = self.rows, self.columns, min(self.rows, self.columns)
        match self.routine:
            case "triangular_solve":
                of_matrix = n * n * self.sides
            case "geqrf":
                of_matrix = 2 * (2 * m * n * k - (m + n) * k * k + 2 * k**3 // 3)
            case "reflections_product":
                of_matrix = 4 * m * n * self.sides
            case "lu":
                of_matrix = 2 * m * n * k - (m + n) * k * k + 2 * k**3 // 3
            case _:
                of_matrix = n**3 // 3
        return self.batch * of_matrix


def is_factor(call: Call) -> bool:
    """Whether a step calls one of these routines."""
    return call.routine in ROUTINES


def factor_of(call: Call) -> Factor:
    """The sizes of a call."""
    return Factor(call.routine, **{name: x for name, x in call.parameters if isinstance(x, int)})


def factor_in_numpy(factor: Factor, arrays: Sequence[np.ndarray]) -> None:
    """Run the routine in NumPy on flat arrays: results, then operands."""
    count = len(factor.results)
    pairs = zip(arrays[count:], factor.operands, strict=True)
    operands = [_numbers(factor, x).reshape(shape if factor.parts == 1 else shape[:-1]) for x, shape in pairs]
    match factor.routine:
        case "triangular_solve":
            lower, unit = bool(factor.lower), bool(factor.unit_diagonal)
            values = solve_in_numpy(*operands, lower=lower, unit_diagonal=unit)
        case "reflections_product":
            reflectors, taus = operands
            values = qr_numpy.reflections_product(reflectors, taus, factor.sides)
        case "lu":
            values = lu_numpy.factored(*operands)
        case "geqrf":
            values = qr_numpy.geqrf(*operands)
        case _:
            values = factored(*operands)
    for out, value in zip(arrays, values if isinstance(values, tuple | list) else [values], strict=False):
        target = _numbers(factor, out) if np.iscomplexobj(value) else out
        target[...] = value.reshape(-1)


def _numbers(factor: Factor, array: np.ndarray) -> np.ndarray:
    """The complex numbers of a flat array of parts; the array itself if it has real numbers."""
    return array if factor.parts == 1 else array.view(WHOLE[array.dtype])
