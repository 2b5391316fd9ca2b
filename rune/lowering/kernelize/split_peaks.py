"""Split sums of exponentials of long rows into parts, each with a peak of its own.

Before   m = max x;  l = sum exp(x - broadcast m)                               x: f32[8,131072]
After    y = split_axis x                                                       f32[8,32,4096]
         m_p = max y;  l_p = sum exp(y - broadcast m_p)       one kernel over parts
         m = max m_p;  l = sum (l_p * exp(m_p - broadcast m))                   f32[8,32] -> f32[8]

A sum of degree d in its peak (streams.py) becomes exp(d·(m_p - m)) times as large with m in place
of m_p, so parts need not wait for the maximum of the row. Other readers of m read the same m. In a
part of nothing but -inf, scores are shifted by 0 in place of m_p; its sum is 0, and stays 0.

Invariant: as in two passes, a row of nothing but -inf, or with inf or NaN, gives NaN.
Cost: linear in the number of equations, for each peak that is split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rune import dtypes
from rune.core.lower import Reduction, Scalar
from rune.core.program import Definitions, Equation, Literal, Program, Var, replace_equations
from rune.core.types import ArrayType
from rune.dims import is_static
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.equations import apply, cast, identity, in_place_of
from rune.lowering.kernelize.scores import Component, Sink, is_mapped
from rune.lowering.kernelize.streams import Stream, form_streams
from rune.lowering.kernelize.tracing import generic, trace, upstream
from rune.lowering.kernelize.two_step import Parallelism, choose, split_axis
from rune.ops.arithmetic import convert, eq, mul, select, sub
from rune.ops.family import broadcast, reduce_sum, wide
from rune.ops.reduction import reduce_max
from rune.ops.transcendental import exp
from rune.records import dataclass


def split_peaks(program: Program, target: Target) -> Program:
    """The program with long chains of a maximum and sums of exponentials in parts.

    A processor stores exponentials rather than computing them again for the result.
    """
    parallelism = Parallelism.of(target)
    if not (cost.computes_again(target) or parallelism.lines):
        return program
    if parallelism.lines:
        parallelism = replace(parallelism, part=cost.LINE_PEAK)
    for peak in [e for e in program.equations if _is_long(e, parallelism)]:
        program = _with_parts(program, peak, parallelism)
    return program


def _is_long(equation: Equation, parallelism: Parallelism) -> bool:
    """Whether a maximum along one axis would be split."""
    lower = equation.primitive.lower
    if not isinstance(lower, Reduction) or lower.combine != "max" or not isinstance(equation.operands[0], Var):
        return False
    type, axes = equation.operands[0].type, tuple(equation.params["axes"])
    if len(axes) != 1 or type.dtype not in dtypes.FLOATING or not all(map(is_static, type.shape)):
        return False
    step = choose(type, axes, parallelism)
    return step is not None and step.size > 0


def _with_parts(program: Program, peak: Equation, parallelism: Parallelism) -> Program:
    """The program with one maximum, and the sums that depend on it, in parts."""
    x, axes = peak.operands[0], tuple(peak.params["axes"])
    assert isinstance(x, Var)
    step = choose(x.type, axes, parallelism)
    assert step is not None
    stream = _stream(program, peak)
    if stream is None:
        return program
    parts = _Parts(x, axes[0], step.size, program.definitions)
    sums = {s.var: s for s in stream.sinks if stream.degrees.get(s.var, 0) > 0}

    def in_parts(equation: Equation) -> list[Equation]:
        if equation is peak:
            return parts.peak(peak)
        is_sum = bool(equation.results) and equation.results[0] in sums
        return parts.sum(equation, stream.degrees[equation.results[0]]) if is_sum else []

    return replace_equations(program, in_parts)


def _stream(program: Program, peak: Equation) -> Stream | None:
    """The maximum with the sums that have a degree in it; None if there are none."""
    x, axes = peak.operands[0], tuple(peak.params["axes"])
    assert isinstance(x, Var)
    sums = [e for e in program.equations if _is_sum(e, x.type, axes)]
    if not sums:
        return None
    sinks = tuple(_sink(e, axes) for e in program.equations if e is peak or e in sums)
    definitions = program.definitions
    base, _ = trace(x, generic(x.type.shape), definitions)
    # The value that x shows, since the sums may read it through other views.
    if not isinstance(base, Var) or base.type.shape != x.type.shape:
        base = x
    streams = form_streams(program, Component(frozenset({base}), frozenset({base}), sinks))
    stream = next(s for s in streams if s.peak is peak.results[0])
    return stream if any(stream.degrees.values()) else None


def _is_sum(equation: Equation, type: ArrayType, axes: tuple[int, ...]) -> bool:
    lower = equation.primitive.lower
    if not isinstance(lower, Reduction) or lower.combine != "add" or tuple(equation.params["axes"]) != axes:
        return False
    operand = equation.operands[0]
    return isinstance(operand, Var) and operand.type.shape == type.shape and operand.type.dtype in dtypes.FLOATING


def _sink(equation: Equation, axes: tuple[int, ...]) -> Sink:
    shape = equation.operands[0].type.shape
    rows = tuple(a for a in range(len(shape)) if a not in axes and shape[a] != 1)
    return Sink(equation, 0, axes, rows, ())


# --- parts ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Parts:
    """A maximum and its sums in parts of `size` along `axis` of `x`."""

    x: Var
    axis: int
    size: int
    definitions: Definitions
    peaks: Var | None = None  # of the parts
    largest: Var | None = None  # of all
    base: Var | None = None  # the peaks, 0 where they are -inf

    def peak(self, equation: Equation) -> list[Equation]:
        """The largest of each part, then the largest of all."""
        new: list[Equation] = []
        (self.largest,) = equation.results
        self.peaks = apply(new, reduce_max, self.split(self.x, new), axes=(self.axis + 1,))
        # -inf - -inf would be NaN in a part of nothing but -inf, and so in the whole row's sum.
        least = identity("max", self.peaks.type)
        self.base = apply(new, select, apply(new, eq, self.peaks, least), _literal(0, self.peaks.type), self.peaks)
        new.append(replace(equation, operands=(self.peaks,), params={"axes": (self.axis,)}))
        return in_place_of(equation, new)

    def split(self, x: Var, new: list[Equation], fill: Literal | None = None) -> Var:
        """A value in parts, with -inf or `fill` beyond its end."""
        fill = fill or identity("max", x.type)
        return apply(new, split_axis, x, fill, axis=self.axis, size=self.size)

    def sum(self, equation: Equation, degree: int) -> list[Equation]:
        """The sum of each part, relative to its peak, then of all; empty if it cannot be."""
        new: list[Equation] = []
        operand = equation.operands[0]
        assert isinstance(operand, Var)
        if self.peaks is None or self.largest is None or not self.is_known(operand):
            return []
        dtype = wide(operand.type.dtype)
        summands = self.inside(self.copy(operand, new), new)
        parts = apply(new, reduce_sum, cast(new, summands, dtype), axes=(self.axis + 1,))
        outside = tuple(a for a in range(self.peaks.type.ndim) if a != self.axis)
        total_peak = apply(new, broadcast, self.largest, shape=self.peaks.type.shape, axes=outside)
        shift = apply(new, sub, cast(new, self.peaks, dtype), cast(new, total_peak, dtype))
        if degree != 1:
            shift = apply(new, mul, shift, _literal(degree, shift.type))
        corrected_sums = apply(new, mul, parts, apply(new, exp, shift))
        total = apply(new, equation.primitive, corrected_sums, axes=(self.axis,))
        cast(new, total, equation.results[0].type.dtype)
        return in_place_of(equation, new)

    def inside(self, summands: Var, new: list[Equation]) -> Var:
        """The summands of parts, with 0 beyond the end."""
        # exp of the -inf there is 0, but a summand may have another factor that makes it NaN.
        length = self.x.type.shape[self.axis]
        if isinstance(length, int) and length % self.size == 0:
            return summands
        truth = ArrayType((), dtypes.bool_)
        truths = apply(new, broadcast, _literal(1, truth), shape=self.x.type.shape, axes=())
        mask = self.split(truths, new, _literal(0, truth))
        return apply(new, select, mask, summands, _literal(0, summands.type))

    def is_known(self, var: Var) -> bool:
        """Whether a value is computed elementwise from x, its peak, and values of x's shape."""
        pending, visited = [var], {var}
        while pending:
            top = pending.pop()
            if self.is_x(top) or self.is_peak(top) or not self.reads_peak(top):
                continue
            equation = self.definitions[top]
            if not isinstance(equation.primitive.lower, Scalar) and equation.primitive is not convert:
                return False
            operands = [a for a in equation.operands if isinstance(a, Var) and a not in visited]
            if any(a.type.shape not in ((), self.x.type.shape) for a in operands):
                return False
            visited.update(operands)
            pending += operands
        return True

    def is_x(self, var: Var) -> bool:
        """Whether a value shows the same elements as x."""
        indices = generic(self.x.type.shape)
        return var.type == self.x.type and trace(var, indices, self.definitions) == trace(
            self.x, indices, self.definitions
        )

    def is_peak(self, var: Var) -> bool:
        """Whether a value is the peak, broadcast."""
        return trace(var, generic(var.type.shape), self.definitions)[0] is self.largest

    def reads_peak(self, var: Var) -> bool:
        """Whether a value depends on the peak."""
        return any(v is self.largest for v in upstream([var], self.definitions, lambda _, e: is_mapped(e)))

    def copy(self, var: Var, new: list[Equation]) -> Var:
        """A value in parts, computed from the peaks of the parts."""
        pending = [var]
        copies: dict[Var, Var] = {}
        while pending:
            top = pending[-1]
            if top in copies:
                pending.pop()
                continue
            part = self.part(top, copies, new)
            if part is None:
                pending += [a for a in self.definitions[top].operands if isinstance(a, Var) and a not in copies]
            else:
                copies[top] = part
                pending.pop()
        return copies[var]

    def part(self, var: Var, copies: Mapping[Var, Var], new: list[Equation]) -> Var | None:
        """The copy of a value; None if the copy of an operand is missing."""
        if not var.type.shape:
            return var
        if self.is_x(var):
            return self.split(var, new)
        if self.is_peak(var):
            assert self.base is not None
            outside = tuple(a for a in range(self.x.type.ndim + 1) if a != self.axis + 1)
            shape = (*self.base.type.shape[: self.axis + 1], self.size, *self.base.type.shape[self.axis + 1 :])
            return apply(new, broadcast, self.base, shape=shape, axes=outside)
        # Beyond the end the summands are masked, so any fill will do.
        if not self.reads_peak(var):
            return self.split(var, new, _literal(1, var.type))
        equation = self.definitions[var]
        if any(isinstance(a, Var) and a not in copies for a in equation.operands):
            return None
        operands = [copies[a] if isinstance(a, Var) else a for a in equation.operands]
        return apply(new, equation.primitive, *operands, **equation.params)


def _literal(value: int, type: ArrayType) -> Literal:
    return Literal(np.asarray(value).astype(type.dtype), ArrayType((), type.dtype))
