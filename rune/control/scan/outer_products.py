"""Cotangents of constants that are sums of products over the steps become one product.

Before   a step:  sum' = sum + a ⊗ b                      reads and writes all of sum in every step
After    a step yields a and b;  after the loop  sum = Σₜ aₜ ⊗ bₜ, a matrix product over t

The gradient of a weight matrix in a recurrence is such a sum. It is deferred if the factors have
fewer elements than the product; factors that the scan stacks anyway do not count.

Invariant: the same sums, in another order.     Cost: memory for the factors of every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rune import dims
from rune.array import Array
from rune.core.dead_code import prune
from rune.core.lists import omit, parts
from rune.core.memo import per_program
from rune.core.program import Atom, Definitions, Equation, Program, Var
from rune.core.values import Value
from rune.dims import Size
from rune.ops import add, dot_general, transpose
from rune.ops.index_dims import up
from rune.records import dataclass

Numbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Product:
    """Two rows, by number, that are multiplied, and permutations to apply to the product."""

    lhs: int
    rhs: int
    numbers: Numbers
    permutations: tuple[tuple[int, ...], ...]

    def of(self, rows: Sequence[Value]) -> Array:
        """The sum over all rows."""
        # Rows lead: contracting over axis 0 as well is the sum over the steps.
        (ca, cb), (ba, bb) = self.numbers
        numbers = ((0, *up(ca)), (0, *up(cb))), (up(ba), up(bb))
        product = dot_general(rows[self.lhs], rows[self.rhs], dimension_numbers=numbers)
        for permutation in self.permutations:
            product = transpose(product, permutation=permutation)
        return product


@dataclass(frozen=True, slots=True)
class Deferred:
    """A body without the sums of products, which yields their factors as rows instead.

    sums:     for each sum, the products that it consists of; None if it stays in the loop
    factors:  how many rows the body yields besides its own results
    Products number the rows that the body takes, and after these the factors.
    """

    body: Program
    sums: tuple[tuple[Product, ...] | None, ...]
    factors: int


@per_program
def deferred(body: Program, consts: int, carries: int, sums: int) -> Deferred:
    """The rewritten body of a scan of cotangents, whose last `sums` carries are sums."""
    const_inputs, state, totals, rows = parts(body.inputs, consts, carries, sums)
    next_carries, next_totals, yields = parts(body.outputs, carries, sums)
    factor_rows = _Rows(list(rows), set(const_inputs), body.definitions)
    products = tuple(factor_rows.products(t, a) for t, a in zip(totals, next_totals, strict=True))
    # A deferred total is no longer a carry: its factors leave the loop as rows, and one product
    # after the loop adds up all steps.
    is_deferred = tuple(p is not None for p in products)
    factors = factor_rows.rows[len(rows) :]
    inputs = (*const_inputs, *state, *omit(totals, is_deferred), *rows)
    outputs = (*next_carries, *omit(next_totals, is_deferred), *yields, *factors)
    small, _ = prune(replace(body, outputs=outputs), [True] * len(outputs))
    return Deferred(replace(small, inputs=inputs), products, len(factors))


class _Factors(NamedTuple):
    """The factors of a product, its dimension numbers, and the permutations after it."""

    lhs: Var
    rhs: Var
    numbers: Numbers
    permutations: tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class _Rows:
    """The rows that products may read: those of the body, and the factors collected so far."""

    rows: list[Var]
    consts: set[Var]
    definitions: Definitions

    def products(self, total: Var, outcome: Atom) -> tuple[Product, ...] | None:
        """The products that are added to `total`; None if it is changed in any other way."""
        factors: list[_Factors] = []
        pending, occurrences = [outcome], 0
        while pending:
            atom = pending.pop()
            if atom is total:
                occurrences += 1
                continue
            equation = self.definitions.get(atom)
            if equation is None:
                return None
            # Sums of sums are taken apart; an add that broadcasts is not one of them.
            if equation.primitive is add and equation.operands[0].type == equation.operands[1].type:
                pending += equation.operands
            elif (product := self._factors(equation)) is not None:
                factors.append(product)
            else:
                return None
        # The total must be a summand exactly once: without it the step replaces the total, and
        # with it twice doubles it.
        if occurrences != 1 or not self._are_smaller(factors, total):
            return None
        return tuple(map(self._numbered, factors))

    def _factors(self, equation: Equation) -> _Factors | None:
        """The factors; None if it is not a product, or a product with a const."""
        permutations: list[tuple[int, ...]] = []
        # The transpose of a product with respect to its second factor is a product, transposed.
        while equation.primitive is transpose:
            permutations.insert(0, equation.params["permutation"])
            operand = self.definitions.get(equation.operands[0])
            if operand is None:
                return None
            equation = operand
        lhs, rhs = equation.operands[0], equation.operands[-1]
        if equation.primitive is not dot_general or not (isinstance(lhs, Var) and isinstance(rhs, Var)):
            return None
        if lhs in self.consts or rhs in self.consts:  # a const of the loop has no rows
            return None
        return _Factors(lhs, rhs, equation.params["dimension_numbers"], tuple(permutations))

    def _are_smaller(self, factors: Sequence[_Factors], total: Var) -> bool:
        # With a symbolic size the comparison may be undecided; then the sum stays in the loop.
        new = {v for f in factors for v in (f.lhs, f.rhs)} - set(self.rows)
        size: Size = sum((dims.product(v.type.shape) for v in new), start=0)
        return dims.less(size, dims.product(total.type.shape)) is True

    def _numbered(self, factors: _Factors) -> Product:
        lhs, rhs, numbers, permutations = factors
        # A factor of two products is yielded once.
        self.rows += [v for v in dict.fromkeys((lhs, rhs)) if v not in self.rows]
        return Product(self.rows.index(lhs), self.rows.index(rhs), numbers, permutations)
