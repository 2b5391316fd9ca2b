"""Functions of jax.nn against stored answers of jax 0.10.2, values and gradients: attention with
bias, masks, groups, lengths and windows; block-scaled products; the newer logarithms.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import nn, tree
from rune.errors import ArgumentError, DtypeError, ShapeError
from tests.nn.attention_calls import CALLS, SMOOTH, K, Q, draw

STORED = np.load(Path(__file__).parent / "jax_nn_0_10_2.npz", allow_pickle=False)


def equal(name: str, actual: Any) -> None:
    expected = STORED[name]
    assert np.shape(actual) == expected.shape, name
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_results_are_those_of_jax(name: str, wrap: Any):
    call, shapes = CALLS[name]

    outputs = tree.leaves(wrap(lambda *xs: call(nn, *xs))(*draw(name, shapes)))

    for number, output in enumerate(outputs):
        equal(f"{name} / {number}", output)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_those_of_jax(name: str):
    call, shapes = CALLS[name]
    arrays = draw(name, shapes)

    def weighted(*xs: Any) -> Any:
        out = call(nn, *xs)
        return rnp.sum(out * np.cos(np.arange(out.size, dtype="f")).reshape(out.shape))

    gradients = rune.jit(rune.grad(weighted, argnums=tuple(range(len(arrays)))))(*arrays)

    for number, gradient in enumerate(gradients):
        equal(f"{name} / d{number}", gradient)


def test_each_lane_of_attention_is_a_separate_call():
    q, k, v = draw("lanes", ((3, *Q), (3, *K), (3, *K)))
    attend = lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True)  # noqa: E731

    lanes = rune.jit(rune.vmap(attend))(q, k, v)

    one_by_one = np.stack([np.asarray(attend(*row)) for row in zip(q, k, v, strict=True)])
    np.testing.assert_allclose(np.asarray(lanes), one_by_one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"mask": rnp.ones((5, 7))}, DtypeError),
        ({"implementation": "cudnn"}, ArgumentError),
        ({"bias": rnp.ones((1, 4, 5, 7))}, ShapeError),
    ],
)
def test_attention_refuses_what_does_not_fit(options: dict[str, Any], error: type[Exception]):
    q, k, v = draw("refused", (Q, K, K))

    with pytest.raises(error, match="dot_product_attention: cannot "):
        nn.dot_product_attention(q, k, v, **options)


# --- block scales -----------------------------------------------------------------------------


def test_scales_count_for_their_blocks():
    a, b, s, t = draw("scales", ((2, 3, 8), (2, 5, 8), (2, 3, 4), (2, 5, 2)))

    product = nn.scaled_matmul(a, b, s, t)

    expected = (a * np.repeat(s, 2, -1)) @ (b * np.repeat(t, 4, -1)).swapaxes(1, 2)
    np.testing.assert_allclose(np.asarray(product), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("mode", "bits"), [("mxfp8", 3), ("nvfp4", 1)])
def test_a_quantised_product_is_near_the_exact_one(mode: Any, bits: int):
    a, b = draw(mode, ((4, 64), (5, 64)))
    numbers = (((1,), (1,)), ((), ()))
    configs = [nn.get_scaled_dot_general_config(mode)] * 3

    product = nn.scaled_dot_general(a, b, numbers, configs=configs)

    # Each factor is off by half a step of its mantissa at most, and by that of a scale.
    bound = np.abs(a) @ np.abs(b).T * (2.0**-bits)
    assert np.all(np.abs(np.asarray(product) - a @ b.T) <= bound)
    assert not np.array_equal(np.asarray(product), a @ b.T)


def test_numbers_of_the_format_survive_quantisation():
    a = np.tile(np.array([6.0, 4.0, -3.0, 1.5, 1.0, 0.5, 0.0, -2.0], np.float32), (1, 4))
    configs = [nn.get_scaled_dot_general_config("nvfp4")] * 3

    product = nn.scaled_dot_general(a, a, (((1,), (1,)), ((), ())), configs=configs)

    np.testing.assert_allclose(np.asarray(product), a @ a.T, rtol=1e-6)


def test_gradients_of_quantised_products_are_near_those_of_exact_ones():
    a, b = draw("gradients", ((32, 64), (32, 64)))
    configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3

    def total(a: Any, b: Any) -> Any:
        return rnp.sum(nn.scaled_dot_general(a, b, (((1,), (1,)), ((), ())), configs=configs) ** 2)

    gradients = rune.grad(total, argnums=(0, 1))(a, b)

    exact = 2 * (a @ b.T) @ b, 2 * (a @ b.T).T @ a
    for x, y in zip(gradients, exact, strict=True):
        assert np.linalg.norm(np.asarray(x) - y) < 0.1 * np.linalg.norm(y)
