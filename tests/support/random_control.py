"""Random functions with control flow, each of which also runs without.

A function takes a state, two f64 arrays, to a state of the same types. It is a tree of nodes:

    Straight(program)              operations drawn by strategies.py
    Sequence(first, second)
    Scan(body, length, reverse)    rows come from the state; what is stacked goes back to it
    While(body, most)              0 to `most` steps, as many as the data say
    Cond(branches)                 one of several, chosen by the data

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
SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 2), (1, 3))


@dataclass(frozen=True)
class Straight:
    """Operations of a drawn program."""

    program: Program


@dataclass(frozen=True)
class Then:
    """One after the other."""

    first: Node
    second: Node


@dataclass(frozen=True)
class Scan:
    """A body applied to rows that are made of the state."""

    body: Node
    length: int
    reverse: bool
    unroll: int


@dataclass(frozen=True)
class While:
    """A body applied as often as the data say."""

    body: Node
    most: int
    reverse: Any


@dataclass(frozen=True)
class Cond:
    """A branch that the data choose."""

    branches: tuple[Node, ...]


Node = Straight | Then | Scan | While | Cond


# --- drawing ----------------------------------------------------------------------------------


@st.composite
def straights(draw: st.DrawFn) -> Straight:
    """A few operations."""
    return Straight(draw(programs(SMOOTH, dtypes.f64, input_kinds=(), max_steps=2)))


def nodes(depth: int = 2) -> st.SearchStrategy[Node]:
    """Nodes nested at most `depth` deep."""
    if not depth:
        return straights()
    inner = nodes(depth - 1)
    policies = st.sampled_from([rune.Checkpoints(2), rune.Checkpoints(4)])
    return st.one_of(
        st.builds(Then, inner, inner),
        st.builds(Scan, inner, st.integers(0, 3), st.booleans(), st.sampled_from([1, 2])),
        st.builds(While, inner, st.integers(1, 4), policies),
        st.builds(Cond, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    )


@st.composite
def states(draw: st.DrawFn) -> State:
    """Two arrays."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    shapes = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(SHAPES))
    return [array(rng.uniform(-2, 2, shape)) for shape in shapes]


# --- running ----------------------------------------------------------------------------------


def _straight(program: Program, state: State) -> State:
    """The state after the program; results are brought to the state's shapes and range."""
    types = program.input_types
    args = [reshaped(state[i % len(state)], t.shape) for i, t in enumerate(types)]
    outs = [o for o in eval_program(program, args) if type_of(o).dtype == dtypes.f64]
    return [_mixed(x, outs[i % len(outs)]) if outs else x for i, x in enumerate(state)]


def _mixed(x: Any, out: Any) -> Any:
    half = np.float64(0.5)
    return ops.add(ops.mul(x, half), ops.tanh(reshaped(out, type_of(x).shape)))


def _number(state: State, most: int) -> Any:
    """An integer in 0..most that depends on the data; not near a number where it would jump."""
    total = ops.add(_total(state[0]), ops.mul(_total(state[1]), np.float64(0.5)))
    scaled = ops.add(ops.mul(ops.abs(total), np.float64(7.0)), np.float64(0.37))
    return ops.rem(ops.convert(ops.floor(scaled), dtype=dtypes.i32), np.int32(most + 1))


def _total(x: Any) -> Any:
    return ops.reduce_sum(x, axes=tuple(range(type_of(x).ndim)))


def _rows(state: State, length: int) -> Any:
    """Rows like the first array: it, scaled by the number of the row."""
    factors = ops.add(ops.iota(shape=(length,), axis=0, dtype=dtypes.f64), np.float64(0.5))
    x, shape = state[0], (length, *type_of(state[0]).shape)
    spread = ops.broadcast(x, shape=shape, axes=tuple(range(1, len(shape))))
    return ops.mul(spread, ops.broadcast(factors, shape=shape, axes=(0,)))


def _with_row(state: State, row: Any) -> State:
    return [ops.tanh(ops.add(state[0], row)), *state[1:]]


def _with_stacked(state: State, ys: Any) -> State:
    return [*state[:-1], ops.add(state[-1], reshaped(ops.tanh(ys), type_of(state[-1]).shape))]


def applied(node: Node, state: State) -> State:
    """The state after the node, by rune's control flow."""
    match node:
        case Straight(program):
            return _straight(program, state)
        case Then(first, second):
            return applied(second, applied(first, state))
        case Scan(body, length, reverse, unroll):
            last, ys = rune.scan(
                _scan_body(lambda s: applied(body, s)), state, _rows(state, length),
                length=length, reverse=reverse, unroll=unroll,
            )  # fmt: skip
            return _with_stacked(last, ys)
        case While(body, most, reverse):
            count = _number(state, most)
            return rune.while_loop(
                lambda s: s[0] < count, lambda s: (s[0] + 1, applied(body, s[1])), (0, state),
                reverse=reverse,
            )[1]  # fmt: skip
        case Cond(branches):
            number = _number(state, len(branches) - 1)
            return rune.switch(number, [lambda s, b=b: applied(b, s) for b in branches], state)


def _scan_body(step: Callable[[State], State]) -> Callable[[State, Any], tuple[State, Any]]:
    def body(state: State, row: Any) -> tuple[State, Any]:
        found = step(_with_row(state, row))
        return found, found[0]

    return body


def unrolled(node: Node, state: State) -> State:
    """The state after the node, by Python's control flow."""
    match node:
        case Straight(program):
            return _straight(program, state)
        case Then(first, second):
            return unrolled(second, unrolled(first, state))
        case Scan(body, length, reverse, _):
            return _unrolled_scan(body, length, reverse, state)
        case While(body, most, _):
            for _ in range(int(_number(state, most))):
                state = unrolled(body, state)
            return state
        case Cond(branches):
            return unrolled(branches[int(_number(state, len(branches) - 1))], state)


def _unrolled_scan(body: Node, length: int, reverse: bool, state: State) -> State:
    rows, shape = _rows(state, length), (1, *type_of(state[0]).shape)
    found: list[Any] = [None] * length
    for t in reversed(range(length)) if reverse else range(length):
        state = unrolled(body, _with_row(state, rows[t]))
        found[t] = ops.reshape(state[0], shape=shape)
    ys = ops.concatenate(*found, axis=0) if found else rows
    return _with_stacked(state, ys)


def lanes(states: Sequence[State]) -> State:
    """States of equal shapes, side by side."""
    return [array(np.stack([np.asarray(x) for x in column])) for column in zip(*states)]
