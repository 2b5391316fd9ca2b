"""NumPy data that a function closes over are captured as they are when it is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.core.program import Program
from tests.support.close import same

X = rnp.arange(3.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "using",
    [
        lambda v, data: v + data,
        lambda v, data: rune.cond(v[0] < 9, lambda w: w + data, lambda w: w - data, v),
        lambda v, data: rune.scan(lambda w, _: (w + data, None), v, None, length=1)[0],
    ],
    ids=["add", "cond", "scan"],
)
def test_jit_keeps_the_numpy_data_of_its_trace(using: Callable[..., Any], dtype: str):
    data = np.ones(3, dtype)
    function = rune.jit(lambda v: using(v, data))
    first = function(X)

    data[:] = 5

    same(first, function(X))


def test_a_pullback_keeps_the_numpy_data_of_its_forward_pass():
    data = np.ones(3, np.float32)
    _, pull = rune.vjp(lambda v: v * data, X)

    data[:] = 5

    same(X, pull(X)[0])


def test_data_written_while_a_function_is_traced_count_as_they_are_at_each_use():
    def function(v: Any) -> Any:
        data = np.zeros(3, np.float32)
        first = v + data
        data[:] = 1
        return first, v + data, v + data

    for output, expected in zip(rune.jit(function)(X), (0, 1, 1), strict=True):
        same(X.numpy() + expected, output)


def test_data_used_twice_are_one_constant():
    data = np.ones(3, np.float32)

    program: Program = rune.make_program(lambda v: (v + data) * data)(X)

    assert len(program.constants) == 1


def test_branches_that_use_the_same_data_share_it():
    data = np.ones(3, np.float32)

    program = rune.make_program(lambda v: rune.cond(v[0] < 9, lambda w: w + data, lambda w: w - data, v))(X)

    assert len(program.constants) == 1
