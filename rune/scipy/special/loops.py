"""Elementwise functions that are limits of a loop, with exact derivatives of every order.

A `Limit` steps a state until its watched numbers stop changing, lane by lane: a lane that has
converged keeps its state, so that no element depends on its neighbours. When only a few of many
lanes remain, they are gathered and continue without the others. The derivative in one argument is
the limit of the loop that steps state and derivative together, and waits for both; that loop is a
`Limit` again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, ParamSpec, TypeVar

import rune.numpy as rnp
from rune import config, tree
from rune.array import Array
from rune.control import while_loop
from rune.core.interpreter import is_evaluating
from rune.dims import Size
from rune.records import dataclass
from rune.scipy.special.arguments import as_array
from rune.transforms.compile.jit import jit
from rune.transforms.custom.jvp import custom_jvp
from rune.transforms.custom.rules import SymbolicZero
from rune.transforms.derivatives.directional import jvp

P = ParamSpec("P")
R = TypeVar("R")

CALM = 2  # successive steps without a change after which a lane is done
MANY = 4096  # lanes from which on the last ones continue without the others
SHARE = 32  # the share of lanes that then remain is one in this many


class State(NamedTuple):
    """Numbers that are watched, and the rest of the state."""

    watched: tuple[Array, ...]
    others: tuple[Array, ...]


_Carry = tuple[Array, Array, State]  # the number of the step, the steps since each lane changed, and the state


@dataclass(frozen=True)
class Limit:
    """start(*args) -> State;  step(n, state, *args) -> State, with n = 1, 2, … as a float.

    A call returns the watched number at `result`, one of `count`. All arguments are floating arrays
    of one dtype and shape. `most` bounds the number of steps.
    """

    start: Callable[..., State]
    step: Callable[..., State]
    most: int = 2000
    count: int = 1
    result: int = 0

    def __call__(self, *args: Array) -> Array:
        return _limit(self, *args)

    def partial(self, i: int) -> Limit:
        """The limit that is the derivative in argument i."""

        def start(*args: Array) -> State:
            return _beside(*jvp(self.start, args, _unit(args, i)))

        def step(n: Array, state: State, *args: Array) -> State:
            primal, slope = _apart(state)
            primal_step = lambda s, *xs: self.step(n, s, *xs)  # noqa: E731
            return _beside(*jvp(primal_step, (primal, *args), (slope, *_unit(args, i))))

        return Limit(start, step, self.most, 2 * self.count, self.count + self.result)


def in_one_program(function: Callable[P, R]) -> Callable[P, R]:
    """`function` of arrays, which contains loops; an eager call of it is compiled, whatever its
    size.

    A loop is compiled in any case, but each eager call would trace it again.
    """
    jitted = jit(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not is_evaluating():
            return function(*args, **kwargs)
        with config.setting(symbolic="auto"):  # a second size is the last that is compiled
            return jitted(*args, **kwargs)

    return call


def _unit(args: Sequence[Array], i: int) -> tuple[Array, ...]:
    """The direction of argument i."""
    return tuple(rnp.ones_like(a) if k == i else rnp.zeros_like(a) for k, a in enumerate(args))


def _beside(primal: State, slope: State) -> State:
    # A slope that is 0 arrives as a NumPy constant.
    tangent = State(*(tuple(as_array(v) for v in part) for part in slope))
    return State((*primal.watched, *tangent.watched), (*primal.others, *tangent.others))


def _apart(state: State) -> tuple[State, State]:
    watched_count, other_count = len(state.watched) // 2, len(state.others) // 2
    first = State(state.watched[:watched_count], state.others[:other_count])
    return first, State(state.watched[watched_count:], state.others[other_count:])


def _limit_value(limit: Limit, *args: Array) -> Array:
    calm = rnp.zeros(args[0].shape, rnp.int32)
    start = rnp.ones((), args[0].dtype), calm, limit.start(*args)
    few = _few(args[0].shape)
    if not few:
        return _stepped(limit, start, args, 0)[2].watched[limit.result]
    return _finished(limit, _stepped(limit, start, args, few), args, few)


def _few(shape: Sequence[Size]) -> int:
    """How many lanes continue by themselves, if there are many in all."""
    sizes = [size for size in shape if isinstance(size, int)]
    lanes = math.prod(sizes) if len(sizes) == len(shape) else 0
    return lanes // SHARE if lanes >= MANY else 0


def _stepped(limit: Limit, carry: _Carry, args: Sequence[Array], few: int) -> _Carry:
    """Steps until all lanes, or all but a few, are done."""

    def goes_on(carry: _Carry) -> Array:
        n, calm, _ = carry
        is_many = rnp.sum(calm < CALM) > few if few else rnp.any(calm < CALM)
        return is_many & (n <= limit.most)

    def again(carry: _Carry) -> _Carry:
        n, calm, state = carry
        following = limit.step(n, state, *args)
        still = _stands_still(state.watched, following.watched)
        is_done = calm >= CALM
        new_state = tree.map(lambda old, new: rnp.where(is_done, old, new), state, following)
        return n + 1.0, rnp.where(is_done | still, calm + 1, 0), new_state

    return while_loop(goes_on, again, carry)


def _finished(limit: Limit, carry: _Carry, args: Sequence[Array], few: int) -> Array:
    """The watched number, after further steps of the few lanes that are not done."""
    n, calm, state = carry
    result = state.watched[limit.result]
    flat = rnp.reshape(result, -1)
    lanes = rnp.flatnonzero(calm < CALM, size=few, fill_value=flat.size)
    take_lanes = lambda x: rnp.take(rnp.reshape(x, -1), lanes, mode="clip")  # noqa: E731
    last = _stepped(limit, (n, take_lanes(calm), tree.map(take_lanes, state)), [take_lanes(x) for x in args], 0)
    ends = flat.at[lanes].set(last[2].watched[limit.result], mode="drop")
    return rnp.reshape(ends, result.shape)


def _stands_still(old: Sequence[Array], new: Sequence[Array]) -> Array:
    """Whether no watched number changes by more than roundings; a NaN counts as unchanged."""
    eps = 2 * float(rnp.finfo(new[0].dtype).eps)
    still = [(abs(b - a) <= eps * abs(b)) | ~rnp.isfinite(b) for a, b in zip(old, new)]
    out = still[0]
    for s in still[1:]:
        out = out & s
    return out


_limit = custom_jvp(_limit_value, nondiff_argnums=(0,))


def _limit_jvp(limit: Limit, primals: Sequence[Array], tangents: Sequence[Array | SymbolicZero]) -> tuple[Array, Array]:
    out = _limit(limit, *primals)
    total = rnp.zeros_like(out)
    for i, tangent in enumerate(tangents):
        if not isinstance(tangent, SymbolicZero):
            total = total + _limit(limit.partial(i), *primals) * tangent
    return out, total


_limit.defjvp(_limit_jvp, symbolic_zeros=True)
