"""`while_linear`: the linear part of a loop that has run, so its number of steps is known.

    outs = while_linear steps step_consts shared checkpoints linear_consts linear_carry
           {step=, linear_step=, consts=, shared=, checkpoints=, linear_consts=, reverse=}

    step:         step_consts, carry -> next carry, residuals of this step
    linear_step:  shared, linear_consts, linear_carry, residuals -> next linear_carry

`step` repeats a step of the loop. Run forward, `while_linear` is a loop that takes both steps
together. Its transpose is in walk_back.py.

Rules that bind a primitive take it as an argument, `while_` or `while_linear`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rune import dtypes
from rune.array import Array
from rune.control.groups import Groups, T, stage_grouped
from rune.control.loop_bodies import batch_body, prune_body
from rune.control.programs import closed, refuse, sizes_for, types_of
from rune.control.while_loop.checkpoints import Checkpoints, row_at
from rune.control.while_loop.rules import Loop
from rune.core.axes import own_axis
from rune.core.dead_code import narrowed
from rune.core.evaluate import eval_program
from rune.core.higher import Calls, Runs
from rune.core.interpreter import use
from rune.core.lists import Flags, parts
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program
from rune.core.sizes import Sizes, type_with_sizes
from rune.core.staging import stage
from rune.core.types import ArrayType, Axes, same_layout
from rune.core.values import Params, Value
from rune.core.varying import Variation
from rune.dims import Size
from rune.ops import add, lt
from rune.ops.movement import move_axis, repeat_lane
from rune.records import dataclass
from rune.transforms.batching.batch import batch_flat
from rune.transforms.derivatives.jvp import jvp_flat
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.programs.size_witnesses import own_size
from rune.transforms.programs.variation import axes_of, loop_of

COUNTER = ArrayType((), dtypes.i32)
ONE, ZERO = np.int32(1), np.int32(0)


@dataclass(frozen=True, slots=True)
class LinearOperands(Groups[T]):
    """The operands of `while_linear`, or a flag or type for each of them, by use.

    steps:          the number of steps that the loop took
    step_consts:    values that `step` reads in every step
    shared:         residuals that no step changes
    checkpoints:    arrays of carries that the loop recorded; row 0 is the first carry
    linear_consts:  values that `linear_step` reads in every step and is linear in
    linear_carry:   carries that `linear_step` is linear in
    """

    steps: T
    step_consts: list[T]
    shared: list[T]
    checkpoints: list[T]
    linear_consts: list[T]
    linear_carry: list[T]

    @staticmethod
    def of(values: Sequence[T], params: Params) -> LinearOperands[T]:
        """The operands of an equation with these parameters."""
        counts = [params[n] for n in ("consts", "shared", "checkpoints", "linear_consts")]
        (steps,), *groups = parts(values, 1, *counts)
        return LinearOperands(steps, *groups)

    @property
    def counts(self) -> dict[str, int]:
        """The parameters of an equation that say how many operands each use has."""
        return {
            "consts": len(self.step_consts),
            "shared": len(self.shared),
            "checkpoints": len(self.checkpoints),
            "linear_consts": len(self.linear_consts),
        }

    @property
    def carry_types(self) -> list[ArrayType]:
        """The types of the carries, which are rows of the checkpoints."""
        return [t.with_shape(t.shape[1:]) for t in types_of(self.checkpoints)]


@dataclass(frozen=True, slots=True)
class LinearLoop:
    """A `while_linear` about to be bound: its programs, their sizes, and its operands."""

    step: Program
    linear_step: Program
    sizes: Sizes
    operands: LinearOperands[Value]
    reverse: Checkpoints

    def equation(self) -> tuple[list[Value], Params]:
        """The operands and parameters of its equation."""
        # Each program may need leading inputs of its own: arrays it closes over, and sizes.
        step, step_leading = closed(self.step, self.sizes)
        linear_step, linear_leading = closed(self.linear_step, self.sizes)
        operands = replace(
            self.operands,
            step_consts=[*step_leading, *self.operands.step_consts],
            shared=[*linear_leading, *self.operands.shared],
        )
        params = {"step": step, "linear_step": linear_step, **operands.counts, "reverse": self.reverse}
        return operands.flat(), params


def program_sizes(operands: Sequence[object], params: Params) -> Sizes:
    """The values of both programs' sizes; a name means the same size in both."""
    types = LinearOperands.of(types_of(operands), params)
    step: Program = params["step"]
    carry_types = types.carry_types
    sizes = sizes_for("while_linear", step, [*types.step_consts, *carry_types])
    # Residuals are results of `step` and inputs of `linear_step`, which may read sizes from them.
    residuals = [type_with_sizes(t, sizes) for t in step.output_types[len(carry_types) :]]
    linear_types = [*types.shared, *types.linear_consts, *types.linear_carry, *residuals]
    return {**sizes, **sizes_for("while_linear", params["linear_step"], linear_types)}


def calls(*args: Any, step: Program, linear_step: Program, **counts: object) -> tuple[Calls, ...]:
    """`step` reads a row of each array of checkpoints, `linear_step` the residuals of `step`."""
    groups = LinearOperands.of(args, counts)
    carry = tuple(None for _ in groups.checkpoints)
    linear_operands = (*groups.shared, *groups.linear_consts, *groups.linear_carry)
    # Neither a row of checkpoints nor a residual is an operand of the equation.
    residuals = tuple(None for _ in step.outputs[len(carry) :])
    return (
        Calls(step, (*groups.step_consts, *carry), Runs.LOOP),
        Calls(linear_step, (*linear_operands, *residuals), Runs.LOOP),
    )


def type_rule(*types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
    """The types of the linear carry."""
    sizes, linear_step = program_sizes(types, params), params["linear_step"]
    out_types = tuple(type_with_sizes(t, sizes) for t in linear_step.output_types)
    carry_types = LinearOperands.of(types, params).linear_carry
    if len(out_types) != len(carry_types) or not all(map(same_layout, out_types, carry_types)):
        refuse("while_linear", linear_step, types)
    return out_types


def vary(axes: Sequence[Axes], params: Params) -> Variation:
    """The linear carry varies as its residuals do, and as the number of steps does.

    So if devices take different numbers of steps, cotangents are summed after the loop.
    """
    operands = LinearOperands.of(axes, params)
    step = loop_of(params["step"], operands.step_consts, operands.checkpoints)
    residuals = axes_of(step.outputs[len(operands.checkpoints) :])
    consts, carry = ([a | operands.steps for a in group] for group in (operands.linear_consts, operands.linear_carry))
    linear_step = loop_of(params["linear_step"], (*operands.shared, *consts), carry, residuals)
    return {**params, "step": step, "linear_step": linear_step}, axes_of(linear_step.outputs)


# --- forward ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ForwardState(Groups[T]):
    """The carry of the loop that takes both steps together."""

    number: T
    carry: list[T]
    linear_carry: list[T]


@dataclass(frozen=True, slots=True)
class _ForwardInputs(Groups[T]):
    step_consts: list[T]
    shared: list[T]
    linear_consts: list[T]
    state: _ForwardState[T]


def expand(while_: Primitive, *operands: Value, **params: Any) -> list[Value]:
    """A loop that takes the steps again together with the linear steps."""
    groups = LinearOperands.of(operands, params)
    # Row 0 is always the first carry: position 0 is a multiple of every stride.
    first_carry: list[Value] = [row_at(rows, ZERO) for rows in groups.checkpoints]
    start: _ForwardState[Value] = _ForwardState(ZERO, first_carry, groups.linear_carry)
    counts = params["consts"], params["shared"], params["linear_consts"]
    body = _forward(params["step"], params["linear_step"], counts)
    consts = [*groups.step_consts, *groups.shared, *groups.linear_consts]
    # The loop has run: it takes the same number of steps again, and needs no condition of the user.
    condition = below(tuple(body.input_types[len(consts) :]))
    sizes = program_sizes(operands, params)
    loop = Loop(condition, body, sizes, sizes, [groups.steps], consts, start.flat(), params["reverse"])
    return start.filled(loop.bind(while_)).linear_carry


@functools.lru_cache(maxsize=256)
def below(types: tuple[ArrayType, ...]) -> Program:
    """The condition of a loop that counts up to a limit in the first value of its carry."""
    return stage(lambda limit, n, *others: [lt(n, limit)], [COUNTER, *types], "below").program


@per_program
def _forward(step: Program, linear: Program, counts: tuple[int, int, int]) -> Program:
    """The body that takes one step of the loop, and then the linear step with its residuals."""
    consts, shared_count, linear_consts = counts
    const_types, carry_types = parts(step.input_types, consts)
    shared_types, linear_const_types, linear_carry_types, _ = parts(
        linear.input_types, shared_count, linear_consts, len(linear.outputs)
    )

    def run(inputs: _ForwardInputs[Value]) -> list[Array]:
        state = inputs.state
        outs = eval_program(step, [*inputs.step_consts, *state.carry])
        next_carry, residuals = parts(outs, len(carry_types))
        linear_args = [*inputs.shared, *inputs.linear_consts, *state.linear_carry, *residuals]
        next_linear_carry = eval_program(linear, linear_args)
        return _ForwardState(add(state.number, ONE), next_carry, next_linear_carry).flat()

    state_types = _ForwardState(COUNTER, carry_types, linear_carry_types)
    types = _ForwardInputs(const_types, shared_types, linear_const_types, state_types)
    return stage_grouped(run, types, f"forward_{linear.name}")


# --- the other rules --------------------------------------------------------------------------


def jvp(
    while_: Primitive, primals: Sequence[Value], tangents: Sequence[Value | None], params: Params
) -> tuple[list[Value], list[Value]]:
    """The tangents of the forward loop."""
    # The forward loop takes the steps again, so tangents of the first carry reach all residuals.
    return jvp_flat(lambda *xs: expand(while_, *xs, **params), primals, tangents)


def partial(
    while_: Primitive,
    while_linear: Primitive,
    interpreter: Partial,
    args: Sequence[Value],
    unknown: Sequence[bool],
    params: Params,
) -> list[Value]:
    """Written down if only the linear operands are unknown, else expanded."""
    flags = LinearOperands.of(unknown, params)
    # A product of an unknown residual and an unknown carry is not linear: the forward loop, whose
    # own rule splits it, takes the place of the equation.
    if not any([flags.steps, *flags.step_consts, *flags.shared, *flags.checkpoints]):
        return interpreter.write(while_linear, args, params)
    with use(interpreter):
        return expand(while_, *args, **params)


def batch(
    while_: Primitive, while_linear: Primitive, batched: Sequence[bool], size: Size, *args: Value, **params: Any
) -> tuple[Sequence[Value], Sequence[bool]]:
    """The same on all lanes; the forward loop, if lanes differ in their numbers of steps."""
    operands, lanes = LinearOperands.of(args, params), LinearOperands.of(batched, params)
    if lanes.steps:  # one walk back cannot start at a different last step in every lane
        forward = functools.partial(expand, while_, **params)
        return batch_flat(forward, size, args, batched, own_axis())
    program_size = own_size(size, params["step"], params["linear_step"])
    step, carries, residuals = batch_body(
        params["step"],
        (len(operands.step_consts), len(operands.checkpoints)),
        (*lanes.step_consts, *lanes.checkpoints),
        program_size,
    )
    consts = len(operands.shared) + len(operands.linear_consts)
    linear_step, linear_carries, _ = batch_body(
        params["linear_step"],
        (consts, len(operands.linear_carry)),
        (*lanes.shared, *lanes.linear_consts, *lanes.linear_carry, *residuals),
        program_size,
    )
    lane_operands = replace(
        operands,
        checkpoints=[
            _lanes_in_rows(rows, size, is_batched) if c else rows
            for rows, is_batched, c in zip(operands.checkpoints, lanes.checkpoints, carries)
        ],
        linear_carry=[
            repeat_lane(x, size) if c and not is_batched else x
            for x, is_batched, c in zip(operands.linear_carry, lanes.linear_carry, linear_carries)
        ],
    )
    loop = LinearLoop(step, linear_step, {}, lane_operands, params["reverse"])
    lane_args, lane_params = loop.equation()
    return while_linear(*lane_args, **lane_params), linear_carries


def _lanes_in_rows(rows: Value, size: Size, is_batched: bool) -> Array:
    """Rows of carries that have lanes: the axis of lanes follows that of the rows."""
    return move_axis(rows if is_batched else repeat_lane(rows, size), 0, 1)


@dataclass(frozen=True, slots=True)
class _Pruned:
    """The programs of fewer linear carries, and flags of the operands that they need."""

    step: Program
    linear_step: Program
    needed_operands: LinearOperands[bool]


@per_program
def _pruned(step: Program, linear: Program, counts: tuple[int, int, int, int], used_outputs: Flags) -> _Pruned:
    consts, shared_count, checkpoints, linear_consts = counts
    linear_counts = shared_count + linear_consts, len(linear.outputs)
    small_linear, linear_inputs, carries = prune_body(linear, linear_counts, used_outputs)
    need_shared, need_linear_consts, _, residuals = parts(
        linear_inputs, shared_count, linear_consts, len(linear.outputs)
    )
    # The step needs to yield only the residuals that are still read.
    small_step, step_inputs, _ = prune_body(step, (consts, checkpoints), (*(False,) * checkpoints, *residuals))
    need_step_consts, need_checkpoints = parts(step_inputs, consts)
    needed_operands: LinearOperands[bool] = LinearOperands(
        True, need_step_consts, need_shared, need_checkpoints, need_linear_consts, list(carries)
    )
    return _Pruned(small_step, small_linear, needed_operands)


def dead_code(used_results: Sequence[bool], equation: Equation) -> Equation:
    """The equation with only those linear carries that used results need."""
    params = equation.params
    counts = LinearOperands.of(equation.operands, params).counts
    pruned_loop = _pruned(params["step"], params["linear_step"], tuple(counts.values()), tuple(used_results))
    needed_operands = pruned_loop.needed_operands
    return narrowed(
        equation,
        needed_operands.flat(),
        needed_operands.linear_carry,
        step=pruned_loop.step,
        linear_step=pruned_loop.linear_step,
        consts=sum(needed_operands.step_consts),
        shared=sum(needed_operands.shared),
        checkpoints=sum(needed_operands.checkpoints),
        linear_consts=sum(needed_operands.linear_consts),
    )
