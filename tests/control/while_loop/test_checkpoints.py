"""Reverse mode through loops of unknown length: what is saved, what is recomputed, what fails.

Only positions decide which carries are saved; memory does not depend on the number of steps; and
every policy gives the gradient of the unrolled loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import Checkpoints, GrowingResiduals
from rune.control.while_loop.checkpoints import checkpoint_before, slot, stride
from rune.control.while_loop.growing import rounded_up
from rune.core.higher import subprograms
from rune.core.program import Program
from rune.errors import ArgumentError, TransformError
from rune.transforms import eager
from tests.control.cases import interpreted
from tests.support.arrays import array
from tests.support.close import near, same

# --- positions --------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 4, 8])
def test_no_slot_is_taken_while_it_is_needed(count: int):
    # Beyond count**2, where whole levels are given up, too.
    positions: dict[int, int] = {}
    for position in range(4 * count**2 + 3):
        step = np.int32(position)
        spacing = int(stride(step, count))
        if int(checkpoint_before(step, np.int32(spacing))) == position:
            positions[int(slot(step, count))] = position

        checkpoints = range(0, position + 1, spacing)
        assert len(checkpoints) <= count
        assert all(positions[int(slot(np.int32(p), count))] == p for p in checkpoints)
        assert set(positions) <= set(range(count))


def test_the_stride_doubles_whenever_as_many_have_passed():
    strides = [int(stride(np.int32(p), 4)) for p in (0, 3, 4, 7, 8, 15, 16, 2**30)]

    assert strides == [1, 1, 2, 2, 4, 4, 8, 2**29]


def test_the_last_possible_step_still_has_a_slot():
    last = np.int32(2**31 - 1)

    for count in (2, 64, 1024):
        base = checkpoint_before(last, stride(last, count))
        assert 0 <= int(slot(base, count)) < count


@pytest.mark.parametrize("count", [0, 1, 3, 6, -4])
def test_the_count_is_a_power_of_two(count: int):
    with pytest.raises(ArgumentError, match="a power of two"):
        Checkpoints(count)


# --- gradients --------------------------------------------------------------------------------

POLICIES = (Checkpoints(2), Checkpoints(4), Checkpoints(64), GrowingResiduals())


def wandering(x: Any, n: Any, reverse: Any) -> Any:
    """A loop whose residuals depend on a carry that the result does not show."""

    def body(state: Any) -> Any:
        i, v, w = state
        return i + 1, rnp.sin(v) * w + v, w * 0.9 + 0.1 * v * x

    return rune.while_loop(lambda s: s[0] < n, body, (0, x, x * 0.5), reverse=reverse)[1].sum()


def by_hand(x: Any, n: int) -> Any:
    v, w = x, x * 0.5
    for _ in range(n):
        v, w = rnp.sin(v) * w + v, w * 0.9 + 0.1 * v * x
    return v.sum()


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_every_policy_gives_the_gradient_of_the_loop_written_out(policy: Any):
    x = array(np.array([0.3, -0.7]))

    for n in (0, 1, 2, 3, 5, 17, 40):
        with interpreted():
            gradient = rune.grad(lambda v: wandering(v, n, policy))(x)  # noqa: B023
        expected = rune.grad(lambda v: by_hand(v, n))(x)  # noqa: B023
        near(expected, gradient, relative=1e-10, why="f64")


@pytest.mark.parametrize("count", [2, 8])
def test_many_more_steps_than_carries_are_compiled_and_exact(count: int):
    # x -> x + x**2 / n, far beyond count**2 steps.
    n = 3000

    def function(x: Any) -> Any:
        def body(s: Any) -> Any:
            return s[0] + 1, s[1] + s[1] * s[1] * (1.0 / n)

        return rune.while_loop(lambda s: s[0] < n, body, (0, x), reverse=Checkpoints(count))[1]

    x, slope = np.float64(0.5), np.float64(1.0)
    for _ in range(n):
        slope *= 1.0 + 2.0 * x / n
        x += x * x / n
    result = rune.jit(rune.value_and_grad(function))(array(np.float64(0.5)))
    near((x, slope), result, relative=1e-10, why="f64")


@pytest.mark.parametrize(("steps", "most"), [(16, 0.0), (256, 1.0), (1024, 2.1), (4096, 3.1)])
def test_each_step_is_recomputed_as_rarely_as_the_page_says(steps: int, most: float):
    # A callback computes the carry, which counts the computations.
    calls = 0

    def successor(i: Any) -> Any:
        nonlocal calls
        calls += 1
        return np.int32(i + 1)

    def function(x: Any) -> Any:
        def body(s: Any) -> Any:
            i, v = s
            number = rune.pure_callback(successor, i, i)
            return number, v * rnp.cos(i.astype("float32"))

        first = (rnp.asarray(0, dtype="int32"), x)
        return rune.while_loop(lambda s: s[0] < steps, body, first, reverse=Checkpoints(16))[1]

    rune.jit(rune.grad(function))(1.0)
    extra_calls = calls - steps

    assert extra_calls <= most * steps


def test_a_linear_body_keeps_nothing():
    # The derivative reads no carry, so none is kept: the loop counts, and no more.
    def function(x: Any) -> Any:
        return rune.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, s[1] * 3.0), (0, x))[1]

    program = rune.make_program(rune.grad(function))(1.0)

    assert not [t for t in every_type(program) if t.shape]
    with interpreted():
        same(np.float32(3.0**9), rune.grad(function)(1.0))


# --- memory and work --------------------------------------------------------------------------


def every_type(program: Program) -> Iterator[Any]:
    """The types of all values of a program, inner ones included."""
    for equation in program.equations:
        yield from (v.type for v in equation.results)
        for inner in subprograms(equation):
            yield from every_type(inner)


def test_memory_does_not_depend_on_the_number_of_steps():
    for count in (4, 64):
        program = rune.make_program(
            lambda x, n: rune.grad(lambda v: wandering(v, n, Checkpoints(count)))(x)  # noqa: B023
        )(rnp.ones(10), 5)

        assert max(t.shape[0] for t in every_type(program) if t.ndim == 2) == count + 1


def count_bodies(policy: Any, n: int) -> int:
    """How often the body runs in a gradient, each run leaving a mark."""
    runs: list[int] = []
    real = np.sin

    def body(s: Any) -> Any:
        return s[0] + 1, rnp.sin(s[1])

    def function(x: Any) -> Any:
        return rune.while_loop(lambda s: s[0] < n, body, (0, x), reverse=policy)[1]

    def counting(x: np.ndarray) -> np.ndarray:
        runs.append(1)
        return real(x)

    sin = rune.ops.sin
    object.__setattr__(sin, "reference", counting)
    eager.operation_on.cache_clear()  # which remembers what sin means
    try:
        with interpreted():
            rune.grad(function)(0.5)
    finally:
        object.__setattr__(sin, "reference", real)
        eager.operation_on.cache_clear()
    return len(runs)


def test_each_step_is_computed_again_at_most_once_while_the_square_of_the_count_suffices():
    assert count_bodies(Checkpoints(4), 4) == 4
    for n in (5, 9, 16):
        assert count_bodies(Checkpoints(4), n) <= 2 * n


def test_beyond_the_square_of_the_count_work_grows_by_the_logarithm():
    for n in (64, 200):
        assert count_bodies(Checkpoints(4), n) <= n * (2 + np.log2(n / 16))


def test_growing_residuals_compute_nothing_again_but_the_count():
    assert count_bodies(GrowingResiduals(), 20) == 2 * 20


# --- growing residuals ------------------------------------------------------------------------


def test_lengths_are_rounded_up_to_four_in_every_octave():
    lengths = [rounded_up(n) for n in range(1, 4097)]

    assert all(n <= m <= 1.25 * n + 1 for n, m in enumerate(lengths, 1))
    assert len(set(lengths)) <= 4 * 13


def test_growing_residuals_run_few_programs():
    def slope(n: int) -> Any:
        return rune.grad(lambda v: wandering(v, array(n), GrowingResiduals()))(array([0.3, -0.7]))

    slope(33)
    with rune.counting() as counts:
        near(slope(40), slope(40), relative=0, why="deterministic")
        slope(37)
    assert counts.compiles <= 4  # lengths are the same 40; the first count was compiled before


def test_growing_residuals_under_jit_raise_an_error_with_advice():
    with pytest.raises(TransformError, match=r"(?s)number of steps is not known.*Checkpoints\(\)"):
        rune.jit(rune.grad(lambda x: wandering(x, 3, GrowingResiduals())))(rnp.ones(2))


def test_growing_residuals_forwards_need_nothing():
    same(
        rune.jit(lambda x: wandering(x, 3, GrowingResiduals()))(rnp.ones(2)),
        rune.jit(lambda x: wandering(x, 3, Checkpoints()))(rnp.ones(2)),
    )


# --- transposing a linear loop ----------------------------------------------------------------


def test_a_linear_function_with_a_counted_loop_transposes():
    def linear(x: Any) -> Any:
        return rune.fori_loop(0, 4, lambda i, v: v * (i + 1.0), x)

    def at_run_time(x: Any) -> Any:
        return rune.fori_loop(array(0), array(4), lambda i, v: v * (i + 1.0), x)

    with interpreted():
        for function in (linear, at_run_time):
            (cotangent,) = rune.linear_transpose(function, 1.0)(1.0)
            same(np.float32(24.0), cotangent)


def test_a_loop_whose_end_depends_on_its_argument_is_not_linear():
    def function(x: Any) -> Any:
        return rune.while_loop(lambda v: v < 3.0, lambda v: v + v, x)

    with pytest.raises(TransformError, match="it is not linear"):
        rune.linear_transpose(function, 1.0)(1.0)
