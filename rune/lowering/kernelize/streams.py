"""Streams: sums of scores that one kernel computes in one pass, before it knows the largest score.

    m = max s;  l = sum exp(s - m);  o = sum exp(s - m) v

A sum has degree d in the largest score m if m + δ in place of m makes every summand, and so the
whole, exp(-d·δ) times as large. Such a sum is right for the largest score so far at all times, if
it is multiplied by exp(d·(m_before - m_after)) whenever m grows. Degrees follow from the equations:

    s - m  where m is the largest s              a shift
    exp(shift)                                    1, and at most 1
    a · b                                         the sum of both           a / b, -a    that of a
    a + b, select c a b                           that of both, if they are equal

Sinks join one stream if they walk the same rows, reduce over the same axes, and read the same
scores, if no sink needs the result of another, except for the peak, and if all have a degree in it.

Invariant: streams have an order: no two of them read each other, directly or through other values.
Not done:  a component that reads more arrays than a kernel may; its scores are stored, as any other
           values. A sum that depends on a peak in another way is a stream of its own, and reads the
           peak from memory.
Source:    Milakov & Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from rune import dtypes
from rune.core.lower import Convert, View
from rune.core.program import Atom, Definitions, Equation, Literal, Program, Var
from rune.dims import Size
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.exchange_sums import exchange_sums
from rune.lowering.kernelize.factors import pull_factors
from rune.lowering.kernelize.reciprocals import multiply_by_reciprocals
from rune.lowering.kernelize.roots import Request, axis_symbols, needs
from rune.lowering.kernelize.scores import Component, Sink, find_components, is_mapped
from rune.lowering.kernelize.tracing import generic, trace, upstream
from rune.lowering.kernelize.views import Indices, resolve
from rune.lowering.simplify.eliminate_dead import eliminate_dead
from rune.ops.arithmetic import add, div, mul, neg, select, sub
from rune.ops.transcendental import exp
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Stream:
    """Sinks of one pass. `degrees` are those in the peak, for each of the sums."""

    sinks: tuple[Sink, ...]
    peak: Var | None
    degrees: Mapping[Var, int]


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of a program, and the values that are computed again wherever they are read."""

    streams: tuple[Stream, ...] = ()
    recomputed_values: frozenset[Var] = frozenset()

    @property
    def members(self) -> dict[Var, Sink]:
        """The sinks of all streams."""
        return {s.var: s for stream in self.streams for s in stream.sinks}

    @property
    def degrees(self) -> dict[Var, int]:
        """The degrees of all sums."""
        return {v: d for stream in self.streams for v, d in stream.degrees.items()}

    @property
    def groups(self) -> list[list[Var]]:
        """The results of each stream."""
        return [[s.var for s in stream.sinks] for stream in self.streams]


def find_streams(program: Program, target: Target) -> tuple[Program, Streams]:
    """The program with factors moved out of sums, and its streams; itself if it has no stream."""
    if not cost.computes_again(target):
        # Scores are stored, but quotients cost as much there as exponentials.
        return multiply_by_reciprocals(program, find_components(program)), Streams()
    components = find_components(program)
    if not components:
        return program, Streams()
    new_program = eliminate_dead(exchange_sums(pull_factors(program, components)))
    new_program = multiply_by_reciprocals(new_program, find_components(new_program))
    recomputed_values: frozenset[Var] = frozenset()
    streams: list[Stream] = []
    for component in find_components(new_program):
        component_streams = form_streams(new_program, component)
        # Only a sum that depends on a peak gains by a stream: other sums need not wait for one.
        pays = any(s.peak is not None and any(s.degrees.values()) for s in component_streams)
        if pays and _buffers(new_program, component) <= cost.MAX_BUFFERS:
            recomputed_values |= component.values
            streams += component_streams
    return (new_program, Streams(tuple(streams), recomputed_values)) if streams else (program, Streams())


def _buffers(program: Program, component: Component) -> int:
    """The arrays that a component reads and writes, if nothing between them is stored."""
    definitions = program.definitions

    def is_computed(var: Var, equation: Equation) -> bool:
        return is_mapped(equation) or var in component.scores

    operands = [a for s in component.sinks for a in s.equation.operands]
    values = upstream(operands, definitions, is_computed)
    reads = {v for v in values if v not in definitions or not is_computed(v, definitions[v])}
    return len(reads | {s.var for s in component.sinks})


def form_streams(program: Program, component: Component) -> list[Stream]:
    """The streams of a component, in order."""
    return _Former(program, component).streams()


# --- forming ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Forming:
    """A stream while sinks join it."""

    bits: int  # its sinks, as a bit set of their numbers
    walk: Walk
    sinks: list[Sink] = field(default_factory=list)
    peak: Sink | None = None
    degrees: dict[Var, int] = field(default_factory=dict)
    needs: int = 0  # the sinks on which its sinks depend, directly or not


@dataclass(frozen=True, slots=True)
class Walk:
    """Sizes of rows and of what is reduced, and where each score and sink is read on the way."""

    rows: tuple[Size, ...]
    along: tuple[Size, ...]
    reads: Mapping[Var, frozenset[Indices]]


class _Former:
    """Forms the streams of a component."""

    def __init__(self, program: Program, component: Component):
        self.component = component
        self.definitions = program.definitions
        self.numbers = {s.var: n for n, s in enumerate(component.sinks)}
        self.depends = _dependence(program, self.numbers)
        self.forming: list[_Forming] = []

    def streams(self) -> list[Stream]:
        """The streams, in order."""
        for sink in self.component.sinks:
            self.place(sink)
        return [Stream(tuple(f.sinks), f.peak.var if f.peak else None, f.degrees) for f in self.forming]

    def place(self, sink: Sink) -> None:
        """Let a sink join a stream, or begin one."""
        walk, needed_sinks = self.walk(sink), self.needs_of(sink)
        for forming in reversed(self.forming):
            aligned_sink = self.aligned(sink, walk, forming)
            degree = self.degree_in(aligned_sink, self.walk(aligned_sink), needed_sinks, forming)
            if degree is not None:
                sink = aligned_sink
                break
        else:
            forming, degree = _Forming(0, walk), 0
            self.forming.append(forming)
        forming.bits |= 1 << self.numbers[sink.var]
        forming.needs |= needed_sinks
        forming.sinks.append(sink)
        if sink.combine == "max":
            forming.peak = sink
        else:
            forming.degrees[sink.var] = degree

    def walk(self, sink: Sink) -> Walk:
        """The walk of a sink."""
        return walk_of(sink, self.component.scores | self.numbers.keys(), self.definitions)

    def aligned(self, sink: Sink, walk: Walk, forming: _Forming) -> Sink:
        """The sink with its axes in the order in which a stream walks the same score."""
        # A sum of transposed scores has its axes in another order; walks are compared axis by axis.
        shared_scores = self.component.scores & walk.reads.keys() & forming.walk.reads.keys()
        for score in sorted(shared_scores, key=lambda v: min(map(str, forming.walk.reads[v]))):
            (stream_indices, *_), (sink_indices, *_) = forming.walk.reads[score], walk.reads[score]
            place = {str(x): str(y) for x, y in zip(sink_indices, stream_indices)}
            rows = [place.get(str(x)) for x in axis_symbols(walk.rows)]
            along = [place.get(str(x)) for x in axis_symbols(walk.along, "j")]
            stream_row_names = [str(x) for x in axis_symbols(forming.walk.rows)]
            stream_along_names = [str(x) for x in axis_symbols(forming.walk.along, "j")]
            if sorted(map(str, rows)) == sorted(stream_row_names) and sorted(map(str, along)) == sorted(
                stream_along_names
            ):
                order = [rows.index(x) for x in stream_row_names], [along.index(x) for x in stream_along_names]
                return replace(
                    sink, rows=tuple(sink.rows[n] for n in order[0]), along=tuple(sink.along[n] for n in order[1])
                )
        return sink

    def needs_of(self, sink: Sink) -> int:
        """The sinks on which a sink depends."""
        bits = 0
        for operand in sink.equation.operands:
            bits |= self.depends.get(operand, 0) if isinstance(operand, Var) else 0
        return bits

    def degree_in(self, sink: Sink, walk: Walk, needed_sinks: int, forming: _Forming) -> int | None:
        """The degree of a sink in the peak of a stream; None if it cannot join."""
        if (walk.rows, walk.along) != (forming.walk.rows, forming.walk.along):
            return None
        scores = self.component.scores & walk.reads.keys() & forming.walk.reads.keys()
        if not scores or any(walk.reads[s] != forming.walk.reads[s] for s in scores):
            return None
        if not self.fits_between(needed_sinks, forming):
            return None
        # Weights are relative to the maximum: a stream has one, which depends on none of its sums.
        if sink.combine == "max":
            return 0 if forming.peak is None and not needed_sinks & forming.bits else None
        # The other factor may not depend on this stream's sums, which are known only at its end.
        others = [a for n, a in enumerate(sink.equation.operands) if n != sink.operand]
        if any(self.depends.get(a, 0) & forming.bits for a in others if isinstance(a, Var)):
            return None
        # A sink that does not depend on the stream has degree 0 in any peak.
        if not needed_sinks & forming.bits:
            return 0
        if forming.peak is None or not _reads_own_row(walk, forming.peak):
            return None
        dependence = Degrees(forming.peak, forming.bits, self.depends, self.definitions).of(sink.scores)
        return None if dependence is None or dependence.is_shift else dependence.degree

    def fits_between(self, needed_sinks: int, forming: _Forming) -> bool:
        """Whether no other stream would have to run both before and after this one."""
        # Streams that this sink needs, directly or through others, must not need this stream.
        pending = [f for f in self.forming if f is not forming and f.bits & needed_sinks]
        visited: list[_Forming] = []
        while pending:
            other = pending.pop()
            if other.needs & forming.bits:
                return False
            visited.append(other)
            pending += [f for f in self.forming if f not in (forming, *visited, *pending) and f.bits & other.needs]
        return True


def _dependence(program: Program, numbers: Mapping[Var, int]) -> dict[Var, int]:
    """For every variable, a bit set of the sinks on which it depends, itself included."""
    depends: dict[Var, int] = {}
    for equation in program.equations:
        bits = 0
        for operand in equation.operands:
            if isinstance(operand, Var):
                bits |= depends.get(operand, 0)
        for var in equation.results:
            depends[var] = bits | (1 << numbers[var] if var in numbers else 0)
    return depends


def walk_of(sink: Sink, stops: Iterable[Var], definitions: Definitions) -> Walk:
    """What a sink walks, and where it reads scores and other sinks."""
    shape = sink.scores.type.shape
    rows, along = tuple(shape[a] for a in sink.rows), tuple(shape[a] for a in sink.along)
    symbols: dict[int, Size] = dict(zip(sink.rows, axis_symbols(rows)))
    symbols |= dict(zip(sink.along, axis_symbols(along, "j")))
    indices = tuple(symbols.get(a, 0) for a in range(len(shape)))
    return Walk(rows, along, _reads((sink.scores, indices), frozenset(stops), definitions))


def _reads(request: Request, stops: frozenset[Var], definitions: Definitions) -> dict[Var, frozenset[Indices]]:
    reads: dict[Var, set[Indices]] = {}
    visited: set[Request] = set()
    fresh = itertools.count()
    pending = [request]
    while pending:
        atom, indices = pending.pop()
        if not isinstance(atom, Var) or (atom, indices) in visited:
            continue
        visited.add((atom, indices))
        equation = definitions.get(atom)
        if atom in stops:
            reads.setdefault(atom, set()).add(indices)
        elif equation is not None and is_mapped(equation):
            pending += needs(equation, indices, fresh, resolve)
    return {v: frozenset(places) for v, places in reads.items()}


def _reads_own_row(walk: Walk, peak: Sink) -> bool:
    """Whether a walk reads the peak at its own row, and nowhere else."""
    symbols = dict(zip(peak.rows, axis_symbols(walk.rows)))
    axes = sorted(peak.result_axes())
    return walk.reads.get(peak.var) == {tuple(symbols.get(a, 0) for a in axes)}


# --- degrees ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dependence:
    """How a value depends on its peak. is_bounded: it is at most one, whatever the peak is."""

    degree: int
    is_bounded: bool = False
    is_shift: bool = False


@dataclass(slots=True)
class Degrees:
    """The degrees of values in one peak."""

    peak: Sink
    bits: int  # sinks of the stream
    depends: Mapping[Var, int]
    definitions: Definitions
    dependences: dict[Var, Dependence | None] = field(default_factory=dict)

    def of(self, var: Var) -> Dependence | None:
        """The dependence of a value, derived after those of its operands; None without a degree."""
        pending = [var]
        while pending:
            top = pending[-1]
            if top in self.dependences:
                pending.pop()
                continue
            equation = self.definitions.get(top)
            operands = [a for a in self.deciding(equation) if a not in self.dependences]
            if operands:
                pending += operands
            else:
                self.dependences[top] = self.dependence(top, equation)
                pending.pop()
        return self.dependences[var]

    def deciding(self, equation: Equation | None) -> list[Var]:
        """The operands whose dependences decide."""
        if equation is None or not is_mapped(equation):
            return []
        return [a for a in equation.operands if isinstance(a, Var) and self.needs_peak(a)]

    def needs_peak(self, atom: Atom) -> bool:
        """Whether a value depends on a sink of the stream."""
        return isinstance(atom, Var) and bool(self.depends.get(atom, 0) & self.bits)

    def known(self, atom: Atom) -> Dependence | None:
        """The dependence of an operand."""
        return self.dependences[atom] if isinstance(atom, Var) and self.needs_peak(atom) else Dependence(0)

    def dependence(self, var: Var, equation: Equation | None) -> Dependence | None:
        """The dependence of a value, once those of its operands are known."""
        if not self.needs_peak(var):
            return Dependence(0)
        if equation is None or not is_mapped(equation):
            return None
        lower = equation.primitive.lower
        # A view of one operand shows the same numbers; of several, they may have different degrees.
        if isinstance(lower, View):
            return self.known(equation.operands[0]) if len(equation.operands) == 1 else None
        if isinstance(lower, Convert):
            return self.converted(equation)
        if equation.primitive is sub and self.is_shift(*equation.operands):
            return Dependence(0, is_shift=True)
        dependences = [self.known(a) for a in equation.operands]
        if None in dependences:
            return None
        return self.combined(equation, [f for f in dependences if f is not None])

    def converted(self, equation: Equation) -> Dependence | None:
        """The dependence of a conversion; to fewer bits, None unless the value cannot overflow."""
        dependence, (operand,) = self.known(equation.operands[0]), equation.operands
        before, after = operand.type.dtype, equation.results[0].type.dtype
        if dependence is None or before not in dtypes.FLOATING or after not in dtypes.FLOATING:
            return None
        return (
            dependence
            if dependence.is_bounded or (after.itemsize >= before.itemsize and not dependence.is_shift)
            else None
        )

    def combined(self, equation: Equation, dependences: Sequence[Dependence]) -> Dependence | None:
        """The dependence of an operation."""
        primitive = equation.primitive
        # exp(x - m) is where the degree comes from: when m grows by d, it shrinks by exp(-d).
        if primitive is exp:
            return Dependence(1, is_bounded=True) if dependences[0].is_shift else None
        if any(f.is_shift for f in dependences):
            return None
        if primitive is mul:
            return Dependence(
                dependences[0].degree + dependences[1].degree, dependences[0].is_bounded and dependences[1].is_bounded
            )
        if primitive is div:
            return Dependence(dependences[0].degree) if not self.needs_peak(equation.operands[1]) else None
        if primitive is neg:
            return dependences[0]
        # Terms of different degrees would need different corrections, and a sum has only one.
        if primitive in (add, sub):
            return Dependence(dependences[0].degree) if dependences[0].degree == dependences[1].degree else None
        if primitive is select and not self.needs_peak(equation.operands[0]):
            return self.selected(equation.operands[1:], dependences[1:])
        return None

    def selected(self, operands: Sequence[Atom], dependences: Sequence[Dependence]) -> Dependence | None:
        """The dependence of a choice between two values; a 0 has any degree."""
        nonzero_dependences = [f for a, f in zip(operands, dependences) if not self.is_zero(a)]
        if len({f.degree for f in nonzero_dependences}) != 1:
            return None
        return Dependence(nonzero_dependences[0].degree, all(f.is_bounded for f in nonzero_dependences))

    def is_zero(self, atom: Atom) -> bool:
        """Whether a value is 0 everywhere."""
        base, _ = trace(atom, generic(atom.type.shape), self.definitions)
        return isinstance(base, Literal) and not np.any(base.value)

    def is_shift(self, a: Atom, b: Atom) -> bool:
        """Whether b is the peak of the score a, at the same place."""
        peak = self.peak
        indices = generic(a.type.shape)
        largest, at = trace(b, indices, self.definitions)
        if largest is not peak.var or a.type.shape != peak.scores.type.shape:
            return False
        rows = tuple(indices[n] for n in sorted(peak.result_axes()))
        same = all(x == y or size == 1 for x, y, size in zip(at, rows, largest.type.shape))
        return same and trace(a, indices, self.definitions) == trace(peak.scores, indices, self.definitions)


__all__ = ["Stream", "Streams", "find_streams"]
