"""Initializers: JAX's numbers, the variance that each promises, and both ways of giving a key."""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, random
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.nn import initializers
from tests.random import calls
from tests.random.vectors import answers
from tests.support.close import near, same

KEY = random.key(0)
SHAPE = (200, 300)


@pytest.mark.parametrize("name", calls.INITIALIZERS)
def test_the_numbers_are_those_of_jax(name: str):
    expected = answers()[name]
    weights = np.asarray(calls.INITIALIZERS[name](random, initializers))

    assert expected.dtype == weights.dtype
    limit = 2e-3 if weights.dtype == np.float16 else 1e-5
    near(expected, weights, relative=limit, why="two approximations of the normal distribution")


VARIANCES = {
    "glorot_uniform": 2 / 500,
    "glorot_normal": 2 / 500,
    "xavier_uniform": 2 / 500,
    "lecun_uniform": 1 / 200,
    "lecun_normal": 1 / 200,
    "he_uniform": 2 / 200,
    "he_normal": 2 / 200,
    "kaiming_normal": 2 / 200,
}


@pytest.mark.parametrize("name", VARIANCES)
def test_mean_and_variance_are_those_promised(name: str):
    weights = np.asarray(getattr(initializers, name)()(KEY, SHAPE))

    stddev = np.sqrt(VARIANCES[name])
    assert abs(weights.mean()) < 5 * stddev / np.sqrt(weights.size)
    assert weights.var() == pytest.approx(VARIANCES[name], rel=0.03)


def test_a_convolution_counts_its_receptive_field():
    weights = np.asarray(initializers.he_normal()(KEY, (5, 5, 64, 100)))

    assert weights.var() == pytest.approx(2 / (5 * 5 * 64), rel=0.03)


def test_without_a_key_an_initializer_draws_one():
    init = initializers.he_normal()
    with random.seed(7):
        weights = init(shape=(3, 4)), init(None, (3, 4)), init(shape=(3, 4), name="w")

    with random.seed(7):
        keys = random.draw(), random.draw(), random.draw("w")
    same(tuple(init(k, (3, 4)) for k in keys), weights)


def test_a_constant_initializer_draws_no_key():
    with random.seed(0):
        initializers.zeros(shape=(2,))
        initializers.constant(3.0)(shape=(2,))
        weights = random.uniform()

    same(random.uniform(random.fold_in(random.key(0), 0)), weights)


def test_the_dtype_of_the_call_comes_before_that_of_the_initializer():
    init = initializers.normal(dtype="float16")

    assert init(KEY, (2,)).dtype == dtypes.f16
    assert init(KEY, (2,), "float64").dtype == dtypes.f64
    assert initializers.zeros(KEY, (2,), "bfloat16").dtype == dtypes.bf16


def test_initializers_are_jitted_and_mapped():
    init, keys = initializers.glorot_uniform(), random.split(KEY, 3)

    weights = rune.jit(rune.vmap(lambda k: init(k, (4, 5))))(keys)

    same(np.stack([np.asarray(init(k, (4, 5))) for k in keys]), np.asarray(weights))


def test_a_constant_may_be_an_array():
    bias = rnp.array([1.0, 2.0])

    same(np.asarray([[1.0, 2.0]] * 3, np.float32), initializers.constant(bias)(shape=(3, 2)))


def test_an_initializer_has_a_name():
    assert repr(initializers.he_normal()) == "<initializer he_normal>"


def test_what_cannot_be_is_refused():
    with pytest.raises(ArgumentError, match=r"cannot count the inputs and outputs of shape \(3,\)"):
        initializers.he_normal()(KEY, (3,))
    with pytest.raises(ArgumentError, match="variance_scaling: cannot use 'fan'"):
        initializers.variance_scaling(1.0, "fan", "normal")  # pyright: ignore
    with pytest.raises(DtypeError, match="normal: cannot draw i32"):
        initializers.normal()(KEY, (3,), "int32")
    with pytest.raises(ShapeError, match=r"he_normal: cannot use 2\.5 as a shape"):
        initializers.he_normal()(KEY, 2.5)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "bool", "float16"])
def test_constant_initializers_take_any_dtype(dtype: str):
    constants = [initializers.zeros, initializers.ones, initializers.constant(1)]

    assert [i(KEY, (3,), dtype).dtype for i in constants] == [np.dtype(dtype)] * 3
