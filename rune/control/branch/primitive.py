"""`cond`: a number selects one of several programs; all rules of the primitive.

    outs = cond number operands {branches=(program, ...)}

All branches take all operands. A rule rewrites every branch so that their results agree: if a
result has a tangent, a cotangent or lanes in one branch, it does in all. The linear parts of the
branches read residuals from slots that the branches share by type; a branch fills slots that it
does not use with zeros.

When lanes select different branches, every branch runs and each lane selects its own result;
idle_lanes.py says which values a branch gets for lanes that did not select it. A branch with a
loop that may not end runs only if some lane selected it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, SupportsInt

import numpy as np

from rune import dtypes
from rune.array import Array
from rune.control.branch.saved_values import keep_of_cond
from rune.control.idle_lanes import borrowed, guarded, select_lanes
from rune.control.programs import (
    closed_together,
    refuse,
    run_equation,
    sizes_for,
    slots_for,
    types_of,
    with_inputs,
    with_slots,
)
from rune.core.axes import per_program_and_lanes
from rune.core.dead_code import narrowed, needed_inputs, with_inputs_picked
from rune.core.evaluate import eval_program
from rune.core.higher import HigherOrder, equations_within
from rune.core.interpreter import type_of
from rune.core.lists import Flags, merge, nonzero_flags, nonzeros, omit, parts, pick, scatter, union
from rune.core.memo import per_program, per_programs
from rune.core.program import Atom, Equation, Program
from rune.core.sizes import Sizes, type_with_sizes
from rune.core.staging import stage
from rune.core.types import ArrayType, Axes, same_layout
from rune.core.values import Params, Value
from rune.core.varying import Variation
from rune.dims import Size
from rune.ops import convert, eq, le, max, min, reduce_or, select
from rune.ops.branch import branch_calls, cond_as_branch
from rune.ops.family import fit, not_linear, zeros_of
from rune.records import dataclass
from rune.transforms.batching.batch import batch_program
from rune.transforms.callback import refuse_io
from rune.transforms.checkpoint.saved_values import Keeps, Replay
from rune.transforms.derivatives.held_programs import jvp_program, split_program, transpose_program
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.derivatives.series import Rows, Taylor, flat_rows, moving_rows, rows_of, series_program
from rune.transforms.programs.size_witnesses import own_size
from rune.transforms.programs.variation import axes_of, typed

Branches = tuple[Program, ...]


def _sizes(branches: Branches, types: Sequence[ArrayType]) -> list[Sizes]:
    return [sizes_for("cond", b, types) for b in branches]


def _type_rule(*types: ArrayType, branches: Branches) -> tuple[ArrayType, ...]:
    number, *operands = types
    if number.shape or number.dtype != dtypes.i32:
        refuse("cond", branches[0], types)
    columns = [
        tuple(type_with_sizes(t, sizes) for t in b.output_types)
        for b, sizes in zip(branches, _sizes(branches, operands))
    ]
    # Weakness may differ, but shapes and dtypes must not: the result has one type.
    for b, column in zip(branches, columns):
        if len(column) != len(columns[0]) or not all(map(same_layout, column, columns[0])):
            refuse("cond", b, types)
    # Whichever branch runs, a result called weak must be weak.
    return tuple(ArrayType(row[0].shape, row[0].dtype, all(t.weak for t in row)) for row in zip(*columns, strict=True))


def _interpret(evaluate: Callable[..., list], number: SupportsInt, *operands: Value, branches: Branches):
    # The median of three: the number itself, or the end of the range that it lies beyond.
    nearest = sorted((0, int(number), len(branches) - 1))[1]
    return evaluate(branches[nearest], operands)


def _bind(number: object, branches: Branches, sizes: Sequence[Sizes], operands: Sequence[Value]) -> list[Array]:
    closed_branches, leading = closed_together(branches, sizes)
    return cond(number, *leading, *operands, branches=closed_branches)


# --- derivatives ------------------------------------------------------------------------------


@per_programs
def _jvp_branches(branches: Branches, nonzero: Flags) -> tuple[Branches, Flags]:
    # Two passes: only after the first is it known which results have a tangent in any branch. A
    # branch where such a tangent is zero yields an array of zeros.
    nonzero_results = union(*(jvp_program(b, nonzero)[1] for b in branches))
    return tuple(jvp_program(b, nonzero, nonzero_results)[0] for b in branches), nonzero_results


def _jvp(primals: Sequence[Value], tangents: Sequence[Value | None], params: Params) -> Any:
    # The number of the branch is an integer and has no tangent.
    branches: Branches = params["branches"]
    rewritten, nonzero_results = _jvp_branches(branches, nonzero_flags(tangents[1:]))
    outs = _bind(primals[0], rewritten, [{}] * len(rewritten), [*primals[1:], *nonzeros(tangents)])
    values, tangent_outs = parts(outs, len(branches[0].outputs))
    return values, scatter(tangent_outs, nonzero_results)


def _series(interpreter: Taylor, args: Sequence[Value], params: Params) -> list[Value]:
    """Each branch on series; all branches at once inside a rule, which asks term by term."""
    branches = params["branches"]
    # A rule that is being applied may lead back to terms not yet known, so rows of coefficients
    # cannot be formed: every branch is evaluated, and the results selected.
    if interpreter.rules:
        return _chosen(args[0], [eval_program(b, args[1:]) for b in branches])

    def run(order: int, rows: Rows) -> Rows:
        (number,), *operands = rows
        moving = moving_rows(operands)
        rewritten = tuple(series_program(b, moving, order) for b in branches)
        outs = _bind(number, rewritten, [{}] * len(rewritten), flat_rows(operands))
        return rows_of(outs, branches[0].output_types, order)

    return interpreter.replayed(args, run)


def _chosen(number: Value, results: Sequence[Sequence[Value]]) -> list[Value]:
    """The results of the branch with that number, or the nearest one."""
    # From the last branch backwards with `<=`, so that numbers out of range select the ends.
    *outs_before_last, selection = results
    for i, outs in reversed([*enumerate(outs_before_last)]):
        is_selected = le(number, np.int32(i))
        selection = [select(fit(is_selected, type_of(x).shape), x, y) for x, y in zip(outs, selection, strict=True)]
    return [*selection]


@dataclass(frozen=True, slots=True)
class _Split:
    """Branches split by what is known.

    known:    known operands -> known results, residual slots
    unknown:  residual slots, the `passed_operands`, unknown operands -> unknown results

    A residual that is an operand of the equation is passed on, and takes no slot.
    """

    known: Branches
    unknown: Branches
    passed_operands: tuple[int, ...]
    known_outputs: Flags


@per_programs
def _split_branches(branches: Branches, unknown: Flags) -> _Split:
    natural = [split_program(b, unknown) for b in branches]
    # A result that is unknown in any branch counts as unknown: which branch runs is not known here.
    unknown_results = union(*(tuple(not k for k in split.known_outputs) for split in natural))
    splits = [split_program(b, unknown, unknown_results) for b in branches]
    count = len(unknown_results) - sum(unknown_results)
    # The known part yields its results first, and then the residuals that it computed.
    slots, places = slots_for([split.known.output_types[count:] for split in splits])
    # One branch may read an operand as a residual that another does not: all take all of them.
    passed_operands = sorted({n for split in splits for n in split.residual_inputs if n is not None})
    input_types = branches[0].input_types
    known_types = omit(input_types, unknown)
    types = (*slots, *(known_types[n] for n in passed_operands), *pick(input_types, unknown))
    known_branches, unknown_branches = [], []
    for split, branch_slots in zip(splits, places):
        known_branches.append(with_slots(split.known, count, branch_slots, slots))
        computed_slots = iter(branch_slots)  # residuals that the branch computes, in their order
        first_passed = len(slots)
        positions = [
            next(computed_slots) if n is None else first_passed + passed_operands.index(n)
            for n in split.residual_inputs
        ]
        positions += range(first_passed + len(passed_operands), len(types))
        unknown_branches.append(with_inputs(split.unknown, tuple(positions), types))
    known_outputs = tuple(not f for f in unknown_results)
    return _Split(tuple(known_branches), tuple(unknown_branches), tuple(passed_operands), known_outputs)


def _partial(interpreter: Partial, args: Sequence[Value], unknown: Sequence[bool], params: Params) -> list[Value]:
    number, *operands = args
    if unknown[0]:  # which branch runs is not known, so nothing can run
        return interpreter.write(cond, args, params)
    branches: Branches = params["branches"]
    unknown_operands = tuple(unknown[1:])
    split = _split_branches(branches, unknown_operands)
    sizes = _sizes(branches, [type_of(x) for x in operands])
    known_args = omit(operands, unknown_operands)
    # Without known results and residuals, nothing needs to run now.
    outs = _bind(number, split.known, sizes, known_args) if split.known[0].outputs else []
    # Slots follow the known results in every branch.
    values, residuals = parts(outs, sum(split.known_outputs))
    unknown_branches, leading = closed_together(split.unknown, sizes)
    passed_values = [known_args[n] for n in split.passed_operands]
    arguments = [number, *leading, *residuals, *passed_values, *pick(operands, unknown_operands)]
    unknown_values = interpreter.write(cond, arguments, {"branches": unknown_branches})
    return merge(split.known_outputs, values, unknown_values)


@per_programs
def _transpose_branches(branches: Branches, linear: Flags, nonzero: Flags) -> tuple[Branches, Flags]:
    # All branches have the same results, so an operand has a cotangent if any branch gives it one.
    nonzero_operands = union(*(transpose_program(b, linear, nonzero)[1] for b in branches))
    transposed_branches = (transpose_program(b, linear, nonzero, nonzero_operands)[0] for b in branches)
    return tuple(transposed_branches), nonzero_operands


def _transpose(
    cts: Sequence[Value], linear: Sequence[bool], number: object, *operands: Any, branches: Branches
) -> list[Array | None]:
    if linear[0]:
        raise not_linear("cond", "the choice of its branch depends on the tangents")
    is_linear = tuple(linear[1:])
    rewritten, nonzero_operands = _transpose_branches(branches, is_linear, nonzero_flags(cts))
    # A linear operand stands for an unknown value, and is itself a type.
    types = [x if lin else type_of(x) for x, lin in zip(operands, is_linear, strict=True)]
    arguments = [*omit(operands, is_linear), *nonzeros(cts)]
    outs = _bind(number, rewritten, _sizes(branches, types), arguments)
    return [None, *scatter(scatter(outs, nonzero_operands), is_linear)]


# --- lanes ------------------------------------------------------------------------------------


@partial(per_program_and_lanes, memo=per_programs)
def _batch_branches(branches: Branches, batched_operands: Flags, size: Size) -> tuple[Branches, Flags]:
    batched_results = union(*(batch_program(b, batched_operands, size)[1] for b in branches))
    batched_branches = (batch_program(b, batched_operands, size, batched_results)[0] for b in branches)
    return tuple(batched_branches), batched_results


def _batch(
    batched: Sequence[bool], size: Size, number: Value, *operands: Value, branches: Branches
) -> tuple[Sequence[Value], Sequence[bool]]:
    if batched[0]:
        sources, remainders = _split_off(branches)
        # Branches run even if none of their results is needed: they may have checks.
        outs = iter(_every_branch(batched[1:], size, number, operands, remainders))
        results = [next(outs) if n is None else operands[n] for n in sources]
        return results, [n is None or batched[1 + n] for n in sources]
    branch_size = own_size(size, *branches)
    rewritten, batched_results = _batch_branches(branches, tuple(batched[1:]), branch_size)
    return _bind(number, rewritten, [{}] * len(branches), operands), batched_results


@per_programs
def _split_off(branches: Branches) -> tuple[tuple[int | None, ...], Branches]:
    """Which operand each result is in every branch, or None; and branches of the other results.

    An operand that every branch passes through needs no select, and gets no lanes from it.
    """
    places: list[dict[Atom, int]] = [{v: n for n, v in enumerate(b.inputs)} for b in branches]
    columns = zip(*[[p.get(v) for v in b.outputs] for b, p in zip(branches, places)], strict=True)
    sources = tuple(column[0] if len({*column}) == 1 else None for column in columns)
    differs = tuple(n is None for n in sources)
    return sources, tuple(replace(b, outputs=tuple(pick(b.outputs, differs))) for b in branches)


def _every_branch(
    batched_operands: Sequence[bool], size: Size, number: Value, operands: Sequence[Value], branches: Branches
) -> Sequence[Value]:
    """All branches run, and each lane selects the results of its own."""
    refuse_io("cond", branches)  # every branch would print, whether selected or not
    # Lanes are compared with `==` below, so an index out of range must become the nearest branch.
    number = max(min(number, np.int32(len(branches) - 1)), np.int32(0))
    outs: Sequence[Value] = []
    for i, b in enumerate(branches):
        is_selected = eq(number, np.int32(i))
        # On operands that its author never intended, a loop might never end.
        run = _if_chosen if any(map(_is_loop, equations_within(b))) else _on_every_lane
        results = run(is_selected, b, batched_operands, size, operands)
        outs = [select_lanes(is_selected, n, o) for n, o in zip(results, outs)] if i else results
    return outs


def _is_loop(equation: Equation) -> bool:
    """True for a loop that may never end."""
    return equation.primitive.name in ("while", "while_linear")


def _on_every_lane(
    is_selected: Value, branch: Program, batched_operands: Sequence[bool], size: Size, operands: Sequence[Value]
) -> Sequence[Value]:
    guarded_operands = [guarded(is_selected, x, lanes, size) for x, lanes in zip(operands, batched_operands)]
    flags = tuple(lanes for _, lanes in guarded_operands)
    forced_outputs = (True,) * len(branch.outputs)
    rewritten, _ = batch_program(branch, flags, own_size(size, branch), forced_outputs)
    return eval_program(rewritten, [x for x, _ in guarded_operands])


def _if_chosen(
    is_selected: Value, branch: Program, batched_operands: Sequence[bool], size: Size, operands: Sequence[Value]
) -> Sequence[Value]:
    """The branch, if any lane selected it; the other lanes borrow the operands of one that did."""
    # `_zeros` must yield the same types, so every result has lanes.
    forced_outputs = (True,) * len(branch.outputs)
    rewritten, _ = batch_program(branch, tuple(batched_operands), own_size(size, branch), forced_outputs)
    borrowed_operands = borrowed(is_selected, operands, batched_operands)
    # A branch again, now with one number for all lanes: 0 runs the program of zeros.
    any_lane = convert(reduce_or(is_selected, axes=(0,)), dtype=dtypes.i32)
    return _bind(any_lane, (_zeros(rewritten), rewritten), [{}, {}], borrowed_operands)


@per_program
def _zeros(program: Program) -> Program:
    """A program with the same inputs, whose results are zeros of the same types."""
    types = program.output_types
    return stage(lambda *_: list(map(zeros_of, types)), program.input_types, "zeros").closed()


# --- unused results ---------------------------------------------------------------------------


@per_programs
def _prune_branches(branches: Branches, used_outputs: Flags) -> tuple[Branches, Flags]:
    # All branches take the same operands: one that a single branch reads remains an input of all.
    pairs = [needed_inputs(b, used_outputs) for b in branches]
    used_inputs = union(*(flags for _, flags in pairs))
    return tuple(with_inputs_picked(p, used_inputs) for p, _ in pairs), used_inputs


def _dead_code(used_results: Sequence[bool], equation: Equation) -> Equation:
    branches, used_inputs = _prune_branches(equation.params["branches"], tuple(used_results))
    return narrowed(equation, (True, *used_inputs), used_results, branches=branches)


def _keeping(equation: Equation, keeps: Keeps) -> Replay | None:
    types = types_of(equation.operands[1:])
    return keep_of_cond(equation, keeps, _sizes(equation.params["branches"], types))


def _vary(axes: Sequence[Axes], params: Params) -> Variation:
    """A result varies along the axes of its value in any branch, and along those of the number."""
    number, *operands = axes
    # Devices may select different branches, and would not meet at a sum inside one: operands vary
    # as the number does, so that the sum of their cotangents is taken outside the branch.
    inputs = tuple(number | a for a in operands)
    branches = [typed(b, inputs) for b in params["branches"]]
    results = tuple(number.union(*column) for column in zip(*(axes_of(b.outputs) for b in branches), strict=True))
    return {**params, "branches": tuple(typed(b, inputs, results) for b in branches)}, results


cond = HigherOrder(
    "cond",
    "control",
    _type_rule,
    calls=branch_calls,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
    expand=cond_as_branch,
    run=lambda *args, **params: run_equation(cond, args, params),
    interpret=_interpret,
    jvp_equation=_jvp,
    partial_equation=_partial,
    dead_code=_dead_code,
    keeping=_keeping,
    series=_series,
    vary=_vary,
)
