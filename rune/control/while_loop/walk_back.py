"""The transpose of `while_linear`: a loop over the steps from the last to the first.

To transpose a step, its residuals are recomputed from the carry that it started with. That carry is
recomputed in turn, from the nearest saved one at or before it: the top of the stack, or else a
checkpoint. The loop of `_carry_before` steps forward from there, and pushes carries that it passes
onto the stack, for the steps that are transposed next: all of them if the stack has room, and if
not, one half way, so that the distance to the target halves each time.

                 checkpoint              checkpoint             step number
                     |                       |    push  push  target
    ----------------[c]---------------------[c]---->[s]-->[s]-->[x]
                                                                    <-- next to transpose

docs/reverse-mode-of-while.md explains it in detail.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from rune.array import Array
from rune.control.groups import Groups, T, stage_grouped
from rune.control.loop_bodies import transpose_body
from rune.control.programs import types_of
from rune.control.while_loop.checkpoints import Checkpoints, checkpoint_before, row_at, rows_for, slot, stride, with_row
from rune.control.while_loop.linear_loop import (
    COUNTER,
    ONE,
    ZERO,
    LinearOperands,
    Params,
    below,
    program_sizes,
    type_rule,
)
from rune.control.while_loop.rules import Loop
from rune.core.dead_code import needed_inputs
from rune.core.evaluate import eval_program
from rune.core.lists import nonzero_flags, parts, pick, scatter
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.ops import add, div, eq, gt, le, logical_and, lt, max, min, select, sub
from rune.ops.family import zeros_of
from rune.records import dataclass

# The loops here carry a whole stack. If they are differentiated in turn, each checkpoint contains a
# stack, so there are few checkpoints.
SECOND_ORDER = Checkpoints(8)


@dataclass(frozen=True, slots=True)
class CarryStack(Groups[T]):
    """Carries between checkpoints, saved on the way to a later one.

    depth:      the number of carries on the stack
    positions:  i32[capacity + 1], the steps that start with them, the latest on top
    carries:    an array for each value of the carry, with a row for each position
    """

    depth: T
    positions: T
    carries: list[T]


def _stack_types(carry_types: Sequence[ArrayType], capacity: int) -> CarryStack[ArrayType]:
    return CarryStack(COUNTER, rows_for(COUNTER, capacity), [rows_for(t, capacity) for t in carry_types])


@dataclass(frozen=True, slots=True)
class _WalkState(Groups[T]):
    """The carry of the loop over the steps.

    remaining:  the number of steps still to be transposed
    stack:      None if no residual depends on a carry: then there are no checkpoints either
    cts:        cotangents of the linear carry before the last transposed step, and for the linear
                consts the sums of their cotangents so far
    """

    remaining: T
    stack: CarryStack[T] | None
    cts: list[T]


@dataclass(frozen=True, slots=True)
class _WalkInputs(Groups[T]):
    spacing: T  # the stride of the checkpoints that remain
    step_consts: list[T]
    shared: list[T]
    checkpoints: list[T]
    state: _WalkState[T]


def transpose(
    while_: Primitive, cts: Sequence[Value | None], is_linear: Sequence[bool], *operands: Any, **params: Any
) -> list[Value | None]:
    """Cotangents of the linear operands. A type stands for each linear operand."""
    types = LinearOperands.of(types_of(operands), params)
    linear_step: Program = params["linear_step"]
    counts = len(types.shared) + len(types.linear_consts), len(types.linear_carry)
    residuals = len(linear_step.inputs) - sum(counts)
    # Shared values and residuals are known: the step is linear in its linear consts and carry.
    linear_inputs = (
        *(False,) * len(types.shared),
        *(True,) * (len(types.linear_consts) + len(types.linear_carry)),
        *(False,) * residuals,
    )
    step = transpose_body(linear_step, counts, linear_inputs, nonzero_flags(cts))
    out_types = type_rule(*types_of(operands), **params)
    # A cotangent that is zero after the last step, but not before, starts from an array of zeros.
    last_cts = [zeros_of(t) if ct is None else ct for ct, t, c in zip(cts, out_types, step.carries) if c]
    sums = map(zeros_of, pick(types.linear_consts, step.consts))
    first_cts = _walk(while_, operands, params, step.program, [*last_cts, *sums])
    carry_cts, const_cts = parts(first_cts, sum(step.carries))
    # Linear consts and the linear carry are the last operands.
    operand_cts = [*scatter(const_cts, step.consts), *scatter(carry_cts, step.carries)]
    leading = len(operands) - len(operand_cts)
    return [None] * leading + [ct if linear else None for ct, linear in zip(operand_cts, is_linear[leading:])]


def _walk(
    while_: Primitive, operands: Sequence[Any], params: Params, transposed_step: Program, cts: list[Value]
) -> list[Value]:
    """The cotangents after the transposes of all steps were applied to them, last step first."""
    groups, capacity = LinearOperands.of(operands, params), params["reverse"].count
    counts = params["consts"], params["shared"]
    body = _walk_body(params["step"], while_, transposed_step, counts, capacity)
    stack: CarryStack[Value] | None = None
    if groups.checkpoints:
        types = _stack_types(groups.carry_types, capacity)
        stack = CarryStack(ZERO, zeros_of(types.positions), [*map(zeros_of, types.carries)])
    first_state: _WalkState[Value] = _WalkState(groups.steps, stack, cts)
    # The stride in force at the last step tells which checkpoints were not overwritten.
    spacing = stride(sub(groups.steps, ONE), capacity)
    consts = [spacing, *groups.step_consts, *groups.shared, *groups.checkpoints]
    sizes = program_sizes(operands, params)
    condition = above_zero(tuple(body.input_types[len(consts) :]))
    loop = Loop(condition, body, sizes, sizes, [], consts, first_state.flat(), SECOND_ORDER)
    return first_state.filled(loop.bind(while_)).cts


@functools.lru_cache(maxsize=256)
def above_zero(types: tuple[ArrayType, ...]) -> Program:
    """The condition of a loop that counts down to zero in the first value of its carry."""
    return stage(lambda n, *others: [gt(n, ZERO)], types, "above_zero").program


@per_program
def _walk_body(
    step: Program, while_: Primitive, transposed_step: Program, counts: tuple[int, int], capacity: int
) -> Program:
    """The body that transposes one step.

    step:             step_consts, carry -> next carry, residuals
    transposed_step:  shared, cts, residuals -> cts
    """
    consts, shared_count = counts
    const_types, carry_types = parts(step.input_types, consts)
    # Steps forward need no residuals, and the target step needs only residuals.
    is_carry = tuple(i < len(carry_types) for i in range(len(step.outputs)))
    next_carry_of, _ = needed_inputs(step, is_carry)
    residuals_of, _ = needed_inputs(step, tuple(not c for c in is_carry))

    def run(inputs: _WalkInputs[Value]) -> list[Array]:
        state = inputs.state
        number, stack, carry = sub(state.remaining, ONE), None, []
        if state.stack is not None:
            stack, carry = _carry_before(while_, next_carry_of, number, inputs, state.stack, capacity)
        # If residuals do not depend on the carry, there are no checkpoints, and no stack is needed.
        residuals = eval_program(residuals_of, [*inputs.step_consts, *carry])
        cts = eval_program(transposed_step, [*inputs.shared, *state.cts, *residuals])
        return _WalkState(number, stack, cts).flat()

    shared_types, ct_types, _ = parts(transposed_step.input_types, shared_count, len(transposed_step.outputs))
    stack_types = _stack_types(carry_types, capacity)
    types = _WalkInputs(
        spacing=COUNTER,
        step_consts=const_types,
        shared=shared_types,
        checkpoints=stack_types.carries,  # as many rows of the same types
        state=_WalkState(COUNTER, stack_types if carry_types else None, ct_types),
    )
    return stage_grouped(run, types, f"backward_{transposed_step.name}")


# --- the carry of a step ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _AdvanceState(Groups[T]):
    """The carry of a loop that steps forward to a target.

    next_push:  the next position whose carry goes onto the stack
    """

    position: T
    next_push: T
    stack: CarryStack[T]
    carry: list[T]


@dataclass(frozen=True, slots=True)
class _AdvanceInputs(Groups[T]):
    target: T
    step_consts: list[T]
    state: _AdvanceState[T]


def _carry_before(
    while_: Primitive,
    next_carry_of: Program,
    number: Value,
    inputs: _WalkInputs[Value],
    stack: CarryStack[Value],
    capacity: int,
) -> tuple[CarryStack[Value], list[Value]]:
    """The carry that step `number` started with, and the stack for the steps before it."""
    # With an empty stack `top` is 0: the row that is read there is not selected.
    is_filled, top = gt(stack.depth, ZERO), max(sub(stack.depth, ONE), ZERO)
    checkpoint = checkpoint_before(number, inputs.spacing)
    row = slot(checkpoint, capacity)
    # Carries on the stack are later than the last checkpoint, so its top is nearer.
    position = select(is_filled, row_at(stack.positions, top), checkpoint)
    carry = [
        select(is_filled, row_at(pushed_rows, top), row_at(recorded_rows, row))
        for pushed_rows, recorded_rows in zip(stack.carries, inputs.checkpoints)
    ]
    next_push = _next_push(position, number, stack.depth, capacity)
    first_state = _AdvanceState(position, next_push, stack, carry)
    body, consts = _advance(next_carry_of, capacity), [number, *inputs.step_consts]
    condition = below(tuple(body.input_types[len(consts) :]))
    # Inside the body of the walk, sizes already have the names of its program.
    loop = Loop(condition, body, {}, {}, [number], consts, first_state.flat(), SECOND_ORDER)
    end = first_state.filled(loop.bind(while_))
    return _popped(end.stack, number), end.carry


def _popped(stack: CarryStack[Value], number: Value) -> CarryStack[Value]:
    """The stack without the carry of step `number`, if on top: no earlier step needs it."""
    top_position = row_at(stack.positions, max(sub(stack.depth, ONE), ZERO))
    is_top = eq(top_position, number)
    pops = logical_and(gt(stack.depth, ZERO), is_top)
    depth = select(pops, sub(stack.depth, ONE), stack.depth)
    return CarryStack(depth, stack.positions, stack.carries)


def _next_push(position: Value, target: Value, depth: Value, capacity: int) -> Array:
    """The position of the next carry to push: one step further if all fit, else half way."""
    gap, free = sub(target, position), sub(np.int32(capacity), depth)
    # All `gap - 1` carries before the target fit if there are as many free rows.
    half = max(div(gap, np.int32(2)), ONE)
    return add(position, select(le(gap, add(free, ONE)), ONE, half))


@per_program
def _advance(next_carry_of: Program, capacity: int) -> Program:
    """The body that takes one step forward, and pushes the new carry if `next_push` is reached."""
    count = len(next_carry_of.outputs)

    def run(inputs: _AdvanceInputs[Value]) -> list[Array]:
        state, stack = inputs.state, inputs.state.stack
        carry = eval_program(next_carry_of, [*inputs.step_consts, *state.carry])
        position = add(state.position, ONE)
        # A full stack pushes nothing, but the number of the row must still be in range.
        row = min(stack.depth, np.int32(capacity - 1))
        # The carry of the target is the result, and is not pushed.
        has_room = logical_and(lt(stack.depth, np.int32(capacity)), lt(position, inputs.target))
        pushes = logical_and(eq(position, state.next_push), has_room)
        positions = with_row(stack.positions, row, position, pushes)
        carries = [with_row(rows, row, x, pushes) for rows, x in zip(stack.carries, carry)]
        depth = select(pushes, add(stack.depth, ONE), stack.depth)
        later_push = _next_push(position, inputs.target, depth, capacity)
        next_push = select(pushes, later_push, state.next_push)
        stack = CarryStack(depth, positions, carries)
        return _AdvanceState(position, next_push, stack, carry).flat()

    const_types, carry_types = parts(next_carry_of.input_types, len(next_carry_of.inputs) - count)
    stack_types = _stack_types(carry_types, capacity)
    state_types = _AdvanceState(COUNTER, COUNTER, stack_types, carry_types)
    types = _AdvanceInputs(COUNTER, const_types, state_types)
    return stage_grouped(run, types, f"advance_{next_carry_of.name}")
