"""Control flow as lowering sees it: one loop, one branch, and rows of arrays.

    scan  -> loop over a body that takes row t of each array and puts row t of each result
    while -> loop with a condition
    cond  -> branch

The body of a loop is a program of (t: i32[], consts, carries, arrays) that yields (carries,
arrays): t counts the steps from 0, and the arrays are filled in place, row by row. Whatever the
trip count, a loop is one equation with one body.

Invariant: evaluating a loop or branch means what the equation it came from means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from rune import dims, dtypes
from rune.core.dead_code import prune
from rune.core.evaluate import eval_program
from rune.core.higher import Calls, HigherOrder, Runs
from rune.core.interpreter import literal, type_of
from rune.core.lower import Bounds, Control, Element, Piece, Source, View
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program
from rune.core.sizes import carriers, match_sizes, type_with_sizes, untold_sizes
from rune.core.types import ArrayType
from rune.dims import Size, symbol
from rune.ops import add, mul, sub
from rune.ops.family import fit, reshape, size_value

COUNTER = ArrayType((), dtypes.i32)


# --- rows -------------------------------------------------------------------------------------


def _row(operand: ArrayType, number: int) -> tuple[Element, Size]:
    """The element that tells a row of `operand`, and the symbol that stands for it."""
    element = Element("row", number, ())
    return element, symbol("row", 0, operand.shape[0] - 1)


def _take_view(indices: tuple, operand: ArrayType, row: ArrayType) -> Source:
    element, at = _row(operand, 1)
    return Source((Piece(0, (at, *indices), (), (element,)),))


def _put_view(indices: tuple, operand: ArrayType, value: ArrayType, row: ArrayType) -> Source:
    element, at = _row(operand, 2)
    shifted = indices[0] - at
    new = Piece(1, (shifted, *indices[1:]), (Bounds(shifted, 0, 1),), (element,))
    return Source((new, Piece(0, indices)))


def _put_reference(operand: np.ndarray, value: np.ndarray, row: np.ndarray) -> np.ndarray:
    changed = np.array(operand)
    changed[int(row)] = value[0]
    return changed


take_row = Primitive(
    "take_row",
    "control",
    lambda operand, row: operand.with_shape(operand.shape[1:]),
    lambda operand, row: operand[int(row)],
    lower=View(_take_view),
)
put_row = Primitive("put_row", "control", lambda operand, value, row: operand, _put_reference, lower=View(_put_view))


# --- loop and branch --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoopParams:
    """The parameters of a loop.

    condition: t, consts and carries -> whether there is one more step; None where `count` says.
    body:      t, consts, carries and arrays -> carries and arrays
    """

    consts: int
    body: Program
    condition: Program | None
    count: Size | None

    @staticmethod
    def of(equation: Equation) -> LoopParams:
        """Those of a loop's equation."""
        return LoopParams(**equation.params)

    def params(self) -> dict[str, Any]:
        """As an equation holds them."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def _loop_type(*types: ArrayType, body: Program, **_: Any) -> tuple[ArrayType, ...]:
    return body.output_types


def _run_loop(*args: Any, consts: int, body: Program, condition: Program | None, count: Size | None) -> list[Any]:
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


def _needed(program: Program, wanted: Sequence[bool]) -> tuple[Program, list[bool]]:
    """The program of the wanted outputs, and which inputs it reads or is told a size by."""
    pruned, read = prune(program, wanted)
    telling = carriers(program.input_types, untold_sizes(pruned))
    return replace(pruned, inputs=program.inputs), [r or i in telling for i, r in enumerate(read)]


def _kept(program: Program, flags: Sequence[bool]) -> Program:
    inputs = tuple(v for v, keeps in zip(program.inputs, flags) if keeps)
    return replace(program, inputs=inputs)


def _loop_dead_code(wanted: Sequence[bool], equation: Equation) -> Equation:
    """The loop over the state that wanted results and the condition need."""
    params, first = equation.params, 1 + equation.params["consts"]
    body, condition = params["body"], params["condition"]
    of_condition = [False] * (1 + len(equation.operands))
    if condition is not None:
        condition, of_condition = _needed(condition, (True,))
    state = [w or c for w, c in zip_longest(wanted, of_condition[first:], fillvalue=False)]
    while True:
        live_body, needed = _needed(body, state)
        grown = [s or n for s, n in zip(state, needed[first:], strict=True)]
        if grown == state:
            break
        state = grown
    shared = [b or c for b, c in zip(needed[1:first], of_condition[1:first], strict=True)]
    live_inputs = [True, *shared, *state]
    changed = {
        "body": _kept(live_body, live_inputs),
        "consts": sum(shared),
        "condition": condition and _kept(condition, live_inputs),
    }
    return replace(
        equation,
        operands=tuple(a for a, keeps in zip(equation.operands, live_inputs[1:]) if keeps),
        results=tuple(v for v, keeps in zip(equation.results, state, strict=True) if keeps),
        params={**params, **changed},
    )


def _loop_calls(*args: Any, body: Program, condition: Program | None, **_: Any) -> tuple[Calls, ...]:
    """Both take the step, consts and carry; the body also the arrays, which the loop makes."""
    arrays = (None for _ in body.inputs[1 + len(args) :])
    of_body = Calls(body, (None, *args, *arrays), Runs.LOOP)
    if condition is None:
        return (of_body,)
    return Calls(condition, (None, *args)[: len(condition.inputs)], Runs.LOOP), of_body


loop = HigherOrder(
    "loop", "control", _loop_type, calls=_loop_calls, multiple_results=True, run=_run_loop, dead_code=_loop_dead_code
)


def _branch_type(*types: ArrayType, branches: tuple[Program, ...]) -> tuple[ArrayType, ...]:
    return branches[0].output_types


def _run_branch(number: Any, *args: Any, branches: tuple[Program, ...]) -> list[Any]:
    chosen = min(max(int(np.asarray(number)), 0), len(branches) - 1)
    return eval_program(branches[chosen], args)


def _branch_dead_code(wanted: Sequence[bool], equation: Equation) -> Equation:
    """The branch of the wanted results, and of the operands that some program then reads."""
    pruned = [_needed(b, wanted) for b in equation.params["branches"]]
    live_inputs = [any(column) for column in zip(*(flags for _, flags in pruned), strict=True)]
    number, *operands = equation.operands
    return replace(
        equation,
        operands=(number, *(a for a, keeps in zip(operands, live_inputs, strict=True) if keeps)),
        results=tuple(v for v, w in zip(equation.results, wanted, strict=True) if w),
        params={"branches": tuple(_kept(program, live_inputs) for program, _ in pruned)},
    )


def _branch_calls(number: Any, *operands: Any, branches: tuple[Program, ...]) -> tuple[Calls, ...]:
    return tuple(Calls(b, operands, Runs.BRANCH) for b in branches)


branch = HigherOrder(
    "branch",
    "control",
    _branch_type,
    calls=_branch_calls,
    multiple_results=True,
    run=_run_branch,
    dead_code=_branch_dead_code,
)


def is_control(equation: Equation) -> bool:
    """True for the equations that become loops and branches of the plan."""
    return equation.primitive in (loop, branch)


# --- from the language ------------------------------------------------------------------------

Restage = Callable[[Callable[..., Sequence[Any]], Sequence[ArrayType], str], Program]


def write_control(kind: Control, restage: Restage, args: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """Bind the loop or branch that a control primitive means.

    restage: makes a program of a function, in primitives that lower directly.
    """
    match kind:
        case Control.BRANCH:
            return _write_branch(restage, args, **params)
        case Control.WHILE:
            return _write_while(restage, args, **params)
        case Control.SCAN:
            return write_scan(restage, args, **params)
        case Control.APART:
            return _write_apart(restage, args, **params)
        case Control.REPEAT:
            return _write_repeat(restage, args, **params)


def _write_branch(restage: Restage, args: Sequence[Any], branches: tuple[Program, ...]) -> list[Any]:
    number, *operands = args
    if len(branches) == 1:
        return eval_program(branches[0], operands)
    if isinstance(number, np.ndarray):
        return eval_program(branches[min(max(int(number), 0), len(branches) - 1)], operands)
    types = [type_of(x) for x in operands]
    written = tuple(restage(lambda *xs, b=b: eval_program(b, xs), types, f"branch{k}") for k, b in enumerate(branches))
    return branch(number, *operands, branches=written)


def _write_apart(restage: Restage, args: Sequence[Any], program: Program) -> list[Any]:
    """A branch without an alternative: a step of its own, behind all that it reads."""
    types = [type_of(x) for x in args]
    written = restage(lambda *xs: eval_program(program, xs), types, program.name)
    return branch(np.int32(0), *args, branches=(written,))


def _write_repeat(restage: Restage, args: Sequence[Any], *, body: Program, consts: int, count: Size) -> list[Any]:
    types = [COUNTER, *(type_of(a) for a in args)]
    written = restage(lambda *xs: eval_program(body, xs), types, "body")
    return loop(*args, consts=consts, condition=None, count=count, body=written)


def _write_while(
    restage: Restage,
    args: Sequence[Any],
    *,
    condition: Program,
    body: Program,
    condition_consts: int,
    body_consts: int,
    **_: Any,
) -> list[Any]:
    consts = condition_consts + body_consts
    types = [COUNTER, *(type_of(a) for a in args)]

    def asks(t: Any, *xs: Any) -> list[Any]:
        return eval_program(condition, [*xs[:condition_consts], *xs[consts:]])

    def step(t: Any, *xs: Any) -> list[Any]:
        return eval_program(body, xs[condition_consts:])

    return loop(
        *args, consts=consts, count=None, condition=restage(asks, types, "condition"), body=restage(step, types, "body")
    )


def write_scan(
    restage: Restage,
    args: Sequence[Any],
    *,
    body: Program,
    consts: int,
    carries: int,
    length: Size,
    reverse: bool,
    unroll: int,
) -> list[Any]:
    """Bind the loop that a scan means."""
    operands = list(args)
    shared, first, stacked = (operands[:consts], operands[consts:][:carries], operands[consts + carries :])
    rows = (type_of(x).with_shape(type_of(x).shape[1:]) for x in stacked)
    inside = [*(type_of(x) for x in (*shared, *first)), *rows]
    sizes = match_sizes(body.input_types, inside, f"{body.name}: cannot lower")
    yielded = (type_with_sizes(t, sizes) for t in body.output_types[carries:])
    arrays = [t.with_shape((length, *t.shape)) for t in yielded]
    if isinstance(length, int) and length == 0:
        return [*first, *(fit(literal(0, t.dtype), t.shape) for t in arrays)]
    shared += stacked
    unroll = _unrolled(length, unroll)

    def steps(t: Any, *xs: Any) -> list[Any]:
        """`unroll` steps of the body, from state to state."""
        const_values, state = xs[:consts], list(xs[len(shared) :])
        for row in _rows(t, length, unroll, reverse):
            rows = [take_row(x, row) for x in xs[consts : len(shared)]]
            outs = eval_program(body, [*const_values, *state[:carries], *rows])
            new = (reshape(y, shape=(1, *type_of(y).shape)) for y in outs[carries:])
            filled = [put_row(a, y, row) for a, y in zip(state[carries:], new, strict=True)]
            state = [*outs[:carries], *filled]
        return state

    types = [COUNTER, *(type_of(x) for x in (*shared, *first)), *arrays]
    return loop(
        *shared, *first, consts=len(shared), condition=None, count=length // unroll, body=restage(steps, types, "body")
    )


def _unrolled(length: Size, asked: int) -> int:
    """The steps written out in one iteration: as many as asked for, if that divides the length."""
    return asked if asked > 1 and dims.divides(asked, length) else 1


def _rows(t: Any, length: Size, unroll: int, reverse: bool) -> Iterator[Any]:
    """The rows that iteration t works on, in order."""
    for k in range(unroll):
        step = t if unroll == 1 else add(mul(t, np.int32(unroll)), np.int32(k))
        yield sub(size_value(length - 1, dtypes.i32), step) if reverse else step
