"""Reverse mode through a loop: what is known runs, what is linear is written down for later.

Checkpoints        the known loop also counts its steps and keeps some of its carries; the linear
                   rest becomes `while_linear`, which finds the other carries again
GrowingResiduals   the known loop runs to count its steps; then the whole is a scan of as many
                   steps, rounded up so that few programs are compiled, of which those beyond the
                   count do nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rune.control.branch.primitive import cond
from rune.control.loop_bodies import SplitBody, prune_body, split_body
from rune.control.programs import (
    Flags,
    merge,
    needed_inputs,
    omit,
    parts,
    pick,
    with_inputs,
)
from rune.control.scan.primitive import scan, shared_residuals
from rune.control.while_loop import linear_loop
from rune.control.while_loop.checkpoints import (
    DEFAULT,
    Checkpoints,
    GrowingResiduals,
    is_kept,
    put,
    rows_for,
    slot,
    stride,
)
from rune.control.while_loop.linear_loop import COUNTER, ONE, ZERO, Parts
from rune.control.while_loop.rules import Loop, Params, sized, unpacked
from rune.core.evaluate import eval_program
from rune.core.interpreter import use
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.sizes import type_with_sizes
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.errors import TransformError
from rune.ops import add, convert, eq, lt
from rune.ops.family import zeros_of
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.programs.memo import per_program
from rune.transforms.tracers import ValueTracer


def partial(
    loop: Primitive, linear: Primitive, interpreter: Partial, args: Sequence[Any],
    unknown: Sequence[bool], params: Params,
) -> list[Any]:  # fmt: skip
    """Run what is known, and write down the rest."""
    found = sized(unpacked(args, params))
    flags = tuple(unknown)
    split = _split(found, flags)
    if split is None:
        return interpreter.write(loop, args, params)
    if isinstance(found.reverse, GrowingResiduals) and any(split.carries):
        return _as_scan(loop, interpreter, found, split, flags)
    known, of, programs = _run_known(loop, found, split, flags)

    def write(*operands: Any, **changed: Any) -> list[Any]:
        return interpreter.write(linear, operands, changed)

    rest = linear_loop.write(write, of, *programs) if any(split.carries) else []
    return merge(split.carries, rest, known)


def transpose(
    loop: Primitive, linear: Primitive, cts: Sequence[Any], is_linear: Sequence[bool],
    *operands: Any, **params: Any,
) -> list[Any]:  # fmt: skip
    """Of a loop that is linear in some operands: what the others decide runs first."""
    found = sized(unpacked(operands, params))
    split = _split(found, tuple(is_linear))
    if split is None:
        raise TransformError(
            "transpose: cannot transpose while (its condition depends on a linear value)"
        )
    if isinstance(found.reverse, GrowingResiduals):
        found = replace(found, reverse=DEFAULT)
    _, of, programs = _run_known(loop, found, split, tuple(is_linear))
    first, second = len(found.condition_consts), len(found.body_consts)
    _, of_consts, of_carry = parts(is_linear, first, second)

    def pull(*operands: Any, **changed: Any) -> list[Any]:
        flags = [isinstance(x, ArrayType) for x in operands]
        return linear_loop.transpose(loop, pick(cts, split.carries), flags, *operands, **changed)

    back = linear_loop.write(pull, of, *programs)
    last = len(back) - len(of.carry)
    consts = iter(back[last - len(of.linear_consts) : last])
    carry = merge(split.carries, back[last:], [None] * split.carries.count(False))
    return [
        *(None,) * first, *(next(consts) if lin else None for lin in of_consts),
        *(ct if lin else None for ct, lin in zip(carry, of_carry)),
    ]  # fmt: skip


def _split(found: Loop, unknown: Flags) -> SplitBody | None:
    """The body split, or None where the number of steps depends on what is unknown."""
    first, counts = len(found.condition_consts), (len(found.body_consts), len(found.carry))
    split = split_body(found.body, counts, unknown[first:])
    free = (*unknown[:first], *split.carries)
    _, read = needed_inputs(found.condition, (True,))
    return None if any(f and r for f, r in zip(free, read)) else split


# --- checkpoints ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """The known part of a loop.

    step:       known consts, the carries `kept` -> the same, one step on, residuals of this step
    recording:  known consts, step number, arrays of carries kept, known carries -> the same
    """

    step: Program
    step_consts: Flags
    kept: Flags  # of the known carries: those that a residual or one of these reads
    recording: Program


@per_program
def _known(body: Program, count: int, consts: int, slots: int) -> _Known:
    """body: known consts and `count` carries -> next carries, residuals of one step."""
    residuals = (True,) * (len(body.outputs) - count)
    step, taken, kept = prune_body(body, (consts, count), (*(False,) * count, *residuals))
    recording = _recording(body, count, consts, slots, kept)
    return _Known(step, taken[:consts], kept, recording)


@per_program
def _recording(body: Program, count: int, consts: int, slots: int, kept: Flags) -> Program:
    """consts, step number, arrays of the carries that are kept, carries -> the same."""
    going, _ = needed_inputs(body, tuple(i < count for i in range(len(body.outputs))))

    def run(*args: Any) -> list[Any]:
        own, (i,), arrays, carry = parts(args, consts, 1, sum(kept))
        is_stop, place = eq(is_kept(i, stride(i, slots)), i), slot(i, slots)
        arrays = [put(a, place, x, is_stop) for a, x in zip(arrays, pick(carry, kept))]
        return [add(i, ONE), *arrays, *eval_program(going, [*own, *carry])]

    of_consts, of_carry = parts(body.input_types, consts)
    arrays = [rows_for(t, slots) for t in pick(of_carry, kept)]
    types = [*of_consts, COUNTER, *arrays, *of_carry]
    return stage(run, types, f"recording_{body.name}").closed()


def _run_known(
    loop: Primitive, found: Loop, split: SplitBody, unknown: Flags
) -> tuple[list[Any], Parts, tuple[Any, ...]]:
    """The known carries, and what `while_linear` needs: operands and programs.

    What is unknown may be given as its type.
    """
    policy = found.reverse if isinstance(found.reverse, Checkpoints) else DEFAULT
    consts, of_consts, carry = _known_values(found, split, unknown)
    known = _known(split.known, len(carry), len(consts), policy.count)
    n, arrays, last = _record(loop, found, split, unknown, known.recording)
    of = Parts(
        n, pick(consts, known.step_consts), shared_residuals(split, found.body_sizes, consts),
        arrays, pick(found.body_consts, of_consts), pick(found.carry, split.carries),
    )  # fmt: skip
    return last, of, (known.step, split.unknown, found.body_sizes, policy)


def _known_values(
    found: Loop, split: SplitBody, unknown: Flags
) -> tuple[list[Any], Flags, list[Any]]:
    """Known consts, which consts are unknown, known carries."""
    first, second = len(found.condition_consts), len(found.body_consts)
    of_consts = unknown[first : first + second]
    carry = omit(found.carry, split.carries)
    return omit(found.body_consts, of_consts), of_consts, carry


def _record(
    loop: Primitive, found: Loop, split: SplitBody, unknown: Flags, body: Program
) -> tuple[Any, list[Any], list[Any]]:
    """A recording loop run: its number of steps, the carries kept, the last carry."""
    consts, _, carry = _known_values(found, split, unknown)
    types = body.input_types[len(consts) :]
    arrays = [
        zeros_of(type_with_sizes(t, found.body_sizes)) for t in types[1 : len(types) - len(carry)]
    ]
    condition = _known_condition(found.condition, len(found.condition_consts), split.carries, types)
    outs = replace(
        found, condition=condition, body=body, body_consts=consts, carry=[ZERO, *arrays, *carry]
    ).bind(loop)
    (n,), kept, last = parts(outs, 1, len(arrays))
    return n, kept, last


@per_program
def _known_condition(
    condition: Program, consts: int, unknown: Flags, types: tuple[ArrayType, ...]
) -> Program:
    """The condition on known carries, which come last among values of these types."""
    read = (*(True,) * consts, *(not u for u in unknown))
    small = replace(condition, inputs=tuple(pick(condition.inputs, read)))
    first = consts + len(types) - unknown.count(False)
    positions = (*range(consts), *range(first, consts + len(types)))
    return with_inputs(small, positions, (*small.input_types[:consts], *types))


# --- growing residuals ------------------------------------------------------------------------


def _as_scan(
    loop: Primitive, interpreter: Partial, found: Loop, split: SplitBody, unknown: Flags
) -> list[Any]:
    """The loop as a scan of as many steps, split in its turn."""
    steps = _count(loop, found, split, unknown)
    length = rounded_up(steps)
    body = _guarded(found.body, len(found.body_consts))
    n = np.int32(steps)
    with use(interpreter):
        outs = scan(
            n, *found.body_consts, ZERO, *found.carry, body=body, length=length, reverse=False,
            unroll=1, consts=1 + len(found.body_consts), carries=1 + len(found.carry),
        )  # fmt: skip
    return outs[1:]


def _count(loop: Primitive, found: Loop, split: SplitBody, unknown: Flags) -> int:
    """How many steps the loop takes. Errors: TransformError where that is not known now."""
    consts, _, carry = _known_values(found, split, unknown)
    body = _recording(split.known, len(carry), len(consts), 2, (False,) * len(carry))
    n, _, _ = _record(loop, found, split, unknown, body)
    value = n.known() if isinstance(n, ValueTracer) else n
    if value is None:
        raise TransformError(
            "while_loop: cannot keep growing residuals (its number of steps is not known here)",
            hint="differentiate outside jit and vmap, or pass reverse=rune.Checkpoints()",
        )
    return int(value)


def rounded_up(steps: int) -> int:
    """`steps` or at most a quarter more: one of four lengths for every power of two."""
    unit = 1 << max(steps.bit_length() - 3, 0)
    return -(-steps // unit) * unit


@per_program
def _guarded(body: Program, consts: int) -> Program:
    """n, consts, i, carry -> i + 1, the next carry, which is the same carry from step n on."""
    stay = Program(body.inputs, (), body.inputs[consts:], name="stay")

    def run(n: Any, *args: Any) -> list[Any]:
        own, (i,), carry = parts(args, consts, 1)
        number = convert(lt(i, n), dtype=COUNTER.dtype)
        return [add(i, ONE), *cond(number, *own, *carry, branches=(stay, body))]

    of_consts, of_carry = parts(body.input_types, consts)
    return stage(run, [COUNTER, *of_consts, COUNTER, *of_carry], f"guarded_{body.name}").closed()
