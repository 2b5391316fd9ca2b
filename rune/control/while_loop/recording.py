"""The known part of a loop: it runs, counts its steps, and records checkpoints for the way back.

Before    carry -> next carry                           known and linear carries together
After     step number, checkpoints, known carry -> the same after one step        known carries only

Partial evaluation of the body (`split_body`) says what is known. The loop also yields its number
of steps, which is not known before, and which the linear part takes as an operand.
"""

from __future__ import annotations

from dataclasses import replace

from rune.array import Array
from rune.control.groups import Groups, T, stage_grouped
from rune.control.loop_bodies import SplitBody, prune_body
from rune.control.programs import with_inputs
from rune.control.while_loop.checkpoints import checkpoint_before, rows_for, slot, stride, with_row
from rune.control.while_loop.linear_loop import COUNTER, ONE, ZERO
from rune.control.while_loop.rules import Loop, LoopOperands
from rune.core.dead_code import needed_inputs, with_inputs_picked
from rune.core.evaluate import eval_program
from rune.core.lists import Flags, omit, parts, pick
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.sizes import type_with_sizes
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.ops import add, eq
from rune.ops.family import zeros_of
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class KnownOperands:
    """The operands of a loop that are known when it is differentiated."""

    consts: list[Value]
    carry: list[Value]


def known_operands(loop: Loop, split: SplitBody, unknown: LoopOperands[bool]) -> KnownOperands:
    """The known consts of the body, and the carries that remain known in every step."""
    return KnownOperands(omit(loop.body_consts, unknown.body_consts), omit(loop.carry, split.carries))


@dataclass(frozen=True, slots=True)
class RecordingState(Groups[T]):
    """The carry of a recording loop.

    number:       the number of steps taken so far
    checkpoints:  arrays of the carries that the way back needs, a row for each checkpoint
    carry:        the known carry of the loop itself
    """

    number: T
    checkpoints: list[T]
    carry: list[T]


@dataclass(frozen=True, slots=True)
class _RecordingInputs(Groups[T]):
    consts: list[T]
    state: RecordingState[T]


@dataclass(frozen=True, slots=True)
class Recording:
    """The body of a recording loop, and the types of its carry."""

    body: Program
    state_types: RecordingState[ArrayType]


@per_program
def recording(body: Program, count: int, consts: int, slots: int, recorded_carries: Flags) -> Recording:
    """A body of known values that also counts its steps and records the flagged carries.

    body:   known consts, `count` carries -> next carries, residuals of one step
    slots:  the number of checkpoints that the arrays have room for
    """
    # Residuals are recomputed on the way back: recording them would need memory for every step.
    without_residuals, _ = needed_inputs(body, tuple(i < count for i in range(len(body.outputs))))

    def run(inputs: _RecordingInputs[Value]) -> list[Array]:
        state = inputs.state
        position = checkpoint_before(state.number, stride(state.number, slots))
        # The carry before the step is recorded: position p is the start of step p.
        is_checkpoint, row = eq(position, state.number), slot(state.number, slots)
        checkpoints = [
            with_row(rows, row, x, is_checkpoint)
            for rows, x in zip(state.checkpoints, pick(state.carry, recorded_carries))
        ]
        number = add(state.number, ONE)
        next_carry = eval_program(without_residuals, [*inputs.consts, *state.carry])
        return RecordingState(number, checkpoints, next_carry).flat()

    const_types, carry_types = parts(body.input_types, consts)
    checkpoint_types = [rows_for(t, slots) for t in pick(carry_types, recorded_carries)]
    types = RecordingState(COUNTER, checkpoint_types, carry_types)
    program = stage_grouped(run, _RecordingInputs(const_types, types), f"recording_{body.name}")
    return Recording(program, types)


@dataclass(frozen=True, slots=True)
class KnownStep:
    """One step of the known part, as the way back repeats it, and the recording it starts from.

    program:               the flagged consts and carries -> the same carries after the step, then
                           the residuals that the linear part of the step reads
    consts:                which known consts it takes
    checkpointed_carries:  which known carries it takes: those that a residual depends on
    """

    program: Program
    consts: Flags
    checkpointed_carries: Flags
    recording: Recording


@per_program
def known_step(body: Program, count: int, consts: int, slots: int) -> KnownStep:
    """The step that the way back repeats, and a recording of the carries it needs.

    body: known consts, `count` carries -> next carries, residuals of one step
    """
    # A carry on which no residual depends is not recomputed on the way back, so not recorded.
    residuals = (True,) * (len(body.outputs) - count)
    step, inputs, checkpointed_carries = prune_body(body, (consts, count), (*(False,) * count, *residuals))
    return KnownStep(
        step, inputs[:consts], checkpointed_carries, recording(body, count, consts, slots, checkpointed_carries)
    )


def run_recording(
    while_: Primitive, loop: Loop, split: SplitBody, known: KnownOperands, recording: Recording
) -> RecordingState[Value]:
    """The end of a recording loop: the number of its steps, checkpoints, and the last carry."""
    types = recording.state_types
    # Zeros only give the arrays a shape: the way back reads no row that was not written.
    checkpoints = [zeros_of(type_with_sizes(t, loop.body_sizes)) for t in types.checkpoints]
    condition = _known_condition(loop.condition, len(loop.condition_consts), split.carries, tuple(types.flat()))
    first_state: RecordingState[Value] = RecordingState(ZERO, checkpoints, known.carry)
    recording_loop = replace(
        loop, condition=condition, body=recording.body, body_consts=known.consts, carry=first_state.flat()
    )
    return first_state.filled(recording_loop.bind(while_))


@per_program
def _known_condition(condition: Program, consts: int, unknown: Flags, types: tuple[ArrayType, ...]) -> Program:
    """The condition on known carries, which come last among values of these types."""
    known = (*(True,) * consts, *(not u for u in unknown))
    # The recording loop also carries its number and checkpoints, which the condition ignores.
    small = with_inputs_picked(condition, known)
    first = consts + len(types) - unknown.count(False)
    positions = (*range(consts), *range(first, consts + len(types)))
    return with_inputs(small, positions, (*small.input_types[:consts], *types))
