"""`while_linear`: the linear part of a loop whose steps were counted when it ran.

    outs = while_linear n consts shared checkpoints linear_consts linear_carry
           {step=, linear_step=, consts=, shared=, checkpoints=, linear_consts=, reverse=}

    step:         consts, carry -> next carry, residuals of this step       what the loop did
    linear_step:  shared, linear_consts, linear_carry, residuals -> next linear_carry

Forward it is a loop that takes both along. Transposed it is a loop over the steps from the last
to the first: the carry of a step is found again from the nearest one kept before it, and carries
passed on the way are kept on a stack, all of them if they fit and by halves if not. `checkpoints`
are the arrays of carries kept by the loop itself (checkpoints.py), row 0 being the first carry.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rune import dtypes
from rune.control.loop_bodies import Counts, batch_body, prune_body, transpose_body
from rune.control.programs import (
    Flags,
    closed,
    is_layout,
    needed_inputs,
    nonzero_flags,
    parts,
    pick,
    refuse,
    scatter,
    sizes_for,
    types_of,
)
from rune.control.while_loop.checkpoints import (
    Checkpoints,
    is_kept,
    put,
    rows_for,
    slot,
    stride,
    take,
)
from rune.control.while_loop.rules import Loop
from rune.core.axes import own_axis
from rune.core.evaluate import eval_program
from rune.core.interpreter import use
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program
from rune.core.sizes import Sizes, type_with_sizes
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.dims import Size
from rune.ops import add, div, eq, gt, le, logical_and, lt, max, min, select, sub
from rune.ops.family import zeros_of
from rune.ops.movement import move_axis, repeat_lane
from rune.transforms.batching.vmap import batch_flat
from rune.transforms.derivatives.jvp import jvp_flat
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.programs.memo import per_program
from rune.transforms.programs.size_witnesses import own_size

Params = Mapping[str, Any]
COUNTER = ArrayType((), dtypes.i32)
ONE, ZERO = np.int32(1), np.int32(0)
# Loops over whole stacks of carries keep few of those for their own reverse mode.
SECOND_ORDER = Checkpoints(8)


@dataclass(frozen=True, slots=True)
class Parts:
    """The operands of an equation by their use. Of a type rule, they are types."""

    n: Any
    consts: list[Any]
    shared: list[Any]
    checkpoints: list[Any]
    linear_consts: list[Any]
    carry: list[Any]

    @staticmethod
    def of(operands: Sequence[Any], params: Params) -> Parts:
        """Cut the operands."""
        (n,), *groups = parts(
            operands, 1, params["consts"], params["shared"], params["checkpoints"],
            params["linear_consts"],
        )  # fmt: skip
        return Parts(n, *groups)

    def all(self) -> list[Any]:
        """The operands in order."""
        return [
            self.n, *self.consts, *self.shared, *self.checkpoints, *self.linear_consts, *self.carry
        ]  # fmt: skip


def _sizes(operands: Sequence[Any], params: Params) -> Sizes:
    """What the sizes of both programs are; they mean the same where they have one name."""
    of = Parts.of(types_of(operands), params)
    step: Program = params["step"]
    linear: Program = params["linear_step"]
    carry = [t.with_shape(t.shape[1:]) for t in of.checkpoints]
    found = sizes_for("while_linear", step, [*of.consts, *carry])
    residuals = [type_with_sizes(t, found) for t in step.output_types[len(carry) :]]
    given_types = [*of.shared, *of.linear_consts, *of.carry, *residuals]
    return {**found, **sizes_for("while_linear", linear, given_types)}


def type_rule(*types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
    """The types of the linear carry."""
    sizes = _sizes(types, params)
    found = tuple(type_with_sizes(t, sizes) for t in params["linear_step"].output_types)
    carry = Parts.of(types, params).carry
    if len(found) != len(carry) or not all(map(is_layout, found, carry)):
        refuse("while_linear", params["linear_step"], types)
    return found


# --- forward ----------------------------------------------------------------------------------


def expand(loop: Primitive, *operands: Any, **params: Any) -> list[Any]:
    """A loop that takes the steps again, and the linear carry along."""
    of = Parts.of(operands, params)
    first = [take(c, ZERO) for c in of.checkpoints]
    counts = params["consts"], params["shared"], params["linear_consts"], len(first)
    body = _forward(params["step"], params["linear_step"], counts)
    consts = [*of.consts, *of.shared, *of.linear_consts]
    outs = _counting(
        loop, of.n, body, _sizes(operands, params), consts, [ZERO, *first, *of.carry],
        params["reverse"],
    )  # fmt: skip
    return outs[1 + len(first) :]


def _counting(
    loop: Primitive, n: Any, body: Program, sizes: Sizes, consts: Sequence[Any],
    carry: Sequence[Any], reverse: Any,
) -> list[Any]:  # fmt: skip
    """A loop that goes on while the first value of its carry is below n."""
    condition = below(tuple(body.input_types[len(consts) :]))
    return Loop(condition, body, sizes, sizes, [n], consts, carry, reverse).bind(loop)


@functools.lru_cache(maxsize=256)
def below(types: tuple[ArrayType, ...]) -> Program:
    return stage(lambda n, i, *rest: [lt(i, n)], [COUNTER, *types], "below").program


@per_program
def _forward(step: Program, linear: Program, counts: tuple[int, int, int, int]) -> Program:
    """i, carry, linear carry -> the same, one step on."""
    consts, shared, linear_consts, kept = counts

    def run(*args: Any) -> list[Any]:
        own, theirs, free, (i,), carry, tangents = parts(
            args, consts, shared, linear_consts, 1, kept
        )
        following, residuals = parts(eval_program(step, [*own, *carry]), kept)
        moved = eval_program(linear, [*theirs, *free, *tangents, *residuals])
        return [add(i, ONE), *following, *moved]

    of_step, of_carry = parts(step.input_types, consts)
    of_linear, of_tangents = parts(linear.input_types, shared + linear_consts)
    tangents = of_tangents[: len(linear.outputs)]
    types = [*of_step, *of_linear, COUNTER, *of_carry, *tangents]
    return stage(run, types, f"forward_{linear.name}").closed()


# --- backward ---------------------------------------------------------------------------------


def transpose(
    loop: Primitive, cts: Sequence[Any], linear: Sequence[bool], *operands: Any, **params: Any
) -> list[Any]:
    """A loop over the steps from the last to the first."""
    of = Parts.of(operands, params)
    counts = params["shared"] + params["linear_consts"], len(of.carry)
    residuals = len(params["linear_step"].inputs) - sum(counts)
    flags = (
        *(False,) * params["shared"], *(True,) * (params["linear_consts"] + counts[1]),
        *(False,) * residuals,
    )  # fmt: skip
    made, summed, carried, _ = transpose_body(
        params["linear_step"], counts, flags, nonzero_flags(cts)
    )
    types = type_rule(*types_of(operands), **params)
    state = [zeros_of(t) if ct is None else ct for ct, t, c in zip(cts, types, carried) if c]
    sums = map(zeros_of, pick(types_of(of.linear_consts), summed))
    outs = _walk(loop, of, params, made, [*state, *sums])
    of_carry, of_const = parts(outs, sum(carried))
    found = [*scatter(of_const, summed), *scatter(of_carry, carried)]
    first = len(operands) - len(found)
    return [None] * first + [ct if lin else None for ct, lin in zip(found, linear[first:])]


def _walk(
    loop: Primitive, of: Parts, params: Params, made: Program, state: Sequence[Any]
) -> list[Any]:
    """The state after `made` was applied to it with the residuals of every step, last one first."""
    count, kept = params["reverse"].count, len(of.checkpoints)
    body = _backward(params["step"], loop, made, (params["consts"], params["shared"], kept), count)
    arrays = [rows_for(t.with_shape(t.shape[1:]), count) for t in types_of(of.checkpoints)]
    stack = [ZERO, *map(zeros_of, (rows_for(COUNTER, count), *arrays))] if kept else []
    consts = [stride(sub(of.n, ONE), count), *of.consts, *of.shared, *of.checkpoints]
    sizes = _sizes(of.all(), params)
    condition = above_zero(tuple(body.input_types[len(consts) :]))
    carry = [of.n, *stack, *state]
    outs = Loop(condition, body, sizes, sizes, [], consts, carry, SECOND_ORDER).bind(loop)
    return outs[1 + len(stack) :]


@functools.lru_cache(maxsize=256)
def above_zero(types: tuple[ArrayType, ...]) -> Program:
    return stage(lambda t, *rest: [gt(t, ZERO)], types, "above_zero").program


@per_program
def _backward(
    step: Program, loop: Primitive, made: Program, counts: tuple[int, int, int], count: int
) -> Program:
    """steps left, stack of carries, state -> the same, one step less.

    The stack is its depth, the positions of its carries, and arrays of them.
    """
    consts, shared, kept = counts
    residuals = len(step.outputs) - kept
    read, _ = needed_inputs(step, (*(False,) * kept, *(True,) * residuals))
    follow, _ = needed_inputs(step, (*(True,) * kept, *(False,) * residuals))

    def run(spacing: Any, *args: Any) -> list[Any]:
        own, theirs, rows, (left,), rest = parts(args, consts, shared, kept, 1)
        stack, state = parts(rest, 2 + kept if kept else 0)
        last, carry = sub(left, ONE), []
        if kept:
            stack, carry = _carry_of(loop, follow, last, own, rows, stack, spacing, count)
        moved = eval_program(made, [*theirs, *state, *eval_program(read, [*own, *carry])])
        return [last, *stack, *moved]

    of_step, of_carry = parts(step.input_types, consts)
    of_shared, of_state, _ = parts(made.input_types, shared, len(made.outputs))
    arrays = [rows_for(t, count) for t in of_carry]
    stack = [COUNTER, rows_for(COUNTER, count), *arrays] if kept else []
    types = [COUNTER, *of_step, *of_shared, *arrays, COUNTER, *stack, *of_state]
    return stage(run, types, f"backward_{made.name}").closed()


def _carry_of(
    loop: Primitive, follow: Program, last: Any, own: Sequence[Any], rows: Sequence[Any],
    stack: Sequence[Any], spacing: Any, count: int,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """The stack, and the carry with which step `last` began.

    It is found from the top of the stack, or from the carry that the loop kept before it.
    """
    depth, positions, *arrays = stack
    filled, top = gt(depth, ZERO), max(sub(depth, ONE), ZERO)
    base = is_kept(last, spacing)
    place = slot(base, count)
    position = select(filled, take(positions, top), base)
    carry = [select(filled, take(a, top), take(r, place)) for a, r in zip(arrays, rows)]
    stop = _next_stop(position, last, depth, count)
    body = _advance(follow, count)
    state = [position, stop, depth, positions, *arrays, *carry]
    condition = below(tuple(body.input_types[1 + len(own) :]))
    found = Loop(condition, body, {}, {}, [last], [last, *own], state, SECOND_ORDER).bind(loop)
    _, (depth, positions), arrays, carry = parts(found, 2, 2, len(arrays))
    is_top = eq(take(positions, max(sub(depth, ONE), ZERO)), last)
    popped = select(logical_and(gt(depth, ZERO), is_top), sub(depth, ONE), depth)
    return [popped, positions, *arrays], carry


def _next_stop(position: Any, last: Any, depth: Any, count: int) -> Any:
    """Where to keep the next carry: one step on if all carries fit, else half way."""
    gap, free = sub(last, position), sub(np.int32(count), depth)
    half = max(div(gap, np.int32(2)), ONE)
    return add(position, select(le(gap, add(free, ONE)), ONE, half))


@per_program
def _advance(follow: Program, count: int) -> Program:
    """position, next stop, stack, carry -> the same, one step on; a carry at a stop is kept."""
    kept = len(follow.outputs)

    def run(last: Any, *args: Any) -> list[Any]:
        own, (position, stop, depth, positions), arrays, carry = parts(
            args, len(follow.inputs) - kept, 4, kept
        )
        carry, position = eval_program(follow, [*own, *carry]), add(position, ONE)
        row = min(depth, np.int32(count - 1))
        free = logical_and(lt(depth, np.int32(count)), lt(position, last))
        keeps = logical_and(eq(position, stop), free)
        positions = put(positions, row, position, keeps)
        arrays = [put(a, row, x, keeps) for a, x in zip(arrays, carry)]
        depth = select(keeps, add(depth, ONE), depth)
        stop = select(keeps, _next_stop(position, last, depth, count), stop)
        return [position, stop, depth, positions, *arrays, *carry]

    own, carry = parts(follow.input_types, len(follow.inputs) - kept)
    arrays = [rows_for(t, count) for t in (COUNTER, *carry)]
    types = [COUNTER, *own, *(COUNTER,) * 3, *arrays, *carry]
    return stage(run, types, f"advance_{follow.name}").closed()


# --- the other rules --------------------------------------------------------------------------


def jvp(
    loop: Primitive, primals: Sequence[Any], tangents: Sequence[Any], params: Params
) -> tuple[list[Any], list[Any]]:
    """That of the loop it stands for."""
    return jvp_flat(lambda *xs: expand(loop, *xs, **params), primals, tangents)


def partial(
    loop: Primitive, itself: Primitive, interpreter: Partial, args: Sequence[Any],
    unknown: Sequence[bool], params: Params,
) -> list[Any]:  # fmt: skip
    """Written down where only the linear operands are unknown, else expanded."""
    of = Parts.of(unknown, params)
    if not any([of.n, *of.consts, *of.shared, *of.checkpoints]):
        return interpreter.write(itself, args, params)
    with use(interpreter):
        return expand(loop, *args, **params)


def batch(
    loop: Primitive, itself: Primitive, batched: Sequence[bool], size: Size, *args: Any,
    **params: Any,
) -> tuple[list[Any], Sequence[bool]]:  # fmt: skip
    """The same on all lanes; the loop it stands for, where lanes differ in how many steps."""
    of, lanes = Parts.of(args, params), Parts.of(batched, params)
    if lanes.n:
        return batch_flat(lambda *xs: expand(loop, *xs, **params), size, args, batched, own_axis())
    own = own_size(size, params["step"], params["linear_step"])
    kept = len(of.checkpoints)
    step, rows, residuals = batch_body(
        params["step"], (len(of.consts), kept), (*lanes.consts, *lanes.checkpoints), own
    )
    shared = len(of.shared) + len(of.linear_consts)
    flags = (*lanes.shared, *lanes.linear_consts, *lanes.carry, *residuals)
    linear, carries, _ = batch_body(params["linear_step"], (shared, len(of.carry)), flags, own)
    moved = replace(
        of,
        checkpoints=[
            x if not r else move_axis(x if b else repeat_lane(x, size), 0, 1)
            for x, b, r in zip(of.checkpoints, lanes.checkpoints, rows)
        ],
        carry=[
            repeat_lane(x, size) if c and not b else x
            for x, b, c in zip(of.carry, lanes.carry, carries)
        ],
    )
    return write(itself, moved, step, linear, {}, params["reverse"]), carries


def write(
    itself: Any, of: Parts, step: Program, linear: Program, sizes: Sizes, reverse: Checkpoints
) -> list[Any]:
    """Bind the equation. `itself` is called with operands and parameters."""
    step, of_step = closed(step, sizes)
    linear, of_linear = closed(linear, sizes)
    of = replace(of, consts=[*of_step, *of.consts], shared=[*of_linear, *of.shared])
    return itself(
        *of.all(), step=step, linear_step=linear, consts=len(of.consts), shared=len(of.shared),
        checkpoints=len(of.checkpoints), linear_consts=len(of.linear_consts), reverse=reverse,
    )  # fmt: skip


def dead_code(wanted: Sequence[bool], equation: Equation) -> Equation:
    """The equation of the linear carries that wanted results need, and of what these read."""
    params, of = equation.params, Parts.of(equation.operands, equation.params)
    counts = len(of.consts), len(of.shared), len(of.checkpoints), len(of.linear_consts)
    step, linear, kept, taken, carries = _pruned(
        params["step"], params["linear_step"], counts, tuple(wanted)
    )
    of_step = pick([*of.consts, *of.checkpoints], kept)
    of_linear = pick([*of.shared, *of.linear_consts, *of.carry], taken)
    first, second = sum(kept[: counts[0]]), sum(taken[: counts[1]])
    third = sum(taken[counts[1] : counts[1] + counts[3]])
    consts, checkpoints = parts(of_step, first)
    shared, linear_consts, carry = parts(of_linear, second, third)
    small = Parts(of.n, consts, shared, checkpoints, linear_consts, carry)
    changed = {
        "step": step, "linear_step": linear, "consts": first, "shared": second,
        "checkpoints": len(checkpoints), "linear_consts": third,
    }  # fmt: skip
    return replace(
        equation, operands=tuple(small.all()),
        results=tuple(pick(equation.results, carries)), params={**params, **changed},
    )  # fmt: skip


@per_program
def _pruned(
    step: Program, linear: Program, counts: tuple[int, int, int, int], wanted: Flags
) -> tuple[Program, Program, Flags, Flags, Flags]:
    consts, shared, kept, linear_consts = counts
    of: Counts = (shared + linear_consts, len(linear.outputs))
    small, taken, carries = prune_body(linear, of, wanted)
    ours, residuals = taken[: sum(of)], taken[sum(of) :]
    made, needed, _ = prune_body(step, (consts, kept), (*(False,) * kept, *residuals))
    return made, small, needed, ours, carries
