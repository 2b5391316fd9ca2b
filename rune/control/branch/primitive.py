"""`cond`: one of several programs, chosen by a number; every language rule.

    outs = cond number operands {branches=(program, ...)}

All branches take all operands. A rule rewrites every branch so that the results agree: a tangent,
a cotangent or a lane that one branch has, all have. Linear parts of branches read residuals from
slots that the branches share by type; a branch leaves zeros in those that are not its own.

When lanes choose differently, every branch runs and each lane selects; lanes.py has what a branch
sees of the lanes that did not choose it. One with a loop that may never end runs only if chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rune import dtypes
from rune.control.idle_lanes import borrowed, guarded, select_lanes
from rune.control.programs import (
    Flags,
    closed_together,
    either,
    given,
    holds,
    is_layout,
    matched,
    merged,
    needed_inputs,
    parts,
    refuse,
    run_equation,
    slots_for,
    spread,
    types_of,
    where,
    where_not,
    with_inputs,
    with_slots,
)
from rune.control.saved_values import keep_of_cond
from rune.core.evaluate import eval_program
from rune.core.interpreter import type_of
from rune.core.lower import Control
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program
from rune.core.sizes import Sizes, type_with_sizes
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.ops import convert, eq, max, min, reduce_or
from rune.ops.family import not_linear, zeros_of
from rune.transforms.batching.vmap import batch_program
from rune.transforms.callback import refuse_io
from rune.transforms.checkpoint.saved_values import Keeps, Replay
from rune.transforms.derivatives.jvp import jvp_program
from rune.transforms.derivatives.linearize import Partial, split_program
from rune.transforms.derivatives.transpose import transpose_program
from rune.transforms.programs.memo import per_program
from rune.transforms.programs.size_witnesses import own_size

NUMBER = ArrayType((), dtypes.i32)
Branches = tuple[Program, ...]


def _sizes(branches: Branches, types: Sequence[ArrayType]) -> list[Sizes]:
    return [matched("cond", b, types) for b in branches]


def _type_rule(*types: ArrayType, branches: Branches) -> tuple[ArrayType, ...]:
    number, *operands = types
    if number.shape or number.dtype != dtypes.i32:
        refuse("cond", branches[0], types)
    columns = [
        tuple(type_with_sizes(t, sizes) for t in b.output_types)
        for b, sizes in zip(branches, _sizes(branches, operands))
    ]
    for b, column in zip(branches, columns):
        if len(column) != len(columns[0]) or not all(map(is_layout, column, columns[0])):
            refuse("cond", b, types)
    return tuple(
        ArrayType(row[0].shape, row[0].dtype, all(t.weak for t in row))
        for row in zip(*columns, strict=True)
    )


def _interpret(evaluate: Callable[..., list], number: Any, *operands: Any, branches: Branches):
    chosen = sorted((0, int(number), len(branches) - 1))[1]
    return evaluate(branches[chosen], operands)


def _bind(
    number: Any, branches: Branches, sizes: Sequence[Sizes], operands: Sequence[Any]
) -> list[Any]:
    whole, leading = closed_together(branches, sizes)
    return cond(number, *leading, *operands, branches=whole)


# --- derivatives ------------------------------------------------------------------------------


@per_program
def _jvp_branches(first: Program, rest: Branches, nonzero: Flags) -> tuple[Branches, Flags]:
    branches = (first, *rest)
    found = either(*(jvp_program(b, nonzero)[1] for b in branches))
    return tuple(jvp_program(b, nonzero, found)[0] for b in branches), found


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], params: Mapping[str, Any]) -> Any:
    first, *rest = params["branches"]
    rewritten, nonzero = _jvp_branches(first, tuple(rest), given(tangents[1:]))
    operands = [*primals[1:], *where(tangents, given(tangents))]
    outs = _bind(primals[0], rewritten, [{}] * len(rewritten), operands)
    values, found = parts(outs, len(first.outputs))
    return values, spread(found, nonzero)


@dataclass(frozen=True, slots=True)
class _Split:
    """Branches split by what is known.

    known:    known operands -> known results, residual slots
    unknown:  residual slots, the known operands `passed`, unknown operands -> unknown results
    """

    known: Branches
    unknown: Branches
    passed: tuple[int, ...]
    known_outputs: Flags


@per_program
def _split_branches(first: Program, rest: Branches, unknown: Flags) -> _Split:
    branches = (first, *rest)
    natural = [split_program(b, unknown) for b in branches]
    free = either(*(tuple(not k for k in s.known_outputs) for s in natural))
    splits = [split_program(b, unknown, free) for b in branches]
    count = len(free) - sum(free)
    slots, places = slots_for([s.known.output_types[count:] for s in splits])
    passed = sorted({n for s in splits for n in s.residual_inputs if n is not None})
    types = where_not(first.input_types, unknown)
    free_types = (*slots, *(types[n] for n in passed), *where(first.input_types, unknown))
    known_parts, unknown_parts = [], []
    for s, own in zip(splits, places):
        known_parts.append(with_slots(s.known, count, own, slots))
        computed = iter(own)
        first_passed = len(slots)
        positions = [
            next(computed) if n is None else first_passed + passed.index(n)
            for n in s.residual_inputs
        ]
        positions += range(first_passed + len(passed), len(free_types))
        unknown_parts.append(with_inputs(s.unknown, tuple(positions), free_types))
    known_outputs = tuple(not f for f in free)
    return _Split(tuple(known_parts), tuple(unknown_parts), tuple(passed), known_outputs)


def _partial(
    partial: Partial, args: Sequence[Any], unknown: Sequence[bool], params: Mapping[str, Any]
) -> list[Any]:
    number, *operands = args
    if unknown[0]:
        return partial.write(cond, args, params)
    branches: Branches = params["branches"]
    free = tuple(unknown[1:])
    split = _split_branches(branches[0], branches[1:], free)
    sizes = _sizes(branches, [type_of(x) for x in operands])
    known_args = where_not(operands, free)
    outs = _bind(number, split.known, sizes, known_args) if split.known[0].outputs else []
    values, residuals = parts(outs, sum(split.known_outputs))
    rest, leading = closed_together(split.unknown, sizes)
    passed = [known_args[n] for n in split.passed]
    arguments = [number, *leading, *residuals, *passed, *where(operands, free)]
    return merged(split.known_outputs, values, partial.write(cond, arguments, {"branches": rest}))


@per_program
def _transpose_branches(
    first: Program, rest: Branches, linear: Flags, nonzero: Flags
) -> tuple[Branches, Flags]:
    branches = (first, *rest)
    found = either(*(transpose_program(b, linear, nonzero)[1] for b in branches))
    return tuple(transpose_program(b, linear, nonzero, found)[0] for b in branches), found


def _transpose(
    cts: Sequence[Any], linear: Sequence[bool], number: Any, *operands: Any, branches: Branches
) -> list[Any]:
    if linear[0]:
        raise not_linear("cond", "the choice of its branch depends on the tangents")
    free = tuple(linear[1:])
    rewritten, nonzero = _transpose_branches(branches[0], branches[1:], free, given(cts))
    types = [x if lin else type_of(x) for x, lin in zip(operands, free, strict=True)]
    arguments = [*where_not(operands, free), *where(cts, given(cts))]
    outs = _bind(number, rewritten, _sizes(branches, types), arguments)
    return [None, *spread(spread(outs, nonzero), free)]


# --- lanes ------------------------------------------------------------------------------------


@per_program
def _batch_branches(
    first: Program, rest: Branches, batched: Flags, size: Any
) -> tuple[Branches, Flags]:
    branches = (first, *rest)
    found = either(*(batch_program(b, batched, size)[1] for b in branches))
    return tuple(batch_program(b, batched, size, found)[0] for b in branches), found


def _batch(
    batched: Sequence[bool], size: Any, number: Any, *operands: Any, branches: Branches
) -> tuple[list[Any], Sequence[bool]]:
    if batched[0]:
        outs = _every_branch(batched[1:], size, number, operands, branches)
        return outs, [True] * len(outs)
    own = own_size(size, *branches)
    rewritten, found = _batch_branches(branches[0], branches[1:], tuple(batched[1:]), own)
    return _bind(number, rewritten, [{}] * len(branches), operands), found


def _every_branch(
    batched: Sequence[bool], size: Any, number: Any, operands: Sequence[Any], branches: Branches
) -> list[Any]:
    """The results of all branches, of which each lane selects its own."""
    refuse_io("cond", branches)
    number = max(min(number, np.int32(len(branches) - 1)), np.int32(0))
    outs: list[Any] = []
    for i, b in enumerate(branches):
        chosen = eq(number, np.int32(i))
        run = _if_chosen if holds(b, _is_loop) else _on_every_lane
        found = run(chosen, b, batched, size, operands)
        outs = [select_lanes(chosen, n, o) for n, o in zip(found, outs)] if i else found
    return outs


def _is_loop(equation: Equation) -> bool:
    """True for a loop that may never end."""
    return equation.primitive.name in ("while", "while_linear")


def _on_every_lane(
    chosen: Any, branch: Program, batched: Sequence[bool], size: Any, operands: Sequence[Any]
) -> list[Any]:
    seen = [guarded(chosen, x, lanes, size) for x, lanes in zip(operands, batched)]
    flags = tuple(lanes for _, lanes in seen)
    forced = (True,) * len(branch.outputs)
    rewritten, _ = batch_program(branch, flags, own_size(size, branch), forced)
    return eval_program(rewritten, [x for x, _ in seen])


def _if_chosen(
    chosen: Any, branch: Program, batched: Sequence[bool], size: Any, operands: Sequence[Any]
) -> list[Any]:
    """The branch, if any lane chose it; the other lanes borrow their operands from that one."""
    forced = (True,) * len(branch.outputs)
    rewritten, _ = batch_program(branch, tuple(batched), own_size(size, branch), forced)
    seen = borrowed(chosen, operands, batched)
    any_lane = convert(reduce_or(chosen, axes=(0,)), dtype=dtypes.i32)
    return _bind(any_lane, (_zeros(rewritten), rewritten), [{}, {}], seen)


@per_program
def _zeros(program: Program) -> Program:
    """A program of the same inputs whose results are zero."""
    types = program.output_types
    return stage(lambda *_: list(map(zeros_of, types)), program.input_types, "zeros").closed()


# --- unused results ---------------------------------------------------------------------------


@per_program
def _prune_branches(first: Program, rest: Branches, wanted: Flags) -> tuple[Branches, Flags]:
    pruned = [needed_inputs(b, wanted) for b in (first, *rest)]
    needed = either(*(flags for _, flags in pruned))
    kept = (replace(p, inputs=tuple(where(p.inputs, needed))) for p, _ in pruned)
    return tuple(kept), needed


def _dead_code(wanted: Sequence[bool], equation: Equation) -> Equation:
    first, *rest = equation.params["branches"]
    branches, needed = _prune_branches(first, tuple(rest), tuple(wanted))
    return replace(
        equation,
        operands=(equation.operands[0], *where(equation.operands[1:], needed)),
        results=tuple(where(equation.results, wanted)),
        params={"branches": branches},
    )


def _keeping(equation: Equation, keeps: Keeps) -> Replay | None:
    types = types_of(equation.operands[1:])
    return keep_of_cond(equation, keeps, _sizes(equation.params["branches"], types))


cond = Primitive(
    "cond", "control", _type_rule,
    transpose=_transpose, batch=_batch, multiple_results=True, lower=Control.BRANCH,
    run=lambda *args, **params: run_equation(cond, args, params), interpret=_interpret,
    jvp_equation=_jvp, partial_equation=_partial, dead_code=_dead_code, keeping=_keeping,
)  # fmt: skip
