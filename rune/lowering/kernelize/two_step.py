"""Reduce in two steps where one step would leave most processors idle.

Before   %1: f32[] = reduce_sum %0 {axes=(0)}                         %0: f32[4000000]
After    %1: f32[977,4096] = split_axis %0, 0.0 {axis=0, size=4096}   (a view)
         %2: f32[977] = reduce_sum %1 {axes=(1)}
         %3: f32[] = reduce_sum %2 {axes=(0)}

The parts depend only on sizes, so the result is the same on every run. Half types are summed in f32
throughout.

Invariant: every reduction that remains has enough parallel points or little work.
Cost: linear in the number of equations; each reduction is split at most a few times.
"""

from __future__ import annotations

import math
from collections.abc import Container

import numpy as np

from rune import dims
from rune.core.lower import Bounds, Piece, Reduction, Source, View
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program, Var, replace_equations
from rune.core.types import ArrayType
from rune.dims import Size, is_static
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.equations import apply, cast, identity, in_place_of, is_among
from rune.ops.family import wide
from rune.records import dataclass

Axes = tuple[int, ...]


def _split_type(x: ArrayType, fill: ArrayType, *, axis: int, size: int) -> ArrayType:
    parts = -(-x.shape[axis] // size)
    return x.with_shape((*x.shape[:axis], parts, size, *x.shape[axis + 1 :]))


def _split_reference(x: np.ndarray, fill: np.ndarray, *, axis: int, size: int) -> np.ndarray:
    parts = -(-x.shape[axis] // size)
    widths = [(0, 0)] * x.ndim
    # The last part is padded with the identity of the reduction.
    widths[axis] = (0, parts * size - x.shape[axis])
    full_parts = np.pad(x, widths, constant_values=fill)
    return full_parts.reshape(*x.shape[:axis], parts, size, *x.shape[axis + 1 :])


def _split_view(indices: tuple, x: ArrayType, fill: ArrayType, *, axis: int, size: int) -> Source:
    position = indices[axis] * size + indices[axis + 1]
    index = (*indices[:axis], position, *indices[axis + 2 :])
    return Source((Piece(0, index, (Bounds(position, 0, x.shape[axis]),)),), fill=1)


split_axis = Primitive("split_axis", "movement", _split_type, _split_reference, lower=View(_split_view))


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How many points keep a device busy: rows, which several threads may share, or columns.

    is_gpu: whether every column of a piece has a thread of its own
    part:   elements of a part of a long row
    lines:  whether parts are read by lines (codegen/mesa/lines.py), which longer rows are not: then
            long rows are cut however many there are
    """

    rows: int
    columns: int
    is_gpu: bool = False
    part: int = cost.PART
    lines: bool = False

    @classmethod
    def of(cls, target: Target) -> Parallelism:
        """The points that keep a device busy."""
        if target.is_gpu:
            return cls(2 * target.cores, 128 * target.cores, is_gpu=True)
        lines = target.has_lines
        part = cost.LINE_PART if lines else cost.PART
        return cls(cost.parallel_rows(target.cores), cost.PARALLEL_COLUMNS, part=part, lines=lines)

    def shares(self, work: int, columns: int) -> bool:
        """Whether threads that share columns, of `work` elements in all, save a second kernel."""
        return self.is_gpu and work <= cost.SHARED_COLUMN * columns

    def piece(self, work: int, columns: int) -> int:
        """How many of the `work` elements one piece of all columns has."""
        # A GPU needs a thread for each column of each piece; a processor needs pieces that fit its
        # nearest cache.
        return work * columns // (4 * self.columns) if self.is_gpu else 4 * cost.PART


@dataclass(frozen=True, slots=True)
class _Step:
    """Reduce `axes`, after splitting `axis` into parts of `size` unless size is 0."""

    axes: Axes
    axis: int = 0
    size: int = 0


def split_reductions(program: Program, parallelism: Parallelism, stream_results: Container[Var] = ()) -> Program:
    """The program with two steps for each large reduction to few elements.

    parallelism: the points that a kernel should have. stream_results: results that stay as they are
    """
    return replace_equations(program, lambda e: [] if is_among(e, stream_results) else _split(e, parallelism))


def _split(equation: Equation, parallelism: Parallelism) -> list[Equation]:
    """The equations in place of a reduction; an empty list if it stays."""
    lower = equation.primitive.lower
    operand = equation.operands[0] if equation.operands else None
    if not isinstance(lower, Reduction) or not isinstance(operand, Var):
        return []
    axes = tuple(sorted(equation.params["axes"]))
    step = choose(operand.type, axes, parallelism)
    if step is None:
        return []
    equations: list[Equation] = []
    dtype = operand.type.dtype
    # Partial sums would be rounded to half types in memory, while maxima are exact.
    acc = wide(dtype) if lower.combine in ("add", "mul") else dtype
    x = cast(equations, operand, acc)
    # A very long axis has so many parts that they are reduced in two steps themselves.
    while step is not None:
        x, axes = _reduce_part(equation.primitive, lower.combine, x, axes, step, equations)
        step = choose(x.type, axes, parallelism)
    x = apply(equations, equation.primitive, x, axes=axes)
    cast(equations, x, dtype)
    return in_place_of(equation, equations)


def _reduce_part(
    primitive: Primitive, combine: str, x: Var, axes: Axes, step: _Step, equations: list[Equation]
) -> tuple[Var, Axes]:
    """Do one step. Returns the value, and the axes that remain to be reduced."""
    step_axes = step.axes
    if step.size:
        x = apply(equations, split_axis, x, identity(combine, x.type), axis=step.axis, size=step.size)
        # The axes after the one that is split move by one.
        new_axes = {a: a + (a > step.axis) for a in axes}
        step_axes = tuple(sorted({step.axis + 1, *(new_axes[a] for a in step_axes if a != step.axis)}))
        axes = tuple(sorted({step.axis, step.axis + 1, *(new_axes[a] for a in axes)}))
    remaining = [a for a in axes if a not in step_axes]
    x = apply(equations, primitive, x, axes=step_axes)
    return x, tuple(a - sum(b < a for b in step_axes) for a in remaining)


# --- choice -----------------------------------------------------------------------------------


def choose(type: ArrayType, axes: Axes, parallelism: Parallelism) -> _Step | None:
    """The first step of a reduction, or None if it takes a single step.

    >>> from rune import dtypes
    >>> choose(ArrayType((1 << 20,), dtypes.f32), (0,), Parallelism(64, 512))
    _Step(axes=(0,), axis=0, size=4096)
    >>> choose(ArrayType((512, 4096), dtypes.f32), (0, 1), Parallelism(64, 512))
    _Step(axes=(1,), axis=0, size=0)
    """
    if (longest := _longest(type, axes)) is not None:
        return _Step(axes, longest, cost.PART)
    results, work = cost.count(tuple(d for a, d in enumerate(type.shape) if a not in axes)), cost.count(type.shape)
    # The last axis stays: neighbouring results then add up neighbouring columns.
    columns = bool(axes) and type.ndim - 1 not in axes
    fewest_points = parallelism.columns if columns else parallelism.rows
    if not axes or work <= cost.SPLIT_WORK or (columns and parallelism.shares(work, results)):
        return None
    # Enough points, but a row may be so long that its sum loses digits.
    if results >= fewest_points:
        return _of_long_rows(type, axes) or (_lines(type, axes, parallelism.part) if parallelism.lines else None)
    return _columns(type, axes, parallelism.piece(work, results)) if columns else _rows(type, axes, parallelism.part)


def _longest(type: ArrayType, axes: Axes) -> int | None:
    """The symbolic axis to cut, if the bounds allow more elements than one sum should add up."""
    symbolic = [a for a in axes if not is_static(type.shape[a])]
    most = dims.bounds(dims.product(type.shape[a] for a in axes))[1]
    if not symbolic or most is None or most <= cost.LONGEST_SUM:
        return None
    return max(symbolic, key=lambda a: dims.bounds(type.shape[a])[1] or 0)


def _of_long_rows(type: ArrayType, axes: Axes) -> _Step | None:
    """Reduce the longest axis, or its parts, if a row is so long that its sum would lose digits."""
    sizes = {a: size for a in axes if isinstance(size := type.shape[a], int)}
    if math.prod(sizes.values()) <= cost.LONG_ROW:
        return None
    longest = max(sizes, key=sizes.__getitem__)
    return _part(sizes[longest], cost.PART, longest, (longest,)) or _Step((longest,))


def _lines(type: ArrayType, axes: Axes, part: int) -> _Step | None:
    """Reduce parts of rows that are too long to be read by lines; None if rows are not whole lines.

    >>> from rune import dtypes
    >>> _lines(ArrayType((512, 6144), dtypes.f32), (1,), 2048)
    _Step(axes=(1,), axis=1, size=2048)
    """
    axis = axes[-1]
    size = type.shape[axis]
    if axes != (type.ndim - 1,) or not isinstance(size, int) or size <= part:
        return None
    sizes = [n for n in range(part, part // 4, -cost.LINE) if size % n == 0]
    return _Step(axes, axis, sizes[0]) if sizes else None


def _rows(type: ArrayType, axes: Axes, part: int) -> _Step | None:
    """Reduce the trailing axes that make up one part."""
    # From the innermost axis outwards, so that a part is contiguous in memory.
    inner = 1
    for number in range(len(axes) - 1, -1, -1):
        axis = axes[number]
        size = cost.estimate(type.shape[axis])
        if inner * size >= part // 4:
            if inner * size <= 4 * part:
                return _Step(axes[number:]) if number else None
            return _part(type.shape[axis], max(1, part // inner), axis, axes[number:])
        inner *= size
    return None


def _columns(type: ArrayType, axes: Axes, elements: int) -> _Step | None:
    """Reduce pieces of the first axis and, with them, all the other axes."""
    axis = axes[0]
    size = cost.estimate(type.shape[axis])
    others = max(1, cost.count(type.shape) // max(1, size))
    return _part(type.shape[axis], max(1, elements // others), axis, axes)


def _part(size: Size, goal: int, axis: int, axes: Axes) -> _Step | None:
    """Split `axis` into parts of about `goal` elements; a divisor of its size if one is near."""
    if goal == 1:
        return _Step(axes[1:]) if len(axes) > 1 else None
    # A single part would not divide the axis.
    if cost.estimate(size) < 2 * goal:
        return None
    return _Step(axes, axis, part_size(size, goal) if isinstance(size, int) else goal)


def part_size(size: int, goal: int) -> int:
    """About `goal`: a divisor of the size if one is near.

    >>> part_size(1000, 99), part_size(65_537, 4_096)
    (100, 4096)
    """
    # A divisor makes every part full, so that no element needs a condition.
    near = [c for c in range(goal // 2 + 1, 2 * goal) if size % c == 0]
    return min(near, key=lambda c: abs(c - goal)) if near else goal
