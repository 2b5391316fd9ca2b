"""Depth: 100 nested transformations, trees of thousands of levels, and infinite recursion.

Python's recursion limit, 1,000 frames, belongs to the user and is not changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import rune
from rune import tree
from rune.errors import DepthError

DEPTH = 100
Wrap = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
WRAPS: dict[str, tuple[Wrap, float]] = {
    "jit": (lambda f: rune.jit(lambda x: f(x) + 1), 102.0),
    "checkpoint": (lambda f: rune.checkpoint(lambda x: f(x) * 1), 2.0),
    "scan": (lambda f: lambda x: rune.scan(lambda c, _: (f(c), None), x, None, length=1)[0], 2.0),
    "while": (lambda f: lambda x: rune.while_loop(lambda c: c < 2, f, x), 2.0),
    "cond": (lambda f: lambda x: rune.cond(x < 2, f, lambda x: x, x), 2.0),
}


def nest(wrap: Wrap, depth: int) -> Callable[[Any], Any]:
    function: Callable[[Any], Any] = lambda x: x * 2.0  # noqa: E731
    for _ in range(depth):
        function = wrap(function)
    return function


@pytest.mark.parametrize("name", WRAPS)
def test_a_hundred_transformations_can_be_nested(name: str):
    wrap, expected = WRAPS[name]

    assert float(nest(wrap, DEPTH)(1.0)) == expected


def test_a_hundred_jits_have_a_derivative():
    assert float(rune.grad(nest(WRAPS["jit"][0], DEPTH))(1.0)) == 2.0


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["main", "thread"])
def test_a_jitted_function_that_calls_itself_without_end_is_refused(is_elsewhere: bool):
    def call() -> None:
        f = rune.jit(lambda x: f(x))
        with pytest.raises(DepthError, match="cannot nest transformations 301 deep"):
            f(1.0)
        calls.append(True)

    calls: list[bool] = []
    if is_elsewhere:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    else:
        call()
    assert calls


def test_endless_recursion_in_the_users_function_raises_pythons_error():
    def f(x: Any) -> Any:
        return f(x)

    with pytest.raises(RecursionError) as error:
        rune.jit(f)(1.0)

    assert not isinstance(error.value, DepthError)


# --- trees ------------------------------------------------------------------------------------


def deep(depth: int, wrap: Callable[[Any], Any], inside: Any = 1.0) -> Any:
    for _ in range(depth):
        inside = wrap(inside)
    return inside


NODES: list[Callable[[Any], Any]] = [lambda x: [x], lambda x: (x, None, 2.0), lambda x: {"a": x}]


@pytest.mark.parametrize("wrap", NODES, ids=["list", "tuple", "dict"])
@pytest.mark.parametrize("depth", [63, 64, 65, 66, 3000])
def test_a_tree_may_be_deeper_than_the_stack(wrap: Callable[[Any], Any], depth: int):
    x, y = deep(depth, wrap), deep(depth, wrap, inside=3.0)
    sums = tree.leaves(tree.map(lambda a, b: a + b, x, y))

    assert sums[0] == 4.0
    assert tree.structure(x) == tree.structure(y) != tree.structure(deep(depth - 1, wrap))
    assert hash(tree.structure(x)) == hash(tree.structure(y))
    assert len(tree.leaves_with_path(x)[0][0]) == depth
    assert tree.structure(x).num_leaves == len(sums)
    assert str(tree.structure(x)).count("*") == len(sums)


def test_a_deep_tree_goes_through_jit_and_grad():
    x = deep(500, NODES[0])

    assert tree.leaves(rune.jit(lambda t: tree.map(lambda v: v * 3, t))(x))[0] == 3.0
    assert tree.leaves(rune.grad(lambda t: tree.leaves(t)[0] ** 2)(x)) == [2.0]
