"""One loop, and the rows of arrays that its steps read and write.

    scan  -> loop over a body that reads row t of each array and writes row t of each result
    while -> loop with a condition

Lowering writes these primitives for the loops of users (rune/control), and the expansions of
primitives for the loops of their algorithms (repeat.py). The body of a loop is a program of
(t: i32[], consts, carries, arrays) that returns (carries, arrays): t counts the steps from 0, and
the arrays are filled in place, row by row. Whatever the trip count, a loop is one equation with one
body. It has no derivatives and no batch rule: they were taken before lowering.

Invariant: evaluating a loop means what the equation it came from means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dims, dtypes
from rune.core.dead_code import narrowed, needed_inputs, with_inputs_picked
from rune.core.evaluate import eval_program
from rune.core.higher import Calls, HigherOrder, Runs
from rune.core.interpreter import current, literal, type_of
from rune.core.lower import Bounds, Element, Piece, Source, View
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program, Var
from rune.core.sizes import match_sizes, type_with_sizes
from rune.core.staging import FlatFunction, Stage, Staged, trace_program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size, symbol
from rune.ops.arithmetic import add, mul, sub
from rune.ops.family import fit, reshape, size_value
from rune.ops.movement import concatenate, part
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.array import Array

COUNTER = ArrayType((), dtypes.i32)
MOST_ROWS = 16  # of the results of a scan whose steps are all written out: one kernel joins no more


# --- rows -------------------------------------------------------------------------------------


def _row(operand: ArrayType, number: int) -> tuple[Element, Size]:
    """The element that holds a row number of `operand`, and the symbol that stands for it."""
    element = Element("row", number, ())
    return element, symbol("row", 0, operand.shape[0] - 1)


def _take_view(indices: tuple, operand: ArrayType, row: ArrayType) -> Source:
    element, at = _row(operand, 1)
    return Source((Piece(0, (at, *indices), (), (element,)),))


def _put_view(indices: tuple, operand: ArrayType, value: ArrayType, row: ArrayType) -> Source:
    element, at = _row(operand, 2)
    row_in_value = indices[0] - at
    new = Piece(1, (row_in_value, *indices[1:]), (Bounds(row_in_value, 0, 1),), (element,))
    return Source((new, Piece(0, indices)))


def _put_reference(operand: np.ndarray, value: np.ndarray, row: np.ndarray) -> np.ndarray:
    out = np.array(operand)
    out[int(row)] = value[0]
    return out


take_row = Primitive(
    "take_row",
    "control",
    lambda operand, row: operand.with_shape(operand.shape[1:]),
    lambda operand, row: operand[int(row)],
    lower=View(_take_view),
)
put_row = Primitive("put_row", "control", lambda operand, value, row: operand, _put_reference, lower=View(_put_view))


# --- loop --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoopParams:
    """The parameters of a loop.

    condition: t, consts and carries -> whether there is another step; None if `count` decides
    body:      t, consts, carries and arrays -> carries and arrays
    """

    consts: int
    body: Program
    condition: Program | None
    count: Size | None

    @staticmethod
    def of(equation: Equation) -> LoopParams:
        """The parameters of a loop's equation."""
        return LoopParams(**equation.params)

    def params(self) -> dict[str, Any]:
        """The parameters as an equation holds them."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def _loop_type(*types: ArrayType, body: Program, **_: object) -> tuple[ArrayType, ...]:
    return body.output_types


def _run_loop(*args: Value, consts: int, body: Program, condition: Program | None, count: Size | None) -> list[Value]:
    """The meaning: step by step."""
    arrays = [np.zeros(t.shape, t.dtype) for t in body.input_types[1 + len(args) :]]
    state = [*args[consts:], *arrays]
    t = 0
    while True:
        operands = [np.int32(t), *args[:consts], *state]
        if condition is not None:
            (more,) = eval_program(condition, operands[: len(condition.inputs)])
            if not bool(np.asarray(more)):
                return state
        elif t == count:
            return state
        state = eval_program(body, operands)
        t += 1


def shrunk_loop(used_results: Sequence[bool], equation: Equation) -> Equation:
    """The loop over the state that the used results and the condition need, and the consts these
    read.
    """
    params, first = equation.params, 1 + equation.params["consts"]
    body, condition = params["body"], params["condition"]
    of_condition = [False] * (1 + len(equation.operands))
    if condition is not None:
        condition, of_condition = needed_inputs(condition, (True,))
    state = [w or c for w, c in zip_longest(used_results, of_condition[first:], fillvalue=False)]
    while True:
        live_body, live_inputs_of_body = needed_inputs(body, state)
        state_or_needed = [s or n for s, n in zip(state, live_inputs_of_body[first:], strict=True)]
        if state_or_needed == state:
            break
        state = state_or_needed
    live_consts = [b or c for b, c in zip(live_inputs_of_body[1:first], of_condition[1:first], strict=True)]
    live_inputs = [True, *live_consts, *state]
    # Arrays that the loop creates are results without an operand.
    return narrowed(
        equation,
        live_inputs[1 : 1 + len(equation.operands)],
        state,
        body=with_inputs_picked(live_body, live_inputs),
        consts=sum(live_consts),
        condition=condition and with_inputs_picked(condition, live_inputs[: len(condition.inputs)]),
    )


def _loop_calls(*args: Value, body: Program, condition: Program | None, **_: object) -> tuple[Calls, ...]:
    """Both read the step, consts and carry; the body also the arrays, which the loop creates."""
    arrays = (None for _ in body.inputs[1 + len(args) :])
    of_body = Calls(body, (None, *args, *arrays), Runs.LOOP)
    if condition is None:
        return (of_body,)
    return Calls(condition, (None, *args)[: len(condition.inputs)], Runs.LOOP), of_body


loop = HigherOrder(
    "loop", "control", _loop_type, calls=_loop_calls, multiple_results=True, run=_run_loop, dead_code=shrunk_loop
)


# --- what is written as a loop ----------------------------------------------------------------


def stage_within(function: FlatFunction, types: Sequence[ArrayType], name: str) -> Staged:
    """The program of `function`, traced by the rules of the enclosing stage: while a program is
    lowered, in primitives that can be lowered directly.
    """
    around = current()
    return trace_program(around.inner() if isinstance(around, Stage) else Stage(around), function, types, name)


def bind_loop(
    body: Staged, condition: Staged | None, count: Size | None, consts: Sequence[Value], carry: Sequence[Value]
) -> list[Array]:
    """The loop of programs (t, consts, carry) -> carry and, if `count` is None, -> bool[].

    Values that the programs capture become operands too. Carries of the body that follow `carry`
    are arrays, which the loop creates.
    """
    programs = (body,) if condition is None else (body, condition)
    captures = [x for p in programs for x in p.captured]
    step, *asks = captured_by_all(programs, leading=1)
    return loop(
        *captures,
        *consts,
        *carry,
        consts=len(captures) + len(consts),
        body=step,
        condition=asks[0] if asks else None,
        count=count,
    )


def captured_by_all(staged: Sequence[Staged], leading: int = 0) -> list[Program]:
    """The programs, with the captured values of all of them as inputs after `leading` others."""
    types = [type_of(x) for s in staged for x in s.captured]
    programs, start = [], 0
    for s in staged:
        capture_vars, end = [Var(t) for t in types], start + len(s.captured)
        capture_vars[start:end] = s.program.inputs[: len(s.captured)]
        inputs = (*s.own_inputs[:leading], *capture_vars, *s.own_inputs[leading:])
        programs.append(replace(s.program, inputs=inputs))
        start = end
    return programs


def while_as_loop(
    *args: Value, condition: Program, body: Program, condition_consts: int, body_consts: int, **_: object
) -> list[Array]:
    """The loop equation for a `while`."""
    count = condition_consts + body_consts
    types = [COUNTER, *map(type_of, args)]

    def asks(t: Value, *xs: Value) -> list[Array]:
        return eval_program(condition, [*xs[:condition_consts], *xs[count:]])

    def step(t: Value, *xs: Value) -> list[Array]:
        return eval_program(body, xs[condition_consts:])

    programs = stage_within(step, types, "body"), stage_within(asks, types, "condition")
    return bind_loop(*programs, None, args[:count], args[count:])


def scan_as_loop(
    *args: Value, body: Program, consts: int, carries: int, length: Size, reverse: bool, unroll: int
) -> list[Any]:
    """The loop equation for a scan."""
    constants, first, row_arrays = args[:consts], args[consts:][:carries], args[consts + carries :]
    rows = (type_of(x).with_shape(type_of(x).shape[1:]) for x in row_arrays)
    inside = [*(type_of(x) for x in (*constants, *first)), *rows]
    sizes = match_sizes(body.input_types, inside, f"{body.name}: cannot lower")
    row_types = [type_with_sizes(t, sizes) for t in body.output_types[carries:]]
    arrays = [t.with_shape((length, *t.shape)) for t in row_types]
    if isinstance(length, int) and length == 0:
        return [*first, *(fit(literal(0, t.dtype), t.shape) for t in arrays)]
    unroll, operands = _unrolled(length, unroll), (*constants, *row_arrays)
    if length == unroll and (unroll <= MOST_ROWS or not row_types):
        return _written_out(body, constants, first, row_arrays, unroll, reverse)

    def steps(t: Value, *xs: Value) -> list[Value]:
        """`unroll` steps of the body, from state to state."""
        const_values, state = xs[:consts], list(xs[len(operands) :])
        for row in _rows(t, length, unroll, reverse):
            rows = [take_row(x, row) for x in xs[consts : len(operands)]]
            outs = eval_program(body, [*const_values, *state[:carries], *rows])
            new = (reshape(y, shape=(1, *type_of(y).shape)) for y in outs[carries:])
            arrays = [put_row(a, y, row) for a, y in zip(state[carries:], new, strict=True)]
            state = [*outs[:carries], *arrays]
        return state

    types = [COUNTER, *(type_of(x) for x in (*operands, *first)), *arrays]
    return bind_loop(stage_within(steps, types, "body"), None, length // unroll, operands, first)


def _written_out(
    body: Program, consts: Sequence[Value], carry: Sequence[Value], arrays: Sequence[Value], length: int, reverse: bool
) -> list[Value]:
    """All steps of a scan one after the other, without a loop."""
    state, rows = list(carry), list[list[Value]]()
    for t in reversed(range(length)) if reverse else range(length):
        outs = eval_program(body, [*consts, *state, *(_static_row(x, t) for x in arrays)])
        state = outs[: len(carry)]
        rows.append([reshape(y, shape=(1, *type_of(y).shape)) for y in outs[len(carry) :]])
    in_order = reversed(rows) if reverse else rows
    return [*state, *(concatenate(*column, axis=0) for column in zip(*in_order, strict=True))]


def _static_row(array: Value, t: int) -> Array:
    """Row t of an array."""
    return reshape(part(array, 0, t, t + 1), shape=type_of(array).shape[1:])


def _unrolled(length: Size, unroll: int) -> int:
    """How many steps one iteration writes out: the most up to `unroll` that divide the length."""
    most = min(unroll, length) if isinstance(length, int) else unroll
    return next(steps for steps in range(max(most, 1), 0, -1) if dims.divides(steps, length))


def _rows(t: Value, length: Size, unroll: int, reverse: bool) -> Iterator[Any]:
    """The rows that iteration t works on, in order."""
    for k in range(unroll):
        step = t if unroll == 1 else add(mul(t, np.int32(unroll)), np.int32(k))
        yield sub(size_value(length - 1, dtypes.i32), step) if reverse else step
