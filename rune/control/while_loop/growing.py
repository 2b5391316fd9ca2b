"""GrowingResiduals: the loop runs to count its steps, then again as a scan of as many.

A scan keeps the residuals of all its steps. Its length is rounded up, so that few programs are
compiled for many numbers of steps; the steps beyond the count leave the carry as it is.
"""

from __future__ import annotations

import numpy as np

from rune.control.branch.primitive import cond
from rune.control.groups import Groups, T, stage_grouped
from rune.control.loop_bodies import SplitBody
from rune.control.programs import parts
from rune.control.scan.primitive import scan
from rune.control.while_loop.linear_loop import COUNTER, ONE, ZERO
from rune.control.while_loop.recording import known_operands, recording, run_recording
from rune.control.while_loop.rules import Loop, LoopOperands
from rune.core.interpreter import use
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.values import Value
from rune.errors import TransformError
from rune.ops import add, convert, lt
from rune.records import dataclass
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.programs.memo import per_program
from rune.transforms.tracers import ValueTracer


def as_scan(
    while_: Primitive, interpreter: Partial, loop: Loop, split: SplitBody, unknown: LoopOperands[bool]
) -> list[Value]:
    """The loop as a scan of as many steps, which is then split into known and linear itself."""
    steps = _count(while_, loop, split, unknown)
    body = _stopping(loop.body, len(loop.body_consts))
    # The count is an operand: one program serves every count of this length.
    consts, carry = [np.int32(steps), *loop.body_consts], [ZERO, *loop.carry]
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
    """How many steps the loop takes. Errors: TransformError if that is not known now."""
    known = known_operands(loop, split, unknown)
    nothing = (False,) * len(known.carry)  # no carry is recorded, so 2 rows are as good as any
    counting = recording(split.known, len(known.carry), len(known.consts), 2, nothing)
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
    unit = 1 << max(steps.bit_length() - 3, 0)
    return -(-steps // unit) * unit


@dataclass(frozen=True, slots=True)
class _StoppingInputs(Groups[T]):
    """What the body of the scan takes; `steps` is the number of steps of the loop."""

    steps: T
    consts: list[T]
    number: T
    carry: list[T]


@per_program
def _stopping(body: Program, consts: int) -> Program:
    """The body with a counter; from step `steps` on it leaves the carry as it is."""
    # A branch and not a select: the body must not run on a carry that the loop has left.
    stay = Program(body.inputs, (), body.inputs[consts:], name="stay")

    def run(inputs: _StoppingInputs[Value]) -> list[Value]:
        branch = convert(lt(inputs.number, inputs.steps), dtype=COUNTER.dtype)
        number = add(inputs.number, ONE)
        return [number, *cond(branch, *inputs.consts, *inputs.carry, branches=(stay, body))]

    const_types, carry_types = parts(body.input_types, consts)
    types = _StoppingInputs(COUNTER, const_types, COUNTER, carry_types)
    return stage_grouped(run, types, f"guarded_{body.name}")
