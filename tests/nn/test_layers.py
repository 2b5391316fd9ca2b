"""Layers with state, chance or graphs: batch norm over named axes, graphs against dense matrices,
fractional pooling by key, recurrent layers whose compiled code does not grow with the sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import nn
from rune.errors import ArgumentError, DtypeError, ShapeError


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def same(expected: Any, actual: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=2e-5, atol=2e-6)


OTHER: Any = "another"


# --- batch norm -------------------------------------------------------------------------------


@pytest.mark.parametrize("over", [rune.vmap, rune.pmap])
def test_lanes_of_a_named_axis_are_one_batch(over: Any):
    x, state = numbers(4, 3, 5, 2), nn.batch_norm_state(5)

    def step(rows: Any) -> Any:
        return nn.batch_norm(rows, state, axis_name="lanes")

    y, after = over(step, axis_name="lanes")(x)

    batch, expected = nn.batch_norm(x.reshape(-1, 5, 2), state)
    same(batch, np.asarray(y).reshape(-1, 5, 2))
    for lane in range(4):
        same(expected.mean, np.asarray(after.mean)[lane])
        same(expected.var, np.asarray(after.var)[lane])


def test_gradients_through_lanes_are_those_of_one_batch():
    x, weights = numbers(4, 3, 5), numbers(4, 3, 5, seed=1)
    state = nn.batch_norm_state(5)

    def by_lanes(x: Any) -> Any:
        y, _ = rune.vmap(lambda r: nn.batch_norm(r, state, axis_name="i"), axis_name="i")(x)
        return rnp.sum(y * weights)

    def at_once(x: Any) -> Any:
        y, _ = nn.batch_norm(x.reshape(12, 5), state)
        return rnp.sum(y * weights.reshape(12, 5))

    same(rune.grad(at_once)(x), rune.jit(rune.grad(by_lanes))(x))


def test_without_a_named_axis_every_lane_has_its_own_statistics():
    x, state = numbers(4, 3, 5), nn.batch_norm_state(5)

    y, after = rune.vmap(lambda r: nn.batch_norm(r, state))(x)

    for lane in range(4):
        rows, expected = nn.batch_norm(x[lane], state)
        same(rows, np.asarray(y)[lane])
        same(expected.var, np.asarray(after.var)[lane])


def test_a_state_without_momentum_is_the_mean_over_all_batches():
    batches, state = numbers(3, 8, 2), nn.batch_norm_state(2)

    for batch in batches:
        _, state = nn.batch_norm(batch, state, momentum=None)

    same(batches.mean(1).mean(0), state.mean)
    same(batches.var(1, ddof=1).mean(0), state.var)
    assert int(state.count) == 3


def test_half_types_are_normalised_in_f32():
    x = (numbers(64, 3) * 0.01 + 100).astype(np.float16)

    y, state = nn.batch_norm(x, nn.batch_norm_state(3))

    assert y.dtype == rnp.float16
    assert state.mean.dtype == rnp.float32
    assert np.all(np.isfinite(np.asarray(y, np.float32)))


# --- graphs -----------------------------------------------------------------------------------

EDGES = np.array([[0, 1], [1, 0], [1, 2], [3, 2], [2, 2]])


def adjacency() -> np.ndarray:
    dense = np.zeros((5, 5), np.float32)
    for sender, receiver in EDGES:
        dense[receiver, sender] += 1
    return dense


def test_messages_add_up_as_the_adjacency_matrix_prescribes():
    nodes = numbers(5, 3)

    sums = rune.jit(nn.message_passing)(nodes, EDGES[:, 0], EDGES[:, 1])

    same(adjacency() @ nodes, sums)


def test_edges_to_nowhere_are_padding():
    nodes, pad = numbers(5, 3), np.array([[0, 5], [4, 5], [1, -1]])
    edges = np.concatenate([EDGES, pad])

    combine: Any
    for combine in ("sum", "mean", "max"):
        plain = nn.message_passing(nodes, EDGES[:, 0], EDGES[:, 1], combine=combine)
        with_padding = nn.message_passing(nodes, edges[:, 0], edges[:, 1], combine=combine)
        same(plain, with_padding)


def test_means_and_maxima_are_those_of_each_receiver():
    nodes = numbers(5, 3)

    combine: Any
    for combine, reduce in (("mean", np.mean), ("max", np.max)):
        sums = nn.message_passing(nodes, EDGES[:, 0], EDGES[:, 1], combine=combine)
        for node in range(5):
            rows = nodes[EDGES[EDGES[:, 1] == node, 0]]
            same(reduce(rows, 0) if len(rows) else np.zeros(3), sums[node])


def test_a_message_sees_both_ends_and_the_edge():
    nodes, edges = numbers(5, 3), numbers(5, 3, seed=1)
    message = lambda a, b, e: a * e - b  # noqa: E731

    sums = nn.message_passing(nodes, EDGES[:, 0], EDGES[:, 1], message, edges)

    expected = np.zeros((5, 3), np.float32)
    for (sender, receiver), edge in zip(EDGES, edges, strict=True):
        expected[receiver] += nodes[sender] * edge - nodes[receiver]
    same(expected, sums)


def test_a_graph_convolution_and_its_gradient_equal_the_dense_formula():
    nodes, weight, bias = numbers(5, 3), numbers(3, 2, seed=1), numbers(2, seed=2)
    dense = adjacency() + np.eye(5, dtype=np.float32)
    root = np.diag(dense.sum(1) ** -0.5).astype(np.float32)
    spread = root @ dense @ root

    def layer(x: Any, w: Any) -> Any:
        return nn.gcn_layer(x, EDGES[:, 0], EDGES[:, 1], w, bias)

    same(spread @ nodes @ weight + bias, rune.jit(layer)(nodes, weight))
    gradient = rune.grad(lambda w: rnp.sum(layer(nodes, w) ** 2))(weight)
    same(2 * (spread @ nodes).T @ (spread @ nodes @ weight + bias), gradient)


# --- pooling, embedding, recurrence -----------------------------------------------------------


def test_fractional_regions_cover_the_axis_and_repeat_with_the_key():
    x = rnp.arange(25.0).reshape(1, 1, 25)

    for seed in range(8):
        key = rune.random.key(seed)
        maxima = np.asarray(nn.fractional_max_pool(x, 2, 9, key=key))[0, 0]
        steps = np.diff(maxima)

        assert maxima.shape == (9,)
        assert maxima[-1] == 24  # the last region ends with the axis
        assert 1 <= maxima[0] <= 4
        assert set(steps) <= {2.0, 3.0, 4.0}
        assert np.array_equal(maxima, nn.fractional_max_pool(x, 2, 9, key=key)[0, 0])


def test_gradients_of_fractional_pooling_go_to_the_chosen_cells():
    x, key = numbers(1, 2, 9, 9), rune.random.key(3)

    gradient = np.asarray(rune.grad(lambda x: rnp.sum(nn.fractional_max_pool(x, 2, 4, key=key)))(x))

    maxima = np.asarray(nn.fractional_max_pool(x, 2, 4, key=key))
    assert gradient.sum() == maxima.size
    assert set(np.round(x[gradient > 0], 5)) == set(np.round(maxima.ravel(), 5))


def test_compiled_code_of_a_layer_does_not_grow_with_the_sequence():
    params = nn.init_cell("lstm", 3, 5, rune.random.key(0))

    def equations(length: int) -> int:
        gradient = rune.grad(lambda x: rnp.sum(nn.lstm(params, x)[0]))
        return len(rune.make_program(gradient)(np.zeros((length, 2, 3), "f")).equations)

    assert equations(4) == equations(400)


def test_the_row_of_the_padding_gets_no_gradient():
    table, ids = numbers(5, 2), np.array([[1, 2], [2, 4]])

    gradient = rune.grad(lambda t: rnp.sum(nn.embedding(ids, t, padding_idx=2)))(table)

    assert np.asarray(gradient)[:, 0].tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: nn.conv2d(rnp.ones((3, 3)), rnp.ones((1, 1, 2, 2))), ShapeError),
        (lambda: nn.conv1d(rnp.ones((1, 4)), rnp.ones((1, 1, 2)), stride=(1, 2)), ArgumentError),
        (lambda: nn.conv_transpose1d(rnp.ones((1, 4)), rnp.ones((1, 1, 2)), output_padding=1), ArgumentError),
        (lambda: nn.fractional_max_pool(rnp.ones((1, 1, 4)), 2), ArgumentError),
        (lambda: nn.fractional_max_pool(rnp.ones((1, 1, 4)), 2, 5, key=rune.random.key(0)), ArgumentError),
        (lambda: nn.embedding(rnp.ones(2), rnp.ones((3, 2))), DtypeError),
        (lambda: nn.mse_loss(1.0, 2.0, OTHER), ArgumentError),
        (lambda: nn.init_cell(OTHER, 2, 3), ArgumentError),
        (lambda: nn.aggregate(rnp.ones(2), rnp.zeros(2, "i32"), 3, OTHER), ArgumentError),
        (lambda: nn.lstm([(1, 2, 3)], rnp.ones((2, 2, 2))), ArgumentError),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call: Any, error: type[Exception]):
    with pytest.raises(error, match=": cannot "):
        call()
