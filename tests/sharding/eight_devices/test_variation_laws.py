"""Gradients inside a body equal those outside: random programs of weights, rows and collectives.

The oracle has no mesh and no varying types: lanes of vmap stand for devices, and the gradient is
taken outside the vmap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import P, make_mesh
from tests.support.sampling import IS_WHOLE

DEVICES, PROGRAMS = 8, 30 if IS_WHOLE else 5
RING = [(n, (n + 1) % DEVICES) for n in range(DEVICES)]
Step = Callable[[Any, Any], Any]  # of two vectors of three

LOCAL: list[Step] = [
    lambda x, y: rnp.tanh(x + y),
    lambda x, y: x * y,
    lambda x, y: rnp.sin(x) - 0.5 * y,
    lambda x, y: x @ y * x,
    lambda x, y: rnp.where(x > 0, x, y * 0.3),
    lambda x, y: rnp.sort(x) + y[::-1],
    lambda x, y: lax.cond(y[0] > 0, lambda: rnp.cos(x), lambda: y * 0.7),
    lambda x, y: lax.scan(lambda c, r: (rnp.tanh(c + r * y), c[0]), x, y)[0],
    lambda x, y: lax.scan(lambda c, r: (0.5 * c + r, c @ x), rnp.zeros(3, x.dtype), rnp.outer(x, y))[1],
    lambda x, y: lax.fori_loop(0, 3, lambda n, c: (c[1], rnp.tanh(c[0] * c[1])), (x, y))[0],
    lambda x, y: lax.while_loop(lambda c: c[0] < 2 + y[0], lambda c: (c[0] + 1, rnp.sin(c[1] * y)), (0.0, x))[1],
    lambda x, y: rune.jit(lambda x, y: rnp.exp(-x * x) + y)(x, y),
    lambda x, y: rune.checkpoint(lambda x, y: rnp.sin(x * y))(x, y),
    lambda x, y: rune.vmap(lambda a: (a * y).sum())(x),
    lambda x, y: rnp.linalg.solve(rnp.outer(x, x) + 3 * rnp.eye(3), y),
]
COLLECTIVE: list[Step] = [
    lambda x, y: lax.psum(rnp.tanh(x), "a") * 0.2 + y,
    lambda x, y: lax.pmean(x * y, "a"),
    lambda x, y: lax.ppermute(x, "a", RING) - y,
    lambda x, y: lax.all_gather(x + y, "a").mean(axis=0),
    lambda x, y: lax.psum_scatter(rnp.outer(rnp.arange(1.0, 9.0), x), "a") * 0.1 * y,
    lambda x, y: lax.all_to_all(rnp.outer(rnp.arange(1.0, 9.0), x), "a", 0, 0)[2] * y,
    lambda x, y: lax.scan(lambda c, r: (rnp.tanh(lax.pmean(c, "a") * y + r), None), x, y)[0],
    lambda x, y: rune.checkpoint(lambda x: rnp.sin(lax.psum(x, "a")) * y)(x),
]


def random_loss(seed: int) -> Callable[[Any, Any], Any]:
    """A loss of weights f32[3] and a row f32[3]: each step reads two of the values before it."""
    draw = np.random.default_rng(seed)
    steps = [
        ((COLLECTIVE if draw.random() < 0.35 else LOCAL), draw.random(), draw.integers(0, number + 2, 2))
        for number in range(int(draw.integers(2, 9)))
    ]

    def loss(w: Any, x: Any) -> Any:
        values = [w, x]
        for table, place, (i, j) in steps:
            values.append(table[int(place * len(table))](values[i], values[j]))
        total = (values[-1] * rnp.arange(1.0, 4.0)).sum() + values[len(values) // 2].sum()
        return lax.pvary(total, "a")  # each device's own: an invariant loss counts once

    return loss


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_gradient_in_a_body_is_that_of_the_sum_of_all_losses(seed: int):
    loss = random_loss(seed)
    w = rnp.asarray(np.sin(np.arange(1.0, 4.0) + seed), "float64")
    x = rnp.asarray(np.cos(np.arange(24.0) * (seed + 1)).reshape(DEVICES, 3), "float64")

    def body(w: Any, x: Any) -> Any:
        gw, gx = rune.grad(loss, (0, 1))(w, x[0])
        return gw, gx[None]

    inside = rune.shard_map(body, mesh=make_mesh((DEVICES,), ("a",)), in_specs=(P(), P("a")), out_specs=(P(), P("a")))
    of_lanes = rune.vmap(loss, in_axes=(None, 0), axis_name="a")
    around = rune.grad(lambda w, x: of_lanes(w, x).sum(), (0, 1))

    for ours, reference in zip(rune.jit(inside)(w, x), rune.jit(around)(w, x), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-9, atol=1e-9)
