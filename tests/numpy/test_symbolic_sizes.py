"""Functions of an array [n, 3] whose n is symbolic: one program, right for every n.

Axes of size n are reduced, joined, cut, counted, contracted and indexed. What cannot be decided for
all n in the declared range is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import nn
from rune.errors import DimensionError, RuneError
from tests.support.close import near

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: rnp.mean(x, 0),
    "var": lambda x: rnp.var(x, 0, ddof=1),
    "prod": lambda x: rnp.prod(x, 0),
    "max": lambda x: rnp.max(x, 0),
    "argmax": lambda x: rnp.argmax(x),
    "cumsum": lambda x: rnp.cumsum(x, 0),
    "diff": lambda x: rnp.diff(x, axis=0),
    "average": lambda x: rnp.average(x, 0, rnp.abs(x[:, 0])),
    "count_nonzero": lambda x: rnp.count_nonzero(x),
    "a size as a number": lambda x: rnp.sum(x) / x.size + x.shape[0] * x,
    "softmax": lambda x: nn.softmax(x, 0),
    "logsumexp": lambda x: nn.logsumexp(x),
    "layer_norm": lambda x: nn.layer_norm(x, axis=0),
    "one_hot": lambda x: nn.one_hot(rnp.argmax(x, 1), 3),
    "ravel": lambda x: rnp.ravel(x),
    "reshape": lambda x: x.reshape(3, -1),
    "concatenate": lambda x: rnp.concatenate([x, x * 2]),
    "stack": lambda x: rnp.stack([x, x]),
    "tile": lambda x: rnp.tile(x, (2, 1)),
    "repeat": lambda x: rnp.repeat(x, 2, axis=0),
    "pad": lambda x: rnp.pad(x, ((1, 1), (0, 0))),
    "roll": lambda x: rnp.roll(x, 1, axis=0),
    "roll back": lambda x: rnp.roll(x, -2, axis=0),
    "flip": lambda x: rnp.flip(x),
    "split": lambda x: rnp.split(x, 3, axis=1),
    "arange": lambda x: x * rnp.arange(x.shape[0])[:, None],
    "zeros": lambda x: rnp.zeros((x.shape[0], 2)),
    "eye": lambda x: rnp.eye(x.shape[0]),
    "tril": lambda x: rnp.tril(x),
    "meshgrid": lambda x: rnp.meshgrid(x[:, 0], x[:, 1]),
    "linspace": lambda x: rnp.linspace(x[0], x[1], 4),
    "broadcast_to": lambda x: rnp.broadcast_to(x[:1], x.shape),
    "polyfit": lambda x: rnp.polyfit(rnp.arange(x.shape[0]), x, 1),
    "matmul": lambda x: x @ x.T,
    "einsum": lambda x: rnp.einsum("ni,mi,m->n", x, x, x[:, 0]),
    "kron": lambda x: rnp.kron(x, x),
    "pairs": lambda x: x[:, None] - x[None],
    "first and last": lambda x: x[0] + x[-1],
    "a slice": lambda x: x[1:],
    "every second": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
    "take": lambda x: rnp.take(x, rnp.array([0, -1]), axis=0),
    "take wrapped": lambda x: rnp.take(x, rnp.array([-1, 7]), axis=0, mode="wrap"),
    "take_along_axis": lambda x: rnp.take_along_axis(x, rnp.argmax(x, 0)[None], 0),
    "an update": lambda x: x.at[0].set(1.0).at[:, 1].add(1.0),
    "an update of the last": lambda x: x.at[-1, ::2].multiply(3.0),
    "an update of a slice": lambda x: x.at[1:, 1].min(0.0),
    "an update of every second": lambda x: x.at[::2].set(7.0),
    "an update by index": lambda x: x.at[rnp.array([0, -1, 0])].multiply(2.0),
    "an update by index and slice": lambda x: x.at[1:, rnp.array([0, 0, 2])].add(1.0),
    "an update along an axis": lambda x: rnp.put_along_axis(x, rnp.argmax(x, 0)[None], 0.0, 0, inplace=False),
    "a gradient of updates": lambda x: rune.grad(
        lambda v: (v.at[rnp.array([0, -1, 0])].multiply(v[1:2]).at[1:].max(0.5) ** 2).sum()
    )(x),
    "a gradient": lambda x: rune.grad(lambda v: rnp.var(v, 0).sum())(x),
    "a loss": lambda x: rune.grad(
        lambda v: rnp.mean(nn.softmax_cross_entropy_with_integer_labels(v, rnp.argmax(v, 1)))
    )(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_is_right_for_every_size(name: str):
    program = rune.jit(FUNCTIONS[name], dims={"n": (2, 16)})

    for size in (3, 5):
        x = rnp.asarray(np.random.default_rng(size).normal(size=(size, 3)))
        near(FUNCTIONS[name](x), program(x), relative=3e-5, why="f32, other order of sums")
    assert program.cache_size() == 1


@pytest.mark.parametrize("index", [slice(None, None, -2), slice(4, 0, -1)], ids=str)
def test_backward_steps_from_a_start_that_depends_on_the_size_are_refused(index: slice):
    with pytest.raises(ValueError, match=r"index: cannot step by -[12] from .* of n"):
        rune.jit(lambda x: x[index], dims={"n": (2, 16)})(rnp.ones((5, 3)))


def test_a_function_that_branches_on_the_size_is_refused():
    with pytest.raises(ValueError, match=r"cannot decide n > 3 \(n in 2..16\)"):
        rune.jit(rnp.trace, dims={"n": (2, 16)})(rnp.ones((4, 3)))


@pytest.mark.parametrize("shift", [1, -2, 0, 5, -7, 2**31, -(2**31), 2**40 + 1])
def test_an_axis_that_may_be_empty_is_rolled_by_any_number(shift: int):
    roll = rune.jit(lambda x: (rnp.roll(x, shift, 0), rnp.roll(x, shift)), in_dims=("n, 2",), dims={"n": (0, None)})

    for n in (0, 1, 2, 3, 7):
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        along, flat = roll(x)
        np.testing.assert_array_equal(np.asarray(along), np.roll(x, shift, 0))
        np.testing.assert_array_equal(np.asarray(flat), np.roll(x, shift))


def test_an_axis_that_may_be_empty_is_rolled_by_its_size():
    roll = rune.jit(lambda x: rnp.roll(x, x.shape[0] - 1, 0), in_dims=("n",), dims={"n": (0, 9)})

    for n in (0, 1, 5):
        x = np.arange(n)
        np.testing.assert_array_equal(np.asarray(roll(x)), np.roll(x, n - 1))


SPECIAL: dict[str, Callable[[Any], Any]] = {
    "resize": lambda x: rnp.resize(x, (4, 4)),
    "poly": rnp.poly,
    "nanmedian": rnp.nanmedian,
    "median": rnp.median,
    "quantile": lambda x: rnp.quantile(x, 0.3),
    "histogram": lambda x: rnp.histogram(x, 5),
    "histogram2d": lambda x: rnp.histogram2d(x, x, 3),
    "cov": lambda x: rnp.cov(rnp.stack([x, x * x])),
    "diff": rnp.diff,
    "interp": lambda x: rnp.interp(rnp.array([-1.0, 0.5]), x, x * x),
    "convolve": lambda x: rnp.convolve(x, rnp.array([1.0, 2.0]), "same"),
    "array_split": lambda x: rnp.array_split(x, 3),
    "pad": lambda x: rnp.pad(x, 2, mode="edge"),
    "trapezoid": rnp.trapezoid,
    "vander": lambda x: rnp.vander(x, 3),
}


@pytest.mark.parametrize("low", [0, 1, 2, 3])
@pytest.mark.parametrize("name", SPECIAL)
def test_a_size_that_a_function_treats_apart_has_its_own_result_or_is_refused(name: str, low: int):
    program = rune.jit(SPECIAL[name], dims={"n": (low, 16)}, in_dims=("n",))

    for size in (*range(low, 5), 13):
        x = rnp.arange(1.0, size + 1.0)
        try:
            expected = SPECIAL[name](x)
        except RuneError:  # a size that the function refuses
            continue
        try:
            result = program(x)
        except DimensionError:
            assert low < 2  # no function treats larger sizes apart
            return
        near(expected, result, relative=3e-5, why="f32, other order of sums")
