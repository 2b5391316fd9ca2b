"""Cotangents of constants that are sums of products over the steps become one product of them all.

Before   a step:  sum' = sum + a ⊗ b                      reads and writes all of sum in every step
After    a step yields a and b;  behind the loop  sum = Σₜ aₜ ⊗ bₜ, a matrix product over t

The gradient of a weight matrix in a recurrence is such a sum. It is done where the factors hold
fewer elements than the product; those that are rows already do not count.

Invariant: the same sums, in another order.     Cost: memory for the factors of every step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rune import dims
from rune.control.programs import parts, where_not
from rune.core.dead_code import prune
from rune.core.program import Atom, Equation, Program, Var
from rune.ops import add, dot_general, transpose
from rune.transforms.programs.memo import per_program

Numbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Product:
    """Which rows are multiplied, how, and the permutations of the result that follow."""

    left: int
    right: int
    numbers: Numbers
    permutations: tuple[tuple[int, ...], ...]

    def of(self, rows: Sequence[Any]) -> Any:
        """The sum over all rows."""
        (ca, cb), (ba, bb) = self.numbers
        numbers = ((0, *_later(ca)), (0, *_later(cb))), (_later(ba), _later(bb))
        found = dot_general(rows[self.left], rows[self.right], dimension_numbers=numbers)
        for permutation in self.permutations:
            found = transpose(found, permutation=permutation)
        return found


def _later(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + 1 for a in axes)


@dataclass(frozen=True, slots=True)
class Deferred:
    """A body without the sums of products, whose factors are among its rows.

    sums:     for each sum, the products that make it; None where it stays in the loop
    factors:  how many rows the body yields besides its own results
    A product numbers rows: first those that the body takes, then the factors.
    """

    body: Program
    sums: tuple[tuple[Product, ...] | None, ...]
    factors: int


@per_program
def deferred(body: Program, consts: int, carries: int, sums: int) -> Deferred:
    """The body of a scan of cotangents, whose carries end in `sums` sums, rewritten."""
    shared, state, totals, rows = parts(body.inputs, consts, carries, sums)
    kept, added, yields = parts(body.outputs, carries, sums)
    made_by = {v: e for e in body.equations for v in e.results}
    seen = _Rows(list(rows), set(shared), made_by)
    products = tuple(seen.products(t, a) for t, a in zip(totals, added, strict=True))
    gone = tuple(p is not None for p in products)
    factors = seen.rows[len(rows) :]
    inputs = (*shared, *state, *where_not(totals, gone), *rows)
    outputs = (*kept, *where_not(added, gone), *yields, *factors)
    small, _ = prune(replace(body, outputs=outputs), [True] * len(outputs))
    return Deferred(replace(small, inputs=inputs), products, len(factors))


@dataclass(slots=True)
class _Rows:
    """The rows that products may take: those of the body, and factors, added as they are found."""

    rows: list[Var]
    shared: set[Var]
    made_by: Mapping[Var, Equation]

    def products(self, total: Var, outcome: Atom) -> tuple[Product, ...] | None:
        """The products that are added to `total`, if all that is added are products."""
        found, pending, met = [], [outcome], 0
        while pending:
            atom = pending.pop()
            if atom is total:
                met += 1
                continue
            equation = self.made_by.get(atom) if isinstance(atom, Var) else None
            if equation is None:
                return None
            if equation.primitive is add and equation.operands[0].type == equation.operands[1].type:
                pending += equation.operands
            else:
                found.append(self._factors(equation))
        if met != 1 or None in found or not self._are_smaller(found, total):
            return None
        return tuple(self._numbered(f) for f in found if f is not None)

    def _factors(self, equation: Equation) -> tuple[Var, Var, Any, tuple] | None:
        """The factors of a product, its dimension numbers, and the permutations behind it."""
        permutations: list[tuple[int, ...]] = []
        while equation.primitive is transpose:
            permutations.insert(0, equation.params["permutation"])
            (atom,) = equation.operands
            if not isinstance(atom, Var) or atom not in self.made_by:
                return None
            equation = self.made_by[atom]
        left, right = equation.operands[0], equation.operands[-1]
        if equation.primitive is not dot_general:
            return None
        if not (isinstance(left, Var) and isinstance(right, Var)):
            return None
        if left in self.shared or right in self.shared:
            return None
        return left, right, equation.params["dimension_numbers"], tuple(permutations)

    def _are_smaller(self, found: Sequence[Any], total: Var) -> bool:
        new = {v for left, right, *_ in found for v in (left, right)} - set(self.rows)
        size: Any = sum((dims.product(v.type.shape) for v in new), start=0)
        return dims.less(size, dims.product(total.type.shape)) is True

    def _numbered(self, found: tuple[Var, Var, Any, tuple]) -> Product:
        left, right, numbers, permutations = found
        self.rows += [v for v in dict.fromkeys((left, right)) if v not in self.rows]
        return Product(self.rows.index(left), self.rows.index(right), numbers, permutations)
