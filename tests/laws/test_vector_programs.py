"""Programs as people write them, at extents that no vector width divides; NumPy is the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune import dtypes, lax, nn
from rune.array import Array
from tests.support.arrays import array

Weights = tuple[Any, Any, Any]  # input to hidden, hidden to hidden, bias
UNITS, INPUTS, STEPS, BATCH = 60, 3, 4, 5
HIDDEN, RATE, ROUNDS = 50, 0.1, 7


def test_products_of_rows_of_17_may_be_dropped_hundreds_of_times():
    f = rune.jit(lambda x, y: x * y)
    x = array(np.arange(68).reshape(4, 17).astype(dtypes.bf16))
    y = array(np.full((4, 1), 2).astype(dtypes.bf16))
    products = [np.asarray(f(x, y)) for _ in range(200)][::50]

    for product in products:
        np.testing.assert_array_equal(product.astype(np.int64), 2 * np.arange(68).reshape(4, 17))


def test_a_matrix_product_with_17_columns_of_bf16_has_all_of_them():
    a, b = np.ones((16, 2), dtypes.bf16), np.ones((2, 17), dtypes.bf16)
    f = rune.jit(lambda a, b: a @ b)

    for _ in range(20):
        assert (np.asarray(f(array(a), array(b))) == 2).all()


def test_a_softmax_of_rows_of_257_in_bf16_has_no_zeros():
    x = np.random.default_rng(1).normal(size=(2, 3, 5, 257)).astype(dtypes.bf16)
    probabilities = np.asarray(rune.jit(nn.softmax)(array(x))).astype(np.float64)
    e = np.exp(x.astype(np.float64))

    np.testing.assert_allclose(probabilities, e / e.sum(-1, keepdims=True), rtol=2e-2)


def lstm(xp: Any, sigmoid: Callable[[Any], Any], weights: Weights, state: Any, x: Any) -> Any:
    """One step: (hidden, cell) after it."""
    hidden, cell = state
    of_input, of_hidden, bias = weights
    i, f, g, o = (x @ of_input[k] + hidden @ of_hidden[k] + bias[k] for k in range(4))
    cell = sigmoid(f) * cell + sigmoid(i) * xp.tanh(g)
    return sigmoid(o) * xp.tanh(cell), cell


def by_numpy(weights: Weights, xs: np.ndarray) -> float:
    """The sum of the squares of the last hidden values, in f64."""
    state = np.zeros((BATCH, UNITS)), np.zeros((BATCH, UNITS))
    for x in xs:
        state = lstm(np, lambda v: 1 / (1 + np.exp(-v)), weights, state, x)
    return float((state[0] ** 2).sum())


def by_scan(weights: Weights, xs: Array) -> Array:
    """The same in rune."""

    def step(state: Any, x: Array) -> tuple[Any, None]:
        return lstm(rnp, nn.sigmoid, weights, state, x), None

    zeros = rnp.zeros((BATCH, UNITS))
    (hidden, _), _ = lax.scan(step, (zeros, zeros), xs)
    return (hidden**2).sum()


def test_the_gradient_of_the_bias_of_60_lstm_units_agrees_with_differences():
    draw = np.random.default_rng(2)
    shapes = (4, INPUTS, UNITS), (4, UNITS, UNITS), (4, UNITS)
    weights = tuple(0.2 * draw.normal(size=s) for s in shapes)
    xs, step = draw.normal(size=(STEPS, BATCH, INPUTS)), 1e-5
    parameters = tuple(array(w.astype(np.float32)) for w in weights)
    slopes = rune.jit(rune.grad(by_scan))(parameters, array(xs.astype(np.float32)))[2]

    def loss(bias: np.ndarray) -> float:
        return by_numpy((weights[0], weights[1], bias), xs)

    perturbations = step * np.eye(4 * UNITS).reshape(-1, 4, UNITS)[::7]
    differences = [(loss(weights[2] + e) - loss(weights[2] - e)) / (2 * step) for e in perturbations]
    np.testing.assert_allclose(np.asarray(slopes).ravel()[::7], differences, rtol=1e-3, atol=1e-5)


def test_a_training_loop_of_50_hidden_units_follows_numpy():
    draw = np.random.default_rng(3)
    x, y = draw.normal(size=(9, 5)), draw.normal(size=9)
    first, last = 0.3 * draw.normal(size=(5, HIDDEN)), 0.3 * draw.normal(size=HIDDEN)

    def loss(weights: tuple[Array, Array], x: Array, y: Array) -> Array:
        return ((rnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2).mean()

    def train(weights: tuple[Array, Array], x: Array, y: Array) -> tuple[Array, Array]:
        def update(_: Array, weights: tuple[Array, Array]) -> tuple[Array, Array]:
            slopes = rune.grad(loss)(weights, x, y)
            return weights[0] - RATE * slopes[0], weights[1] - RATE * slopes[1]

        return lax.fori_loop(0, ROUNDS, update, weights)

    a, b, u, v = (array(k.astype(np.float32)) for k in (first, last, x, y))
    parameters = rune.jit(train)((a, b), u, v)

    for _ in range(ROUNDS):
        hidden = np.tanh(x @ first)
        error = 2 * (hidden @ last - y) / len(y)
        inner = np.outer(error, last) * (1 - hidden**2)
        first, last = first - RATE * (x.T @ inner), last - RATE * (hidden.T @ error)
    np.testing.assert_allclose(np.asarray(parameters[0]), first, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(np.asarray(parameters[1]), last, rtol=1e-3, atol=1e-5)
