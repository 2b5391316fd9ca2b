"""Laws of derivatives and lanes for random programs, not only for single primitives.

In f64, over primitives without kinks: forward against differences, reverse against forward,
compiled against eager, lanes against a loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import rune
from rune import dtypes
from rune.core.evaluate import eval_program
from rune.core.program import Program
from tests.support.arrays import array
from tests.support.close import near
from tests.support.derivatives import differences, directions, inner
from tests.support.examples import COMPILING
from tests.support.strategies import ANY, SMOOTH, arguments, concrete, programs

SMOOTH_PROGRAMS = programs(SMOOTH, dtypes.f64, input_kinds=(), max_steps=3)


class Case:
    """The floating inputs and outputs of a drawn program as a function, and a direction."""

    def __init__(self, data: st.DataObject):
        self.program = data.draw(SMOOTH_PROGRAMS)
        self.args = data.draw(arguments(self.program))
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        self.tangents = directions(rng, self.args)
        self.cotangents = directions(rng, self.function(*self.args))

    def function(self, *args: Any) -> list[Any]:
        """The floating results."""
        outs = eval_program(self.program, args)
        return [o for o in outs if o.dtype == dtypes.f64]

    def weighted(self, *args: Any) -> Any:
        """One scalar that depends on every result."""
        total = array(np.float64(0))
        for out, weight in zip(self.function(*args), self.cotangents, strict=True):
            total = total + (out * weight).sum()
        return total


@given(st.data())
def test_jvp_agrees_with_differences(data: st.DataObject):
    case = Case(data)

    _, tangent = rune.jvp(case.weighted, case.args, case.tangents)

    expected = differences(case.weighted, case.args, case.tangents)
    near(expected, tangent, relative=1e-4, absolute=1e-4, why="differences of a sum of many terms")


@given(st.data())
def test_reverse_is_the_adjoint_of_forward(data: st.DataObject):
    case = Case(data)

    _, push = rune.linearize(case.function, *case.args)
    _, pull = rune.vjp(case.function, *case.args)

    forwards = inner(case.cotangents, push(*case.tangents))
    backwards = inner(pull(case.cotangents), case.tangents)
    near(forwards, backwards, relative=1e-8, absolute=1e-8, why="f64 sums reordered")


@given(st.data())
def test_linearize_is_linear_and_equals_jvp(data: st.DataObject):
    case = Case(data)
    other = directions(np.random.default_rng(5), case.args)

    _, push = rune.linearize(case.function, *case.args)

    both = [array(2.0 * np.asarray(t) - np.asarray(o)) for t, o in zip(case.tangents, other)]
    parts = zip(push(*case.tangents), push(*other))
    why = "f64"
    near([2 * np.asarray(a) - np.asarray(b) for a, b in parts], push(*both), relative=1e-8, why=why)
    near(rune.jvp(case.function, case.args, case.tangents)[1], push(*case.tangents), relative=1e-8, why=why)


@given(st.data())
def test_the_second_derivative_is_symmetric(data: st.DataObject):
    case = Case(data)
    other = directions(np.random.default_rng(7), case.args)
    numbers = tuple(range(len(case.args)))
    gradient = rune.grad(case.weighted, argnums=numbers)

    tangents_first = inner(rune.jvp(gradient, case.args, case.tangents)[1], other)
    tangents_last = inner(rune.jvp(gradient, case.args, other)[1], case.tangents)

    near(tangents_first, tangents_last, relative=1e-6, absolute=1e-6, why="f64 sums reordered")


@COMPILING
@given(st.data())
def test_the_gradient_of_compiled_code_is_the_compiled_gradient(data: st.DataObject):
    case = Case(data)
    numbers = tuple(range(len(case.args)))
    expected = rune.grad(case.weighted, argnums=numbers)(*case.args)

    inside = rune.grad(rune.jit(case.weighted), argnums=numbers)(*case.args)
    outside = rune.jit(rune.grad(case.weighted, argnums=numbers))(*case.args)

    near(expected, inside, relative=1e-8, absolute=1e-9, why="f64, other polynomials")
    near(expected, outside, relative=1e-8, absolute=1e-9, why="f64, other polynomials")


# --- lanes ------------------------------------------------------------------------------------


def lanes_of(program: Program, has_lanes: list[bool], axes: list[int], size: int) -> list[Any]:
    """Arguments with lanes at the chosen axes of the batched ones."""
    rng, arguments = np.random.default_rng(3), []
    for type, with_lanes, axis in zip(program.input_types, has_lanes, axes):
        if not with_lanes:
            arguments.append(concrete(type, rng))
            continue
        place = axis % (type.ndim + 1)
        rows = np.stack([np.asarray(concrete(type, rng)) for _ in range(size)], place)
        arguments.append(array(rows))
    return arguments


@given(st.data())
def test_vmap_equals_the_stacked_loop_for_any_axes(data: st.DataObject):
    program = data.draw(programs(ANY, dtypes.f64, max_steps=3))
    count, size = len(program.inputs), data.draw(st.integers(1, 3))
    has_lanes = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    has_lanes[0] = True
    axes = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    args = lanes_of(program, has_lanes, axes, size)
    places = [a % (t.ndim + 1) for a, t in zip(axes, program.input_types)]

    def one(*xs: Any) -> list[Any]:
        return eval_program(program, xs)

    in_axes = tuple(p if b else None for p, b in zip(places, has_lanes))
    lanes = rune.vmap(one, in_axes)(*args)

    for lane in range(size):
        row = [array(np.take(np.asarray(a), lane, p)) if b else a for a, p, b in zip(args, places, has_lanes)]
        results = [np.asarray(f)[lane] for f in lanes]
        near([np.asarray(o) for o in one(*row)], results, relative=1e-9, why="f64 sums reordered")


@given(st.data())
def test_vmap_and_grad_commute(data: st.DataObject):
    case = Case(data)
    rows = [array(np.stack([np.asarray(a), np.asarray(a) * 0.5])) for a in case.args]
    numbers = tuple(range(len(case.args)))

    inside = rune.vmap(rune.grad(case.weighted, argnums=numbers))(*rows)
    outside = rune.grad(lambda *xs: rune.vmap(case.weighted)(*xs).sum(), argnums=numbers)(*rows)

    near(inside, outside, relative=1e-8, absolute=1e-9, why="f64 sums reordered")
