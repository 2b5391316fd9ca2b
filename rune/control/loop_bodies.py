"""Rewritten loop bodies, for the rules of scan and while.

A body is a program of consts, carries and rows that yields the next carries and rows of results
(while has no rows). What is true of a carry after a step must be true before the next one: a carry
that starts without a tangent may get one in the body. So every rule iterates to a fixpoint of
flags over the carries. That takes few rounds, at most one for each carry, since flags are never
cleared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum

from rune.control.groups import Groups, T, stage_grouped
from rune.control.programs import arranged
from rune.control.sums_in_place import summands
from rune.core.axes import per_program_and_lanes
from rune.core.dead_code import needed_inputs, prune, with_inputs_picked
from rune.core.evaluate import eval_program
from rune.core.lists import Flags, omit, parts, pick, scatter, union
from rune.core.memo import per_program
from rune.core.program import Atom, Program
from rune.core.values import Value
from rune.dims import Size
from rune.records import dataclass
from rune.transforms.batching.batch import batch_program
from rune.transforms.derivatives.held_programs import SplitProgram, jvp_program, split_program, transpose_program
from rune.transforms.programs.variation import without_sums

Counts = tuple[int, int]  # of consts and carries


@dataclass(frozen=True, slots=True)
class BodyGroups(Groups[T]):
    """The inputs of a body by use, the operands of its loop, or a flag or type for each of them.

    Where a body takes a row, its loop takes the array of all rows.
    """

    consts: list[T]
    carries: list[T]
    rows: list[T]

    @staticmethod
    def of(values: Sequence[T], counts: Counts) -> BodyGroups[T]:
        """The values of a body or loop with these numbers of consts and carries."""
        return BodyGroups(*parts(values, *counts))


def fixpoint(carries: Flags, step: Callable[[Flags], Flags]) -> Flags:
    """The least flags that include `carries` and everything `step` derives from them."""
    while True:
        larger = union(carries, step(carries))
        if larger == carries:
            return carries
        carries = larger


def _flags(counts: Counts, flags: Flags, carries: Flags) -> Flags:
    """The flags of all inputs, with those of the carries replaced by `carries`."""
    consts, count = counts
    return (*flags[:consts], *carries, *flags[consts + count :])


def _forced(program: Program, carries: Flags) -> Flags:
    """Outputs to force: each carry leaves the body as it entered; rows are free to be either."""
    return (*carries, *(False,) * (len(program.outputs) - len(carries)))


def _carried(counts: Counts, flags: Flags) -> Flags:
    """The flags of the carries among those of all inputs."""
    return flags[counts[0] : sum(counts)]


# --- tangents ---------------------------------------------------------------------------------


@per_program
def jvp_body(body: Program, counts: Counts, nonzero: Flags) -> tuple[Program, Flags, Flags]:
    """A body of values and tangents; which carries have tangents, and which rows of results.

    Its inputs are consts and their tangents, carries and their tangents, rows and their tangents;
    its outputs are carries and their tangents, rows and their tangents.
    """

    def rewritten(carries: Flags) -> tuple[Program, Flags]:
        return jvp_program(body, _flags(counts, nonzero, carries), _forced(body, carries))

    count = counts[1]
    carries = fixpoint(_carried(counts, nonzero), lambda c: rewritten(c)[1][:count])
    program, nonzero_outputs = rewritten(carries)
    # jvp_program puts all tangents after all values, but a loop counts consts and carries from the
    # front: tangents of consts must be consts, and those of carries must be carries.
    inputs = _beside(len(body.inputs), _flags(counts, nonzero, carries), *counts)
    outputs = _beside(len(body.outputs), nonzero_outputs, count)
    return arranged(program, inputs, outputs), carries, nonzero_outputs[count:]


def _beside(count: int, nonzero: Flags, *groups: int) -> tuple[int, ...]:
    """The numbers of `count` values and of the tangents that follow them, sorted by group."""
    tangents = scatter(range(count, count + sum(nonzero)), nonzero)
    return tuple(
        number
        for group in zip(parts(range(count), *groups), parts(tangents, *groups))
        for numbers in group
        for number in numbers
        if number is not None
    )


# --- lanes ------------------------------------------------------------------------------------


@per_program_and_lanes
def batch_body(body: Program, counts: Counts, batched_inputs: Flags, size: Size) -> tuple[Program, Flags, Flags]:
    """The body on all lanes; which carries have lanes, and which rows of results have them."""

    def rewritten(carries: Flags) -> tuple[Program, Flags]:
        flags = _flags(counts, batched_inputs, carries)
        return batch_program(body, flags, size, _forced(body, carries))

    count = counts[1]
    carries = fixpoint(_carried(counts, batched_inputs), lambda c: rewritten(c)[1][:count])
    program, batched_outputs = rewritten(carries)
    return program, carries, batched_outputs[count:]


# --- known and unknown ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SplitBody:
    """A body split into the known part, which runs now, and the unknown part, which runs later.

    A residual is a value of the known part that the unknown part reads. Residuals are sorted by how
    often they change: those that no step changes are computed once, before the loop.

    preheader:  the known consts numbered `preheader_consts` -> residuals that no step changes
    known:      known consts, carries, rows -> next known carries, rows: known results, then
                residuals
    unknown:    residuals that no step changes (the known consts numbered `shared_consts`, then the
                outputs of `preheader`), unknown consts, unknown carries, residuals of one step (the
                rows of `known` numbered `steps`, then the known rows numbered `rows`), unknown rows
                -> the unknown results
    """

    preheader: Program
    preheader_consts: tuple[int, ...]
    known: Program
    unknown: Program
    shared_consts: tuple[int, ...]
    steps: tuple[int, ...]
    rows: tuple[int, ...]
    carries: Flags  # which carries are unknown
    results: Flags  # which rows of results are unknown


@per_program
def split_body(body: Program, counts: Counts, unknown: Flags) -> SplitBody:
    """Partial evaluation of a body whose unknown inputs are flagged.

    Before    consts, carries, rows -> next carries, rows            some of them unknown
    After     a known body, which runs now and yields residuals as further rows, and an unknown
              body, which reads them later
    """
    # A carry is unknown if it starts unknown, or if a step computes it from something unknown; it
    # may then make other carries unknown in the next step, hence the fixpoint.
    count = counts[1]

    def split_for(carries: Flags) -> SplitProgram:
        return split_program(body, _flags(counts, unknown, carries), _forced(body, carries))

    def step(carries: Flags) -> Flags:
        return tuple(not k for k in split_for(carries).known_outputs[:count])

    carries = fixpoint(_carried(counts, unknown), step)
    split = split_for(carries)
    results = tuple(not k for k in split.known_outputs[count:])
    return _sorted(split, counts, _flags(counts, unknown, carries), carries, results)


class _Kind(Enum):
    """Where a loop finds a residual (SplitBody)."""

    CONST = "among the known consts"
    PREHEADER = "among the outputs of the preheader"
    STEP = "among the rows that the known part yields"
    ROW = "among the known rows"


@dataclass(frozen=True, slots=True)
class _Residual:
    """A residual of a step.

    number:  its position among the inputs of the unknown part
    source:  its position among the inputs of the known part; None if it is computed there
    atom:    its variable in the known part
    """

    number: int
    kind: _Kind
    source: int | None
    atom: Atom


def _residuals(
    split: SplitProgram, result_count: int, first_carry: int, first_row: int, invariant: Flags
) -> Iterator[_Residual]:
    """The residuals of a split whose known part yields `result_count` results before them."""
    computed_residuals = iter(zip(split.known.outputs[result_count:], invariant, strict=True))
    for number, source in enumerate(split.residual_inputs):
        if source is None:
            atom, is_invariant = next(computed_residuals)
            yield _Residual(number, _Kind.PREHEADER if is_invariant else _Kind.STEP, None, atom)
        else:
            # A carry that is a residual changes in every step, and no array of its values exists.
            kind = _Kind.CONST if source < first_carry else _Kind.STEP if source < first_row else _Kind.ROW
            yield _Residual(number, kind, source, split.known.inputs[source])


def _sorted(split: SplitProgram, counts: Counts, unknown: Flags, carries: Flags, results: Flags) -> SplitBody:
    """The split with its residuals sorted by kind."""
    first_carry = unknown[: counts[0]].count(False)
    first_row = first_carry + carries.count(False)
    result_count = sum(split.known_outputs)
    preheader, preheader_consts, invariant = _hoist(split.known, first_carry, result_count)
    residuals = [*_residuals(split, result_count, first_carry, first_row, invariant)]
    by_kind = {kind: [r for r in residuals if r.kind is kind] for kind in _Kind}
    next_carries, rows = parts(split.known.outputs[:result_count], carries.count(False))
    for residual in by_kind[_Kind.STEP]:
        if residual.atom not in rows:  # a residual that is also a result is stacked once
            rows.append(residual.atom)
    # Residuals that no step changes are consts of the unknown body, so they lead its inputs.
    numbers = {kind: [r.number for r in of_kind] for kind, of_kind in by_kind.items()}
    unknown_inputs = BodyGroups.of(
        range(len(split.residual_inputs), len(split.unknown.inputs)),
        (unknown[: counts[0]].count(True), carries.count(True)),
    )
    order = (
        *numbers[_Kind.CONST],
        *numbers[_Kind.PREHEADER],
        *unknown_inputs.consts,
        *unknown_inputs.carries,
        *numbers[_Kind.STEP],
        *numbers[_Kind.ROW],
        *unknown_inputs.rows,
    )
    return SplitBody(
        preheader=preheader,
        preheader_consts=preheader_consts,
        known=_tidy(replace(split.known, outputs=(*next_carries, *rows))),
        unknown=arranged(split.unknown, order, tuple(range(len(split.unknown.outputs)))),
        shared_consts=tuple(r.source for r in by_kind[_Kind.CONST] if r.source is not None),
        steps=tuple(rows.index(r.atom) for r in by_kind[_Kind.STEP]),
        rows=tuple(r.source - first_row for r in by_kind[_Kind.ROW] if r.source is not None),
        carries=carries,
        results=results,
    )


def _hoist(known: Program, consts: int, result_count: int) -> tuple[Program, tuple[int, ...], tuple[bool, ...]]:
    """The outputs after the first `result_count` that depend on consts alone.

    The program of those outputs, the numbers of the consts it takes, and which outputs they are.
    """
    count = len(known.outputs) - result_count
    # Partial evaluation again: what follows from the consts alone is the same in every step.
    varies = (*(False,) * consts, *(True,) * (len(known.inputs) - consts))
    split = split_program(known, varies)
    invariant = split.known_outputs[result_count:] if count else ()
    used_outputs = [n >= result_count for n, k in enumerate(split.known_outputs) if k]
    residuals = len(split.known.outputs) - len(used_outputs)
    # Residuals of this split feed the rest of the body, which computes them itself in every step.
    program, used_inputs = prune(split.known, [*used_outputs, *(False,) * residuals])
    return program, tuple(n for n, r in enumerate(used_inputs) if r), invariant


def _tidy(program: Program) -> Program:
    """The program without unneeded equations, but with all its inputs, which are counted."""
    return replace(prune(program, [True] * len(program.outputs))[0], inputs=program.inputs)


# --- cotangents -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransposeInputs(Groups[T]):
    """The inputs of the body of a loop of cotangents."""

    known_consts: list[T]
    carry_cts: list[T]  # of the carries after the step
    const_sums: list[T]  # cotangents of linear consts, summed over the steps so far
    known_rows: list[T]
    row_cts: list[T]  # of the results' rows


@dataclass(frozen=True, slots=True)
class TransposedBody:
    """The body of a loop of cotangents, and which linear inputs have a nonzero cotangent.

    program:  TransposeInputs -> cotangents of the carries before the step, the sums for the linear
              consts, cotangents of the linear rows
    """

    program: Program
    consts: Flags
    carries: Flags
    rows: Flags


@per_program
def transpose_body(body: Program, counts: Counts, linear: Flags, nonzero: Flags) -> TransposedBody:
    """Transpose a body that is linear in its carries.

    linear:   which inputs are linear
    nonzero:  which results have cotangents
    """
    is_linear = BodyGroups.of(linear, counts)
    carry_flags, row_flags = parts(nonzero, counts[1])
    const_count = is_linear.consts.count(True)

    def rewritten(carries: Flags) -> tuple[Program, Flags]:
        forced_inputs = (*(False,) * const_count, *carries, *(False,) * is_linear.rows.count(True))
        return transpose_program(body, linear, (*carries, *row_flags), forced_inputs)

    def step(carries: Flags) -> Flags:
        return rewritten(carries)[1][const_count : const_count + counts[1]]

    carries = fixpoint(tuple(carry_flags), step)
    program, nonzero_cts = rewritten(carries)
    nonzero_consts, _, nonzero_rows = parts(nonzero_cts, const_count, counts[1])
    # Each device adds up its own cotangents of consts over the steps; one sum over devices follows
    # the loop, in place of one in each step.
    program = without_sums(program, sum(nonzero_consts))
    body_types = BodyGroups.of(body.input_types, counts)
    types = TransposeInputs(
        known_consts=omit(body_types.consts, is_linear.consts),
        carry_cts=pick(body_types.carries, carries),
        const_sums=pick(pick(body_types.consts, is_linear.consts), nonzero_consts),
        known_rows=omit(body_types.rows, is_linear.rows),
        row_cts=pick(body.output_types[counts[1] :], row_flags),
    )

    carry_count = sum(carries)
    of_sums = summands(program, sum(nonzero_consts) + carry_count)

    def run(inputs: TransposeInputs[Value]) -> list[Value]:
        known = [*inputs.known_consts, *inputs.known_rows]
        outs = eval_program(of_sums.program, [*known, *inputs.carry_cts, *inputs.row_cts])
        # Every step reads the same consts, so the cotangents of all steps add up.
        totals = of_sums.added([*inputs.const_sums, *[None] * carry_count], outs)
        sums, carry_cts, row_cts = parts(totals, len(inputs.const_sums), carry_count)
        return [*carry_cts, *sums, *row_cts]

    transposed_program = stage_grouped(run, types, f"transpose_{body.name}")
    return TransposedBody(transposed_program, tuple(nonzero_consts), carries, tuple(nonzero_rows))


# --- unused results ---------------------------------------------------------------------------


@per_program
def prune_body(body: Program, counts: Counts, used_outputs: Flags) -> tuple[Program, Flags, Flags]:
    """The body of the used results; which inputs it takes, and which carries it still has."""
    consts, count = counts
    rows = used_outputs[count:]

    def step(carries: Flags) -> Flags:
        return needed_inputs(body, (*carries, *rows))[1][consts : consts + count]

    # A used carry may read another one in the next step, which must then be carried as well.
    carries = fixpoint(used_outputs[:count], step)
    used_body, used_inputs = needed_inputs(body, (*carries, *rows))
    inputs = (*used_inputs[:consts], *carries, *used_inputs[consts + count :])
    return with_inputs_picked(used_body, inputs), inputs, carries
