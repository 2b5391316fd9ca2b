"""Random functions with control flow, which also run without rune's control flow.

A function takes a state, two arrays in f64 (or f32), to a state of the same types. It is a tree of
nodes:

    Straight(program)              operations drawn by strategies.py
    Sequence(first, second)
    Scan(body, length, reverse)    rows come from the state; what is stacked goes back to it
    While(body, most)              0 to `most` steps, as many as the data say
    Cond(branches)                 one of several, chosen by the data
    Call(body, kind)               through jit, a checkpoint, or a custom rule that says the same

`applied(node, state)` uses rune's loops and branches, `unrolled(node, state)` Python's. Values stay
between -2 and 2, so that what is compared is structure and not the growth of rounding errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import rune
from rune import dtypes, ops
from rune.core.evaluate import eval_program
from rune.core.interpreter import type_of
from rune.core.program import Program
from tests.support.arrays import array
from tests.support.strategies import SMOOTH, programs, reshaped

State = list[Any]
F64 = dtypes.f64
SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 2), (1, 3))


@dataclass(frozen=True, repr=False)
class Straight:
    """Operations of a drawn program."""

    program: Program

    def __repr__(self) -> str:
        steps = ("; ".join(str(self.program).splitlines()[1:-2])).replace("  ", "")
        return f"Straight({steps})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The text that Hypothesis prints; by default it would print every dataclass."""
        printer.text(repr(self))


@dataclass(frozen=True)
class Then:
    """One after the other."""

    first: Node
    second: Node


@dataclass(frozen=True)
class Scan:
    """A body applied to rows made from the state; it counts its steps if `numbered`."""

    body: Node
    length: int
    reverse: bool
    unroll: int
    numbered: bool


@dataclass(frozen=True)
class While:
    """A body applied a number of times that depends on the data."""

    body: Node
    most: int
    reverse: Any


@dataclass(frozen=True)
class Cond:
    """One of several branches; the data choose which."""

    branches: tuple[Node, ...]


@dataclass(frozen=True)
class Call:
    """A body inside one more transformation, which changes no value and no derivative."""

    body: Node
    kind: str


Node = Straight | Then | Scan | While | Cond | Call


# --- drawing ----------------------------------------------------------------------------------


@st.composite
def straights(draw: st.DrawFn, dtype: np.dtype = F64) -> Straight:
    """A few operations."""
    return Straight(draw(programs(SMOOTH, dtype, input_kinds=(), max_steps=2)))


def nodes(depth: int = 2, *, reverse_only: bool = False, dtype: np.dtype = F64) -> st.SearchStrategy[Node]:
    """Nodes nested at most `depth` deep; custom_vjp rules where reverse mode alone is asked for."""
    if not depth:
        return straights(dtype)
    inner = nodes(depth - 1, reverse_only=reverse_only, dtype=dtype)
    kinds = [k for k in CALLS if reverse_only or k != "custom_vjp"]
    policies = st.sampled_from([rune.Checkpoints(2), rune.Checkpoints(4)])
    return st.one_of(
        st.builds(Then, inner, inner),
        st.builds(Scan, inner, st.integers(0, 3), st.booleans(), st.sampled_from([1, 2]), st.booleans()),
        st.builds(While, inner, st.integers(1, 4), policies),
        st.builds(Cond, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(Call, inner, st.sampled_from(kinds)),
    )


@st.composite
def states(draw: st.DrawFn, dtype: np.dtype = F64) -> State:
    """Two arrays."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    shapes = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(SHAPES))
    return [array(rng.uniform(-2, 2, shape).astype(dtype)) for shape in shapes]


# --- running ----------------------------------------------------------------------------------


def _straight(program: Program, state: State) -> State:
    """The state after the program; results are brought to the state's shapes and range."""
    types = program.input_types
    args = [reshaped(state[i % len(state)], t.shape) for i, t in enumerate(types)]
    dtype = type_of(state[0]).dtype
    outs = [o for o in eval_program(program, args) if type_of(o).dtype == dtype]
    return [_mixed(x, outs[i % len(outs)]) if outs else x for i, x in enumerate(state)]


def _like(x: Any, value: float) -> np.ndarray:
    """A number in the dtype of x."""
    return np.asarray(value, type_of(x).dtype)


def _mixed(x: Any, out: Any) -> Any:
    half = _like(x, 0.5)
    return ops.add(ops.mul(x, half), ops.tanh(reshaped(out, type_of(x).shape)))


def _number(state: State, most: int) -> Any:
    """An integer in 0..most that depends on the data; not near a number where it would jump."""
    total = ops.add(_total(state[0]), ops.mul(_total(state[1]), _like(state[1], 0.5)))
    product = ops.add(ops.mul(ops.abs(total), _like(total, 7.0)), _like(total, 0.37))
    return ops.rem(ops.convert(ops.floor(product), dtype=dtypes.i32), np.int32(most + 1))


def _total(x: Any) -> Any:
    return ops.reduce_sum(x, axes=tuple(range(type_of(x).ndim)))


def _rows(state: State, length: int) -> Any:
    """Rows like the first array, each scaled by its number."""
    dtype = type_of(state[0]).dtype
    factors = ops.add(ops.iota(shape=(length,), axis=0, dtype=dtype), _like(state[0], 0.5))
    x, shape = state[0], (length, *type_of(state[0]).shape)
    spread = ops.broadcast(x, shape=shape, axes=tuple(range(1, len(shape))))
    return ops.mul(spread, ops.broadcast(factors, shape=shape, axes=(0,)))


def _with_row(state: State, row: Any) -> State:
    checkpoint = rune.checkpoint_name(ops.tanh(ops.add(state[0], row)), "moved")
    return [checkpoint, *state[1:]]


def _with_stacked(state: State, ys: Any) -> State:
    return [*state[:-1], ops.add(state[-1], reshaped(ops.tanh(ys), type_of(state[-1]).shape))]


def applied(node: Node, state: State) -> State:
    """The state after the node, by rune's control flow."""
    match node:
        case Straight(program):
            return _straight(program, state)
        case Then(first, second):
            return applied(second, applied(first, state))
        case Scan(body, length, reverse, unroll, has_number):
            (_, last), ys = rune.scan(
                _scan_body(lambda s: applied(body, s), has_number),
                (0, state),
                _rows(state, length),
                length=length,
                reverse=reverse,
                unroll=unroll,
            )
            return _with_stacked(last, ys)
        case While(body, most, reverse):
            count = _number(state, most)
            return rune.while_loop(
                lambda s: s[0] < count, lambda s: (s[0] + 1, applied(body, s[1])), (0, state), reverse=reverse
            )[1]
        case Cond(branches):
            number = _number(state, len(branches) - 1)
            return rune.switch(number, [lambda s, b=b: applied(b, s) for b in branches], state)
        case Call(body, kind):
            return list(CALLS[kind](lambda s: applied(body, s))(state))


def _scan_body(step: Callable[[State], State], has_number: bool) -> Callable[[Any, Any], tuple[Any, Any]]:
    def body(carry: Any, row: Any) -> tuple[Any, Any]:
        number, state = carry
        new_state = step(_with_row(state, _scaled(row, number) if has_number else row))
        return (number + 1, new_state), new_state[0]

    return body


def _scaled(row: Any, number: Any) -> Any:
    """A row times a function of the step's number."""
    product = ops.mul(ops.convert(number, dtype=type_of(row).dtype), _like(row, 0.3))
    factor = ops.add(product, _like(row, 1.0))
    return ops.mul(row, factor)


# --- calls --------------------------------------------------------------------------------------

Function = Callable[[State], State]


def _custom_jvp(function: Function) -> Function:
    operation = rune.custom_jvp(function)
    operation.defjvp(lambda primals, tangents: rune.jvp(function, primals, tangents))
    return operation


def _custom_vjp(function: Function) -> Function:
    operation = rune.custom_vjp(function)
    operation.defvjp(lambda s: (function(s), s), lambda s, ct: rune.vjp(function, s)[1](ct))
    return operation


def _keeping(function: Function) -> Function:
    policy = rune.checkpoint_policies.save_only_these_names("moved")
    return rune.checkpoint(function, policy=policy)


CALLS: dict[str, Callable[[Function], Function]] = {
    "jit": rune.jit,
    "checkpoint": rune.checkpoint,
    "keeping": _keeping,
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
}


def unrolled(node: Node, state: State) -> State:
    """The state after the node, by Python's control flow."""
    match node:
        case Straight(program):
            return _straight(program, state)
        case Then(first, second):
            return unrolled(second, unrolled(first, state))
        case Scan():
            return _unrolled_scan(node, state)
        case While(body, most, _):
            for _ in range(int(_number(state, most))):
                state = unrolled(body, state)
            return state
        case Cond(branches):
            return unrolled(branches[int(_number(state, len(branches) - 1))], state)
        case Call(body):
            return unrolled(body, state)


def _unrolled_scan(node: Scan, state: State) -> State:
    length, rows = node.length, _rows(state, node.length)
    shape = (1, *type_of(state[0]).shape)
    rows_out: list[Any] = [None] * length
    for number, t in enumerate(reversed(range(length)) if node.reverse else range(length)):
        row = _scaled(rows[t], np.int32(number)) if node.numbered else rows[t]
        state = unrolled(node.body, _with_row(state, row))
        rows_out[t] = ops.reshape(state[0], shape=shape)
    ys = ops.concatenate(*rows_out, axis=0) if rows_out else rows
    return _with_stacked(state, ys)


def lanes(states: Sequence[State]) -> State:
    """States of equal shapes, side by side."""
    return [array(np.stack([np.asarray(x) for x in column])) for column in zip(*states)]
