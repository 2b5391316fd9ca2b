"""The work of transformations on a tree grows linearly with the number of its leaves.

Calls of Python functions are counted for trees of n and of 2n leaves. First runs, which compare
some kernels in pairs, have a separate law (test_scaling.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.arrays import array
from tests.support.work import calls

Tree = dict[str, Any]


def tree(n: int) -> Tree:
    return {f"leaf{i}": array(np.linspace(0, 1, 3), np.float32) for i in range(n)}


def doubled(leaves: Tree) -> Tree:
    return rune.tree.map(lambda x: x * 2.0, leaves)


def total(leaves: Tree) -> Any:
    return sum(rnp.sum(x) for x in rune.tree.leaves(leaves))


@rune.custom_jvp
def with_tangents(leaves: Tree) -> Tree:
    return doubled(leaves)


with_tangents.defjvp(lambda primals, tangents: (doubled(*primals), doubled(*tangents)))


@rune.custom_vjp
def with_cotangents(leaves: Tree) -> Tree:
    return doubled(leaves)


with_cotangents.defvjp(lambda leaves: (doubled(leaves), None), lambda _, ct: (doubled(ct),))


def pulled_back(function: Callable[[Tree], Tree], leaves: Tree) -> Any:
    result, pull = rune.vjp(function, leaves)
    return pull(result)


WAYS: dict[str, Callable[[Tree], Any]] = {
    "jit": rune.jit(doubled),
    "grad": rune.grad(total),
    "vjp": lambda t: pulled_back(doubled, t),
    "vjp of jit": lambda t: pulled_back(rune.jit(doubled), t),
    "jvp": lambda t: rune.jvp(doubled, (t,), (t,)),
    "linearize": lambda t: rune.linearize(doubled, t)[1](t),
    "linear_transpose": lambda t: rune.linear_transpose(doubled, t)(t),
    "vmap": rune.vmap(doubled),
    "checkpoint": lambda t: pulled_back(rune.checkpoint(doubled), t),
    "custom_jvp": lambda t: pulled_back(with_tangents, t),
    "custom_vjp": lambda t: pulled_back(with_cotangents, t),
    "scan": lambda t: rune.scan(lambda carry, x: (carry, x), t, t),
    "associative_scan": lambda t: rune.lax.associative_scan(lambda a, b: rune.tree.map(rnp.add, a, b), t),
    "cond": lambda t: rune.cond(True, doubled, doubled, t),
    "while_loop": lambda t: rune.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, doubled(c[1])), (0, t)),
    "eval_shape": lambda t: rune.eval_shape(doubled, t),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_tree_of_twice_the_leaves_takes_twice_the_work(way: str):
    few, many = (work(WAYS[way], n) for n in (40, 80))

    assert many < 2.5 * few


def work(way: Callable[[Tree], Any], n: int) -> int:
    """The calls of a later run on a tree of n leaves."""
    way(tree(n))
    leaves = tree(n)
    return calls(lambda: way(leaves))
