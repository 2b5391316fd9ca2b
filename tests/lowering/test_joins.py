"""Concatenations of many pieces: never one kernel with a buffer for each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import ops
from rune.lowering.decompose import decompose
from rune.lowering.joins import MOST
from rune.lowering.kernelize import cost
from rune.lowering.stages import stages
from rune.ops.movement import concatenate
from tests.support.lowering import PLAIN, f32, program_of


def joined(count: int):
    return program_of(lambda *xs: ops.concatenate(*xs, axis=0), *[f32(3)] * count)


def joins(count: int) -> list[int]:
    """The number of pieces of each concatenation."""
    equations = decompose(joined(count)).equations
    return [len(e.operands) for e in equations if e.primitive is concatenate]


def test_a_concatenation_of_few_pieces_is_not_changed():
    assert joins(MOST) == [MOST]


@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        (MOST + 1, [MOST, 2]),
        (2 * MOST, [MOST, MOST, 2]),
        (MOST * MOST, [MOST] * (MOST + 1)),
        (MOST * MOST + 1, [MOST] * MOST + [MOST, 2]),
    ],
)
def test_a_concatenation_of_many_pieces_becomes_a_tree(count: int, sizes: list[int]):
    assert joins(count) == sizes


def test_a_concatenation_of_a_hundred_arrays_needs_no_kernel_with_a_hundred_buffers():
    kernels = stages(joined(100), PLAIN).kernels.kernels.values()

    assert max(len(k.inputs) + len(k.outputs) for k in kernels) <= cost.MAX_BUFFERS + 1


def test_equal_runs_of_pieces_share_one_kernel():
    lowering = stages(joined(MOST * MOST), PLAIN)

    assert (len(lowering.kernels.steps), len(lowering.kernels.kernels)) == (MOST + 1, 2)


@given(
    sizes=st.lists(st.integers(0, 5), min_size=MOST - 1, max_size=3 * MOST),
    axis=st.integers(0, 1),
    seed=st.integers(0, 99),
)
def test_many_pieces_of_any_sizes_are_joined_as_numpy_does(sizes: list[int], axis: int, seed: int):
    draw = np.random.default_rng(seed)
    pieces = [draw.normal(size=(2, n) if axis else (n, 2)).astype(np.float32) for n in sizes]

    result = rune.jit(lambda xs: rnp.concatenate(xs, axis=axis))(pieces)

    np.testing.assert_array_equal(result, np.concatenate(pieces, axis))


def test_slices_of_one_array_are_stacked_in_another_order():
    x, order = np.arange(1300.0, dtype=np.float32).reshape(650, 2), np.arange(650)[::-1]

    stack = rune.jit(lambda x: rnp.stack([x[i] for i in order]))(x)

    np.testing.assert_array_equal(stack, x[order])


def test_each_of_many_pieces_gets_its_part_of_the_gradient():
    pieces, weights = [np.float32(k) for k in range(650)], np.arange(650, dtype=np.float32)

    gradients = rune.jit(rune.grad(lambda xs: rnp.sum(rnp.stack(xs) * weights)))(pieces)

    np.testing.assert_array_equal(rnp.stack(gradients), weights)
