"""Symbolic sizes meet numbers: in evaluation, inside other programs, in every transformation.

First how sizes are read off types, then programs traced for n that are called with a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import dims, dtypes, ops
from rune.core.evaluate import eval_program
from rune.core.sizes import match_sizes, with_sizes
from rune.core.types import ArrayType
from rune.errors import NaNError
from tests.support.arrays import array
from tests.support.close import near, same

N, M = dims.symbol("n", 1, 64), dims.symbol("m", 1, 64)
X = array([0.5, 1.0, 2.0])


def f32(*shape: Any) -> ArrayType:
    return ArrayType(shape, dtypes.f32)


@pytest.mark.parametrize(
    ("declared", "given", "sizes"),
    [
        (f32(N, 8), f32(3, 8), {"n": 3}),
        (f32(N, M), f32(M, 5), {"n": M, "m": 5}),
        (f32(N, 4), f32(N, 4), {}),
        (f32(2 * N + 1), f32(7), {"n": 3}),
        (f32(N * M, N), f32(6, 2), {"n": 2, "m": 3}),
        (f32(2 * N), f32(7), {}),
        (f32(3), f32(3), {}),
    ],
    ids=str,
)
def test_sizes_are_read_off_the_types(declared: ArrayType, given: ArrayType, sizes: dict):
    assert match_sizes([declared], [given]) == sizes


def test_parameters_are_rewritten_wherever_sizes_stand():
    found = with_sizes((N, (2 * N, 1), "clip", dtypes.f32, None, True), {"n": 3})

    assert found == (3, (6, 1), "clip", dtypes.f32, None, True)


def normalised(x: Any) -> Any:
    """Uses the size as a shape, as a number, and in a reshape."""
    n = x.shape[0]
    ones = ops.broadcast(np.float32(1), shape=(n,), axes=())
    twice = ops.reshape(ops.broadcast(x * ones, shape=(2, n), axes=(1,)), shape=(2 * n,))
    return (twice * twice).sum() / x.size


def expected(x: Any) -> np.ndarray:
    host = np.asarray(x)
    return np.asarray(2 * np.sum(host * host) / host.size, np.float32)


def test_a_program_of_a_symbolic_size_evaluates_for_a_number():
    program = rune.make_program(normalised)(f32(N))

    near(expected(X), eval_program(program, [X])[0], relative=1e-6, why="f32")


def test_a_function_of_a_symbolic_size_works_inside_one_of_a_number():
    f = rune.jit(normalised, dims={"n": (1, 64)})

    near(expected(X), rune.jit(lambda x: f(x))(X), relative=1e-6, why="f32")
    near(expected(X), rune.jit(lambda x: f(x), dims={"k": (1, 9)})(X), relative=1e-6, why="f32")


def test_a_function_of_a_symbolic_size_under_vmap_and_forward_mode():
    f = rune.jit(normalised, dims={"n": (1, 64)})
    rows = array(np.arange(6.0).reshape(2, 3), np.float32)

    near(np.stack([expected(r) for r in np.asarray(rows)]), rune.vmap(f)(rows),
         relative=1e-6, why="f32")  # fmt: skip
    near(4 * np.asarray(X) / 3, rune.jacfwd(f)(X), relative=1e-6, why="f32")


def test_the_nan_check_finds_its_way_through_symbolic_sizes():
    def function(x: Any) -> Any:
        ones = ops.broadcast(np.float32(1), shape=(x.shape[0],), axes=())
        return ops.log(x * ones - 1.0)

    with rune.configure(check_nans=True), pytest.raises(NaNError, match="log: found NaN"):
        rune.jit(function, dims={"n": (1, 64)})(X)


def test_one_symbolic_program_serves_two_sizes_in_one_outer_program():
    f = rune.jit(normalised, dims={"n": (1, 64)})
    y = array([1.0, 2.0])

    found = rune.jit(lambda a, b: f(a) + f(b))(X, y)

    near(expected(X) + expected(y), found, relative=1e-6, why="f32")
    same(np.asarray(f(y)), np.asarray(f(y)))
