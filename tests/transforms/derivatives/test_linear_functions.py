"""The results of vjp and linearize are trees: they pass out of and into jit, vmap and scan.

The leaves are the residuals. Values are compared with NumPy's cosine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import close

X = np.array([0.3, -1.5, 2.0, 7.0, 0.0], np.float32)


def of_vjp(x: Any) -> Any:
    return rune.vjp(rnp.sin, x)[1]


def of_linearize(x: Any) -> Any:
    return rune.linearize(rnp.sin, x)[1]


def applied(function: Any, direction: Any) -> Any:
    outputs = function(direction)
    return outputs[0] if isinstance(outputs, tuple) else outputs


EITHER = pytest.mark.parametrize("make", [of_vjp, of_linearize])


@EITHER
def test_its_leaves_are_its_residuals(make: Any):
    (residual,) = rune.tree.leaves(make(X))

    close(np.cos(X), residual, ulps=2, why="one cosine")


@EITHER
def test_it_leaves_jit(make: Any):
    program = rune.jit(make)
    for _ in range(4):  # the last of them natively
        close(np.cos(X), applied(program(X), rnp.ones(5)), ulps=2, why="one cosine")


@EITHER
def test_as_an_argument_of_jit_it_is_traced_once(make: Any):
    linear, use = rune.jit(make), rune.jit(applied)
    with rune.counting() as counts:
        for scale in (1.0, 2.0, 3.0):
            tangent = use(linear(scale * X), 2 * rnp.ones(5))
            close(2 * np.cos(scale * X), tangent, ulps=2, why="one cosine")

    assert counts.traces == 2


@EITHER
def test_it_leaves_and_enters_vmap(make: Any):
    rows = rune.vmap(make)(np.stack([X, 2 * X]))

    tangents = rune.vmap(applied, in_axes=(0, None))(rows, rnp.ones(5))

    close(np.cos(np.stack([X, 2 * X])), tangents, ulps=2, why="one cosine")


@EITHER
def test_it_is_stacked_by_a_scan(make: Any):
    _, rows = rune.scan(lambda c, x: (c, make(x)), 0, np.stack([X, 2 * X]))

    close(np.cos(2 * X), rune.tree.leaves(rows)[0][1], ulps=2, why="one cosine")


def test_a_tree_of_several_arguments_and_outputs_is_restored():
    @rune.jit
    def make(p: Any, n: Any) -> Any:
        return rune.vjp(lambda p, n: {"y": p["a"] * p["b"], "n": n + 1}, p, n)

    out, pull = make({"a": rnp.float32(2), "b": rnp.float32(3)}, 4)
    (p, n) = pull({"y": rnp.float32(1), "n": np.zeros((), rune.float0)})

    assert (int(out["n"]), float(p["a"]), float(p["b"]), n.dtype) == (5, 3.0, 2.0, rune.float0)


def test_wide_constants_stay_wide_as_leaves():
    weights = np.array([1e-9, 1.0])

    pull = rune.vjp(lambda x: rnp.array(weights, "float64") * x, rnp.ones(2, "float64"))[1]

    assert rune.jit(applied)(pull, rnp.ones(2, "float64")).dtype == np.float64


def test_it_can_be_differentiated():
    def slope(x: Any) -> Any:
        return applied(rune.jit(of_linearize)(x), 1.0)

    close(-np.sin(np.float32(0.3)), rune.grad(slope)(0.3), ulps=2, why="one cosine")
