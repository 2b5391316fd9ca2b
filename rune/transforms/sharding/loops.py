"""Loops whose carries keep their layouts.

    %2, %3 = loop %0, %1 {body: %0 of P('a'), carry of P()}   ->   a carry of P('a')

A carry has one layout in all steps.

It is found in rounds: the body is written for the initial layouts of the carries, and its results
show how these may be split further, until nothing changes; a carry that still leaves the body in
another layout than it entered with is then split less. Values that the loop only reads are
converted outside it, once, and not in every step. Rows are read and written by ordinary operations,
so the axis of the steps must not be split.

Invariant: all devices take the same number of steps, since a condition is an unsplit value.
Cost:      a round writes the body once; there are few, at most twice the mesh axes of a carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rune.core.dead_code import needed_inputs
from rune.core.evaluate import eval_program
from rune.core.interpreter import current, type_of
from rune.core.program import Program
from rune.core.staging import Staged
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.ops.family import zeros_like
from rune.ops.loop import COUNTER, bind_loop, stage_within
from rune.records import dataclass
from rune.transforms.sharding.agreement import agreed, is_exact
from rune.transforms.sharding.block import Block, Layouts, Outside
from rune.transforms.sharding.later_sums import later_sums
from rune.transforms.sharding.reshard import Layout, cut_less, cut_more, spec_of, uncut
from rune.transforms.sharding.scattered_sums import economical_stage


@dataclass(frozen=True, slots=True)
class _State:
    """The carries of a loop, and the arrays that it fills.

    fixed_axes: those that earlier rounds have split less, which are not split further again, so
                that the rounds end
    turned:     the carries that start in the layout of a step's result, and not in their first one
    """

    types: tuple[ArrayType, ...]
    layouts: tuple[Layout, ...]
    fixed_axes: tuple[frozenset[int], ...]
    turned: frozenset[int] = frozenset()

    def next(self, results: Sequence[Layout]) -> _State:
        """The state of the next round, from the layouts of the results; itself at the fixpoint."""
        finer = tuple(map(cut_more, self.layouts, results, self.fixed_axes))
        if finer != self.layouts:
            return replace(self, layouts=finer)
        coarser = tuple(map(cut_less, self.layouts, results))
        if coarser == self.layouts:
            return self
        # Brought to the layout of the steps once, a carry need not be joined in each of them.
        others = [
            n for n, (a, b, c) in enumerate(zip(coarser, self.layouts, results, strict=True)) if a != b and any(c)
        ]
        if turned := set(others) - self.turned:
            layouts = (c if n in turned else a for n, (a, c) in enumerate(zip(self.layouts, results, strict=True)))
            return replace(self, layouts=tuple(layouts), turned=self.turned | turned)
        carries = zip(self.layouts, coarser, self.fixed_axes, strict=True)
        fixed_axes = (f.union(n for n, (x, y) in enumerate(zip(a, b, strict=True)) if x != y) for a, b, f in carries)
        return replace(self, layouts=coarser, fixed_axes=tuple(fixed_axes))


def local_loop(
    outside: Layouts, args: Sequence[Value], consts: int, body: Program, condition: Program | None, count: Size | None
) -> list[Block]:
    """The results of a loop; each device runs its part of the body."""
    const_values, carry = args[:consts], args[consts:]
    # The arrays that a loop fills are inputs of its body, after the number of the step, the consts
    # and the carries, but not operands: they start unsplit.
    arrays = body.input_types[1 + len(args) :]
    state = _State(
        (*map(type_of, carry), *arrays),
        (*(outside.layout(c) for c in carry), *(uncut(t.ndim) for t in arrays)),
        (frozenset(),) * (len(carry) + len(arrays)),
    )
    runs = count if isinstance(count, int) else None
    # Ends: axes are split further, or split less and then fixed; each can happen only so often.
    while True:
        step, results = _local(outside, body, const_values, state.types, state.layouts, runs=runs)
        following = state.next(results)
        if following is state:
            break
        state = following
    staged_condition = None if condition is None else _condition(outside, condition, const_values, state)
    first = [outside.at(c, layout) for c, layout in zip(carry, state.layouts, strict=False)]
    outs = _run(step, staged_condition, count, first)
    return [Block(outside, o, t, layout) for o, t, layout in zip(outs, state.types, state.layouts, strict=True)]


def _run(step: Staged, condition: Staged | None, count: Size | None, first: Sequence[Value]) -> list[Value]:
    """The state after the loop of one device."""
    # Sums over devices of what the steps add are better taken once, after the loop.
    later = later_sums(step.program, step.own_inputs[1 : 1 + len(first)], _are_free(condition, len(first)))
    body = economical_stage(replace(step, program=later.body))
    # A carry with later sums starts from zeros on every device: its first value is added once,
    # after.
    start = [zeros_like(f) if sums else f for f, sums in zip(first, later.sums, strict=True)]
    outs: list[Value] = [*bind_loop(body, condition, count, [], start)]
    return [*later.totals(first, outs[: len(first)]), *outs[len(first) :]]


def _are_free(condition: Staged | None, carries: int) -> list[bool]:
    """Which carries a condition does not read."""
    if condition is None:
        return [True] * carries
    _, is_read = needed_inputs(condition.program, (True,))
    return [not r for r in is_read[len(condition.captured) + 1 :]]


def _condition(outside: Layouts, program: Program, const_values: Sequence[Value], state: _State) -> Staged:
    """The condition on the blocks of the state, on which all devices agree."""
    count = len(program.inputs) - 1 - len(const_values)  # it does not take the arrays
    local_condition, _ = _local(
        outside, program, const_values, state.types[:count], state.layouts[:count], [()], runs=None
    )
    # Integers are the same on all devices, so the devices agree without an exchange.
    if is_exact(program):
        return local_condition

    def run(*values: Value) -> list[Value]:
        (is_going_on,) = eval_program(local_condition.program, [*local_condition.captured, *values])
        return [agreed(is_going_on, outside.region)]

    return stage_within(run, [v.type for v in local_condition.own_inputs], program.name)


def _local(
    outside: Layouts,
    program: Program,
    const_values: Sequence[Value],
    types: Sequence[ArrayType],
    layouts: Sequence[Layout],
    out_layouts: Sequence[Layout] | None = None,
    *,
    runs: int | None,
) -> tuple[Staged, list[Layout]]:
    """A program of (step, consts, values) for blocks of the values, and the layouts of its results.

    out_layouts: the required layouts of the results; None for those of the values
    runs:        how often the loop runs the program; None if that is unknown
    """
    results: list[Layout] = []

    def run(step: Value, *blocks: Value) -> list[Value]:
        inside = outside.within(current(), runs)
        carry = [Block(inside, b, t, layout) for b, t, layout in zip(blocks, types, layouts, strict=True)]
        # Blocks that the body reads keep their origin, so that a conversion is written outside the
        # loop.
        reads = [_from_outside(outside, inside, x) for x in const_values]
        outs = inside.trace(eval_program, program, [step, *reads, *carry])
        results.extend(inside.layout(o) for o in outs)
        return [inside.at(o, layout) for o, layout in zip(outs, out_layouts or layouts, strict=True)]

    block_types = [outside.region.block(t, spec_of(layout)) for t, layout in zip(types, layouts, strict=True)]
    return economical_stage(stage_within(run, [COUNTER, *block_types], program.name)), results


def _from_outside(outside: Layouts, inside: Layouts, value: Value) -> Value:
    """A value that a loop reads, as its body sees it."""
    if not isinstance(value, Block):
        return value
    return value.within(inside, Outside(outside, value))
