"""Ordinary programs with shard_map send no more than the best hand-written ones.

Each is compared with NumPy, and its collectives with kind, count and bytes of the known optimum.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax, tree
from rune import numpy as rnp
from rune.sharding import P, make_mesh
from tests.sharding.eight_devices.traffic import partitioned_traffic, traffic

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import heat
import ring_attention
import tensor_parallel

DEVICES = 8
CUT = P("d")


def on_devices(body: Any, in_specs: Any = CUT, out_specs: Any = CUT, axis: str = "d") -> Any:
    return rune.shard_map(body, mesh=make_mesh((DEVICES,), (axis,)), in_specs=in_specs, out_specs=out_specs)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("f")


# --- tensor parallelism: two sums a layer forwards, two backwards --------------------------------

TEXT = tensor_parallel.texts()[0]
STREAM_BYTES = tensor_parallel.BATCH * tensor_parallel.LENGTH * tensor_parallel.WIDTH * 4


def transformer(layers: int) -> tuple[Any, Any]:
    """Weights, and the specs that cut them."""
    weights = tensor_parallel.make_weights()
    weights["layers"] = weights["layers"][:1] * layers
    return weights, {**tensor_parallel.SPECS, "layers": [tensor_parallel.LAYER_SPECS] * layers}


def summed_by_hand(specs: Any) -> Any:
    """The loss with sums over the devices where Megatron has them."""
    loss = functools.partial(tensor_parallel.loss, add_up=lambda x: lax.psum(x, "model"))
    return on_devices(loss, (specs, P()), P(), "model")


def normalised(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)


def transformer_loss(weights: Any, text: np.ndarray) -> float:
    """The same in float64, head by head."""
    weights = tree.map(lambda w: np.asarray(w, np.float64), weights)
    x = weights["letters"][text[:, :-1]] + weights["positions"]
    earlier = np.tril(np.ones((x.shape[1], x.shape[1]), bool))
    for layer in weights["layers"]:
        q, k, v = np.einsum("btw,wcnh->cbnth", normalised(x), layer["queries_keys_values"])
        shares = np.where(earlier, np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])), 0)
        context = shares / shares.sum(-1, keepdims=True) @ v
        x = x + np.einsum("bnth,nhw->btw", context, layer["mix"])
        hidden = normalised(x) @ layer["up"]
        gelu = hidden / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3)))
        x = x + gelu @ layer["down"]
    logits = normalised(x) @ weights["logits"]
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    return -np.take_along_axis(logits, text[:, 1:, None], -1).mean()


@pytest.mark.parametrize("layers", [1, 3])
def test_a_megatron_transformer_sums_twice_a_layer_and_twice_more_backwards(layers: int):
    weights, specs = transformer(layers)
    loss = summed_by_hand(specs)

    assert traffic(loss, weights, TEXT) == {"psum": (2 * layers, 2 * layers * STREAM_BYTES)}
    assert traffic(rune.grad(loss), weights, TEXT) == {"psum": (4 * layers, 4 * layers * STREAM_BYTES)}
    np.testing.assert_allclose(loss(weights, TEXT), transformer_loss(weights, TEXT), rtol=1e-5)


@pytest.mark.parametrize("layers", [1, 3])
def test_sharded_jit_sums_where_megatron_does(layers: int):
    weights, specs = transformer(layers)
    cuts, mesh, loss = tree.leaves(specs), make_mesh((DEVICES,), ("model",)), tensor_parallel.loss
    forwards = partitioned_traffic(loss, mesh, [*cuts, P()], [P()], weights, TEXT)
    backwards = partitioned_traffic(rune.grad(loss), mesh, [*cuts, P()], cuts, weights, TEXT)

    assert forwards == {"psum": (2 * layers, 2 * layers * STREAM_BYTES)}
    assert backwards == {"psum": (4 * layers, 4 * layers * STREAM_BYTES)}


def test_a_data_parallel_transformer_sums_each_gradient_once_and_all_in_one_message():
    weights, specs = transformer(2)
    copies = [P() for _ in tree.leaves(specs)]
    mesh, step = make_mesh((DEVICES,), ("d",)), rune.value_and_grad(tensor_parallel.loss)
    weight_bytes = sum(w.nbytes for w in tree.leaves(weights))

    messages = partitioned_traffic(step, mesh, [*copies, P("d")], [P(), *copies], weights, TEXT)
    assert messages == {"psum": (1, weight_bytes + 4)}  # and the loss


# --- ZeRO: parameters and moments are cut, gathered for the step, and gradients scattered --------

RATE, DECAY, SQUARE_DECAY, EPSILON = 0.05, 0.9, 0.99, 1e-8
INPUTS, OUTPUTS = 6, 4
SIZE = INPUTS * OUTPUTS


def zero_step(shard: Any, mean: Any, square: Any, x: Any, y: Any) -> Any:
    """Adam on a device's part of the parameters, with its rows of the batch."""

    def loss(shard: Any) -> Any:
        weight = lax.all_gather(shard, "d", tiled=True).reshape(INPUTS, OUTPUTS)
        return ((x @ weight - y) ** 2).mean() / DEVICES

    gradient = rune.grad(loss)(shard)
    mean = DECAY * mean + (1 - DECAY) * gradient
    square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * gradient**2
    return shard - RATE * mean / (rnp.sqrt(square) + EPSILON), mean, square


def adam_step(state: Any, x: np.ndarray, y: np.ndarray) -> Any:
    weight, mean, square = state
    gradient = (2 * x.T @ (x @ weight - y) / y.size).astype("f")
    mean = DECAY * mean + (1 - DECAY) * gradient
    square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * gradient**2
    return weight - RATE * mean / (np.sqrt(square) + EPSILON), mean, square


def test_a_sharded_optimiser_gathers_parameters_and_scatters_gradients_once():
    step = on_devices(zero_step)
    weight, x, y = numbers(INPUTS, OUTPUTS), numbers(16, INPUTS, seed=1), numbers(16, OUTPUTS, seed=2)
    compiled_step: Any = rune.jit(step)
    state: Any = (weight.reshape(-1), *np.zeros((2, SIZE), "f"))
    start: Any = (weight, *np.zeros((2, INPUTS, OUTPUTS), "f"))

    assert traffic(step, *state, x, y) == {"all_gather": (1, 4 * SIZE // DEVICES), "psum_scatter": (1, 4 * SIZE)}
    for _ in range(5):
        state = compiled_step(*state, x, y)
    expected = functools.reduce(lambda state, _: adam_step(state, x, y), range(5), start)
    assert state[0].sharding.spec == P("d")
    np.testing.assert_allclose(state[0], expected[0].reshape(-1), rtol=1e-4, atol=1e-5)


# --- experts: tokens go to the device of their expert and come back ------------------------------

TOKENS, CHANNELS = 16, 5  # tokens on a device; every expert has room for all of them


def experts(x: Any, choice: Any, weight: Any) -> Any:
    """Each token times the matrix of its expert; every device has one expert.

    Shapes: x [TOKENS, CHANNELS], choice [TOKENS] of the expert, weight [1, CHANNELS, CHANNELS].
    """
    mask = choice == rnp.arange(DEVICES)[:, None]
    for_experts = rnp.where(mask[..., None], x, 0.0)  # [DEVICES, TOKENS, CHANNELS]
    inputs = lax.all_to_all(for_experts, "d", 0, 0, tiled=True)
    outputs = lax.all_to_all(rnp.tanh(inputs @ weight[0]), "d", 0, 0, tiled=True)
    return rnp.where(mask[..., None], outputs, 0.0).sum(axis=0)


def test_an_expert_exchange_is_two_all_to_alls():
    x, weight = numbers(DEVICES * TOKENS, CHANNELS), numbers(DEVICES, CHANNELS, CHANNELS, seed=1)
    choice = np.random.default_rng(2).integers(DEVICES, size=len(x)).astype("i4")
    f = on_devices(experts)

    assert traffic(f, x, choice, weight) == {"all_to_all": (2, 2 * 4 * DEVICES * TOKENS * CHANNELS)}
    np.testing.assert_allclose(f(x, choice, weight), np.tanh(np.einsum("tc,tcd->td", x, weight[choice])), rtol=1e-4)


# --- ring attention: n - 1 permutes --------------------------------------------------------------


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    q, k, v = (x.astype(np.float64).swapaxes(0, 1) for x in (q, k, v))
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
    shares = np.where(np.tril(np.ones(scores.shape[1:], bool)), np.exp(scores), 0)
    return (shares / shares.sum(-1, keepdims=True) @ v).swapaxes(0, 1)


def test_ring_attention_sends_keys_and_values_once_around():
    shape = (64, ring_attention.HEADS, ring_attention.HEAD)
    operands = [numbers(*shape, seed=seed) for seed in range(3)]
    f = on_devices(ring_attention.ring_attention, axis="ring", in_specs=P("ring"), out_specs=P("ring"))
    hops, message = DEVICES - 1, 2 * 4 * int(np.prod(shape)) // DEVICES

    assert traffic(f, *operands) == {"ppermute": (hops, hops * message)}
    np.testing.assert_allclose(f(*operands), attention(*operands), rtol=1e-4, atol=1e-5)


def test_its_gradient_sends_them_around_and_their_cotangents_back():
    operands = [numbers(64, ring_attention.HEADS, ring_attention.HEAD, seed=seed) for seed in range(3)]
    f = on_devices(ring_attention.ring_attention, axis="ring", in_specs=P("ring"), out_specs=P("ring"))
    messages = traffic(rune.grad(lambda *operands: f(*operands).sum(), (0, 1, 2)), *operands)

    assert {kind: count for kind, (count, _) in messages.items()} == {"ppermute": 2 * (DEVICES - 1)}


# --- a stencil: two permutes ---------------------------------------------------------------------


def test_a_halo_exchange_is_two_permutes_of_a_row():
    plate = numbers(DEVICES * 3, 20)
    f = on_devices(heat.step, P("rows"), P("rows"), "rows")
    walls = np.pad(plate, 1)
    neighbours = walls[:-2, 1:-1] + walls[2:, 1:-1] + walls[1:-1, :-2] + walls[1:-1, 2:]

    assert traffic(f, plate) == {"ppermute": (2, 2 * 20 * 4)}
    np.testing.assert_allclose(f(plate), plate + heat.RATE * (neighbours - 4 * plate), rtol=1e-5, atol=1e-5)


# --- Fourier transforms: transposes by all-to-all ------------------------------------------------


def fourier_2d(rows: Any) -> Any:
    """The transform of a matrix that is cut by rows: along rows, and as columns along those."""
    columns = lax.all_to_all(rnp.fft.fft(rows, axis=1), "d", 1, 0, tiled=True)
    return lax.all_to_all(rnp.fft.fft(columns, axis=0), "d", 0, 1, tiled=True)


def test_a_fourier_transform_of_a_matrix_transposes_twice():
    x = numbers(16, 24).astype("c8")
    f = on_devices(fourier_2d)

    assert traffic(f, x) == {"all_to_all": (2, 2 * 8 * 16 * 24 // DEVICES)}
    np.testing.assert_allclose(f(x), np.fft.fft2(x), rtol=1e-4, atol=1e-3)


def fourier_1d(x: Any, long: int) -> Any:
    """The transform of a vector [DEVICES * long] by columns and by rows (Bailey 1990)."""
    short = DEVICES
    matrix = x.reshape(-1, long)  # x[n * long + m]: the device has some n, and all m
    columns = lax.all_to_all(matrix, "d", 1, 0, tiled=True)  # all n, some m
    inner = rnp.fft.fft(columns, axis=0)
    m = lax.axis_index("d") * columns.shape[1] + rnp.arange(columns.shape[1])
    turns = rnp.outer(rnp.arange(short), m) / (short * long)
    product = inner * rnp.exp(-2j * np.pi * turns)
    rows = rnp.fft.fft(lax.all_to_all(product, "d", 0, 1, tiled=True), axis=1)  # some k, all of j * short + k
    return lax.all_to_all(rows, "d", 1, 0, tiled=True).T.reshape(-1)


def test_a_fourier_transform_of_a_vector_transposes_three_times():
    long = 24
    x = (numbers(DEVICES * long) + 1j * numbers(DEVICES * long, seed=1)).astype("c8")
    f = on_devices(functools.partial(fourier_1d, long=long))

    assert traffic(f, x) == {"all_to_all": (3, 3 * 8 * long)}
    np.testing.assert_allclose(f(x), np.fft.fft(x), rtol=1e-4, atol=1e-3)


# --- Cholesky: every column of blocks but the last goes to all -----------------------------------

WIDTH = 3  # columns on each device


def cholesky(columns: Any) -> Any:
    """The lower factor of a matrix whose columns are cut. Shapes: [DEVICES * WIDTH, WIDTH]."""
    device = lax.axis_index("d")
    for step in range(DEVICES):
        top, is_mine = step * WIDTH, device == step
        below = columns[top:]
        panel = below if step == DEVICES - 1 else lax.psum(rnp.where(is_mine, below, 0.0), "d")
        # All factor the panel, which is quicker than to wait for one; of the last only its owner.
        corner = rnp.where(is_mine, panel[:WIDTH], rnp.eye(WIDTH)) if step == DEVICES - 1 else panel[:WIDTH]
        diagonal = rnp.linalg.cholesky(corner)
        factor = lax.linalg.triangular_solve(diagonal, panel, lower=True, transpose_a=True)
        # Columns to the right lose what this one explains; those to the left are done.
        own_columns = lax.dynamic_slice(rnp.pad(factor, ((top, 0), (0, 0))), (device * WIDTH, 0), (WIDTH, WIDTH))
        smaller = rnp.where(device > step, below - factor @ own_columns.T, below)
        columns = columns.at[top:].set(rnp.where(is_mine, factor, smaller))
    return rnp.where(rnp.arange(len(columns))[:, None] >= device * WIDTH + rnp.arange(WIDTH), columns, 0.0)


def test_a_blocked_cholesky_broadcasts_every_panel_but_the_last_once():
    size = DEVICES * WIDTH
    root = numbers(size, size)
    matrix = root @ root.T + size * np.eye(size, dtype="f")
    f = on_devices(cholesky, P(None, "d"), P(None, "d"))
    panels = sum(4 * WIDTH * (size - step * WIDTH) for step in range(DEVICES - 1))

    assert traffic(f, matrix) == {"psum": (DEVICES - 1, panels)}
    np.testing.assert_allclose(f(matrix), np.linalg.cholesky(matrix.astype(np.float64)), rtol=1e-4, atol=1e-4)
