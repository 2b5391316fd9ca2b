"""Layers with state, chance or graphs: batch norm over named axes, graphs against dense matrices,
fractional pooling by key, recurrent layers whose compiled code does not grow with the sequence.
"""

from __future__ import annotations

import itertools
import math
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


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64", "u8"])
@pytest.mark.parametrize("padding", [2, -3])
def test_the_row_of_the_padding_may_be_counted_from_the_end(padding: int, dtype: str):
    ids = rnp.asarray([1, 2, 4] if dtype == "u8" else [1, -3, 4], dtype)

    gradient = rune.grad(lambda t: rnp.sum(nn.embedding(ids, t, padding)))(numbers(5, 2))

    assert np.asarray(gradient)[:, 0].tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("padding", [0, 30])
def test_a_mean_of_a_half_type_does_not_overflow_where_its_sum_does(dtype: str, padding: int):
    x = rnp.full((1, 1, 101, 100), 100.0, dtype)

    mean = nn.avg_pool(x, (101, 100), padding=padding, count_include_pad=False)

    assert mean.dtype == x.dtype
    assert set(np.asarray(mean, np.float64).ravel().tolist()) == {100.0}


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("rows", [300, 4099, 70_001])
def test_many_rows_of_a_half_type_are_aggregated_in_f32(rows: int, dtype: str):
    values, nodes = rnp.full((rows, 1), 0.5, dtype), np.zeros(rows, np.int32)

    mean, total = (nn.aggregate(values, nodes, 2, combine) for combine in ("mean", "sum"))

    assert mean.dtype == total.dtype == values.dtype
    np.testing.assert_array_equal(np.asarray(mean, float), [[0.5], [0]])
    np.testing.assert_allclose(np.asarray(total, float), [[rows / 2], [0]], rtol=4e-3)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_the_mean_of_many_losses_of_a_half_type_counts_them_in_f32(dtype: str):
    logits = rnp.asarray(numbers(70_001, 3), dtype)
    labels = np.arange(70_001) % 3

    loss = nn.cross_entropy(logits, labels)

    assert loss.dtype == logits.dtype
    expected = float(nn.cross_entropy(logits.astype("f32"), labels))
    np.testing.assert_allclose(float(loss), expected, rtol=1e-2)


def by_all_alignments(log_probs: np.ndarray, target: list[int]) -> float:
    """The loss of one sequence, from all paths that spell the target once repeats are joined."""
    length, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=length):
        joined = [c for c, _ in itertools.groupby(path) if c != 0]
        if joined == target:
            total += math.exp(sum(log_probs[t, c] for t, c in enumerate(path)))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("padding", [0, -1, 99, -100])
@pytest.mark.parametrize("width", [0, 1, 2])
def test_sequences_of_every_length_have_the_loss_of_all_their_alignments(width: int, padding: int):
    lengths, sizes = np.array([0, 0, 1, 3, 5, 2]), np.minimum([0, 1, 0, 2, 2, 2], width)
    x = np.log(np.random.default_rng(2).dirichlet(np.ones(3), (5, 6))).astype(np.float32)
    targets = np.array([[1, 2], [1, 1], [2, 2], [1, 1], [2, 1], [1, 1]])[:, :width]
    targets = np.where(np.arange(width) < sizes[:, None], targets, padding).astype(np.int32)
    expected = [by_all_alignments(x[:n, i], targets[i, :s].tolist()) for i, (n, s) in enumerate(zip(lengths, sizes))]

    def loss(x: Any) -> Any:
        return nn.ctc_loss(x, targets, lengths, sizes, reduction="none", zero_infinity=True)

    same(expected, nn.ctc_loss(x, targets, lengths, sizes, reduction="none"))
    gradient = np.asarray(rune.jit(rune.grad(lambda x: rnp.sum(loss(x))))(x))
    assert np.isfinite(gradient).all()


def test_an_outcome_of_probability_zero_adds_nothing_whatever_its_target_is_given_as():
    x, probs = np.log(np.array([0.5, 0.25, 0.25], np.float32)), np.array([0.0, 0.5, 0.5], np.float32)
    with np.errstate(divide="ignore"):
        logs = np.log(probs)

    same(nn.kl_div(x, probs, "none"), nn.kl_div(x, logs, "none", log_target=True))
    gradient = rune.grad(lambda t: nn.kl_div(x, t, "sum", log_target=True))(logs)
    assert np.isfinite(np.asarray(gradient)).all()


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
