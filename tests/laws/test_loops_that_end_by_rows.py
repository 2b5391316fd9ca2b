"""Loops of lanes that end once a row has a large element, which all threads of the row check.

The oracle is NumPy, lane by lane. Numbers are doubled and counted, so that results are exact.
"""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from tests.support.close import same

EXECUTORS = [d.name for d in rune.devices() if not d.name.startswith("null")]
MOST = 5  # steps


def doubled(x):
    """A row doubled until an element is over 8, and the number of steps."""

    def goes_on(state):
        return (state[1] < MOST) & ~rnp.any(state[0] > 8)

    return lax.while_loop(goes_on, lambda state: (2 * state[0], state[1] + 1), (x, rnp.int32(0)))


def doubled_in_numpy(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    steps = 0
    while steps < MOST and not (x > 8).any():
        x, steps = 2 * x, steps + 1
    return x, np.array(steps, np.int32)


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("shape", [(1, 7), (2, 31), (3, 129), (7, 64), (5, 1031), (131, 3)], ids=str)
def test_each_lane_ends_by_its_own_row(shape: tuple[int, int], name: str):
    # Rows of other sizes, so that lanes end after no step, after a few, and not before the last.
    x = np.random.default_rng(shape[1]).uniform(0.5, 1, shape).astype(np.float32)
    x *= 2.0 ** (np.arange(shape[0]) % 7 - 1)[:, None].astype(np.float32)

    lanes, x_on_device = rune.vmap(doubled), rune.device_put(x, name)
    expected_rows, expected_steps = (np.stack(values) for values in zip(*map(doubled_in_numpy, x), strict=True))

    for function in (lanes, rune.jit(lanes)):
        rows, steps = function(x_on_device)
        same(expected_rows, np.asarray(rows))
        same(expected_steps, np.asarray(steps))
