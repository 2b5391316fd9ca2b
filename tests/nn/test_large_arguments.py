"""Activations and masked softmax far from 0: finite values have finite derivatives, the limits'."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import nn
from rune.scipy import special

WAYS = {"eagerly": lambda f: f, "compiled": rune.jit}
LARGE = {
    "float16": (100, 200, 300, 3000, 3e4, 6.5e4),
    "bfloat16": (300, 1e10, 1e20, 3e38),
    "float32": (300, 1e10, 1.9e19, 1e20, 1e30, 3e38),
    "float64": (300, 1e10, 1.4e154, 1e155, 1e300, 1.7e308),
}
# The slopes far below 0 and far above.
SLOPES: dict[str, tuple[Callable, float, float]] = {
    "relu": (nn.relu, 0, 1),
    "relu6": (nn.relu6, 0, 0),
    "leaky_relu": (nn.leaky_relu, 0.01, 1),
    "elu": (nn.elu, 0, 1),
    "celu": (nn.celu, 0, 1),
    "selu": (nn.selu, 0, 1.0507009873554805),
    "silu": (nn.silu, 0, 1),
    "mish": (nn.mish, 0, 1),
    "gelu": (nn.gelu, 0, 1),
    "exact gelu": (partial(nn.gelu, approximate=False), 0, 1),
    "softplus": (nn.softplus, 0, 1),
    "log_sigmoid": (nn.log_sigmoid, 1, 0),
    "squareplus": (nn.squareplus, 0, 1),
    "sparse_plus": (nn.sparse_plus, 0, 1),
    "sigmoid": (nn.sigmoid, 0, 0),
    "tanh": (nn.tanh, 0, 0),
    "soft_sign": (nn.soft_sign, 0, 0),
    "sparse_sigmoid": (nn.sparse_sigmoid, 0, 0),
    "hard_tanh": (nn.hard_tanh, 0, 0),
    "hard_sigmoid": (nn.hard_sigmoid, 0, 0),
    "hard_silu": (nn.hard_silu, 0, 1),
}


def forward(f: Callable) -> Callable:
    return lambda x: rune.jvp(f, (x,), (rnp.ones_like(x),))[1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_of_activations_far_from_zero_are_their_limits(name: str, dtype: str, way: str):
    function, below, above = SLOPES[name]
    x = rnp.asarray(np.array([s * v for s in (-1, 1) for v in LARGE[dtype]]), dtype=dtype)
    limits = np.repeat([below, above], len(LARGE[dtype]))
    reverse = rune.grad(function)

    def derivatives(x: Any) -> Any:
        orders = (reverse, forward(function), rune.grad(reverse), forward(reverse))
        return tuple(rune.vmap(order)(x) for order in orders)

    derivatives_by_order = [np.asarray(v).astype(np.float64) for v in WAYS[way](derivatives)(x)]

    # A slope is a sum of terms of size 1; soft_sign's falls off as 1/x².
    step = 1.1e-4 + float(rnp.finfo(dtype).eps)
    for slope in derivatives_by_order[:2]:
        np.testing.assert_allclose(slope, limits, rtol=step, atol=step)
    for curvature in derivatives_by_order[2:]:
        np.testing.assert_allclose(curvature, np.zeros_like(limits), atol=1e-5)


MASKED: dict[str, Callable] = {
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "logsumexp": lambda x, where: special.logsumexp(x, where=where),
    "logmeanexp": lambda x, where: nn.logmeanexp(x, where=where),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MASKED)
def test_masked_elements_have_no_part_in_derivatives(name: str, way: str):
    mask = rnp.array([True, True, False, True])
    x = rnp.array([1.0, 2.0, 0.0, -1.0])

    def total(x: Any, mask: Any) -> Any:
        result = MASKED[name](x, where=mask)
        return rnp.sum(rnp.where(mask, result, 0) * rnp.arange(1.0, 1 + x.shape[-1]))

    def both(x: Any, mask: Any) -> Any:
        return rune.grad(total)(x, mask), rune.hessian(total)(x, mask)

    derivatives = WAYS[way](both)
    reference = [np.asarray(v) for v in derivatives(x, mask)]

    assert (reference[0] != 0).tolist() == [True, True, False, True]
    for left_out in (36.0, 1e4, 3e38, np.inf, -np.inf, np.nan):
        for expected, derivative in zip(reference, derivatives(x.at[2].set(left_out), mask), strict=True):
            np.testing.assert_array_equal(np.asarray(derivative), expected)


def test_a_term_of_no_weight_has_no_part_in_a_sum_of_exponentials():
    x, b = rnp.array([1000.0, 1.0, 0.5]), rnp.array([0.0, 1.0, 2.0])
    total = np.log(np.exp(1.0) + 2 * np.exp(0.5))

    slope = rune.grad(lambda x: special.logsumexp(x, b=b))(x)

    np.testing.assert_allclose(special.logsumexp(x, b=b), total, rtol=1e-6)
    terms = np.array([0, np.exp(1.0), 2 * np.exp(0.5)])
    np.testing.assert_allclose(slope, terms / terms.sum(), rtol=1e-6)


def test_an_absent_term_has_the_derivative_of_its_weight():
    slope = rune.grad(lambda b: special.logsumexp(rnp.array([2.0, 1.0]), b=b))(rnp.array([0.0, 1.0]))

    np.testing.assert_allclose(slope, [np.exp(1.0), 1.0], rtol=1e-6)
