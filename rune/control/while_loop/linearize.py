"""Reverse mode of `while`: the known part runs, the linear one is written down as `while_linear`.

    Checkpoints        the known loop counts its steps and records some of its carries
                       (recording.py); `while_linear` recomputes the others (walk_back.py)
    GrowingResiduals   the loop is counted, and becomes a scan of as many steps (growing.py)

docs/reverse-mode-of-while.md has the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rune.control.loop_bodies import SplitBody, split_body
from rune.control.scan.primitive import shared_residuals
from rune.control.while_loop import growing, walk_back
from rune.control.while_loop.checkpoints import DEFAULT, Checkpoints, GrowingResiduals
from rune.control.while_loop.linear_loop import LinearLoop, LinearOperands
from rune.control.while_loop.recording import known_operands, known_step, run_recording
from rune.control.while_loop.rules import Loop, LoopOperands, Params, sized, unpacked
from rune.core.dead_code import needed_inputs
from rune.core.lists import merge, pick, scatter
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import TransformError
from rune.transforms.derivatives.linearize import Partial


def partial(
    while_: Primitive,
    while_linear: Primitive,
    interpreter: Partial,
    args: Sequence[Value],
    unknown: Sequence[bool],
    params: Params,
) -> list[Value]:
    """Run the known part, and write down the linear part."""
    loop, flags = sized(unpacked(args, params)), LoopOperands.of(unknown, params)
    split = _split(loop, flags)
    if split is None:  # nothing can run before the number of steps is known
        return interpreter.write(while_, args, params)
    # Without an unknown carry there is nothing to transpose, so no residuals to save.
    if isinstance(loop.reverse, GrowingResiduals) and any(split.carries):
        return growing.as_scan(while_, interpreter, loop, split, flags)
    known_carry, linear = _run_known(while_, loop, split, flags)
    if not any(split.carries):  # unknown consts do not reach a carry
        return known_carry
    operands, linear_params = linear.equation()
    linear_carry = interpreter.write(while_linear, operands, linear_params)
    return merge(split.carries, linear_carry, known_carry)


def transpose(
    while_: Primitive, cts: Sequence[Value | None], is_linear: Sequence[bool], *operands: object, **params: object
) -> list[Value | None]:
    """Cotangents of the linear operands of a loop. The part that depends on no other runs first.

    A type stands for each linear operand.
    """
    loop, flags = sized(unpacked(operands, params)), LoopOperands.of(is_linear, params)
    split = _split(loop, flags)
    if split is None:
        raise TransformError("transpose: cannot transpose while (its condition depends on a linear value)")
    if isinstance(loop.reverse, GrowingResiduals):
        loop = replace(loop, reverse=DEFAULT)  # a count of steps is not known while transposing
    _, linear = _run_known(while_, loop, split, flags)
    linear_args, linear_params = linear.equation()
    is_type = [isinstance(x, ArrayType) for x in linear_args]
    operand_cts = LinearOperands.of(
        walk_back.transpose(while_, pick(cts, split.carries), is_type, *linear_args, **linear_params), linear_params
    )
    # A carry may become linear in the loop although its first value is known: no cotangent.
    carry_cts = zip(scatter(operand_cts.linear_carry, split.carries), flags.carry)
    return [
        *(None for _ in loop.condition_consts),
        *scatter(operand_cts.linear_consts, flags.body_consts),
        *(ct if linear_carry else None for ct, linear_carry in carry_cts),
    ]


def _split(loop: Loop, unknown: LoopOperands[bool]) -> SplitBody | None:
    """The split body; None if the number of steps depends on unknown operands."""
    _, consts, carries = loop.counts
    split = split_body(loop.body, (consts, carries), (*unknown.body_consts, *unknown.carry))
    _, condition_inputs = needed_inputs(loop.condition, (True,))
    # A carry that the body makes unknown is unknown to the condition too, from the second step on.
    condition_unknown = (*unknown.condition_consts, *split.carries)
    return None if any(u and r for u, r in zip(condition_unknown, condition_inputs)) else split


def _run_known(
    while_: Primitive, loop: Loop, split: SplitBody, unknown: LoopOperands[bool]
) -> tuple[list[Value], LinearLoop]:
    """The known carry at the end, and the linear loop.

    A type may stand for an unknown operand.
    """
    # Growing residuals come here only without a linear carry, so that no checkpoint is ever read.
    policy = loop.reverse if isinstance(loop.reverse, Checkpoints) else DEFAULT
    known = known_operands(loop, split, unknown)
    step = known_step(split.known, len(known.carry), len(known.consts), policy.count)
    # One run decides the number of steps, records the checkpoints and yields the known results.
    end = run_recording(while_, loop, split, known, step.recording)
    operands = LinearOperands(
        steps=end.number,
        step_consts=pick(known.consts, step.consts),
        shared=shared_residuals(split, loop.body_sizes, known.consts),
        checkpoints=end.checkpoints,
        linear_consts=pick(loop.body_consts, unknown.body_consts),
        linear_carry=pick(loop.carry, split.carries),
    )
    return end.carry, LinearLoop(step.program, split.unknown, loop.body_sizes, operands, policy)
