"""`scan`: a body applied step by step along rows of arrays; every language rule.

    outs = scan consts carries arrays {body=program, length=, reverse=, unroll=, consts=, carries=}

The body takes consts, carries and one row of each array, and yields the next carries and one row
of each result. Reverse mode is a scan that keeps, as further results, what the linear part of a
step reads, and a scan in the other direction over those. What no step changes is computed once,
before the loop. Cotangents of consts add up in carries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rune.control.loop_bodies import (
    batch_body,
    jvp_body,
    prune_body,
    split_body,
    transpose_body,
)
from rune.control.programs import (
    Flags,
    closed,
    is_layout,
    merge,
    nonzero_flags,
    omit,
    parts,
    pick,
    refuse,
    run_equation,
    scatter,
    sizes_for,
    types_of,
)
from rune.control.saved_values import keep_of_scan
from rune.control.scan.outer_products import Product, deferred
from rune.core.evaluate import eval_program
from rune.core.interpreter import type_of
from rune.core.lower import Control
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program
from rune.core.sizes import Sizes, type_with_sizes
from rune.core.types import ArrayType
from rune.dims import Size
from rune.ops import add, concatenate, reshape, slice_
from rune.ops.family import zeros_like, zeros_of
from rune.ops.movement import move_axis, repeat_lane
from rune.transforms.checkpoint.saved_values import Keeps, Replay
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.programs.size_witnesses import own_size

Params = Mapping[str, Any]


def row_type(type: ArrayType) -> ArrayType:
    """The type of one row."""
    return type.with_shape(type.shape[1:])


def _row_types(types: Sequence[ArrayType], params: Params) -> tuple[ArrayType, ...]:
    """The types of the body's inputs."""
    unsliced, arrays = parts(types, params["consts"] + params["carries"])
    if any(not t.shape or t.shape[0] != params["length"] for t in arrays):
        refuse("scan", params["body"], types)
    return (*unsliced, *map(row_type, arrays))


def _sizes(types: Sequence[ArrayType], params: Params) -> Sizes:
    return sizes_for("scan", params["body"], _row_types(types, params))


def _type_rule(*types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
    sizes, body = _sizes(types, params), params["body"]
    out_types = [type_with_sizes(t, sizes) for t in body.output_types]
    carries, rows = parts(out_types, params["carries"])
    before = types[params["consts"] :][: params["carries"]]
    if len(carries) != len(before) or not all(map(is_layout, carries, before)):
        refuse("scan", body, types)
    return (*carries, *(t.with_shape((params["length"], *t.shape)) for t in rows))


def bind_scan(
    body: Program, sizes: Sizes, consts: Sequence[Any], carries: Sequence[Any],
    arrays: Sequence[Any], params: Params,
) -> list[Any]:  # fmt: skip
    """The results of a scan; its length, direction and unrolling are those of `params`."""
    operands, changed = _equation(body, sizes, consts, carries, arrays, params)
    return scan(*operands, **changed)


def _equation(
    body: Program, sizes: Sizes, consts: Sequence[Any], carries: Sequence[Any],
    arrays: Sequence[Any], params: Params,
) -> tuple[list[Any], Params]:  # fmt: skip
    closed_body, leading = closed(body, sizes)
    counts = {"consts": len(leading) + len(consts), "carries": len(carries)}
    return [*leading, *consts, *carries, *arrays], {**params, **counts, "body": closed_body}


def _interpret(
    evaluate: Callable[..., list], *args: Any, body: Program, length: int, reverse: bool,
    unroll: int, consts: int, carries: int,
) -> list[Any]:  # fmt: skip
    """The meaning: step by step, row by row."""
    shared, state, arrays = parts(args, consts, carries)
    rows: list[list[Any]] = []
    for t in reversed(range(length)) if reverse else range(length):
        outs = evaluate(body, [*shared, *state, *(_take(x, t) for x in arrays)])
        state, row = parts(outs, carries)
        rows.append(row)
    if not rows:  # without a step, only the types tell what the results look like
        types = _type_rule(
            *map(type_of, args), body=body, length=length, consts=consts, carries=carries
        )
        return [*state, *map(zeros_of, types[carries:])]
    ordered = rows[::-1] if reverse else rows
    return [*state, *(_stack(column) for column in zip(*ordered, strict=True))]


def _take(x: Any, row: int) -> Any:
    type = type_of(x)
    low, limit = (row, *(0,) * (type.ndim - 1)), (row + 1, *type.shape[1:])
    return reshape(slice_(x, start=low, limit=limit, stride=(1,) * type.ndim),
                   shape=type.shape[1:])  # fmt: skip


def _stack(rows: Sequence[Any]) -> Any:
    return concatenate(*(reshape(r, shape=(1, *type_of(r).shape)) for r in rows), axis=0)


# --- derivatives ------------------------------------------------------------------------------


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], params: Params) -> Any:
    counts = params["consts"], params["carries"]
    body, carries, of_rows = jvp_body(params["body"], counts, nonzero_flags(tangents))
    first, init, arrays = parts(list(zip(primals, tangents, strict=True)), *counts)
    # A carry that gets its tangent in the body starts with one of zeros.
    started = [(p, zeros_like(p) if c and t is None else t) for (p, t), c in zip(init, carries)]
    consts, state, rows = map(_values_and_tangents, (first, started, arrays))
    outs = bind_scan(body, {}, consts, state, rows, params)
    last, their, results, theirs = parts(outs, len(carries), sum(carries), len(of_rows))
    return [*last, *results], [*scatter(their, carries), *scatter(theirs, of_rows)]


def _values_and_tangents(pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
    return [*(p for p, _ in pairs), *(t for _, t in pairs if t is not None)]


def _partial(
    partial: Partial, args: Sequence[Any], unknown: Sequence[bool], params: Params
) -> list[Any]:
    known, operands, changed, carries, results = split_scan(args, tuple(unknown), params)
    unknown_results = iter(partial.write(scan, operands, changed))
    known_results = iter(known)
    order = (*carries, *results)
    return [next(unknown_results) if u else next(known_results) for u in order]


def split_scan(
    args: Sequence[Any], unknown: Flags, params: Params
) -> tuple[list[Any], list[Any], Params, Flags, Flags]:
    """The known results, the equation of the others, and which carries and results are unknown.

    A type may stand for an unknown argument: only known ones are computed with.
    """
    counts = params["consts"], params["carries"]
    split = split_body(params["body"], counts, unknown)
    sizes = _sizes(types_of(args), params)
    consts, init, arrays = parts(args, *counts)
    of_consts, _, of_arrays = parts(unknown, *counts)
    known_consts, known_init = omit(consts, of_consts), omit(init, split.carries)
    known_arrays = omit(arrays, of_arrays)
    outs: list[Any] = []
    if split.known.outputs:  # else there is nothing to run yet
        outs = bind_scan(split.known, sizes, known_consts, known_init, known_arrays, params)
    last, rows = parts(outs, len(known_init))
    shared = shared_residuals(split, sizes, known_consts)
    operands, changed = _equation(
        split.unknown, sizes,
        [*shared, *pick(consts, of_consts)],
        pick(init, split.carries),
        [
            *(rows[n] for n in split.steps), *(known_arrays[n] for n in split.rows),
            *pick(arrays, of_arrays),
        ],
        params,
    )  # fmt: skip
    known = [*last, *rows[: split.results.count(False)]]
    return known, operands, changed, split.carries, split.results


def shared_residuals(split: Any, sizes: Sizes, consts: Sequence[Any]) -> list[Any]:
    """The residuals that no step changes; those that need computing are computed here, once."""
    program, leading = closed(split.hoisted, sizes)
    hoisted = eval_program(program, [*leading, *(consts[n] for n in split.hoisted_from)])
    return [*(consts[n] for n in split.shared), *hoisted]


def _pull(cts: Sequence[Any], operands: Sequence[Any], params: Params) -> list[Any]:
    """Cotangents of the operands of a scan that is linear in its carries.

    A linear operand is given as its type.
    """
    counts = params["consts"], params["carries"]
    types = types_of(operands)
    is_type = [isinstance(x, ArrayType) for x in operands]
    of_consts, _, of_arrays = parts(is_type, *counts)
    linear = (*of_consts, *(True,) * counts[1], *of_arrays)
    transposed = transpose_body(params["body"], counts, linear, nonzero_flags(cts))
    consts, _, arrays = parts(operands, *counts)
    ct_carries, ct_rows = parts(cts, counts[1])
    init = [
        zeros_of(t) if ct is None else ct
        for ct, t, c in zip(ct_carries, _type_rule(*types, **params), transposed.carries) if c
    ]  # fmt: skip
    totals = pick(pick(consts, of_consts), transposed.consts)  # as types
    # A sum of outer products over the steps becomes one product after the loop.
    rewritten = deferred(transposed.program, of_consts.count(False), len(init), len(totals))
    in_loop = tuple(p is None for p in rewritten.sums)
    row_operands = [*omit(arrays, of_arrays), *pick(ct_rows, nonzero_flags(ct_rows))]
    outs = bind_scan(
        rewritten.body, _sizes(types, params), omit(consts, of_consts),
        [*init, *map(zeros_of, pick(totals, in_loop))], row_operands,
        {**params, "reverse": not params["reverse"]},  # cotangents flow from the last step back
    )  # fmt: skip
    row_count = sum(transposed.rows)
    carry_cts, loop_sums, row_cts, factors = parts(outs, len(init), sum(in_loop), row_count)
    later = (_total(p, [*row_operands, *factors]) for p in rewritten.sums if p is not None)
    const_cts = merge(in_loop, loop_sums, later)
    return [
        *scatter(scatter(const_cts, transposed.consts), of_consts),
        *scatter(carry_cts, transposed.carries),
        *scatter(scatter(row_cts, transposed.rows), of_arrays),
    ]


def _total(products: Sequence[Product], rows: Sequence[Any]) -> Any:
    return functools.reduce(add, (p.of(rows) for p in products))


def _transpose(
    cts: Sequence[Any], linear: Sequence[bool], *inputs: Any, **params: Any
) -> list[Any]:
    consts, count = params["consts"], params["carries"]
    if all(linear[consts : consts + count]):
        return _pull(cts, inputs, params)
    # Some carries are known, as a counter is: what they decide runs first.
    _, operands, changed, carries, results = split_scan(inputs, tuple(linear), params)
    operand_cts = _pull(pick(cts, (*carries, *results)), operands, changed)
    of_consts, _, of_arrays = parts(linear, consts, count)
    free_consts, free_arrays = of_consts.count(True), of_arrays.count(True)
    before, state, after = parts(operand_cts, changed["consts"], changed["carries"])
    linear_cts = [
        *scatter(before[len(before) - free_consts :], of_consts), *scatter(state, carries),
        *scatter(after[len(after) - free_arrays :], of_arrays),
    ]  # fmt: skip
    return [ct if lin else None for ct, lin in zip(linear_cts, linear, strict=True)]


# --- lanes ------------------------------------------------------------------------------------


def _batch(
    batched: Sequence[bool], size: Size, *args: Any, **params: Any
) -> tuple[list[Any], list[bool]]:
    counts, body = (params["consts"], params["carries"]), params["body"]
    batched_body, carries, rows = batch_body(body, counts, tuple(batched), own_size(size, body))
    consts, init, arrays = parts(args, *counts)
    _, of_init, of_arrays = parts(batched, *counts)
    started = [
        repeat_lane(x, size) if c and not b else x for x, b, c in zip(init, of_init, carries)
    ]
    # In a scan rows lead, and the axis of lanes follows.
    row_arrays = [move_axis(x, 0, 1) if b else x for x, b in zip(arrays, of_arrays)]
    outs = bind_scan(batched_body, {}, consts, started, row_arrays, params)
    values, results = parts(outs, counts[1])
    back = [move_axis(x, 1, 0) if b else x for x, b in zip(results, rows)]
    return [*values, *back], [*carries, *rows]


# --- unused results ---------------------------------------------------------------------------


def _dead_code(wanted: Sequence[bool], equation: Equation) -> Equation:
    params = equation.params
    counts = params["consts"], params["carries"]
    body, needed_inputs, carries = prune_body(params["body"], counts, tuple(wanted))
    changed = {"body": body, "consts": sum(needed_inputs[: counts[0]]), "carries": sum(carries)}
    needed_results = (*carries, *wanted[counts[1] :])
    return replace(
        equation,
        operands=tuple(pick(equation.operands, needed_inputs)),
        results=tuple(pick(equation.results, needed_results)),
        params={**params, **changed},
    )


def _keeping(equation: Equation, keeps: Keeps) -> Replay | None:
    return keep_of_scan(equation, keeps, _sizes(types_of(equation.operands), equation.params))


scan = Primitive(
    "scan", "control", _type_rule,
    transpose=_transpose, batch=_batch, multiple_results=True, lower=Control.SCAN,
    run=lambda *args, **params: run_equation(scan, args, params), interpret=_interpret,
    jvp_equation=_jvp, partial_equation=_partial, dead_code=_dead_code, keeping=_keeping,
)  # fmt: skip
