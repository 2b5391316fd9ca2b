"""Scan in parts where one scan would leave most threads of a device idle.

Before   %1: f32[1000000] = cumsum %0 {axis=0}
After    %1: f32[31250,32] = split_axis %0, 0.0 {axis=0, size=32}     (a view)
         %2: f32[31250,32] = cumsum %1 {axis=1}                       one thread for each part
         %3: f32[31250] = pad (reshape (slice %2))                    (views) totals, one part later
         %4: f32[31250] = cumsum %3 {axis=0}                          again in parts
         %5: f32[1000000] = join_axis (add (broadcast %4) %2)         fused with its readers

The parts depend only on sizes, so the result is the same on every run. Half types are summed in f32
throughout.

Invariant: every scan that stays is short, or is one of enough rows.
Cost: O(n) work in O(log n) kernels; linear in the number of equations.
Source: reduce, then scan, then distribute: Blelloch, "Prefix sums and their applications", 1990.
"""

from __future__ import annotations

import numpy as np

from rune import dims, dtypes, ops
from rune.core.lower import Cumulative, Source, View
from rune.core.primitive import Primitive
from rune.core.program import Atom, Equation, Literal, Program, replace_equations
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.equations import apply, cast, identity, in_place_of
from rune.lowering.kernelize.group_scans import THREADS, TILE, scan_by_groups
from rune.lowering.kernelize.two_step import split_axis
from rune.ops.family import view_of, wide
from rune.records import dataclass

REDUCE = {"add": ops.reduce_sum, "mul": ops.reduce_prod, "max": ops.reduce_max, "min": ops.reduce_min}
ROUNDS = 4  # tiles that one group scans one after another, as that saves two kernels
_LOOPS = frozenset({"pow", "rem"})  # operations that may be loops (kernel/rounds.py)
COMBINE = {"add": ops.add, "mul": ops.mul, "max": ops.max, "min": ops.min}


def _join_type(x: ArrayType, *, axis: int, size: Size) -> ArrayType:
    return x.with_shape((*x.shape[:axis], size, *x.shape[axis + 2 :]))


def _join_reference(x: np.ndarray, *, axis: int, size: int) -> Value:
    array = x.reshape(*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :])
    return array[(slice(None),) * axis + (slice(0, size),)]


def _join_view(indices: tuple, x: ArrayType, *, axis: int, size: Size) -> Source:
    part = x.shape[axis + 1]
    at = indices[axis]
    return view_of((*indices[:axis], at // part, at % part, *indices[axis + 1 :]))


join_axis = Primitive("join_axis", "movement", _join_type, _join_reference, lower=View(_join_view))


def split_scans(program: Program, target: Target) -> Program:
    """The program with long scans of few rows in parts, for a device with threads."""
    # Without threads a scan is a loop of a core, which parts would only make longer.
    if target.threads_per_workgroup == 1:
        return program
    by_groups = not target.is_processor and target.threads_per_workgroup >= THREADS
    # A long row of operands that are loops themselves may have more rounds than the driver allows.
    is_straight = not any(e.primitive.name in _LOOPS for e in program.equations)
    rows = cost.SCAN_ROWS if target.has_lines and is_straight else cost.SCAN_POINTS
    points, rows = (count * target.cores for count in (cost.SCAN_POINTS, rows))
    limits = _Limits(points, rows, target.loop_rounds, by_groups, target.has_lines)
    return replace_equations(program, lambda e: _split(e, limits))


@dataclass(frozen=True, slots=True)
class _Limits:
    """How many scans side by side keep the device busy, and how many rounds its driver allows.

    rows:      how many are enough if each is along a row
    by_groups: whether the threads of a group scan together
    reduces_first: whether parts are added up before they are scanned, since rows are read by lines
                   (decision 0105) and a second write of every element costs more than that
    """

    points: int
    rows: int
    rounds: int | None
    by_groups: bool
    reduces_first: bool = False


def _split(equation: Equation, limits: _Limits) -> list[Equation]:
    """The equations in place of a scan; an empty list if it stays."""
    lower = equation.primitive.lower
    if not isinstance(lower, Cumulative):
        return []
    (x,), axis = equation.operands, equation.params["axis"]
    if not _is_long(x.type, axis, limits):
        return []
    equations: list[Equation] = []
    dtype = x.type.dtype
    acc = wide(dtype) if lower.combine in ("add", "mul") else dtype
    x = cast(equations, x, acc)
    scan_function = _by_groups if limits.by_groups else _scanned
    y = scan_function(equation, x, axis, limits, equations)
    cast(equations, y, dtype)
    return in_place_of(equation, equations)


def _is_long(type: ArrayType, axis: int, limits: _Limits) -> bool:
    # A guess decides what pays, but only a bound can promise the driver's limit.
    size, most = cost.estimate(type.shape[axis]), dims.bounds(type.shape[axis])[1]
    if limits.rounds is not None and most is not None and most >= limits.rounds:
        return True
    # The other rows are scans of their own, which keep the device busy.
    enough = limits.rows if axis == type.ndim - 1 else limits.points
    return size >= cost.LONG_SCAN and cost.count(type.shape) // size < enough


def _scanned(equation: Equation, x: Atom, axis: int, limits: _Limits, equations: list[Equation]) -> Atom:
    """`x` scanned along `axis`, as the equation scans its operand."""
    primitive, reverse = equation.primitive, equation.params["reverse"]
    if not _is_long(x.type, axis, limits):
        return apply(equations, primitive, x, axis=axis, reverse=reverse)
    assert isinstance(primitive.lower, Cumulative)
    neutral = identity(primitive.lower.combine, x.type)
    is_row = axis == x.type.ndim - 1
    if limits.reduces_first and is_row and cost.count(x.type.shape) >= cost.LONG_SUMMED_SCAN:
        return _summed_first(equation, x, axis, limits, equations)
    parts = apply(equations, split_axis, x, neutral, axis=axis, size=cost.SCAN_PART)
    inner = apply(equations, primitive, parts, axis=axis + 1, reverse=reverse)
    before = _before(equation, _end(inner, axis + 1, reverse, equations), axis, limits, equations)
    ndim = before.type.ndim
    other_axes = tuple(i for i in range(ndim + 1) if i != axis + 1)
    spread = apply(equations, ops.broadcast, before, shape=inner.type.shape, axes=other_axes)
    combine = COMBINE[primitive.lower.combine]
    # The earlier part comes first, as in a scan from one end to the other.
    both = apply(equations, combine, spread, inner)
    return apply(equations, join_axis, both, axis=axis, size=x.type.shape[axis])


def _before(equation: Equation, totals: Atom, axis: int, limits: _Limits, equations: list[Equation]) -> Atom:
    """For each part, the total of the parts before it."""
    lower, reverse, ndim = equation.primitive.lower, equation.params["reverse"], totals.type.ndim
    assert isinstance(lower, Cumulative)
    shift = tuple((-1 if reverse else 1) if i == axis else 0 for i in range(ndim))
    back = tuple(-s for s in shift)
    neutral = identity(lower.combine, totals.type)
    # Shifted before they are scanned, so that element p is the total of the parts before part p.
    others = apply(equations, ops.pad, totals, neutral, low=shift, high=back, interior=(0,) * ndim)
    return _scanned(equation, others, axis, limits, equations)


def _summed_first(equation: Equation, x: Atom, axis: int, limits: _Limits, equations: list[Equation]) -> Atom:
    """`x` scanned in parts, each of which begins with the total of those before it."""
    lower, reverse = equation.primitive.lower, equation.params["reverse"]
    assert isinstance(lower, Cumulative)
    parts = apply(equations, split_axis, x, identity(lower.combine, x.type), axis=axis, size=cost.SUMMED_PART)
    totals = apply(equations, REDUCE[lower.combine], parts, axes=(axis + 1,))
    before = _before(equation, totals, axis, limits, equations)
    ends = _end(parts, axis + 1, not reverse, equations)
    # Computed for each part, so that the scan of a part only selects its first element.
    firsts = apply(equations, COMBINE[lower.combine], before, ends)
    other_axes = tuple(i for i in range(parts.type.ndim) if i != axis + 1)
    spread = apply(equations, ops.broadcast, firsts, shape=parts.type.shape, axes=other_axes)
    place = apply(equations, ops.iota, shape=parts.type.shape, axis=axis + 1, dtype=dtypes.i32)
    at = Literal(np.asarray(cost.SUMMED_PART - 1 if reverse else 0, np.int32), ArrayType((), dtypes.i32))
    is_first = apply(equations, ops.eq, place, at)
    begun = apply(equations, ops.select, is_first, spread, parts)
    inner = apply(equations, equation.primitive, begun, axis=axis + 1, reverse=reverse)
    return apply(equations, join_axis, inner, axis=axis, size=x.type.shape[axis])


def _by_groups(equation: Equation, x: Atom, axis: int, limits: _Limits, equations: list[Equation]) -> Atom:
    """`x` scanned in three kernels, or in one if it is not much longer than a tile."""
    lower, reverse = equation.primitive.lower, equation.params["reverse"]
    assert isinstance(lower, Cumulative)
    how = {"axis": axis, "combine": lower.combine, "reverse": reverse}
    most = dims.bounds(x.type.shape[axis])[1]
    if most is not None and most <= ROUNDS * TILE:
        return apply(equations, scan_by_groups, x, **how)
    # Tiles are counted from the end at which the scan begins.
    forward = apply(equations, ops.reverse, x, axes=(axis,)) if reverse else x
    parts = apply(equations, split_axis, forward, identity(lower.combine, x.type), axis=axis, size=TILE)
    totals = apply(equations, REDUCE[lower.combine], parts, axes=(axis + 1,))
    before = apply(equations, scan_by_groups, totals, **{**how, "reverse": False})
    return apply(equations, scan_by_groups, x, before, **how)


def _end(x: Atom, axis: int, is_first: bool, equations: list[Equation]) -> Atom:
    """The first or the last elements of x along an axis, that axis removed."""
    shape = x.type.shape
    at = 0 if is_first else shape[axis] - 1
    start = tuple(at if i == axis else 0 for i in range(len(shape)))
    limit = tuple(at + 1 if i == axis else d for i, d in enumerate(shape))
    ends = apply(equations, ops.slice_, x, start=start, limit=limit, stride=(1,) * len(shape))
    remaining = tuple(d for i, d in enumerate(shape) if i != axis)
    return apply(equations, ops.reshape, ends, shape=remaining)
