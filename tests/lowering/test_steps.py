"""Costs of steps: elements touched, operations, and costs inside loops and branches."""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.control import cond, scan
from rune.lowering.kernel.text import parse
from rune.lowering.steps import StepCost
from rune.lowering.traffic import Traffic, traffic

X, ROWS = rnp.ones((3, 4)), rnp.ones((5, 4, 4))


def costs(function, *args) -> tuple[StepCost, ...]:
    """The costs of the steps on the reference executor."""
    return rune.explain(function, device="reference")(*args).lowered.steps()


# --- elements ---------------------------------------------------------------------------------


def test_a_kernel_touches_what_its_indices_reach():
    code = parse("""
        code f(row: read i32[1], x: read f32[8], w: read f32[4000], y: write f32[8]) {
          for i in 8 grid {
            t: i32 in 0..999 = row[0]
            var s: f32 = 0.0_f32
            for j in 4 serial {
              s add= x[i] * w[4*t + j]
            }
            store y[i] = s
          }
        }""")

    assert traffic(code) == {"row": Traffic(1, 0), "x": Traffic(8, 0), "w": Traffic(4, 0), "y": Traffic(0, 8)}


def test_an_array_read_twice_counts_once_and_an_update_counts_twice():
    code = parse("""
        code f(x: read f32[8], y: readwrite f32[8]) {
          for i in 8 grid {
            update y[i] add= x[i] * x[7 - i]
          }
        }""")

    assert traffic(code) == {"x": Traffic(8, 0), "y": Traffic(8, 8)}


def test_an_index_that_depends_on_data_may_differ_at_every_point():
    code = parse("""
        code f(at: read i32[8], x: read f32[100], y: write f32[8]) {
          for i in 8 grid {
            k: i32 in 0..99 = at[i]
            store y[i] = x[k]
          }
        }""")

    assert traffic(code)["x"] == Traffic(8, 0)


def test_an_index_that_depends_on_what_changes_may_differ_at_every_point():
    code = parse("""
        code f(x: read f32[100], y: write f32[6]) {
          for i in 2 serial {
            for j in 3 serial {
              var n: i32 = 0_i32
              n add= 1_i32
              k: i32 in 0..99 = n
              store y[3*i + j] = x[k]
            }
          }
        }""")

    assert traffic(code)["x"] == Traffic(6, 0)


def test_a_symbolic_size_is_a_function_of_it():
    double = rune.jit(lambda x: x * 2.0, dims={"n": (1, 4096)}, device="reference")

    (step,) = rune.explain(double)(rnp.ones(3)).lowered.steps()
    assert (str(step.bytes_read), str(step.bytes_written), str(step.flops)) == ("4*n", "4*n", "n")


def test_one_changed_element_of_a_large_array_is_little_traffic():
    *_, last = costs(lambda x: x.at[3].add(1.0), rnp.ones(1 << 16))

    assert last.bytes_written <= 4


@pytest.mark.parametrize("combine", [rnp.cumsum, rnp.sum])
def test_a_combination_counts_an_operation_for_each_element(combine):
    assert sum(int(str(s.flops)) for s in costs(combine, rnp.ones(64))) == 64


# --- loops and branches -----------------------------------------------------------------------


def test_a_loop_costs_its_steps_as_often_as_it_runs():
    def step(carry, x):
        return rnp.tanh(carry @ x), rnp.sum(carry)

    *_, loop = costs(lambda x, rows: scan(step, x, rows), X, ROWS)

    assert loop.inner
    for name in ("bytes_read", "bytes_written", "flops", "launches"):
        assert getattr(loop, name) == 5 * sum(getattr(c, name) for c in loop.inner)
    assert not loop.is_kernel


@pytest.mark.parametrize("steps", [10, 10_000])
def test_an_array_that_a_loop_fills_in_place_is_not_copied_at_each_step(steps: int):
    def step(carry, x):
        return 0.5 * carry + x, carry

    *_, loop = costs(lambda x: scan(step, np.float32(0), x), rnp.ones(steps))

    assert loop.copies == 0
    # Each step reads a number, the carry and an element, and writes a carry and an element.
    assert loop.bytes_moved <= 8 * 4 * steps


def test_a_carry_that_a_loop_replaces_as_a_whole_is_moved_at_each_step():
    def step(carry, x):
        return carry[::-1] + x, None

    *_, loop = costs(lambda x, rows: scan(step, x, rows), rnp.ones(1000), rnp.ones((5, 1000)))

    assert loop.bytes_moved >= 5 * 3 * 4 * 1000


def test_a_branch_costs_as_much_as_its_most_expensive_side():
    def choose(p, x):
        return cond(p, lambda v: v, lambda v: rnp.tanh(v @ v.T @ v), x)

    *_, branch = costs(choose, np.bool_(True), X)

    assert branch.flops > X.size
    assert branch.name.startswith("branch of 2")
