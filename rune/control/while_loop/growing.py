"""GrowingResiduals: the loop runs to count its steps, then again as a scan of that many.

A scan saves the residuals of all its steps. Its length is rounded up, so that few programs are
compiled for many numbers of steps; the steps beyond the count leave the carry unchanged.
"""

from __future__ import annotations

import numpy as np

from rune.control.branch.primitive import cond
from rune.control.groups import Groups, T, stage_grouped
from rune.control.loop_bodies import SplitBody
from rune.control.scan.primitive import scan
from rune.control.while_loop.linear_loop import COUNTER, ONE, ZERO
from rune.control.while_loop.recording import known_operands, recording, run_recording
from rune.control.while_loop.rules import Loop, LoopOperands
from rune.core.interpreter import use
from rune.core.lists import parts
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.values import Value
from rune.errors import TransformError
from rune.ops import add, convert, lt
from rune.records import dataclass
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.tracers import ValueTracer


def as_scan(
    while_: Primitive, interpreter: Partial, loop: Loop, split: SplitBody, unknown: LoopOperands[bool]
) -> list[Value]:
    """The loop as a scan of as many steps, whose own rule splits it into known and linear parts."""
    steps = _count(while_, loop, split, unknown)
    body = _stopping(loop.body, len(loop.body_consts))
    # The count is an operand, so one program serves all counts that are rounded to this length.
    consts, carry = [np.int32(steps), *loop.body_consts], [ZERO, *loop.carry]
    # The interpreter that is splitting the loop processes the scan, by the rule of scan.
    with use(interpreter):
        outs = scan(
            *consts,
            *carry,
            body=body,
            length=rounded_up(steps),
            reverse=False,
            unroll=1,
            consts=len(consts),
            carries=len(carry),
        )
    return outs[1:]  # without the counter


def _count(while_: Primitive, loop: Loop, split: SplitBody, unknown: LoopOperands[bool]) -> int:
    """The number of steps of the loop. Errors: TransformError if it is not known now."""
    known = known_operands(loop, split, unknown)
    no_carry = (False,) * len(known.carry)
    # With no carry to record, the number of slots does not matter: 2 is the least.
    counting = recording(split.known, len(known.carry), len(known.consts), 2, no_carry)
    number = run_recording(while_, loop, split, known, counting).number
    value = number.known() if isinstance(number, ValueTracer) else number
    if value is None:
        raise TransformError(
            "while_loop: cannot keep growing residuals (its number of steps is not known here)",
            hint="differentiate outside jit and vmap, or pass reverse=rune.Checkpoints()",
        )
    return int(np.asarray(value))


def rounded_up(steps: int) -> int:
    """`steps` or at most a quarter more: one of four lengths for every power of two."""
    # Lengths have three significant bits.
    unit = 1 << max(steps.bit_length() - 3, 0)
    return -(-steps // unit) * unit


@dataclass(frozen=True, slots=True)
class _StoppingInputs(Groups[T]):
    """The inputs of the body of the scan; `steps` is the number of steps of the loop."""

    steps: T
    consts: list[T]
    number: T
    carry: list[T]


@per_program
def _stopping(body: Program, consts: int) -> Program:
    """The body with a counter; from step `steps` on it leaves the carry unchanged."""
    # A branch, since a select would run the body on the last carry, which the loop never does: an
    # inner loop might never end there.
    stay = Program(body.inputs, (), body.inputs[consts:], name="stay")

    def run(inputs: _StoppingInputs[Value]) -> list[Value]:
        branch = convert(lt(inputs.number, inputs.steps), dtype=COUNTER.dtype)
        number = add(inputs.number, ONE)
        return [number, *cond(branch, *inputs.consts, *inputs.carry, branches=(stay, body))]

    const_types, carry_types = parts(body.input_types, consts)
    types = _StoppingInputs(COUNTER, const_types, COUNTER, carry_types)
    return stage_grouped(run, types, f"guarded_{body.name}")
