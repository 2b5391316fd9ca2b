"""Rules of `while`: types, meaning, tangents, lanes, unused results. Reverse mode: linearize.py.

    outs = while condition_consts body_consts carry
           {condition=, body=, condition_consts=, body_consts=, reverse=}

The condition reads primal values only, so the loop of a derivative takes the same number of steps.

If lanes differ in their number of steps, the loop goes on until all have finished, and a finished
lane keeps its carry. The body then gets that lane's first carry, on which it has run before (a lane
that takes no step at all borrows the carry of another: idle_lanes.py).

Rules that bind the primitive take it as their first argument, `while_`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rune import dtypes
from rune.array import Array
from rune.control.groups import Groups, T, stage_grouped
from rune.control.idle_lanes import borrowed, constant, select_lanes
from rune.control.loop_bodies import batch_body, jvp_body, prune_body
from rune.control.programs import closed, refuse, sizes_for, types_of, with_inputs
from rune.control.while_loop.checkpoints import Policy
from rune.core.axes import per_program_and_lanes
from rune.core.dead_code import narrowed, needed_inputs, with_inputs_picked
from rune.core.evaluate import eval_program
from rune.core.higher import Calls, Runs
from rune.core.lists import Flags, nonzero_flags, parts, pick, scatter
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program
from rune.core.sizes import Sizes, type_with_sizes
from rune.core.staging import stage
from rune.core.types import NONE, ArrayType, Axes, same_layout
from rune.core.values import Params, Value
from rune.core.varying import Variation
from rune.dims import Size
from rune.ops import reduce_or
from rune.ops.family import zeros_like
from rune.ops.movement import repeat_lane
from rune.records import dataclass
from rune.transforms.batching.batch import batch_program
from rune.transforms.callback import refuse_io
from rune.transforms.derivatives.series import Rows, Taylor, flat_rows, moving_rows, rows_of, series_program, widened
from rune.transforms.programs.size_witnesses import own_size
from rune.transforms.programs.variation import axes_of, loop_of, typed

TRUTH = ArrayType((), dtypes.bool_)


@dataclass(frozen=True, slots=True)
class LoopOperands(Groups[T]):
    """The operands of `while`, or a flag for each of them, by use."""

    condition_consts: list[T]
    body_consts: list[T]
    carry: list[T]

    @staticmethod
    def of(values: Sequence[T], params: Params) -> LoopOperands[T]:
        """The operands of an equation with these parameters."""
        return LoopOperands(*parts(values, params["condition_consts"], params["body_consts"]))


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop about to be bound: its programs, the values of their sizes, and its operands."""

    condition: Program
    body: Program
    condition_sizes: Sizes
    body_sizes: Sizes
    condition_consts: Sequence[Any]
    body_consts: Sequence[Any]
    carry: Sequence[Any]
    reverse: Policy

    def bind(self, while_: Primitive) -> list[Value]:
        """The last carry."""
        # Arrays that a program closes over, and sizes that it needs, become consts of its own.
        condition, leading_condition_consts = closed(self.condition, self.condition_sizes)
        body, leading_body_consts = closed(self.body, self.body_sizes)
        condition_consts = [*leading_condition_consts, *self.condition_consts]
        body_consts = [*leading_body_consts, *self.body_consts]
        return while_(
            *condition_consts,
            *body_consts,
            *self.carry,
            condition=condition,
            body=body,
            condition_consts=len(condition_consts),
            body_consts=len(body_consts),
            reverse=self.reverse,
        )

    @property
    def counts(self) -> tuple[int, int, int]:
        """The numbers of the condition's consts, of the body's consts, and of carries."""
        return len(self.condition_consts), len(self.body_consts), len(self.carry)


def unpacked(args: Sequence[Any], params: Params) -> Loop:
    """The loop of an equation, without the values of its sizes."""
    operands = LoopOperands.of(args, params)
    return Loop(
        params["condition"],
        params["body"],
        {},
        {},
        operands.condition_consts,
        operands.body_consts,
        operands.carry,
        params["reverse"],
    )


def sized(loop: Loop) -> Loop:
    """The loop with the sizes read from its operands; a type may stand for an operand."""
    carry_types = types_of(loop.carry)
    condition_types = [*types_of(loop.condition_consts), *carry_types]
    return replace(
        loop,
        condition_sizes=sizes_for("while", loop.condition, condition_types),
        body_sizes=sizes_for("while", loop.body, [*types_of(loop.body_consts), *carry_types]),
    )


def type_rule(*types: ArrayType, **params: object) -> tuple[ArrayType, ...]:
    """The types of the carry, as the body yields it."""
    loop = sized(unpacked(types, params))
    out_types = tuple(type_with_sizes(t, loop.body_sizes) for t in loop.body.output_types)
    # In the body of a shard_map the condition may vary along axes of the mesh.
    if [t.along(NONE) for t in loop.condition.output_types] != [TRUTH]:
        refuse("while", loop.condition, types)
    if len(out_types) != len(loop.carry) or not all(map(same_layout, out_types, loop.carry)):
        refuse("while", loop.body, types)
    return out_types


def calls(*args: object, **params: object) -> tuple[Calls, ...]:
    """Each program takes its own consts, and the carry."""
    loop = unpacked(args, params)
    return (
        Calls(loop.condition, (*loop.condition_consts, *loop.carry), Runs.LOOP),
        Calls(loop.body, (*loop.body_consts, *loop.carry), Runs.LOOP),
    )


def vary(axes: Sequence[Axes], params: Params) -> Variation:
    """The carry varies as its first value, as the body's results, and as the number of steps do."""
    operands = LoopOperands.of(axes, params)
    carry = tuple(operands.carry)
    # The number of steps varies as the condition does, which reads the carry: hence a fixpoint.
    # Axes are only ever added, so it ends.
    while True:
        body = loop_of(params["body"], operands.body_consts, carry)
        condition = typed(params["condition"], (*operands.condition_consts, *axes_of(body.outputs)))
        (steps,) = axes_of(condition.outputs)
        carry = tuple(a | steps for a in axes_of(body.outputs))
        if carry == axes_of(body.outputs):
            return {**params, "condition": condition, "body": body}, carry


def interpret(evaluate: Callable[..., list], *args: Value, **params: object) -> list[Value]:
    """The meaning: step by step."""
    loop = unpacked(args, params)
    carry = list(loop.carry)
    while bool(evaluate(loop.condition, [*loop.condition_consts, *carry])[0]):
        carry = evaluate(loop.body, [*loop.body_consts, *carry])
    return carry


# --- tangents ---------------------------------------------------------------------------------


def jvp(
    while_: Primitive, primals: Sequence[Value], tangents: Sequence[Value | None], params: Params
) -> tuple[list[Value], list[Value | None]]:
    """A loop whose carry has values and tangents."""
    loop, loop_tangents = unpacked(primals, params), LoopOperands.of(tangents, params)
    _, consts, count = loop.counts
    nonzero = nonzero_flags([*loop_tangents.body_consts, *loop_tangents.carry])
    body, carries, _ = jvp_body(loop.body, (consts, count), nonzero)
    # A carry whose tangent becomes nonzero in the body starts with a tangent of zeros.
    init_tangents = [
        zeros_like(x) if t is None else t for x, t, c in zip(loop.carry, loop_tangents.carry, carries) if c
    ]
    # The condition takes the whole carry, so its program gets inputs for tangents, unread.
    tangent_types = body.input_types[len(body.inputs) - len(init_tangents) :]
    types = (*loop.condition.input_types, *tangent_types)
    condition = with_inputs(loop.condition, tuple(range(len(loop.condition.inputs))), types)
    const_tangents = pick(loop_tangents.body_consts, nonzero[:consts])
    outs = replace(
        loop,
        condition=condition,
        body=body,
        body_consts=[*loop.body_consts, *const_tangents],
        carry=[*loop.carry, *init_tangents],
    ).bind(while_)
    return outs[:count], scatter(outs[count:], carries)


def series(while_: Primitive, interpreter: Taylor, args: Sequence[Value], params: Params) -> list[Value]:
    """A loop whose carry has all coefficients; the condition reads the first ones."""

    def run(order: int, rows: Rows) -> Rows:
        loop, operands = unpacked(args, params), LoopOperands.of(rows, params)
        carry = [widened(row, order) for row in operands.carry]
        body = series_program(loop.body, moving_rows([*operands.body_consts, *carry]), order)
        outs = replace(
            loop,
            condition=_of_first(loop, carry),
            body=body,
            condition_consts=[row[0] for row in operands.condition_consts],
            body_consts=flat_rows(operands.body_consts),
            carry=flat_rows(carry),
        ).bind(while_)
        return rows_of(outs, loop.body.output_types, order)

    return interpreter.replayed(args, run)


def _of_first(loop: Loop, carry: Rows) -> Program:
    """The condition for a carry of series: it reads the first coefficient of each."""
    count, _, _ = loop.counts
    types, positions = [*loop.condition.input_types[:count]], [*range(count)]
    for type, row in zip(loop.condition.input_types[count:], carry, strict=True):
        positions.append(len(types))
        types += [type] * len(row)
    return with_inputs(loop.condition, tuple(positions), tuple(types))


# --- lanes ------------------------------------------------------------------------------------


def batch(
    while_: Primitive, batched: Sequence[bool], size: Size, *args: Value, **params: object
) -> tuple[list[Value], Sequence[bool]]:
    """A loop over all lanes, which goes on while any lane does."""
    loop, flags = unpacked(args, params), LoopOperands.of(batched, params)
    program_size = own_size(size, loop.condition, loop.body)
    lanes = _batched(loop.body, loop.condition, loop.counts, tuple(batched), program_size)
    carry = [repeat_lane(x, size) if c and not b else x for x, b, c in zip(loop.carry, flags.carry, lanes.carries)]
    body_consts = loop.body_consts
    if lanes.differ:
        refuse_io("while_loop", (loop.condition, loop.body))  # a finished lane would continue to print
        body_consts = _consts_of_freezing(loop, lanes, flags, carry)
    batched_loop = replace(loop, condition=lanes.condition, body=lanes.body, body_consts=body_consts, carry=carry)
    return batched_loop.bind(while_), lanes.carries


def _consts_of_freezing(
    loop: Loop, lanes: _Batched, batched_operands: LoopOperands[bool], carry: Sequence[Value]
) -> list[Value]:
    """Consts of the condition, consts of the body, and the first carry.

    A lane that takes no step borrows the last two from a lane that does.
    """
    # On the values of a lane that takes no step, a loop within the body might never end.
    (is_going,) = eval_program(lanes.lane_condition, [*loop.condition_consts, *carry])
    flags = [*batched_operands.body_consts, *lanes.carries]
    # Consts too: an inner loop may read a const that makes sense only in lanes that take a step.
    lane_values = borrowed(is_going, [*loop.body_consts, *carry], flags)
    return [*loop.condition_consts, *lane_values]


@dataclass(frozen=True, slots=True)
class _Batched:
    """A loop over lanes: which carries have lanes, and whether lanes differ in their steps.

    If they do, `lane_condition` is the condition lane by lane, and `_freezing` made the body.
    """

    condition: Program
    body: Program
    carries: Flags
    differ: bool
    lane_condition: Program


@per_program_and_lanes
def _batched(
    body: Program, condition: Program, counts: tuple[int, int, int], batched_operands: Flags, size: Size
) -> _Batched:
    condition_consts, consts, count = counts
    # First as if all lanes took the same steps; the condition then shows whether they do.
    condition_flags, body_flags = batched_operands[:condition_consts], batched_operands[condition_consts:]
    lane_body, carries, _ = batch_body(body, (consts, count), body_flags, size)
    lane_condition, (differ,) = batch_program(condition, (*condition_flags, *carries), size)
    if not differ:
        return _Batched(lane_condition, lane_body, carries, False, lane_condition)
    # Lanes stop at different steps, so every carry that the body changes ends with a value for each
    # lane. Only a carry that the body returns as it is may remain without lanes.
    changes = [out is not carry for out, carry in zip(body.outputs, body.inputs[consts:], strict=True)]
    carries = tuple(c or f for c, f in zip(changes, body_flags[consts:], strict=True))
    lane_body, _, _ = batch_body(body, (consts, count), (*body_flags[:consts], *carries), size)
    lane_condition, _ = batch_program(condition, (*condition_flags, *carries), size)
    freezing = _freezing(lane_condition, lane_body, condition_consts, consts, carries)
    return _Batched(_any_lane(lane_condition), freezing, carries, True, lane_condition)


def _any_lane(lane_condition: Program) -> Program:
    """Whether the condition holds in any lane."""

    def run(*args: Value) -> list[Array]:
        return [reduce_or(eval_program(lane_condition, args)[0], axes=(0,))]

    return stage(run, lane_condition.input_types, lane_condition.name).closed()


@dataclass(frozen=True, slots=True)
class _FreezingInputs(Groups[T]):
    """The inputs of the body of a loop whose lanes finish at different steps."""

    condition_consts: list[T]
    body_consts: list[T]
    first_carry: list[T]
    carry: list[T]


def _freezing(lane_condition: Program, body: Program, condition_consts: int, consts: int, carries: Flags) -> Program:
    """The body that changes only the lanes for which the condition holds.

    carries: which carries have lanes; the others pass through the body
    """

    def run(inputs: _FreezingInputs[Value]) -> list[Value]:
        carry = inputs.carry
        (is_going,) = eval_program(lane_condition, [*inputs.condition_consts, *carry])
        # The last carry of a finished lane may be outside the values that the body was written for.
        safe_carry = [
            select_lanes(is_going, x, constant(first)) if c else x
            for x, first, c in zip(carry, inputs.first_carry, carries)
        ]
        next_carry = eval_program(body, [*inputs.body_consts, *safe_carry])
        return [select_lanes(is_going, n, x) if c else x for n, x, c in zip(next_carry, carry, carries)]

    const_types, carry_types = parts(body.input_types, consts)
    condition_types = list(lane_condition.input_types[:condition_consts])
    types = _FreezingInputs(condition_types, const_types, carry_types, carry_types)
    return stage_grouped(run, types, body.name)


# --- unused results ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pruned:
    """The programs of a loop with fewer carries, and flags of the operands that it needs."""

    condition: Program
    body: Program
    needed_operands: LoopOperands[bool]


@per_program
def _pruned(body: Program, condition: Program, counts: tuple[int, int, int], used_outputs: Flags) -> _Pruned:
    condition_consts, consts, count = counts
    small_condition, condition_inputs_read = needed_inputs(condition, (True,))
    # The condition decides when to stop, so the carries that it reads are used, too.
    carries = tuple(u or r for u, r in zip(used_outputs, condition_inputs_read[condition_consts:]))
    small_body, body_inputs, carries = prune_body(body, (consts, count), carries)
    condition_inputs = (*condition_inputs_read[:condition_consts], *carries)
    return _Pruned(
        with_inputs_picked(small_condition, condition_inputs),
        small_body,
        LoopOperands(list(condition_inputs_read[:condition_consts]), list(body_inputs[:consts]), list(carries)),
    )


def dead_code(used_results: Sequence[bool], equation: Equation) -> Equation:
    """The loop with only those carries that used results and the condition need."""
    params = equation.params
    counts = params["condition_consts"], params["body_consts"], len(equation.results)
    pruned_loop = _pruned(params["body"], params["condition"], counts, tuple(used_results))
    needed_operands = pruned_loop.needed_operands
    return narrowed(
        equation,
        needed_operands.flat(),
        needed_operands.carry,
        body=pruned_loop.body,
        condition=pruned_loop.condition,
        condition_consts=sum(needed_operands.condition_consts),
        body_consts=sum(needed_operands.body_consts),
    )
