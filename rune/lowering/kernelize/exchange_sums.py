"""Exchange sums: a sum of scores times weights becomes a product of rows and a sum of weights.

Before   t = dot e, b;  dp = dot a, b;  d = sum over j of -dp · e     sum_j (sum_c a_ic b_jc) e_ij
After    t = dot e, b;  d = -sum over c of a · t                      sum_c a_ic (sum_j e_ij b_jc)

In the gradient of attention t is the result of attention before its division, so d costs a pass
over rows in place of two dots of scores. This happens only where the program has t: computing t
would cost as much as computing d.

Invariant: values stay the same except for rounding; where one order of summation overflows and the
           other does not, the results differ.
Cost: linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from rune import dtypes
from rune.core.lower import Contraction
from rune.core.program import Atom, Definitions, Equation, Program, Var
from rune.dims import Size, is_static
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.equations import apply, in_place_of
from rune.lowering.kernelize.tracing import generic, trace
from rune.ops.arithmetic import mul, neg
from rune.ops.contraction import dot_general, free_axes
from rune.ops.movement import transpose
from rune.ops.reduction import reduce_sum
from rune.ops.transcendental import exp
from rune.records import dataclass

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Score:
    """A dot of a and b that a sum walks; for each axis of both, the axis of the summands.

    -1 stands for the contracted axis.
    """

    a: Atom
    b: Atom
    a_axes: Axes
    b_axes: Axes


@dataclass(slots=True)
class _Exchange:
    """The equations in place of one sum, if it can be exchanged.

    program_dots: the dots before it, by their operands and axes
    """

    program_dots: dict[object, Var]
    definitions: Definitions
    equations: list[Equation] = field(default_factory=list)

    def exchanged(self, equation: Equation) -> list[Equation]:
        """The equations; an empty list if the sum stays."""
        if equation.primitive is not reduce_sum or len(equation.params["axes"]) != 1:
            return []
        (operand,), (along,) = equation.operands, equation.params["axes"]
        if not isinstance(operand, Var) or operand.type.dtype not in (dtypes.f32, dtypes.f64):
            return []
        factors, negative = self.factors(operand)
        if len(factors) != 2:
            return []
        for factor, weight in (factors, factors[::-1]):
            score = self.score(factor, operand, along)
            if score is not None and self.is_exponential(weight):
                return self.written(equation, score, weight, negative)
        return []

    def factors(self, var: Var) -> tuple[list[Var], bool]:
        """The factors of a product, all of its shape, and whether it is negative; none if many."""
        factors: list[Var] = []
        pending, negative = [var], False
        # Two at most: with a third factor, the weight would no longer be what the program's t sums.
        while pending and len(pending) + len(factors) <= 2:
            top = pending.pop()
            equation = self.definitions.get(top)
            operands = () if equation is None else equation.operands
            alike = [a for a in operands if isinstance(a, Var) and a.type.shape == top.type.shape]
            if equation is not None and equation.primitive in (neg, mul) and len(alike) == len(operands):
                pending += alike
                negative ^= equation.primitive is neg
            else:
                factors.append(top)
        return ([], False) if pending else (factors, negative)

    def is_exponential(self, var: Var) -> bool:
        """Whether a value is an exponential, as weights are."""
        equation = self.definitions.get(var)
        return equation is not None and equation.primitive is exp

    def score(self, factor: Var, product: Var, along: int) -> _Score | None:
        """The dot that a factor shows, if only one of its operands changes along the sum."""
        base, at = trace(factor, generic(product.type.shape), self.definitions)
        equation = self.definitions.get(base)
        if equation is None or not isinstance(equation.primitive.lower, Contraction):
            return None
        places = _places(at, base.type.shape, product.type.shape)
        contracting, batch = equation.params["dimension_numbers"]
        if places is None or len(contracting[0]) != 1 or base.type.dtype != product.type.dtype:
            return None
        products = equation.operands[0].type.shape[contracting[0][0]]
        if not is_static(products) or products > cost.SUM_COLUMNS:
            return None
        axes = _operand_axes(equation, places)
        # sum_j w[i,j] (a[i] · b[j]) is a[i] · sum_j w[i,j] b[j] only where a does not vary along j.
        for b in (0, 1):
            free = free_axes(equation.operands[b].type.ndim, contracting[b], batch[b])
            if [axes[b][n] for n in free] == [along]:
                return _Score(equation.operands[1 - b], equation.operands[b], axes[1 - b], axes[b])
        return None

    def written(self, equation: Equation, score: _Score, weight: Var, negative: bool) -> list[Equation]:
        """The products of rows of a and the sum of weights times b; empty without that sum."""
        (along,) = equation.params["axes"]
        batch = sorted(n for n in score.b_axes if n not in (-1, along))
        numbers = (
            ((along,), (score.b_axes.index(along),)),
            (tuple(batch), tuple(score.b_axes.index(n) for n in batch)),
        )
        total = self.program_dots.get((weight, score.b, numbers))
        if total is None:
            return []
        order = [*batch, *(n for n in range(weight.type.ndim) if n not in (*batch, along)), -1]
        rows = self.turned(score.a, tuple(score.a_axes.index(n) for n in order))
        product = apply(self.equations, mul, rows, total)
        out = apply(self.equations, reduce_sum, product, axes=(len(order) - 1,))
        out = self.turned(out, tuple(order.index(n) for n in sorted(order[:-1])))
        if negative:
            out = apply(self.equations, neg, out)
        return in_place_of(equation, self.equations)

    def turned(self, atom: Atom, permutation: Axes) -> Atom:
        """A value with its axes in another order."""
        if permutation == tuple(range(len(permutation))):
            return atom
        return apply(self.equations, transpose, atom, permutation=permutation)


def _places(at: Sequence[Size], shape: Sequence[Size], summand_shape: Sequence[Size]) -> Axes | None:
    """For each axis of a dot, the axis of the summands; None if they do not correspond."""
    names = [str(i) for i in generic(summand_shape)]
    places = [names.index(str(i)) if size != 1 and str(i) in names else -1 for i, size in zip(at, shape)]
    if any(p == -1 and size != 1 for p, size in zip(places, shape)):
        return None
    # Axes of one point stand for each other in their order.
    single = [n for n in range(len(names)) if n not in places]
    if len(single) != places.count(-1) or any(summand_shape[n] != 1 for n in single):
        return None
    return tuple(single.pop(0) if p == -1 else p for p in places)


def _operand_axes(dot: Equation, places: Axes) -> tuple[Axes, Axes]:
    """For each axis of both operands, the axis of the summands; -1 for a contracted axis."""
    contracting, batch = dot.params["dimension_numbers"]
    start, axes = len(batch[0]), []
    for number, operand in enumerate(dot.operands):
        at = dict(zip(batch[number], places))
        free = free_axes(operand.type.ndim, contracting[number], batch[number])
        at |= {a: places[start + n] for n, a in enumerate(free)}
        start += len(free)
        axes.append(tuple(at.get(n, -1) for n in range(operand.type.ndim)))
    return axes[0], axes[1]


def exchange_sums(program: Program) -> Program:
    """The program with sums of scores times weights derived from sums of weights."""
    definitions = program.definitions
    dots: dict[object, Var] = {}
    body: list[Equation] = []
    for equation in program.equations:
        body += _Exchange(dots, definitions).exchanged(equation) or [equation]
        # Added afterwards: an exchanged sum may read only dots that come before it.
        if equation.primitive is dot_general:
            key = (*equation.operands, equation.params["dimension_numbers"])
            dots[key] = equation.results[0]
    return program.with_equations(body, program.outputs)


__all__ = ["exchange_sums"]
