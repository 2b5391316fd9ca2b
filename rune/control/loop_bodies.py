"""Loop bodies rewritten: what the rules of scan and while share.

A body is a program of consts, carries and rows that yields the next carries and rows of results
(while has no rows). What a transformation asks of a carry goes round: a carry whose tangent is
zero at first may get one in the body. So every rule iterates to a fixpoint over the carries, of
which there are few rounds, since a flag that is set stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rune.control.programs import (
    Flags,
    arranged,
    either,
    needed_inputs,
    parts,
    where,
    where_not,
)
from rune.core.dead_code import prune
from rune.core.evaluate import eval_program
from rune.core.program import Program
from rune.core.staging import stage
from rune.ops import add
from rune.transforms.batching.vmap import batch_program
from rune.transforms.derivatives.jvp import jvp_program
from rune.transforms.derivatives.linearize import SplitProgram, split_program
from rune.transforms.derivatives.transpose import transpose_program
from rune.transforms.programs.memo import per_program

Counts = tuple[int, int]  # of consts and carries


def settled(carries: Flags, step: Callable[[Flags], Flags]) -> Flags:
    """The least flags that contain `carries` and what `step` makes of them."""
    while True:
        found = either(carries, step(carries))
        if found == carries:
            return carries
        carries = found


def _flags(counts: Counts, flags: Flags, carries: Flags) -> Flags:
    """The flags of all inputs, those of the carries replaced."""
    consts, count = counts
    return (*flags[:consts], *carries, *flags[consts + count :])


def _forced(program: Program, carries: Flags) -> Flags:
    return (*carries, *(False,) * (len(program.outputs) - len(carries)))


def _carried(counts: Counts, flags: Flags) -> Flags:
    return flags[counts[0] : sum(counts)]


# --- tangents ---------------------------------------------------------------------------------


@per_program
def jvp_body(body: Program, counts: Counts, nonzero: Flags) -> tuple[Program, Flags, Flags]:
    """A body of values and tangents; which carries have tangents, and which rows of results.

    Consts and their tangents, carries and theirs, rows and theirs -> the same of results.
    """

    def rewritten(carries: Flags) -> tuple[Program, Flags]:
        return jvp_program(body, _flags(counts, nonzero, carries), _forced(body, carries))

    count = counts[1]
    carries = settled(_carried(counts, nonzero), lambda c: rewritten(c)[1][:count])
    program, found = rewritten(carries)
    inputs = _beside(len(body.inputs), _flags(counts, nonzero, carries), *counts)
    outputs = _beside(len(body.outputs), found, count)
    return arranged(program, inputs, outputs), carries, found[count:]


def _beside(count: int, nonzero: Flags, *groups: int) -> tuple[int, ...]:
    """Numbers of `count` values and the tangents behind them, sorted by group."""
    tangents = iter(range(count, count + sum(nonzero)))
    numbers = [next(tangents) if n else None for n in nonzero]
    return tuple(
        n
        for values, theirs in zip(parts(range(count), *groups), parts(numbers, *groups))
        for n in (*values, *theirs)
        if n is not None
    )


# --- lanes ------------------------------------------------------------------------------------


@per_program
def batch_body(
    body: Program, counts: Counts, batched: Flags, size: Any
) -> tuple[Program, Flags, Flags]:
    """The body on all lanes; which carries have lanes, and which rows of results."""

    def rewritten(carries: Flags) -> tuple[Program, Flags]:
        flags = _flags(counts, batched, carries)
        return batch_program(body, flags, size, _forced(body, carries))

    count = counts[1]
    carries = settled(_carried(counts, batched), lambda c: rewritten(c)[1][:count])
    program, found = rewritten(carries)
    return program, carries, found[count:]


# --- known and unknown ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SplitBody:
    """A body split by what is known. A residual is sorted by how often it changes.

    hoisted:  the known consts numbered `hoisted_from` -> residuals that no step changes
    known:    known consts, carries, rows -> next known carries, rows: known results, then residuals
    unknown:  residuals that no step changes (the known consts numbered `shared`, then those
              hoisted), unknown consts, unknown carries, residuals of one step (the rows of `known`
              numbered `steps`, then the known rows numbered `rows`), unknown rows -> the unknown
              results
    """

    hoisted: Program
    hoisted_from: tuple[int, ...]
    known: Program
    unknown: Program
    shared: tuple[int, ...]
    steps: tuple[int, ...]
    rows: tuple[int, ...]
    carries: Flags  # which carries are unknown
    results: Flags  # which rows of results are unknown


@per_program
def split_body(body: Program, counts: Counts, unknown: Flags) -> SplitBody:
    """Partial evaluation of a body whose unknown inputs are flagged."""
    count = counts[1]

    def split(carries: Flags) -> SplitProgram:
        return split_program(body, _flags(counts, unknown, carries), _forced(body, carries))

    def step(carries: Flags) -> Flags:
        return tuple(not k for k in split(carries).known_outputs[:count])

    carries = settled(_carried(counts, unknown), step)
    found = split(carries)
    results = tuple(not k for k in found.known_outputs[count:])
    return _sorted(found, counts, _flags(counts, unknown, carries), carries, results)


def _sorted(
    split: SplitProgram, counts: Counts, free: Flags, carries: Flags, results: Flags
) -> SplitBody:
    """The split, its residuals sorted: shared, hoisted, of one step, rows."""
    consts = free[: counts[0]].count(False)
    first_row = consts + carries.count(False)
    yielded = sum(split.known_outputs)  # results; the computed residuals follow
    hoisted, hoisted_from, invariant = _hoist(split.known, consts, yielded)
    sources = split.residual_inputs
    computed = iter(zip(split.known.outputs[yielded:], invariant, strict=True))
    places: dict[str, list[int]] = {"shared": [], "hoisted": [], "step": [], "row": []}
    last, yields = parts(split.known.outputs[:yielded], carries.count(False))
    steps: list[int] = []
    for place, source in enumerate(sources):
        if source is None:
            atom, is_invariant = next(computed)
            kind = "hoisted" if is_invariant else "step"
        else:
            atom = split.known.inputs[source]
            kind = "shared" if source < consts else "step" if source < first_row else "row"
        places[kind].append(place)
        if kind == "step":
            if atom not in yields:  # what is a result anyway is not stacked twice
                yields.append(atom)
            steps.append(yields.index(atom))
    unknown_consts, unknown_carries, unknown_rows = parts(
        range(len(sources), len(split.unknown.inputs)),
        free[: counts[0]].count(True), carries.count(True),
    )  # fmt: skip
    order = (
        *places["shared"], *places["hoisted"], *unknown_consts, *unknown_carries,
        *places["step"], *places["row"], *unknown_rows,
    )  # fmt: skip
    return SplitBody(
        hoisted, hoisted_from,
        _tidy(replace(split.known, outputs=(*last, *yields))),
        arranged(split.unknown, order, tuple(range(len(split.unknown.outputs)))),
        tuple(sources[p] or 0 for p in places["shared"]),
        tuple(steps),
        tuple((sources[p] or 0) - first_row for p in places["row"]),
        carries, results,
    )  # fmt: skip


def _hoist(
    known: Program, consts: int, yielded: int
) -> tuple[Program, tuple[int, ...], tuple[bool, ...]]:
    """What consts alone decide of the outputs behind the first `yielded`.

    The program of those outputs, the numbers of the consts that it takes, and which outputs.
    """
    count = len(known.outputs) - yielded
    free = (*(False,) * consts, *(True,) * (len(known.inputs) - consts))
    first = split_program(known, free)
    invariant = first.known_outputs[yielded:] if count else ()
    wanted = [n >= yielded for n, k in enumerate(first.known_outputs) if k]
    residuals = len(first.known.outputs) - len(wanted)
    hoisted, read = prune(first.known, [*wanted, *(False,) * residuals])
    return hoisted, tuple(n for n, r in enumerate(read) if r), invariant


def _tidy(program: Program) -> Program:
    """The program without the equations that nothing needs; all inputs stay."""
    return replace(prune(program, [True] * len(program.outputs))[0], inputs=program.inputs)


# --- cotangents -------------------------------------------------------------------------------


@per_program
def transposed_body(
    body: Program, counts: Counts, linear: Flags, nonzero: Flags
) -> tuple[Program, Flags, Flags, Flags]:
    """The body of the scan of cotangents; which of consts, carries and rows get one.

    linear:   which inputs are linear; all carries are. nonzero: which results have cotangents.
    Known consts, cotangents of carries, sums for consts, known rows, cotangents of rows -> ...
    """
    of_consts, _, of_rows = parts(linear, *counts)
    carried, rows = parts(nonzero, counts[1])
    summed = of_consts.count(True)

    def rewritten(carries: Flags) -> tuple[Program, Flags]:
        forced = (*(False,) * summed, *carries, *(False,) * of_rows.count(True))
        return transpose_program(body, linear, (*carries, *rows), forced)

    def step(carries: Flags) -> Flags:
        return rewritten(carries)[1][summed : summed + counts[1]]

    carries = settled(tuple(carried), step)
    program, found = rewritten(carries)
    consts_nonzero, _, rows_nonzero = parts(found, summed, counts[1])
    shared, state, row_types = parts(body.input_types, *counts)
    groups = (
        where_not(shared, of_consts), where(state, carries),
        where(where(shared, of_consts), consts_nonzero), where_not(row_types, of_rows),
        where(body.output_types[counts[1] :], rows),
    )  # fmt: skip

    def run(*args: Any) -> list[Any]:
        known, ct_carries, sums, known_rows, ct_rows = parts(args, *map(len, groups[:-1]))
        outs = eval_program(program, [*known, *known_rows, *ct_carries, *ct_rows])
        of_const, of_carry, of_row = parts(outs, sum(consts_nonzero), sum(carries))
        return [*of_carry, *map(add, sums, of_const), *of_row]

    types = [t for group in groups for t in group]
    made = stage(run, types, f"transpose_{body.name}").closed()
    return made, tuple(consts_nonzero), carries, tuple(rows_nonzero)


# --- unused results ---------------------------------------------------------------------------


@per_program
def pruned_body(body: Program, counts: Counts, wanted: Flags) -> tuple[Program, Flags, Flags]:
    """The body of the wanted results; which inputs it takes, and which carries go on."""
    consts, count = counts
    rows = wanted[count:]

    def step(carries: Flags) -> Flags:
        return needed_inputs(body, (*carries, *rows))[1][consts : consts + count]

    carries = settled(wanted[:count], step)
    made, needed = needed_inputs(body, (*carries, *rows))
    taken = (*needed[:consts], *carries, *needed[consts + count :])
    return replace(made, inputs=tuple(where(made.inputs, taken))), taken, carries
