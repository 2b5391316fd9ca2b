"""Watching: programs that report where an index left its array, or a NaN or infinity arose.

A watched program has two more results, numbers of rank 0 that its kernels compute on the way: the
first site that failed (0: none), and the offending value there. They pass through loops and
branches like any carry, so this works on every executor, and finds values that are computed but not
used. The other results are the same numbers as before.

    while holds(c) { c = body(c) }  ->  go = holds(c); while go { c = body(c); go = holds(c) }

so that a condition is watched as a part of the body.
Indices without a mode are watched (`x[i]`, `x.at[i]`, dynamic_slice), after negative ones have been
counted from the end; and so are float results of every operation that computes, if no operand has a
NaN, or an infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.core.evaluate import eval_program
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.core.program import Program, map_programs
from rune.core.staging import Stage, trace_program
from rune.core.types import ArrayType
from rune.core.values import Params, Value
from rune.dims import Size, product
from rune.errors import Frame, user_frame
from rune.lowering.decompose import decompose
from rune.ops.branch import branch
from rune.ops.family import fit, reduce_sum, reshape, size_value
from rune.ops.loop import LoopParams, loop
from rune.ops.windows import dynamic_slice, dynamic_update_slice
from rune.records import dataclass

COMPUTING = frozenset("arithmetic transcendental rounding reduction cumulative contraction conversion".split())
STATE = (ArrayType((), dtypes.i32), ArrayType((), dtypes.i32))  # site, offending value


@dataclass(frozen=True, slots=True)
class Site:
    """A place that is watched: the operation, its array, and its line."""

    operation: str
    type: ArrayType  # of the array that is indexed, or of the result
    axis: int | None  # of an index; None for a site of a kind of number
    frame: Frame | None
    kind: str = ""  # "NaN", "infinity" or "zero divisor"


@dataclass(frozen=True, slots=True)
class Modes:
    """The things to watch."""

    bounds: bool = False
    nans: bool = False
    infs: bool = False
    divisors: bool = False  # of 0

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of numbers to look for."""
        return ("NaN",) * self.nans + ("infinity",) * self.infs


@dataclass(frozen=True, slots=True)
class Watched:
    """A program with two more results, and its sites, numbered from 1."""

    program: Program
    sites: tuple[Site, ...]


def watched(program: Program, modes: Modes) -> Watched:
    """The program that watches itself in these modes."""
    sites: list[Site] = []
    # Decomposed first, so that every operation inside calls and expansions is watched.
    flat = decompose(program)

    def run(stage: _Watch, inputs: Sequence[Value]) -> list[Value]:
        # Read only here, because the state changes with every operation.
        return [*eval_program(flat, inputs), stage.site, stage.offence]

    watched_program = _staged(modes, sites, flat.input_types, flat.name, run)
    return Watched(watched_program, tuple(sites))


Run = Callable[["_Watch", Sequence[Any]], list[Any]]


class _Watch(Stage):
    """Writes equations, each followed by those that watch it."""

    __slots__ = ("modes", "offence", "site", "sites")

    def __init__(self, modes: Modes, sites: list[Site]):
        super().__init__(None)
        self.modes, self.sites = modes, sites
        self.site: Value = np.int32(0)
        self.offence: Value = np.int32(0)

    def process(self, primitive: Primitive, args: Sequence[Value], params: Params) -> Any:
        """The equation, or one with watched programs, and those that check operands or result."""
        if primitive is loop:
            return self.loop(args, params)
        if primitive is branch:
            return self.branch(args, params)
        out = self.write(primitive, args, params)
        if self.modes.bounds:
            for axis, start, limit in _starts(primitive, args, params):
                self.look_at_index(primitive, args[0], axis, start, limit)
        if self.modes.divisors and primitive in (ops.div, ops.rem):
            self.look_for_zero(primitive, args[1], out)
        if primitive.family in COMPUTING and _is_float(out):
            for kind in self.modes.kinds:
                self.look_for(kind, primitive, args, out)
        return out

    # --- programs within ----------------------------------------------------------------------

    def loop(self, args: Sequence[Value], params: Params) -> list[Value]:
        """A loop with further carries: the outcome of its condition, if it has one, and the state.

        Its steps evaluate the condition of the next step, so that they watch it.
        """
        form = LoopParams(**params)
        consts, body, condition = form.consts, form.body, form.condition
        # Input 0 of a body is the step number.
        carries, first = len(args) - consts, 1 + len(args)
        goes_on = [] if condition is None else self.holds(condition, [np.int32(0), *args])
        more = (*(condition.output_types if condition else ()), *STATE)
        arrays = body.input_types[first:]

        def step(stage: _Watch, inputs: Sequence[Value]) -> list[Value]:
            leading, rows = inputs[:first], inputs[first + len(more) :]
            stage.site, stage.offence = inputs[first + len(more) - 2 : first + len(more)]
            outs = eval_program(body, [*leading, *rows])
            # The condition for the next step is evaluated at the end of this one.
            number = ops.add(leading[0], np.int32(1))
            next_operands = [number, *leading[1 : 1 + consts], *outs[:carries]]
            answer = [] if condition is None else stage.holds(condition, next_operands)
            return [*outs[:carries], *answer, stage.site, stage.offence, *outs[carries:]]

        types = (*body.input_types[:first], *more)
        asking = condition and _plain(types, condition.name, lambda inputs: [inputs[first]])
        body_watched = self.staged((*types, *arrays), body.name, step)
        params = replace(form, body=body_watched, condition=asking).params()
        outs = self.write(loop, [*args, *goes_on, self.site, self.offence], params)
        end = carries + len(more)
        self.site, self.offence = outs[end - 2 : end]
        return [*outs[:carries], *outs[end:]]

    def holds(self, condition: Program, operands: Sequence[Value]) -> Sequence[Value]:
        """Whether a loop goes on, watched."""
        return eval_program(condition, operands[: len(condition.inputs)])

    def branch(self, args: Sequence[Value], params: Params) -> list[Value]:
        """A branch whose last operands and results are the state."""

        def watched_branch(program: Program) -> Program:
            def run(stage: _Watch, inputs: Sequence[Value]) -> list[Value]:
                *operands, stage.site, stage.offence = inputs
                return [*eval_program(program, operands), stage.site, stage.offence]

            return self.staged((*program.input_types, *STATE), program.name, run)

        watched_params = map_programs(params, watched_branch)
        branch_operands = [*args, self.site, self.offence]
        *outs, self.site, self.offence = self.write(branch, branch_operands, watched_params)
        return outs

    def staged(self, types: Sequence[ArrayType], name: str, run: Run) -> Program:
        """An inner program, whose sites are numbered with those of the whole program."""
        return _staged(self.modes, self.sites, types, name, run)

    # --- what is looked at --------------------------------------------------------------------

    def look_at_index(self, primitive: Primitive, operand: Value, axis: int, start: Value, limit: Size) -> None:
        """Record an element of `start` that is not in 0...limit."""
        dtype = type_of(start).dtype
        zero = np.zeros((), dtype)
        below = ops.lt(start, zero)
        # `limit` is the greatest start at which the window still fits.
        outside = ops.logical_or(below, ops.gt(start, size_value(limit, dtype)))
        positions = _in_order(type_of(outside).shape)
        first = _first(outside, positions)
        # A sum over one element rather than a gather, which would be watched in turn.
        value = _sum_where(ops.eq(positions, first), start)
        self.note(outside, value, Site(primitive.name, type_of(operand), axis, user_frame()))

    def look_for_zero(self, primitive: Primitive, divisor: Value, out: Value) -> None:
        """Record a divisor of 0."""
        is_zero = ops.eq(divisor, np.zeros((), type_of(divisor).dtype))
        first = _first(is_zero, _in_order(type_of(is_zero).shape))
        self.note(is_zero, first, Site(primitive.name, type_of(out), None, user_frame(), "zero divisor"))

    def look_for(self, kind: str, primitive: Primitive, args: Sequence[Value], out: Value) -> None:
        """Record such a number in a result, if no operand has one."""
        is_such = self.is_of(kind, out)
        for arg in args:
            if _is_float(arg):
                # Only the operation that produces the number is reported, not its readers.
                clean = ops.eq(_count(self.is_of(kind, arg)), np.int32(0))
                is_such = ops.logical_and(is_such, fit(clean, type_of(is_such).shape))
        first = _first(is_such, _in_order(type_of(is_such).shape))
        site = Site(primitive.name, type_of(out), None, user_frame(), kind)
        self.note(is_such, first, site)

    def is_of(self, kind: str, value: Value) -> Value:
        """Flags of numbers of a kind. A NaN is unequal to itself, as is x - x for infinite x."""
        if kind == "NaN":
            return ops.ne(value, value)
        difference = self.write(ops.sub, [value, value], {})  # the result is never read
        return ops.logical_and(ops.ne(difference, difference), ops.eq(value, value))

    def note(self, fails: Value, value: Value, site: Site) -> None:
        """Record the site and the value if this is the first failure."""
        self.sites.append(site)
        number = np.int32(len(self.sites))
        # Sites count from 1, so 0 means that nothing has failed.
        is_first = ops.logical_and(ops.eq(self.site, np.int32(0)), ops.gt(_count(fails), np.int32(0)))
        self.site = ops.select(is_first, number, self.site)
        self.offence = ops.select(is_first, value, self.offence)


def _staged(modes: Modes, sites: list[Site], types: Sequence[ArrayType], name: str, run: Run) -> Program:
    """The watched program that `run` writes for inputs of these types."""
    stage = _Watch(modes, sites)
    return trace_program(stage, lambda *inputs: run(stage, inputs), types, name).closed()


def _plain(types: Sequence[ArrayType], name: str, run: Callable[[Sequence[Value]], list[Value]]) -> Program:
    """A program that is not watched."""
    return _staged(Modes(), [], types, name, lambda _, inputs: run(inputs))


def _starts(primitive: Primitive, args: Sequence[Value], params: Params) -> Iterator[tuple[int, Value, Size]]:
    """(axis, first index, its greatest value) of windows whose indices have no mode."""
    if primitive in (dynamic_slice, dynamic_update_slice):
        operand, first_start = type_of(args[0]), len(args) - type_of(args[0]).ndim
        sizes = params["sizes"] if primitive is dynamic_slice else type_of(args[1]).shape
        for axis, start in enumerate(args[first_start:]):
            yield axis, start, operand.shape[axis] - sizes[axis]
    elif primitive.family == "indexing" and params.get("mode") == "promise_in_bounds":
        operand, indices = type_of(args[0]), args[1]
        for column, axis in enumerate(params["dims"].start_map):
            limit = operand.shape[axis] - params["slice_sizes"][axis]
            yield axis, _column(indices, column), limit


def _column(indices: Value, number: int) -> Value:
    """One component of index vectors."""
    shape = type_of(indices).shape
    start = tuple(0 for _ in shape[:-1])
    part = ops.slice_(indices, start=(*start, number), limit=(*shape[:-1], number + 1), stride=(1,) * len(shape))
    return reshape(part, shape=shape[:-1])


def _is_float(value: Value) -> bool:
    return not isinstance(value, list) and type_of(value).dtype in dtypes.INEXACT


def _in_order(shape: Sequence[Size]) -> Value:
    """The row-major number of every element, i32."""
    count = product(shape)
    return reshape(ops.iota(shape=(count,), axis=0, dtype=dtypes.i32), shape=tuple(shape))


def _axes(value: Any) -> tuple[int, ...]:
    return tuple(range(type_of(value).ndim))


def _count(flags: Value) -> Value:
    """How many flags are set."""
    return reduce_sum(ops.convert(flags, dtype=dtypes.i32), axes=_axes(flags))


def _first(flags: Value, positions: Value) -> Value:
    """The position of the first flag that is set."""
    # This is the result if no flag is set; `note` then ignores it.
    last = np.int32(np.iinfo(np.int32).max)
    if 0 in type_of(flags).shape:
        return last
    return ops.reduce_min(ops.select(flags, positions, last), axes=_axes(flags))


def _sum_where(flags: Value, values: Value) -> Value:
    values_there = ops.select(flags, values, np.zeros((), type_of(values).dtype))
    return ops.convert(reduce_sum(values_there, axes=_axes(values_there)), dtype=dtypes.i32)
