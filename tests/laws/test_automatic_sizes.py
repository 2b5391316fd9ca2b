"""Automatic sizes never change results, whatever the sizes and their order, including 0 and 1.

Results, derivatives and lanes are those of the function itself, even if the function branches on
its sizes in Python. tests/transforms/compile/test_automatic_sizes.py counts traces and
compilations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import near, same

GROWING = [(n,) for n in (3, 4, 5, 6, 1, 7, 0, 2, 9)]
EITHER = [(3, 4), (5, 4), (7, 4), (2, 4), (2, 5), (6, 6), (1, 3), (4, 1), (0, 2), (5, 5), (8, 9)]


@pytest.fixture(autouse=True)
def _automatic():
    with rune.configure(symbolic="auto"):
        yield


def ones(*shape: int) -> Any:
    return rnp.ones(shape)


def values(shape: tuple[int, ...]) -> Any:
    return rnp.asarray(np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32))


FUNCTIONS: dict[str, tuple[Any, Sequence[tuple[int, ...]]]] = {
    "sum": (rnp.sum, EITHER),
    "softmax": (lambda x: rune.nn.softmax(x, axis=0), EITHER),
    "gram": (lambda x: x.T @ x, EITHER),
    "mean by the size": (lambda x: x.sum(0) / x.shape[0], EITHER),
    "squeezed": (lambda x: rnp.squeeze(x), EITHER),
    "reshaped": (lambda x: x.reshape(x.shape[1], -1) * x.size, EITHER),
    "to its own transpose": (lambda x: x.T if x.shape[0] == x.shape[1] else x, EITHER),
    "by one size": (lambda x: x * 2 if x.shape[0] == 5 else x, EITHER),
    "by a shape": (lambda x: x * 2 if x.shape in ((5, 4), (6, 6)) else x, EITHER),
    "by a looked up size": (lambda x: x * {5: 2.0, 7: 3.0}.get(x.shape[0], 1.0), EITHER),
    "by a comparison": (lambda x: x * 2 if x.shape[0] > 4 else x, EITHER),
    "by parity": (lambda x: x * 2 if x.shape[0] % 2 == 0 else x, EITHER),
    "wide or tall": (lambda x: x * 2 if x.shape[0] < x.shape[1] else x, EITHER),
    "without the first three": (lambda x: x[3:], GROWING),
    "up to five": (lambda x: x[:5], GROWING),
    "mirrored": (lambda x: rnp.pad(x, 1, mode="reflect") if x.size > 1 else x, GROWING),
    "row by row": (lambda x: sum((x[i] for i in range(x.shape[0])), rnp.float32(0)), GROWING),
    "scanned": (lambda x: rune.scan(lambda c, v: (c + v, c * v), rnp.float32(0), x), GROWING),
    "drawn": (lambda x: x * rune.random.normal(rune.random.key(0), x.shape), GROWING),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore:jit. cannot make axis:UserWarning")
def test_results_are_those_of_the_function_itself(name: str):
    function, shapes = FUNCTIONS[name]
    f = rune.jit(function)

    for shape in shapes:
        x = values(shape)
        near(function(x), f(x), relative=1e-5, why="f32, other order of sums")


@pytest.mark.parametrize("order", [(5, 6, 7, 1, 8), (1, 5, 1, 6, 7, 8), (2, 1, 3, 4, 1, 5)])
def test_an_axis_of_size_1_is_broadcast_after_any_other_sizes(order: tuple[int, ...]):
    f = rune.jit(lambda x, y: x + y)

    for n in order:
        for m in {n, 1}:
            same(np.full(max(n, m), 2.0, np.float32), f(ones(n), ones(m)))


DERIVED: dict[str, Callable[[Any], Any]] = {
    "grad": rune.grad,
    "value_and_grad": rune.value_and_grad,
    "jvp": lambda f: lambda x: rune.jvp(f, (x,), (rnp.ones_like(x),)),
    "vmap": lambda f: lambda x: rune.vmap(f)(rnp.stack([x, 2 * x])),
    "hessian": rune.hessian,
    "vmap of grad": lambda f: lambda x: rune.vmap(rune.grad(f))(rnp.stack([x, 2 * x])),
}


@pytest.mark.parametrize("name", DERIVED)
def test_its_derivatives_and_lanes_compile_for_all_sizes(name: str):
    def function(x: Any) -> Any:
        return rnp.sum(rnp.sin(rnp.concatenate([x, x[1:]])) * x.shape[0])

    f, compiles = DERIVED[name](rune.jit(function)), []
    for n in (2, 3, 4, 5, 9):
        with rune.counting() as counts:
            result = f(values((n,)))
        near(DERIVED[name](function)(values((n,))), result, relative=1e-4, why="f32")
        compiles.append(counts.compiles)
    assert compiles[3:] == [0, 0]
