"""The compiler's work grows linearly with the program: every walk visits each equation once.

The calls of tracing, differentiation and the whole lowering are counted at n and 2n equations, for
the shapes of program that have made compilers slow: chains, diamonds of shared values, wide fans,
rows of reductions (so many that they no longer fit one kernel), nested programs,
elements that are written one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import ops
from rune.backends import device_named
from rune.lowering.stages import stages
from tests.support.arrays import array
from tests.support.work import calls

X = array(np.linspace(0, 1, 64), np.float32)


def chain(x: Any, n: int) -> Any:
    for _ in range(n):
        x = ops.sin(x) * 1.5
    return x


def diamonds(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x + x * 0.5
    return x


def fan(x: Any, n: int) -> Any:
    total = x
    for i in range(n):
        total = total + ops.tanh(x * float(i))
    return total


def reductions(x: Any, n: int) -> Any:
    rows = x.reshape(8, 8)
    for _ in range(n):
        rows = rows - rows.max(axis=1, keepdims=True)
    return rows


def nested(x: Any, n: int) -> Any:
    inner = rune.jit(lambda v: ops.sin(v) + 1.0)
    for _ in range(n):
        x = inner(x)
    return x


def changes(x: Any, n: int) -> Any:
    """Elements written by numbers that depend on all elements read before."""
    number = x[0]
    for i in range(n):
        number = number * 1.5 + x[3 * i]
        x = x.at[7 * i].set(number)
    return x


SHAPES: dict[str, tuple[Callable[..., Any], int]] = {
    "chain": (chain, 60),
    "diamonds": (diamonds, 60),
    "fan": (fan, 40),
    "reductions": (reductions, 60),
    "nested": (nested, 40),
}


def lowering(function: Callable[..., Any], n: int) -> Callable[[], Any]:
    """Trace the gradient and lower it, compiler of kernels left aside."""
    target = device_named("cpu:0").target

    def call() -> None:
        gradient = rune.grad(lambda x: function(x, n).sum())
        stages(rune.make_program(gradient)(X), target)

    return call


@pytest.mark.parametrize(("function", "n"), SHAPES.values(), ids=SHAPES)
def test_tracing_and_lowering_do_linear_work(function: Callable[..., Any], n: int):
    lowering(function, n)()
    small, large = calls(lowering(function, n)), calls(lowering(function, 2 * n))

    assert large <= 3 * small, f"{n}: {small} calls, {2 * n}: {large} calls"


def test_lowering_elements_that_are_written_one_by_one_is_linear_work():
    x, target = array(np.linspace(0, 1, 4_099), np.float32), device_named("cpu:0").target

    def work(n: int) -> int:
        return calls(lambda: stages(rune.make_program(lambda x: changes(x, n))(x), target))

    work(20)
    small, large = work(20), work(40)

    assert large <= 3 * small, f"20 changes: {small} calls, 40: {large} calls"
