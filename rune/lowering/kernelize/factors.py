"""Factors: a factor that does not change along a sum moves out of it.

Before   p = e / broadcast l;  o = dot p, v              l, the sum of e, is a sum of scores too
After    o_sum = dot e, v;  o = o_sum / broadcast l

Then o_sum does not wait for l: both are sums of one pass. Only factors that are sums of scores move
out of sums of scores; nothing would be gained by others. Sums of half types are computed in f32 and
rounded at the end, which is their meaning anyway.

Invariant: values stay the same except for rounding; where only the factors make a summand overflow,
           or keep it from overflowing, the results differ.
Cost: linear in the number of equations.
Source: the distributive law; for softmax, Rabe & Staats 2021, arXiv:2112.05682.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from rune import dtypes
from rune.core.lower import Reduction
from rune.core.primitive import Primitive
from rune.core.program import Atom, Definitions, Equation, Program, Var, replace_equations
from rune.lowering.kernelize.equations import apply, cast, in_place_of
from rune.lowering.kernelize.scores import Component, Sink
from rune.lowering.kernelize.tracing import generic, trace
from rune.ops.arithmetic import convert, div, mul, neg
from rune.ops.family import broadcast, reshape, wide
from rune.ops.transcendental import exp
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor of a sum: `primitive` (mul or div) by `var`, one element for each of `axes`.

    axes: for each axis of `var` of more than one point, the axis of the scores that walks it
    """

    primitive: Primitive
    var: Var
    axes: tuple[int, ...]


@dataclass(slots=True)
class _Pull:
    """The equations in place of one sink."""

    sink: Sink
    definitions: Definitions
    sums: frozenset[Var]  # of scores
    equations: list[Equation] = field(default_factory=list)
    factors: list[Factor] = field(default_factory=list)

    def without(self, atom: Atom) -> Atom:
        """The value without the factors that do not change along the sum, which join `factors`."""
        equation = self.definitions.get(atom)
        if equation is None:
            return atom
        match equation.primitive:
            case p if p in (mul, div):
                return self.product(equation)
            case p if p is neg:
                return self.mapped(equation)
            case p if p is convert and self.keeps_range(equation):
                return self.mapped(equation)
            case _:
                return atom

    def product(self, equation: Equation) -> Atom:
        """A product without its factors."""
        a, b = equation.operands
        if (factor := self.factor(equation.primitive, b)) is not None:
            self.factors.append(factor)
            return self.without(a)
        if equation.primitive is mul and (factor := self.factor(mul, a)) is not None:
            self.factors.append(factor)
            return self.without(b)
        core = self.without(a), self.without(b) if equation.primitive is mul else b
        if core == (a, b):
            return equation.results[0]
        return apply(self.equations, equation.primitive, *core)

    def mapped(self, equation: Equation) -> Atom:
        """An operation of one operand, applied to the operand without its factors."""
        (a,) = equation.operands
        core = self.without(a)
        if core is a:
            return equation.results[0]
        return apply(self.equations, equation.primitive, core, **equation.params)

    def keeps_range(self, equation: Equation) -> bool:
        """Whether a conversion can represent a value that its factors no longer scale."""
        operand, dtype = equation.operands[0], equation.results[0].type.dtype
        if operand.type.dtype not in dtypes.FLOATING or dtype not in dtypes.FLOATING:
            return False
        return dtype.itemsize >= operand.type.dtype.itemsize or self.is_share(operand)

    def is_share(self, atom: Atom) -> bool:
        """Whether a value is an exponential over a sum: at most one, divided or not."""
        equation = self.definitions.get(atom)
        if equation is None or equation.primitive is not div:
            return False
        top, below = equation.operands
        inner = self.definitions.get(top)
        return inner is not None and inner.primitive is exp and self.factor(div, below) is not None

    def factor(self, primitive: Primitive, atom: Atom) -> Factor | None:
        """The value as a factor; None if it changes along the sum, or is not a sum of scores."""
        indices = generic(atom.type.shape)
        var, at = trace(atom, indices, self.definitions)
        if not isinstance(var, Var) or var not in self.sums:
            return None
        var_indices = [i for i, size in zip(at, var.type.shape) if size != 1]
        names = [str(i) for i in indices]
        axes = [names.index(str(i)) if str(i) in names else None for i in var_indices]
        plain = [a for a in axes if a is not None and a not in self.sink.along]
        return Factor(primitive, var, tuple(plain)) if len(plain) == len(axes) and plain == sorted(plain) else None

    def applied(self, total: Var, factor: Factor) -> Var | None:
        """The sum with a factor; None if the axes of the result are in another order."""
        axes = tuple(self.sink.result_axes()[a] for a in factor.axes)
        if list(axes) != sorted(axes):
            return None
        shape = tuple(d for d in factor.var.type.shape if d != 1)
        var = factor.var if shape == factor.var.type.shape else apply(self.equations, reshape, factor.var, shape=shape)
        if var.type.dtype.itemsize > total.type.dtype.itemsize:
            return None
        # A wider factor would have to be rounded before it is applied.
        var = cast(self.equations, var, total.type.dtype)
        spread = apply(self.equations, broadcast, var, shape=total.type.shape, axes=axes)
        return apply(self.equations, factor.primitive, total, spread)


def pull_factors(program: Program, components: Iterable[Component]) -> Program:
    """The program with factors that are sums of scores moved out of other sums of scores."""
    definitions = program.definitions
    sinks = {s.var: (s, c) for c in components for s in c.sinks if s.combine == "add"}

    def pulled(equation: Equation) -> list[Equation]:
        sink, component = sinks.get(equation.results[0], (None, None)) if equation.results else (None, None)
        if sink is None or component is None:
            return []
        sums = frozenset(s.var for s in component.sinks if _is_plain_sum(s))
        return _pulled(_Pull(sink, definitions, sums)) or _widened(sink)

    return replace_equations(program, pulled)


def _is_plain_sum(sink: Sink) -> bool:
    return isinstance(sink.equation.primitive.lower, Reduction) and sink.combine == "add"


def _pulled(pull: _Pull) -> list[Equation]:
    """The equations in place of a sink; an empty list if it stays."""
    # Equations of the core are written as factors are found, and dropped if none is.
    core = pull.without(pull.sink.scores)
    if not pull.factors:
        return []
    total = _sum(pull.equations, pull.sink, core)
    for factor in pull.factors:
        new = pull.applied(total, factor)
        if new is None:
            return []
        total = new
    return _as_result(pull.equations, pull.sink, total)


def _widened(sink: Sink) -> list[Equation]:
    """The equations in place of a sum of half types; an empty list for other types."""
    if sink.var.type.dtype == wide(sink.var.type.dtype):
        return []
    equations: list[Equation] = []
    return _as_result(equations, sink, _sum(equations, sink, sink.scores))


def _sum(equations: list[Equation], sink: Sink, core: Atom) -> Var:
    """The sum of other scores in place of the sink's, in the type in which it is accumulated."""
    operands = [core if n == sink.operand else a for n, a in enumerate(sink.equation.operands)]
    dtype = wide(sink.var.type.dtype)
    operands = [cast(equations, a, dtype) for a in operands]
    return apply(equations, sink.equation.primitive, *operands, **sink.equation.params)


def _as_result(equations: list[Equation], sink: Sink, total: Var) -> list[Equation]:
    cast(equations, total, sink.var.type.dtype)
    return in_place_of(sink.equation, equations)
