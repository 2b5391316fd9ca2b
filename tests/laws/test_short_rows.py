"""Values with a last axis of a few elements, which stay in registers, on every executor.

The oracle is NumPy in f64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import near
from tests.support.sampling import in_turn

DEVICES = [d.name for d in rune.devices() if d.target.backend != "null"]


def distances(xp: Any, points: Any, centre: Any) -> Any:
    """Rows of coordinates that several reductions read, and results with and without them."""
    offset = xp.tanh(points - centre)
    length = xp.sqrt(xp.sum(offset * offset, -1))
    beyond = xp.abs(offset) - 0.5
    outside = xp.sqrt(xp.sum(xp.maximum(beyond, 0.0) ** 2, -1))
    return length, outside + xp.minimum(xp.max(beyond, -1), 0.0), offset / length[..., None]


@in_turn()
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_reductions_of_a_few_elements_are_those_of_numpy(n: int, device: str):
    rng = np.random.default_rng(n)
    points, centre = rng.standard_normal((37, n)).astype(np.float32), np.linspace(0.1, 0.9, n, dtype=np.float32)

    results = rune.jit(lambda p, c: distances(rnp, p, c), device=device)(points, centre)

    for result, truth in zip(results, distances(np, points.astype(float), centre.astype(float)), strict=True):
        near(truth, result, relative=1e-5, absolute=1e-6, why="tanh, sums and roots in f32")


@in_turn()
@pytest.mark.parametrize("device", DEVICES)
def test_points_that_march_to_a_box_in_a_loop_stop_where_numpy_stops(device: str):
    directions = np.random.default_rng(0).standard_normal((53, 3)).astype(np.float32)

    def march(xp: Any, d: Any, repeat: Any) -> Any:
        return repeat(lambda t: t + 0.3 * distances(xp, t[..., None] * d, 0.2)[1], xp.sum(d, -1))

    def in_rune(d: rune.Array) -> rune.Array:
        return march(rnp, d, lambda step, t: rune.lax.fori_loop(0, 9, lambda _, x: step(x), t))

    def in_numpy(step: Any, t: np.ndarray) -> np.ndarray:
        for _ in range(9):
            t = step(t)
        return t

    ends = rune.jit(in_rune, device=device)(rnp.asarray(directions))

    truth = march(np, directions.astype(float), in_numpy)
    near(truth, ends, relative=1e-4, absolute=1e-5, why="nine steps in f32")
