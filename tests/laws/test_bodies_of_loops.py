"""A function in the body of a loop gives the same results as outside it.

Rows are read and results written at an index that is known only at run time. Tiles, streams,
windows and threads are used from sizes on that small examples never reach, so sizes are beyond
these limits, odd and prime, and each function is tried alone and together with another. NumPy is
the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import same
from tests.support.sampling import each_value, in_turn

STEPS = 3
SIDES = [(33, 32), (47, 64), (131, 97)]
DEVICES = [d.name for d in rune.devices() if not d.name.startswith("null")]

BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "transpose": lambda xp, x: x.T,
    "transpose of a sum with its shift": lambda xp, x: (x + xp.roll(x, 1, 0)).T,
    "transpose of the reverse": lambda xp, x: x[::-1].T,
    "transpose of every other row": lambda xp, x: x[::2].T,
    "rows by columns": lambda xp, x: x @ x.T,
    "columns by rows": lambda xp, x: x.T @ x,
    "sum of each row": lambda xp, x: x.sum(1),
    "sum of each column": lambda xp, x: x.sum(0),
    "largest of each column less itself": lambda xp, x: x - x.max(0),
    "running sum of columns": lambda xp, x: xp.cumsum(x, 0),
    "running sum of rows": lambda xp, x: xp.cumsum(x, 1),
    "sorted rows": lambda xp, x: xp.sort(x, 1),
    "sorted columns": lambda xp, x: xp.sort(x, 0),
    "rows in another order": lambda xp, x: x[xp.argsort(x[:, 0], stable=True)],
    "joined with its transpose": lambda xp, x: xp.concatenate([x.T, x.T * 2], 0),
    "diagonal of a product": lambda xp, x: xp.diagonal(x @ x.T),
    "a row from each column": lambda xp, x: xp.where(x > 0, x, x[:1]).T,
    "largest place": lambda xp, x: xp.argmax(x, 0).astype(np.int32),
}

Loop = Callable[[Callable[[Any], Any], Any], Any]


def scanned(f: Callable[[Any], Any], rows: Any) -> Any:
    """Rows in, results out."""
    return rune.scan(lambda carry, row: (carry, f(row)), 0, rows)[1]


def carried(f: Callable[[Any], Any], rows: Any) -> Any:
    """A row is the carry of a loop that runs once, and a counter finds the next one."""
    like = rune.eval_shape(f, rows[0])

    def step(i: Any, results: Any) -> Any:
        return results.at[i].set(f(rows[i]))

    return rune.fori_loop(0, STEPS, step, rnp.zeros((STEPS, *like.shape), like.dtype))


def mapped(f: Callable[[Any], Any], rows: Any) -> Any:
    """A scan inside of a scan."""
    return rune.lax.map(lambda pair: rune.lax.map(f, pair), rows[None])[0]


LOOPS: dict[str, Loop] = {"scan": scanned, "fori_loop": carried, "map of map": mapped}


def meaning(name: str, rows: np.ndarray) -> np.ndarray:
    """Whole numbers, which no order of adding rounds."""
    return np.stack([BODIES[name](np, row) for row in rows])


def stack(side: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(side[0]).integers(-9, 10, (STEPS, *side)).astype(np.float32)


def results(name: str, loop: str, rows: np.ndarray, device: str = "cpu:0") -> Any:
    body = BODIES[name]
    return rune.jit(lambda x: LOOPS[loop](lambda row: body(rnp, row), x), device=device)(rows)


@pytest.mark.parametrize("side", SIDES, ids=str)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", BODIES)
def test_a_body_computes_in_every_step_what_it_computes_alone(name: str, loop: str, side: tuple[int, int]):
    rows = stack(side)
    same(meaning(name, rows), results(name, loop, rows))


@each_value()
@in_turn()
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", ["transpose", "columns by rows", "running sum of columns", "sorted rows"])
def test_every_executor_repeats_a_body(name: str, loop: str, device: str):
    rows = stack(SIDES[1])
    same(meaning(name, rows), results(name, loop, rows, device))
