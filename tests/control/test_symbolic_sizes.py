"""Loops and branches over arrays of symbolic size: one trace and one program for every size.

Carries, rows, residuals, the carries that reverse mode keeps, lanes: all may have sizes that are
known only when the program is called.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import near

SIZES = {"n": (1, 64), "b": (1, 9)}
F32 = {"relative": 1e-3, "absolute": 1e-4, "why": "f32, sums in another order"}


def function(w: Any, x: Any) -> Any:
    """A loop with a branch inside, then a scan that mentions the size itself."""

    def body(s: Any) -> Any:
        i, v = s
        return i + 1, rune.cond(v.sum() > 0, lambda v: rnp.sin(v) * w, lambda v: v * v - w, v)

    y = rune.while_loop(lambda s: s[0] < 4, body, (0, x))[1]
    last, ys = rune.scan(lambda c, _: (rnp.cos(c) * w + rnp.ones(x.shape[0]), c), y, None, 3)
    return last.sum() + ys.sum()


gradient = rune.grad(function, argnums=(0, 1))


def slope(w: Any, x: Any, t: Any) -> Any:
    return rune.jvp(lambda v: gradient(w, v), (x,), (t,))[1]


WAYS: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "value": (function, rune.jit(function, dims=SIZES, in_dims=("n", "n")), ("n", "n")),
    "grad": (gradient, rune.jit(gradient, dims=SIZES, in_dims=("n", "n")), ("n", "n")),
    "grad of jit": (
        gradient,
        rune.grad(rune.jit(function, dims=SIZES, in_dims=("n", "n")), argnums=(0, 1)),
        ("n", "n"),
    ),
    "jvp of grad": (slope, rune.jit(slope, dims=SIZES, in_dims=("n",) * 3), ("n", "n", "n")),
    "vmap of grad": (
        rune.vmap(gradient, in_axes=(None, 0)),
        rune.jit(rune.vmap(gradient, in_axes=(None, 0)), dims=SIZES, in_dims=("n", "b,n")),
        ("n", "bn"),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_one_trace_covers_every_size(way: str):
    rune.clear_caches()  # one function has its traces for every way
    plain, symbolic, axes = WAYS[way]
    rng = np.random.default_rng(0)
    with rune.counting() as counts:
        for n, b in ((3, 2), (5, 1), (1, 4)):
            sizes = {"n": n, "b": b}
            shapes = [tuple(sizes[axis] for axis in of) for of in axes]
            args = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
            near(plain(*args), symbolic(*args), **F32)
    assert counts.traces == 1
