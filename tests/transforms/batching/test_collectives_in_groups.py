"""Collectives within groups of lanes. The oracle is NumPy on the lanes of each group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune.errors import ArgumentError

GROUPS = [[0, 3], [4, 1], [5, 2]]


def in_groups(collective: Callable[[Any], Any], x: np.ndarray, groups: Any = GROUPS) -> np.ndarray:
    """The results of lanes whose groups have those of `collective`, lanes leading."""
    results: list[Any] = [None] * len(x)
    for group in groups:
        for lane, result in zip(group, collective(x[list(group)]), strict=True):
            results[lane] = result
    return np.stack(results)


LANES = np.sin(np.arange(6 * 2 * 3, dtype="f")).reshape(6, 2, 3)


@pytest.mark.parametrize(
    ("collective", "meaning"),
    [
        (lax.psum, lambda x: [x.sum(0)] * len(x)),
        (lax.pmean, lambda x: [x.mean(0)] * len(x)),
        (lax.pmax, lambda x: [x.max(0)] * len(x)),
        (lax.pmin, lambda x: [x.min(0)] * len(x)),
        (lax.all_gather, lambda x: [x] * len(x)),
        (lax.psum_scatter, lambda x: x.sum(0)),
        (lambda x, i, **k: lax.all_to_all(x, i, 0, 0, **k), lambda x: x.swapaxes(0, 1)),
        (lambda x, i, **k: lax.pswapaxes(x, i, 0, **k), lambda x: x.swapaxes(0, 1)),
    ],
)
def test_a_collective_in_groups_is_one_within_each(collective: Any, meaning: Any):
    f = rune.vmap(lambda x: collective(x, "i", axis_index_groups=GROUPS), axis_name="i")

    np.testing.assert_allclose(f(LANES), in_groups(meaning, LANES), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(rune.jit(f)(LANES), in_groups(meaning, LANES), rtol=1e-6, atol=1e-6)


def test_groups_of_a_sum_may_differ_in_size():
    uneven = [[3], [0, 4, 5, 1, 2]]
    for collective, meaning in ((lax.psum, np.sum), (lax.pmean, np.mean)):
        f = rune.vmap(lambda x, c=collective: c(x, "i", axis_index_groups=uneven), axis_name="i")
        expected = in_groups(lambda x, m=meaning: [m(x, 0)] * len(x), LANES, uneven)
        np.testing.assert_allclose(f(LANES), expected, rtol=1e-6, atol=1e-6)


def test_a_sum_of_a_constant_counts_the_lanes_of_a_group():
    f = rune.vmap(lambda x: lax.psum(1, "i", axis_index_groups=[[3], [0, 4, 5, 1, 2]]) + x, axis_name="i")

    np.testing.assert_array_equal(f(np.zeros(6)), [5, 5, 5, 1, 5, 5])


def test_the_gradient_of_a_sum_in_groups_is_summed_in_groups():
    weights = np.cos(np.arange(36.0, dtype="f")).reshape(6, 2, 3)
    f = rune.vmap(lambda x: lax.psum(x**2, "i", axis_index_groups=GROUPS), axis_name="i")
    expected = in_groups(lambda w: [w.sum(0)] * len(w), weights) * 2 * LANES

    np.testing.assert_allclose(rune.grad(lambda x: (f(x) * weights).sum())(LANES), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("groups", [[[0, 1], [2, 3]], [[0, 1, 2], [2, 3, 4, 5]], [[0, 1, 2, 3, 4, 5, 6]], []])
def test_groups_that_do_not_have_each_lane_once_are_refused(groups: Any):
    with pytest.raises(ArgumentError, match=r"cannot take the groups .* \(each of its 6 lanes once is expected\)"):
        rune.vmap(lambda x: lax.psum(x, "i", axis_index_groups=groups), axis_name="i")(LANES)


def test_an_exchange_in_groups_of_different_sizes_is_refused():
    with pytest.raises(ArgumentError, match=r"all_gather: cannot use groups of different sizes \(\[1, 5\] lanes\)"):
        rune.vmap(lambda x: lax.all_gather(x, "i", axis_index_groups=[[3], [0, 4, 5, 1, 2]]), axis_name="i")(LANES)


def test_groups_of_two_axes_at_once_are_refused():
    with pytest.raises(ArgumentError, match="one name expected"):
        rune.vmap(lambda x: lax.psum(x, ("i", "j"), axis_index_groups=GROUPS), axis_name="i")(LANES)


def test_a_lane_sends_its_value_to_all():
    f = rune.vmap(lambda x: lax.pbroadcast(x, "i", 4), axis_name="i")

    np.testing.assert_array_equal(f(LANES), np.stack([LANES[4]] * 6))
    with pytest.raises(ArgumentError, match=r"cannot send from lane 6 \(the axis 'i' has 6 lanes\)"):
        rune.vmap(lambda x: lax.pbroadcast(x, "i", 6), axis_name="i")(LANES)
