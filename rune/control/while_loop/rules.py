"""Rules of `while`: types, meaning, tangents, lanes, unused results.

    outs = while condition_consts body_consts carry
           {condition=, body=, condition_consts=, body_consts=, reverse=}

The condition reads primal values alone, so a derivative takes as many steps as the loop.

When lanes differ in how long they go on, the loop goes on for the longest, and a lane that has
finished keeps its carry. The body then sees that lane's first carry, on which it has run before
(one that never ran borrows from another: lanes.py).

Rules that bind the primitive take it as their first argument, `loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rune import dtypes
from rune.control.idle_lanes import borrowed, constant, select_lanes
from rune.control.loop_bodies import batch_body, jvp_body, prune_body
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
    with_inputs,
)
from rune.control.while_loop.checkpoints import Policy
from rune.core.evaluate import eval_program
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program
from rune.core.sizes import Sizes, type_with_sizes
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.dims import Size
from rune.ops import reduce_or
from rune.ops.family import zeros_like
from rune.ops.movement import repeat_lane
from rune.transforms.batching.vmap import batch_program
from rune.transforms.callback import refuse_io
from rune.transforms.programs.memo import per_program
from rune.transforms.programs.size_witnesses import own_size

Params = Mapping[str, Any]
TRUTH = ArrayType((), dtypes.bool_)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop about to be bound: programs, what their sizes are, and values."""

    condition: Program
    body: Program
    condition_sizes: Sizes
    body_sizes: Sizes
    condition_consts: Sequence[Any]
    body_consts: Sequence[Any]
    carry: Sequence[Any]
    reverse: Policy

    def bind(self, loop: Primitive) -> list[Any]:
        """The last carry."""
        condition, of_condition = closed(self.condition, self.condition_sizes)
        body, of_body = closed(self.body, self.body_sizes)
        first = [*of_condition, *self.condition_consts]
        second = [*of_body, *self.body_consts]
        return loop(
            *first, *second, *self.carry, condition=condition, body=body,
            condition_consts=len(first), body_consts=len(second), reverse=self.reverse,
        )  # fmt: skip


def unpacked(args: Sequence[Any], params: Params) -> Loop:
    """The loop of an equation; what its sizes are is not looked for."""
    first, second, carry = parts(args, params["condition_consts"], params["body_consts"])
    return Loop(
        params["condition"], params["body"], {}, {}, first, second, carry, params["reverse"]
    )


def sized(loop: Loop) -> Loop:
    """The loop with its sizes, as its values tell them. A value may be its type."""
    carry = types_of(loop.carry)
    of_condition = [*types_of(loop.condition_consts), *carry]
    return replace(
        loop,
        condition_sizes=sizes_for("while", loop.condition, of_condition),
        body_sizes=sizes_for("while", loop.body, [*types_of(loop.body_consts), *carry]),
    )


def type_rule(*types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
    """The types of the carry, as the body yields it."""
    loop = sized(unpacked(types, params))
    found = tuple(type_with_sizes(t, loop.body_sizes) for t in loop.body.output_types)
    if loop.condition.output_types != (TRUTH,):
        refuse("while", loop.condition, types)
    if len(found) != len(loop.carry) or not all(map(is_layout, found, loop.carry)):
        refuse("while", loop.body, types)
    return found


def interpret(evaluate: Callable[..., list], *args: Any, **params: Any) -> list[Any]:
    """The meaning: step by step."""
    loop = unpacked(args, params)
    state = list(loop.carry)
    while bool(evaluate(loop.condition, [*loop.condition_consts, *state])[0]):
        state = evaluate(loop.body, [*loop.body_consts, *state])
    return state


# --- tangents ---------------------------------------------------------------------------------


def jvp(
    loop: Primitive, primals: Sequence[Any], tangents: Sequence[Any], params: Params
) -> tuple[list[Any], list[Any]]:
    """A loop whose carry holds tangents beside values."""
    found = unpacked(primals, params)
    consts, count = len(found.body_consts), len(found.carry)
    _, of_consts, of_carry = parts(tangents, len(found.condition_consts), consts)
    nonzero = nonzero_flags([*of_consts, *of_carry])
    body, carries, _ = jvp_body(found.body, (consts, count), nonzero)
    started = [
        zeros_like(x) if t is None else t for x, t, c in zip(found.carry, of_carry, carries) if c
    ]
    types = (*found.condition.input_types, *body.input_types[len(body.inputs) - len(started) :])
    condition = with_inputs(found.condition, tuple(range(len(found.condition.inputs))), types)
    outs = replace(
        found, condition=condition, body=body,
        body_consts=[*found.body_consts, *pick(of_consts, nonzero_flags(of_consts))],
        carry=[*found.carry, *started],
    ).bind(loop)  # fmt: skip
    return outs[:count], scatter(outs[count:], carries)


# --- lanes ------------------------------------------------------------------------------------


def batch(
    loop: Primitive, batched: Sequence[bool], size: Size, *args: Any, **params: Any
) -> tuple[list[Any], Sequence[bool]]:
    """A loop over all lanes, which goes on while any lane does."""
    found = unpacked(args, params)
    counts = len(found.condition_consts), len(found.body_consts), len(found.carry)
    own = own_size(size, found.condition, found.body)
    made = _batched(found.body, found.condition, counts, tuple(batched), own)
    _, _, of_carry = parts(batched, *counts[:2])
    carry = [
        repeat_lane(x, size) if c and not b else x
        for x, b, c in zip(found.carry, of_carry, made.carries)
    ]
    consts = found.body_consts
    if made.differs:
        refuse_io("while_loop", (found.condition, found.body))
        consts = _for_all_lanes(found, made.lanes, batched, carry)
    changed = replace(
        found, condition=made.condition, body=made.body, body_consts=consts, carry=carry
    )
    return changed.bind(loop), made.carries


def _for_all_lanes(
    found: Loop, condition: Program, batched: Sequence[bool], carry: Sequence[Any]
) -> list[Any]:
    """Consts of the condition, those of the body and the first carry.

    A lane that takes no step has the latter ones of a lane that does.
    """
    first, second = len(found.condition_consts), len(found.body_consts)
    (going,) = eval_program(condition, [*found.condition_consts, *carry])
    flags = [*batched[first : first + second], *(True for _ in carry)]
    started = borrowed(going, [*found.body_consts, *carry], flags)
    return [*found.condition_consts, *started]


@dataclass(frozen=True, slots=True)
class _Batched:
    """A loop over lanes; which carries have them, and whether lanes differ in their steps.

    Where they do, `lanes` is the condition lane by lane, and the body takes the consts of the
    condition, its own, and the first carry.
    """

    condition: Program
    body: Program
    carries: Flags
    differs: bool
    lanes: Program


@per_program
def _batched(
    body: Program, condition: Program, counts: tuple[int, int, int], batched: Flags, size: Any
) -> _Batched:
    first, consts, count = counts
    of_condition, of_body = batched[:first], batched[first:]
    made, carries, _ = batch_body(body, (consts, count), of_body, size)
    lanes, (differs,) = batch_program(condition, (*of_condition, *carries), size)
    if not differs:
        return _Batched(lanes, made, carries, False, lanes)
    carries = (True,) * count
    made, _, _ = batch_body(body, (consts, count), (*of_body[:consts], *carries), size)
    lanes, _ = batch_program(condition, (*of_condition, *carries), size)
    return _Batched(_any_lane(lanes), _freezing(lanes, made, counts), carries, True, lanes)


def _any_lane(condition: Program) -> Program:
    def run(*args: Any) -> list[Any]:
        return [reduce_or(eval_program(condition, args)[0], axes=(0,))]

    return stage(run, condition.input_types, condition.name).closed()


def _freezing(condition: Program, body: Program, counts: tuple[int, int, int]) -> Program:
    """The body that changes only the lanes for which the condition holds."""
    first, consts, count = counts

    def run(*args: Any) -> list[Any]:
        of_condition, of_body, start, carry = parts(args, first, consts, count)
        (going,) = eval_program(condition, [*of_condition, *carry])
        seen = [select_lanes(going, x, constant(s)) for x, s in zip(carry, start)]
        new = eval_program(body, [*of_body, *seen])
        return [select_lanes(going, n, x) for n, x in zip(new, carry)]

    types = body.input_types
    return stage(run, [*condition.input_types[:first], *types, *types[consts:]], body.name).closed()


# --- unused results ---------------------------------------------------------------------------


@per_program
def _pruned(
    body: Program, condition: Program, counts: tuple[int, int, int], wanted: Flags
) -> tuple[Program, Program, Flags, Flags]:
    first, consts, count = counts
    small, read = needed_inputs(condition, (True,))
    started = tuple(w or r for w, r in zip(wanted, read[first:]))
    made, taken, carries = prune_body(body, (consts, count), started)
    kept = (*read[:first], *carries)
    return made, replace(small, inputs=tuple(pick(small.inputs, kept))), kept, taken


def dead_code(wanted: Sequence[bool], equation: Equation) -> Equation:
    """The loop over the carries that wanted results and the condition need."""
    params = equation.params
    first, second = params["condition_consts"], params["body_consts"]
    counts = first, second, len(equation.results)
    body, condition, kept, taken = _pruned(
        params["body"], params["condition"], counts, tuple(wanted)
    )
    changed = {
        "body": body, "condition": condition, "condition_consts": sum(kept[:first]),
        "body_consts": sum(taken[:second]),
    }  # fmt: skip
    return replace(
        equation,
        operands=tuple(pick(equation.operands, (*kept[:first], *taken))),
        results=tuple(pick(equation.results, kept[first:])),
        params={**params, **changed},
    )
