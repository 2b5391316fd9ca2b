"""`scan`: a body applied step by step along rows of arrays; all rules of the primitive.

    outs = scan consts carries arrays {body=program, length=, reverse=, unroll=, consts=, carries=}

The body takes consts, carries and one row of each array, and yields the next carries and one row
of each result. Reverse mode is a scan that also returns residuals, the values that the linear part
of a step reads, and a scan in the other direction over these. Values that no step changes are
computed once, before the loop. Cotangents of consts add up in carries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rune.array import Array
from rune.control.loop_bodies import BodyGroups, SplitBody, batch_body, jvp_body, prune_body, split_body, transpose_body
from rune.control.programs import closed, refuse, run_equation, sizes_for, types_of
from rune.control.scan.outer_products import Product, deferred
from rune.control.scan.saved_values import keep_of_scan
from rune.core.dead_code import narrowed
from rune.core.evaluate import eval_program
from rune.core.higher import Calls, HigherOrder, Runs
from rune.core.interpreter import type_of
from rune.core.lists import Flags, merge, nonzero_flags, omit, parts, pick, scatter
from rune.core.program import Equation, Program
from rune.core.sizes import Sizes, type_with_sizes
from rune.core.types import ArrayType, Axes, same_layout
from rune.core.values import Operand, Params, Value
from rune.core.varying import Variation
from rune.dims import Size
from rune.ops import add, concatenate, reshape, slice_
from rune.ops.family import zeros_like, zeros_of
from rune.ops.loop import scan_as_loop
from rune.ops.movement import move_axis, repeat_lane
from rune.records import dataclass
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.derivatives.series import Rows, Taylor, flat_rows, moving_rows, rows_of, series_program, widened
from rune.transforms.programs.size_witnesses import own_size
from rune.transforms.programs.variation import axes_of, loop_of


def row_type(type: ArrayType) -> ArrayType:
    """The type of one row."""
    return type.with_shape(type.shape[1:])


def _row_types(types: Sequence[ArrayType], params: Params) -> tuple[ArrayType, ...]:
    """The types of the body's inputs."""
    leading_types, arrays = parts(types, params["consts"] + params["carries"])
    if any(not t.shape or t.shape[0] != params["length"] for t in arrays):
        refuse("scan", params["body"], types)
    return (*leading_types, *map(row_type, arrays))


def _sizes(types: Sequence[ArrayType], params: Params) -> Sizes:
    return sizes_for("scan", params["body"], _row_types(types, params))


def _type_rule(*types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
    sizes, body = _sizes(types, params), params["body"]
    out_types = [type_with_sizes(t, sizes) for t in body.output_types]
    carries, rows = parts(out_types, params["carries"])
    before = types[params["consts"] :][: params["carries"]]
    if len(carries) != len(before) or not all(map(same_layout, carries, before)):
        refuse("scan", body, types)
    return (*carries, *(t.with_shape((params["length"], *t.shape)) for t in rows))


def _bind(body: Program, sizes: Sizes, operands: BodyGroups[Value], params: Params) -> list[Array]:
    """The results of a scan; its length, direction and unrolling are those of `params`."""
    args, scan_params = _equation(body, sizes, operands, params)
    return scan(*args, **scan_params)


def _equation(body: Program, sizes: Sizes, operands: BodyGroups[Value], params: Params) -> tuple[list[Value], Params]:
    """The operands and parameters of a scan of this body."""
    # What the body needs besides its operands comes first, as further consts.
    closed_body, leading = closed(body, sizes)
    counts = {"consts": len(leading) + len(operands.consts), "carries": len(operands.carries)}
    return [*leading, *operands.flat()], {**params, **counts, "body": closed_body}


def _interpret(
    evaluate: Callable[..., list],
    *args: Value,
    body: Program,
    length: int,
    reverse: bool,
    unroll: int,
    consts: int,
    carries: int,
) -> list[Value]:
    """The meaning: step by step, row by row."""
    operands = BodyGroups.of(args, (consts, carries))
    carry, rows = operands.carries, []
    for t in reversed(range(length)) if reverse else range(length):
        outs = evaluate(body, [*operands.consts, *carry, *(take_row(x, t) for x in operands.rows)])
        carry, row = parts(outs, carries)
        rows.append(row)
    if not rows:  # without a step, only the types determine the results
        types = _type_rule(*map(type_of, args), body=body, length=length, consts=consts, carries=carries)
        return [*carry, *map(zeros_of, types[carries:])]
    ordered_rows = rows[::-1] if reverse else rows
    return [*carry, *(stack_rows(column) for column in zip(*ordered_rows, strict=True))]


def take_row(x: Value, row: int) -> Array:
    """One row of the leading axis."""
    type = type_of(x)
    low, limit = (row, *(0,) * (type.ndim - 1)), (row + 1, *type.shape[1:])
    return reshape(slice_(x, start=low, limit=limit, stride=(1,) * type.ndim), shape=type.shape[1:])


def stack_rows(rows: Sequence[Value]) -> Array:
    """Rows along a new leading axis."""
    return concatenate(*(reshape(r, shape=(1, *type_of(r).shape)) for r in rows), axis=0)


# --- derivatives ------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Value | None], params: Params) -> Any:
    counts = params["consts"], params["carries"]
    body, carries, rows = jvp_body(params["body"], counts, nonzero_flags(tangents))
    pairs = BodyGroups.of(list(zip(primals, tangents, strict=True)), counts)
    # A carry whose tangent becomes nonzero in the body starts with a tangent of zeros.
    carry_pairs = [(p, zeros_like(p) if c and t is None else t) for (p, t), c in zip(pairs.carries, carries)]
    # The order that `jvp_body` expects: values and tangents group by group.
    groups = map(_values_and_tangents, (pairs.consts, carry_pairs, pairs.rows))
    outs = _bind(body, {}, BodyGroups(*groups), params)
    last, last_tangents, results, result_tangents = parts(outs, len(carries), sum(carries), len(rows))
    return [*last, *results], [*scatter(last_tangents, carries), *scatter(result_tangents, rows)]


def _series(interpreter: Taylor, args: Sequence[Value], params: Params) -> list[Value]:
    """Every differentiable carry is a series, since the body may make it one."""
    counts, body = (params["consts"], params["carries"]), params["body"]

    def run(order: int, rows: Rows) -> Rows:
        operands = BodyGroups.of(rows, counts)
        carries = [widened(row, order) for row in operands.carries]
        groups = BodyGroups(operands.consts, carries, operands.rows)
        rewritten = series_program(body, moving_rows(groups.flat()), order)
        flat = BodyGroups(*map(flat_rows, (groups.consts, groups.carries, groups.rows)))
        return rows_of(_bind(rewritten, {}, flat, params), body.output_types, order)

    return interpreter.replayed(args, run)


def _values_and_tangents(pairs: Sequence[tuple[Any, Any]]) -> list[Value]:
    return [*(p for p, _ in pairs), *(t for _, t in pairs if t is not None)]


def _partial(partial: Partial, args: Sequence[Value], unknown: Sequence[bool], params: Params) -> list[Value]:
    split = _split_scan(args, tuple(unknown), params)
    unknown_results = partial.write(scan, split.operands, split.params)
    return merge(split.unknown_results, unknown_results, split.known)


@dataclass(frozen=True, slots=True)
class _SplitScan:
    """A scan whose known part has run.

    known:             the results of the known part
    operands, params:  the equation of the unknown part
    """

    known: Sequence[Value]
    operands: Sequence[Value]
    params: Params
    unknown_results: Flags


def _split_scan(args: Sequence[Any], unknown: Flags, params: Params) -> _SplitScan:
    """Run the known part of a scan. A type stands for an unknown argument when transposing."""
    counts = params["consts"], params["carries"]
    split = split_body(params["body"], counts, unknown)
    sizes = _sizes(types_of(args), params)
    operands, flags = BodyGroups.of(args, counts), BodyGroups.of(unknown, counts)
    known = BodyGroups(
        omit(operands.consts, flags.consts), omit(operands.carries, split.carries), omit(operands.rows, flags.rows)
    )
    outs: list[Array] = []
    if split.known.outputs:  # else there is nothing to run yet
        outs = _bind(split.known, sizes, known, params)
    last, rows = parts(outs, len(known.carries))
    residuals = shared_residuals(split, sizes, known.consts)
    unknown_operands = BodyGroups(
        [*residuals, *pick(operands.consts, flags.consts)],
        pick(operands.carries, split.carries),
        [*(rows[n] for n in split.steps), *(known.rows[n] for n in split.rows), *pick(operands.rows, flags.rows)],
    )
    unknown_args, unknown_params = _equation(split.unknown, sizes, unknown_operands, params)
    # The known body yields its own rows of results first, then residuals of the steps.
    known_results = [*last, *rows[: split.results.count(False)]]
    return _SplitScan(known_results, unknown_args, unknown_params, (*split.carries, *split.results))


def shared_residuals(split: SplitBody, sizes: Sizes, consts: Sequence[Value]) -> list[Value]:
    """The residuals that no step changes: known consts, and values computed from these, once."""
    program, leading = closed(split.preheader, sizes)
    preheader_values = eval_program(program, [*leading, *(consts[n] for n in split.preheader_consts)])
    return [*(consts[n] for n in split.shared_consts), *preheader_values]


def _transpose_scan(cts: Sequence[Value], args: Sequence[Any], params: Params) -> BodyGroups[Array | None]:
    """Cotangents of the operands of a scan that is linear in its carries.

    A type stands for each linear operand.
    """
    counts = params["consts"], params["carries"]
    types, operands = types_of(args), BodyGroups.of(args, counts)
    # All carries are linear, though some start from known values: others were split off before.
    is_linear = BodyGroups.of([isinstance(x, ArrayType) for x in args], counts)
    linear = (*is_linear.consts, *(True for _ in is_linear.carries), *is_linear.rows)
    body = transpose_body(params["body"], counts, linear, nonzero_flags(cts))
    last_cts, result_cts = parts(cts, counts[1])
    carry_cts = [
        zeros_of(t) if ct is None else ct for ct, t, c in zip(last_cts, _type_rule(*types, **params), body.carries) if c
    ]
    sum_types = pick(pick(operands.consts, is_linear.consts), body.consts)
    known_consts = omit(operands.consts, is_linear.consts)
    # A sum of outer products over the steps becomes one product after the loop.
    loop = deferred(body.program, len(known_consts), len(carry_cts), len(sum_types))
    in_loop = tuple(p is None for p in loop.sums)
    rows = [*omit(operands.rows, is_linear.rows), *pick(result_cts, nonzero_flags(result_cts))]
    outs = _bind(
        loop.body,
        _sizes(types, params),
        BodyGroups(known_consts, [*carry_cts, *map(zeros_of, pick(sum_types, in_loop))], rows),
        {**params, "reverse": not params["reverse"]},  # cotangents flow from the last step back
    )
    first_cts, loop_sums, row_cts, factors = parts(outs, len(carry_cts), sum(in_loop), sum(body.rows))
    later_sums = (_total(p, [*rows, *factors]) for p in loop.sums if p is not None)
    const_cts = merge(in_loop, loop_sums, later_sums)
    return BodyGroups(
        scatter(scatter(const_cts, body.consts), is_linear.consts),
        scatter(first_cts, body.carries),
        scatter(scatter(row_cts, body.rows), is_linear.rows),
    )


def _total(products: Sequence[Product], rows: Sequence[Value]) -> Array:
    return functools.reduce(add, (p.of(rows) for p in products))


def _transpose(
    cts: Sequence[Value], linear: Sequence[bool], *inputs: Value | ArrayType, **params: Any
) -> list[Array | None]:
    flags = BodyGroups.of(linear, (params["consts"], params["carries"]))
    if all(flags.carries):
        return _transpose_scan(cts, inputs, params).flat()
    # Some carries are known, such as a counter: the part that depends only on known operands runs
    # first.
    split = _split_scan(inputs, tuple(linear), params)
    split_cts = _transpose_scan(pick(cts, split.unknown_results), split.operands, split.params)
    # Residuals lead the consts and the rows, and have no cotangents.
    const_cts = split_cts.consts[len(split_cts.consts) - flags.consts.count(True) :]
    row_cts = split_cts.rows[len(split_cts.rows) - flags.rows.count(True) :]
    linear_cts = BodyGroups(
        scatter(const_cts, flags.consts),
        scatter(split_cts.carries, split.unknown_results[: len(flags.carries)]),
        scatter(row_cts, flags.rows),
    )
    return [ct if lin else None for ct, lin in zip(linear_cts.flat(), linear, strict=True)]


# --- lanes ------------------------------------------------------------------------------------


def _batch(batched: Sequence[bool], size: Size, *args: Operand, **params: Any) -> tuple[list[Value], list[bool]]:
    counts, body = (params["consts"], params["carries"]), params["body"]
    batched_body, carries, rows = batch_body(body, counts, tuple(batched), own_size(size, body))
    operands, flags = BodyGroups.of(args, counts), BodyGroups.of(batched, counts)
    lane_operands = BodyGroups(
        operands.consts,
        [repeat_lane(x, size) if c and not b else x for x, b, c in zip(operands.carries, flags.carries, carries)],
        # A scan steps along axis 0, so the axis of lanes must follow that of the rows.
        [move_axis(x, 0, 1) if b else x for x, b in zip(operands.rows, flags.rows)],
    )
    outs = _bind(batched_body, {}, lane_operands, params)
    last, results = parts(outs, counts[1])
    lane_results = [move_axis(x, 1, 0) if b else x for x, b in zip(results, rows)]
    return [*last, *lane_results], [*carries, *rows]


# --- unused results ---------------------------------------------------------------------------


def _dead_code(used_results: Sequence[bool], equation: Equation) -> Equation:
    params = equation.params
    counts = params["consts"], params["carries"]
    # Rows of unused results go, but a carry remains if a used carry or row depends on it.
    body, needed_inputs, carries = prune_body(params["body"], counts, tuple(used_results))
    new_params = {"body": body, "consts": sum(needed_inputs[: counts[0]]), "carries": sum(carries)}
    return narrowed(equation, needed_inputs, (*carries, *used_results[counts[1] :]), **new_params)


def _calls(*args: object, body: Program, consts: int, carries: int, **_: object) -> tuple[Calls, ...]:
    leading, arrays = parts(args, consts + carries)
    # The body reads a row of each array, and rows are not operands of the equation.
    return (Calls(body, (*leading, *(None for _ in arrays)), Runs.LOOP),)


def _vary(axes: Sequence[Axes], params: Params) -> Variation:
    operands = BodyGroups.of(axes, (params["consts"], params["carries"]))
    body = loop_of(params["body"], operands.consts, operands.carries, operands.rows)
    return {**params, "body": body}, axes_of(body.outputs)


scan = HigherOrder(
    "scan",
    "control",
    _type_rule,
    calls=_calls,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
    expand=scan_as_loop,
    run=lambda *args, **params: run_equation(scan, args, params),
    interpret=_interpret,
    jvp_equation=_jvp,
    partial_equation=_partial,
    dead_code=_dead_code,
    keeping=lambda equation, keeps: keep_of_scan(equation, keeps, _sizes(types_of(equation.operands), equation.params)),
    series=_series,
    vary=_vary,
    jax_names={"jaxpr": "body", "num_consts": "consts", "num_carry": "carries"},
)
