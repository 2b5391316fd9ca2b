"""Watching: programs that say themselves where an index left its array, or a NaN was made.

A watched program has two results more, numbers of rank 0 that its kernels write as they go: which
site was the first to fail (0: none), and what was found there. They pass through loops and
branches like any carry, so that this works on every executor, and what was computed and dropped
again is seen too. Results that are not watched are the same numbers as before.

Watched are indices without a mode of their own (`x[i]`, `x.at[i]`, dynamic_slice), as they are
after negative ones were counted from the end; and floats of every operation that computes, where
none of its operands has a NaN. Not done: what the condition of a loop reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.core.evaluate import eval_program
from rune.core.interpreter import running, type_of
from rune.core.primitive import Primitive
from rune.core.program import Program, Var
from rune.core.staging import Stage
from rune.core.types import ArrayType
from rune.dims import Size, product
from rune.errors import Frame, user_frame
from rune.lowering.decompose import decompose
from rune.lowering.loops import branch, loop
from rune.ops.family import fit, reduce_sum, reshape, size_value
from rune.ops.windows import dynamic_slice, dynamic_update_slice

COMPUTING = frozenset(
    "arithmetic transcendental rounding reduction cumulative contraction conversion".split()
)
STATE = (ArrayType((), dtypes.i32), ArrayType((), dtypes.i32))  # site, what was found there


@dataclass(frozen=True, slots=True)
class Site:
    """A place that is watched: the operation, what it works on, its line."""

    operation: str
    type: ArrayType  # of the array that is indexed, or of the result
    axis: int | None  # of an index; None where NaNs are looked for
    frame: Frame | None


@dataclass(frozen=True, slots=True)
class Watched:
    """A program with two results more, and its sites, the first being number 1."""

    program: Program
    sites: tuple[Site, ...]


def watched(program: Program, bounds: bool, nans: bool) -> Watched:
    """The program that watches its indices, its NaNs, or both."""
    sites: list[Site] = []
    whole = decompose(program)
    found = _restaged(whole, [], bounds, nans, sites)
    return Watched(found, tuple(sites))


class _Watch(Stage):
    """Writes what it is given, and looks at it."""

    __slots__ = ("bounds", "found", "nans", "site", "sites")

    def __init__(self, bounds: bool, nans: bool, sites: list[Site]):
        super().__init__(None)
        self.bounds, self.nans, self.sites = bounds, nans, sites
        self.site: Any = np.int32(0)
        self.found: Any = np.int32(0)

    def process(self, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """The equation, or one of watched programs, and what looks at its operands or result."""
        if primitive is loop:
            return self.loop(args, params)
        if primitive is branch:
            return self.branch(args, params)
        out = self.write(primitive, args, params)
        if self.bounds:
            for axis, start, limit in _starts(primitive, args, params):
                self.look_at_index(primitive, args[0], axis, start, limit)
        if self.nans and primitive.family in COMPUTING and _is_float(out):
            self.look_for_nan(primitive, args, out)
        return out

    # --- programs within ----------------------------------------------------------------------

    def loop(self, args: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
        """A loop that carries the state behind its own carries."""
        carries = len(args) - params["consts"]
        body = self.restaged(params["body"], 1 + len(args))
        condition = params["condition"] and _taking_state(params["condition"])
        changed = {**params, "body": body, "condition": condition}
        outs = self.write(loop, [*args, self.site, self.found], changed)
        self.site, self.found = outs[carries : carries + 2]
        return [*outs[:carries], *outs[carries + 2 :]]

    def branch(self, args: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
        """A branch that takes and gives the state last."""
        branches = tuple(self.restaged(b, len(b.inputs)) for b in params["branches"])
        *outs, site, found = self.write(
            branch, [*args, self.site, self.found], {**params, "branches": branches}
        )
        self.site, self.found = site, found
        return outs

    def restaged(self, program: Program, position: int) -> Program:
        """The watched program, the state at this position of its inputs and behind its carries."""
        after = len(program.inputs) - position  # arrays that a loop fills: results too, at the end
        return _restaged(program, [position, after], self.bounds, self.nans, self.sites)

    # --- what is looked at --------------------------------------------------------------------

    def look_at_index(
        self, primitive: Primitive, operand: Any, axis: int, start: Any, limit: Size
    ) -> None:
        """Note an element of `start` that is not in 0...limit."""
        dtype = type_of(start).dtype
        zero = np.zeros((), dtype)
        below = ops.lt(start, zero)
        outside = ops.logical_or(below, ops.gt(start, size_value(limit, dtype)))
        positions = _in_order(type_of(outside).shape)
        first = _first(outside, positions)
        value = _sum_where(ops.eq(positions, first), start)
        self.note(outside, value, Site(primitive.name, type_of(operand), axis, user_frame()))

    def look_for_nan(self, primitive: Primitive, args: Sequence[Any], out: Any) -> None:
        """Note a NaN in a result where no operand has one."""
        is_nan = ops.ne(out, out)
        for arg in args:
            if _is_float(arg):
                clean = ops.eq(_count(ops.ne(arg, arg)), np.int32(0))
                is_nan = ops.logical_and(is_nan, fit(clean, type_of(is_nan).shape))
        first = _first(is_nan, _in_order(type_of(is_nan).shape))
        self.note(is_nan, first, Site(primitive.name, type_of(out), None, user_frame()))

    def note(self, fails: Any, value: Any, site: Site) -> None:
        """Remember the site and the value if this is the first to fail."""
        self.sites.append(site)
        number = np.int32(len(self.sites))
        is_first = ops.logical_and(
            ops.eq(self.site, np.int32(0)), ops.gt(_count(fails), np.int32(0))
        )
        self.site = ops.select(is_first, number, self.site)
        self.found = ops.select(is_first, value, self.found)


def _taking_state(condition: Program) -> Program:
    """The condition of a loop that carries the state: it does not look at it."""
    return replace(condition, inputs=(*condition.inputs, *map(Var, STATE)))


def _restaged(
    program: Program, place: Sequence[int], bounds: bool, nans: bool, sites: list[Site]
) -> Program:
    """The watched form of a decomposed program.

    place: empty, or the position of the state among the inputs, and how many results follow it.
    """
    stage = _Watch(bounds, nans, sites)
    types = list(program.input_types)
    start, after = place or (len(types), 0)
    types[start:start] = STATE if place else ()
    inputs: list[Any] = [stage.new_input(t) for t in types]
    if place:
        stage.site, stage.found = inputs[start : start + 2]
        del inputs[start : start + 2]
    with running(stage):
        outs = list(eval_program(program, inputs))
        end = len(outs) - after
        outs[end:end] = [stage.site, stage.found]
        staged = stage.program(outs, program.name)
    return staged.closed()


def _starts(
    primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]
) -> Iterator[tuple[int, Any, Size]]:
    """(axis, first index, its greatest value) of windows for which no mode was asked."""
    if primitive in (dynamic_slice, dynamic_update_slice):
        operand, rest = type_of(args[0]), len(args) - type_of(args[0]).ndim
        sizes = params["sizes"] if primitive is dynamic_slice else type_of(args[1]).shape
        for axis, start in enumerate(args[rest:]):
            yield axis, start, operand.shape[axis] - sizes[axis]
    elif primitive.family == "indexing" and params.get("mode") == "promise_in_bounds":
        operand, indices = type_of(args[0]), args[1]
        for column, axis in enumerate(params["dims"].start_map):
            limit = operand.shape[axis] - params["slice_sizes"][axis]
            yield axis, _column(indices, column), limit


def _column(indices: Any, number: int) -> Any:
    """One component of index vectors."""
    shape = type_of(indices).shape
    start = tuple(0 for _ in shape[:-1])
    part = ops.slice_(
        indices, start=(*start, number), limit=(*shape[:-1], number + 1), stride=(1,) * len(shape)
    )
    return reshape(part, shape=shape[:-1])


def _is_float(value: Any) -> bool:
    return not isinstance(value, list) and type_of(value).dtype in dtypes.INEXACT


def _in_order(shape: Sequence[Size]) -> Any:
    """The row-major number of every element, i32."""
    count = product(shape)
    return reshape(ops.iota(shape=(count,), axis=0, dtype=dtypes.i32), shape=tuple(shape))


def _axes(value: Any) -> tuple[int, ...]:
    return tuple(range(type_of(value).ndim))


def _count(flags: Any) -> Any:
    """How many flags are set."""
    return reduce_sum(ops.convert(flags, dtype=dtypes.i32), axes=_axes(flags))


def _first(flags: Any, positions: Any) -> Any:
    """The position of the first flag that is set."""
    last = np.int32(np.iinfo(np.int32).max)
    return ops.reduce_min(ops.select(flags, positions, last), axes=_axes(flags))


def _sum_where(flags: Any, values: Any) -> Any:
    chosen = ops.select(flags, values, np.zeros((), type_of(values).dtype))
    return ops.convert(reduce_sum(chosen, axes=_axes(chosen)), dtype=dtypes.i32)
