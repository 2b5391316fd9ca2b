"""Scores: products that are computed again wherever they are needed, and never stored.

Before   s = q kᵀ;  m = max s;  e = exp(s - m);  l = sum e;  o = e v      s, e: f32[T,S]
After    scores s, e;  sinks m, l, o                                      stored: f32[T], f32[T,D]

A score is a short dot with more results than memory should hold: q kᵀ has T·S elements, computed
from T·D and S·D. Scores, and values computed from them element by element, end in sinks:
reductions, or dots with other values. If every path from the scores ends so, only sinks are stored.

Such a set of values is a component. It counts only if it takes a maximum of its scores, as softmax
does in whatever form. The chains that one kernel computes in one pass are found in streams.py.

Invariant: the program does not return a value of a component, and only its equations read it.
Cost: about linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from rune import dims, dtypes
from rune.core.lower import Contraction, Convert, Reduction, Scalar, View
from rune.core.program import Atom, Definitions, Equation, Program, Var
from rune.dims import is_static
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.tracing import generic, upstream
from rune.lowering.kernelize.views import resolve
from rune.ops.contraction import free_axes
from rune.ops.memory import in_memory
from rune.records import dataclass

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Sink:
    """A reduction of scores, or a dot of scores and another value.

    operand: the number of the operand that is computed from scores
    along:   its reduced axes   rows: its other axes   (both without axes of one point)
    columns: the free axis of the other operand, or an empty tuple
    """

    equation: Equation
    operand: int
    along: Axes
    rows: Axes
    columns: Axes

    @property
    def var(self) -> Var:
        """The result."""
        return self.equation.results[0]

    @property
    def scores(self) -> Var:
        """The operand that is computed from scores."""
        operand = self.equation.operands[self.operand]
        assert isinstance(operand, Var)
        return operand

    @property
    def combine(self) -> str:
        """How elements are combined."""
        lower = self.equation.primitive.lower
        return lower.combine if isinstance(lower, Reduction) else "add"

    def result_axes(self) -> dict[int, int]:
        """The axis of the result for each axis of the scores that is not reduced."""
        ndim = self.scores.type.ndim
        if isinstance(self.equation.primitive.lower, Reduction):
            reduced_axes = self.equation.params["axes"]
            return {a: n for n, a in enumerate(a for a in range(ndim) if a not in reduced_axes)}
        contracting, batch = self.equation.params["dimension_numbers"]
        start, axes = len(batch[0]), {a: n for n, a in enumerate(batch[self.operand])}
        for number, operand in enumerate(self.equation.operands):
            free = free_axes(operand.type.ndim, contracting[number], batch[number])
            if number == self.operand:
                axes |= {a: start + n for n, a in enumerate(free)}
            start += len(free)
        return axes


@dataclass(frozen=True, slots=True)
class Component:
    """The values computed from some scores, and the sinks in which they end, in order."""

    scores: frozenset[Var]
    values: frozenset[Var]  # the scores, and all that is computed from them
    sinks: tuple[Sink, ...]


@dataclass(frozen=True, slots=True)
class _Graph:
    """A program, and the numbers of the equations that read each variable."""

    program: Program
    readers: Mapping[Var, Sequence[int]]


def _graph(program: Program) -> _Graph:
    readers: dict[Var, list[int]] = {}
    for number, equation in enumerate(program.equations):
        for var in {a for a in equation.operands if isinstance(a, Var)}:
            readers.setdefault(var, []).append(number)
    return _Graph(program, readers)


def find_components(program: Program) -> tuple[Component, ...]:
    """The components of a program in which a largest score is taken."""
    graph = _graph(program)
    peaks = [e for e in program.equations if _takes_largest(e)]
    refused_scores: set[Var] = set()
    components: list[Component] = []
    for peak in peaks:
        # Scores of a refused component would be refused again.
        seeds = _seeds(peak.operands[0], graph.program.definitions) - refused_scores
        # A peak of scores that are in a component already was followed with that component.
        if not seeds or any(seeds & c.scores for c in components):
            continue
        component = _component(graph, seeds)
        if component is None:
            refused_scores |= seeds
        else:
            components.append(component)
    return tuple(components)


def _takes_largest(equation: Equation) -> bool:
    lower = equation.primitive.lower
    return (
        isinstance(lower, Reduction)
        and lower.combine == "max"
        and isinstance(equation.operands[0], Var)
        and equation.operands[0].type.dtype in dtypes.FLOATING
    )


# --- from a peak up to its scores -------------------------------------------------------------


def _seeds(atom: Atom, definitions: Definitions) -> set[Var]:
    """The scores from which a value is computed element by element."""
    values = upstream([atom], definitions, lambda _, e: is_mapped(e) and not _is_score(e))
    return {v for v in values if v in definitions and _is_score(definitions[v])}


def _is_score(equation: Equation) -> bool:
    """Whether a dot is short, and has more results than memory should hold."""
    if not isinstance(equation.primitive.lower, Contraction):
        return False
    if equation.results[0].type.dtype not in dtypes.FLOATING:
        return False
    contracted_axes = equation.params["dimension_numbers"][0][0]
    products = cost.count(tuple(equation.operands[0].type.shape[a] for a in contracted_axes))
    read = max(cost.count(a.type.shape) for a in equation.operands)
    return 0 < products <= cost.SCORE_PRODUCTS and cost.is_many_scores(cost.count(equation.results[0].type.shape), read)


def is_mapped(equation: Equation) -> bool:
    """Whether each element of the result is computed from single elements of the operands."""
    return isinstance(equation.primitive.lower, Scalar | Convert | View) and equation.primitive is not in_memory


# --- from scores down to sinks ----------------------------------------------------------------


def _component(graph: _Graph, seeds: set[Var]) -> Component | None:
    """What is computed from the scores, and from scores that meet them; None if it is stored."""
    scores: set[Var] = set()
    reach: tuple[set[Var], list[Sink]] | None = set(), []
    # Scores that meet a value of the component bring values of their own, which may meet more.
    while scores != seeds:
        scores = set(seeds)
        reach = _downwards(graph, scores)
        if reach is None:
            return None
        values, _ = reach
        for var in values - scores:
            seeds |= _that_meet(graph.program.definitions[var], values, graph.program.definitions)
    values, sinks = reach
    results = {a for a in graph.program.outputs if isinstance(a, Var)}
    return None if results & values else Component(frozenset(scores), frozenset(values), tuple(sinks))


def _that_meet(equation: Equation, values: set[Var], definitions: Definitions) -> set[Var]:
    """Other scores, of as many elements, from which an equation computes a value of a component."""
    elements = cost.count(equation.results[0].type.shape)
    others = [a for a in equation.operands if a not in values and cost.count(a.type.shape) == elements]
    scores = {v for a in others for v in _seeds(a, definitions)}
    return {v for v in scores if cost.count(v.type.shape) == elements}


def _downwards(graph: _Graph, scores: set[Var]) -> tuple[set[Var], list[Sink]] | None:
    """What is computed from scores, and its sinks; None if any other equation reads it."""
    values, sinks = set(scores), []
    pending = [n for v in scores for n in graph.readers.get(v, ())]
    heapify(pending)
    last = -1
    while pending:
        # In the order of the program, so that all operands of an equation come before it.
        number = heappop(pending)
        if number == last:
            continue
        last, equation = number, graph.program.equations[number]
        read = [n for n, a in enumerate(equation.operands) if a in values]
        if not equation.results or equation.results[0] in scores:
            return None
        if is_mapped(equation):
            if not _keeps_elements(equation, read):
                return None
            values.update(equation.results)
            for reader in (n for v in equation.results for n in graph.readers.get(v, ())):
                heappush(pending, reader)
        else:
            sink = _sink(equation, read)
            if sink is None:
                return None
            sinks.append(sink)
    return values, sinks


def _keeps_elements(equation: Equation, read: Sequence[int]) -> bool:
    """Whether each element that an equation reads appears once in its result."""
    if not isinstance(equation.primitive.lower, View):
        return True
    result = equation.results[0].type
    same = all(cost.count(equation.operands[n].type.shape) == cost.count(result.shape) for n in read)
    pieces = resolve(equation, generic(result.shape)).pieces if same else ()
    return len(pieces) == 1 and not pieces[0].where and not pieces[0].elements


def _sink(equation: Equation, read: Sequence[int]) -> Sink | None:
    """The equation as a sink; None if it cannot be one."""
    lower = equation.primitive.lower
    if isinstance(lower, Reduction) and lower.combine in ("max", "add"):
        return _as_sink(equation, 0, tuple(sorted(equation.params["axes"])), ())
    if not isinstance(lower, Contraction) or len(read) != 1:
        return None
    (number,) = read
    contracting, batch = equation.params["dimension_numbers"]
    other = equation.operands[1 - number].type
    free = free_axes(other.ndim, contracting[1 - number], batch[1 - number])
    columns = tuple(a for a in free if other.shape[a] != 1)
    # The sums of all columns are in registers at the same time, so there must be few.
    if len(columns) > 1 or not all(is_static(other.shape[a]) for a in columns):
        return None
    if cost.count(tuple(other.shape[a] for a in columns)) > cost.SUM_COLUMNS:
        return None
    return _as_sink(equation, number, tuple(sorted(contracting[number])), columns)


def _as_sink(equation: Equation, number: int, along: Axes, columns: Axes) -> Sink | None:
    shape = equation.operands[number].type.shape
    rows = tuple(a for a in range(len(shape)) if a not in along and shape[a] != 1)
    # A row of no elements has no largest one, and a symbolic size may turn out to be 0.
    empty = any(dims.at_most(1, d) is not True for d in shape)
    longer = tuple(a for a in along if shape[a] != 1)
    return None if empty or not longer or not rows else Sink(equation, number, longer, rows, columns)


__all__ = ["Component", "Sink", "find_components", "is_mapped"]
