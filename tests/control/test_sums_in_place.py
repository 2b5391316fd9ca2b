"""Gradients of loops that read places of a table: each step changes the elements that it read.

The oracle is NumPy, which adds the cotangents at their places one after another, and finite
differences for second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from tests.support.close import near

STEPS = 11
ROWS = 131  # of the table
PLACES = np.array([0, 130, 7, 7, -1, 64, 3, 130, 0, 128, 7])  # some twice, the last row by -1, too
WEIGHTS = np.linspace(-1.0, 2.0, STEPS, dtype=np.float32)


def _row(table: Any, i: Any) -> Any:
    return table[i]


# For each kind: what a step reads from the table, and the rows that it reads.
KINDS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int], list[int]]]] = {
    "a row": (lambda table, i: table[i].sum(), lambda i: [i]),
    "rows that may be equal": (lambda table, i: table[rnp.stack([i, 5, i])].sum(), lambda i: [i, 5, i]),
    "a window": (
        lambda table, i: lax.dynamic_slice_in_dim(table, i, 3).sum(),
        lambda i: [min(i % ROWS, ROWS - 3) + k for k in range(3)],
    ),
    "two rows": (lambda table, i: (table[i] + table[rnp.where(i == 7, 7, 2)]).sum(), lambda i: [i, 7 if i == 7 else 2]),
    "a row by a jitted function": (lambda table, i: rune.jit(_row)(table, i).sum(), lambda i: [i]),
    "a row by a checkpoint": (lambda table, i: rune.checkpoint(_row)(table, i).sum(), lambda i: [i]),
    "a row by both": (lambda table, i: rune.checkpoint(rune.jit(_row))(table, i).sum(), lambda i: [i]),
    "a row and all rows": (lambda table, i: table[i].sum() + table.sum(), lambda i: [i, *range(ROWS)]),
}


def by_scan(read: Callable[[Any, Any], Any], table: Any) -> Any:
    def step(total: Any, row: Any) -> tuple[Any, None]:
        i, weight = row
        return total + weight.astype(table.dtype) * read(table, i), None

    return lax.scan(step, rnp.zeros((), table.dtype), (PLACES.astype("i4"), WEIGHTS))[0]


def by_while(read: Callable[[Any, Any], Any], table: Any) -> Any:
    places, weights = rnp.asarray(PLACES.astype("i4")), rnp.asarray(WEIGHTS, table.dtype)

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        t, total = state
        return t + 1, total + weights[t] * read(table, places[t])

    return lax.while_loop(lambda state: state[0] < STEPS, step, (0, rnp.zeros((), table.dtype)))[1]


LOOPS = {"scan": by_scan, "while": by_while}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("kind", KINDS)
def test_cotangents_are_added_at_the_places_of_each_step(kind: str, loop: str, compiled: bool):
    read, rows_of = KINDS[kind]
    gradient = rune.grad(lambda table: LOOPS[loop](read, table))

    actual = (rune.jit(gradient) if compiled else gradient)(np.ones((ROWS, 3), np.float32))

    expected = np.zeros((ROWS, 3), np.float32)
    for i, weight in zip(PLACES.tolist(), WEIGHTS, strict=True):
        np.add.at(expected, rows_of(i), weight)
    near(expected, actual, relative=1e-5, why="sums of a few f32 in another order")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "all rows" not in kind])
def test_a_step_makes_no_array_of_the_size_of_the_table(kind: str):
    read, _ = KINDS[kind]
    program = rune.make_program(rune.grad(lambda table: by_scan(read, table)))(np.ones((ROWS, 3), np.float32))

    (loop,) = [e for e in program.equations if e.primitive.name == "scan" and e.params["reverse"]]
    writers = [e.primitive.name for e in loop.params["body"].equations if e.results[0].type.shape == (ROWS, 3)]

    assert set(writers) <= {"scatter_add", "dynamic_update_slice"}
    assert writers


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_cotangents_of_a_carry_that_is_changed_and_read_at_places_are_those_of_finite_differences(compiled: bool):
    def walk(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return x.at[i].set(rnp.tanh(x[i - 1] + x[(7 * i) % ROWS])).at[(3 * i) % ROWS].add(x[i] * 0.5)

        return (lax.fori_loop(0, 20, step, x) ** 2).sum()

    with rune.enable_x64(True):
        x, direction = np.linspace(-1.0, 1.0, ROWS), np.cos(np.arange(ROWS))
        gradient = rune.grad(walk)
        actual = (rune.jit(gradient) if compiled else gradient)(x) @ direction
        step = 1e-6
        ends = [float(walk(x + sign * step * direction)) for sign in (1, -1)]
        near((ends[0] - ends[1]) / (2 * step), actual, relative=1e-7, why="truncation of the difference")


@pytest.mark.parametrize("loop", LOOPS)
def test_second_derivatives_are_those_of_finite_differences(loop: str):
    def energy(table: Any) -> Any:
        return LOOPS[loop](
            lambda x, i: (rnp.sin(x[i]) * lax.dynamic_slice_in_dim(x, rnp.maximum(i, 0), 2)[0]).sum(), table
        )

    with rune.enable_x64(True):
        table = np.linspace(0.1, 1.0, ROWS * 3).reshape(ROWS, 3)
        direction = np.cos(np.arange(ROWS * 3.0)).reshape(ROWS, 3)
        gradient = rune.jit(rune.grad(energy))
        _, actual = rune.jvp(gradient, (table,), (direction,))
        step = 1e-5
        ends = [np.asarray(gradient(table + sign * step * direction)) for sign in (1, -1)]
        near((ends[0] - ends[1]) / (2 * step), actual, relative=1e-7, why="truncation of the difference")
