"""Calls of jax.random's functions, for whichever library has them.

`r` is rune.random or jax.random. make_vectors.py stores what JAX answers; the tests compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Call = Callable[[Any], Any]
N = (64,)
TWO = np.float32(2.0)
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
TABLE = np.arange(24, dtype=np.float32).reshape(4, 6)
COVARIANCE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]], np.float32)
LOGITS = np.log(np.arange(1, 25, dtype=np.float32)).reshape(4, 6)
PHILOX = "philox4x32"

# Words of keys and bits: equal bit for bit.
BITS: Mapping[str, Call] = {
    "key 42": lambda r: r.key_data(r.key(42)),
    "key -1": lambda r: r.key_data(r.key(-1)),
    "PRNGKey 7": lambda r: r.PRNGKey(7),
    "split 4": lambda r: r.key_data(r.split(r.key(1), 4)),
    "split (2, 3)": lambda r: r.key_data(r.split(r.key(1), (2, 3))),
    "split raw": lambda r: r.split(r.PRNGKey(1), 3),
    "fold_in 99": lambda r: r.key_data(r.fold_in(r.key(2), 99)),
    "fold_in raw": lambda r: r.fold_in(r.PRNGKey(2), 99),
    "bits": lambda r: r.bits(r.key(3), (3, 5)),
    "bits ()": lambda r: r.bits(r.key(3)),
    "bits u8": lambda r: r.bits(r.key(3), (7,), "uint8"),
    "bits u16": lambda r: r.bits(r.key(3), (7,), "uint16"),
    "bits raw": lambda r: r.bits(r.PRNGKey(3), (5,)),
    "philox key": lambda r: r.key_data(r.key(42, impl=PHILOX)),
    "philox split": lambda r: r.key_data(r.split(r.key(1, impl=PHILOX), (2, 3))),
    "philox fold_in": lambda r: r.key_data(r.fold_in(r.key(2, impl=PHILOX), 99)),
    "philox bits": lambda r: r.bits(r.key(3, impl=PHILOX), (3, 5)),
    "philox bits u8": lambda r: r.bits(r.key(3, impl=PHILOX), (7,), "uint8"),
}

# With 64-bit types switched on in JAX; in rune an explicit dtype is enough.
BITS_64: Mapping[str, Call] = {
    "key 2**40 + 5": lambda r: r.key_data(r.key(2**40 + 5)),
    "key -2**40": lambda r: r.key_data(r.key(-(2**40))),
    "bits u64": lambda r: r.bits(r.key(3), (7,), "uint64"),
    "philox bits u64": lambda r: r.bits(r.key(3, impl=PHILOX), (7,), "uint64"),
    "uniform f64": lambda r: r.uniform(r.key(4), N, "float64"),
    "uniform f64 -3..5": lambda r: r.uniform(r.key(4), N, "float64", -3.0, 5.0),
    "randint i64": lambda r: r.randint(r.key(4), N, -(2**40), 2**41, "int64"),
    "randint u64": lambda r: r.randint(r.key(4), N, 0, 2**40 + 1, "uint64"),
}

# Under jax_threefry_partitionable=False: bits of odd and even counts, of all widths, and what is
# made of them. Of many numbers the last ones are enough, as any would show another order.
HALVES: Mapping[str, Call] = {
    **{f"bits {n}": lambda r, n=n: r.bits(r.key(7), (n,)) for n in (0, 1, 2, 3, 130)},
    **{f"bits {n} u8": lambda r, n=n: r.bits(r.key(7), (n,), "uint8") for n in (0, 3, 4, 131)},
    **{f"bits {n} u16": lambda r, n=n: r.bits(r.key(7), (n,), "uint16") for n in (1, 2, 131)},
    "bits (3, 5)": lambda r: r.bits(r.key(7), (3, 5)),
    "bits ()": lambda r: r.bits(r.key(7)),
    "bits 65537": lambda r: r.bits(r.key(7), (65537,))[-9:],
    "bits raw": lambda r: r.bits(r.PRNGKey(3), (5,)),
    **{f"split {n}": lambda r, n=n: r.key_data(r.split(r.key(7), n)) for n in (0, 1, 2, 3)},
    "split (2, 3)": lambda r: r.key_data(r.split(r.key(7), (2, 3))),
    "split raw": lambda r: r.split(r.PRNGKey(7), 3),
    "split of split": lambda r: r.key_data(r.split(r.split(r.key(7))[1])),
    "fold_in 99": lambda r: r.key_data(r.fold_in(r.key(2), 99)),
    "philox bits": lambda r: r.bits(r.key(3, impl=PHILOX), (3, 5)),
    "uniform": lambda r: r.uniform(r.key(5), (9,)),
    "uniform f16": lambda r: r.uniform(r.key(5), (9,), "float16"),
    "randint": lambda r: r.randint(r.key(6), (9,), -5, 1000),
    "bernoulli": lambda r: r.bernoulli(r.key(7), 0.3, (9,)),
    "permutation": lambda r: r.permutation(r.key(11), 10),
    "choice": lambda r: r.choice(r.key(12), 10, (5,), replace=False),
}
HALVES_64: Mapping[str, Call] = {
    **{f"bits {n} u64": lambda r, n=n: r.bits(r.key(7), (n,), "uint64") for n in (0, 1, 2, 131)},
    "uniform f64": lambda r: r.uniform(r.key(4), (9,), "float64"),
}

# Numbers made of bits by exact arithmetic: equal bit for bit as well.
EXACT: Mapping[str, Call] = {
    "uniform": lambda r: r.uniform(r.key(5), N),
    "uniform (3, 4)": lambda r: r.uniform(r.key(5), (3, 4)),
    "uniform -3..5": lambda r: r.uniform(r.key(5), N, minval=-3.0, maxval=5.0),
    "uniform f16": lambda r: r.uniform(r.key(5), N, "float16"),
    "uniform philox": lambda r: r.uniform(r.key(5, impl=PHILOX), N),
    "randint": lambda r: r.randint(r.key(6), N, -5, 1000),
    "randint empty": lambda r: r.randint(r.key(6), (4,), 3, 3),
    "randint u8": lambda r: r.randint(r.key(6), N, 0, 256, "uint8"),
    "randint i8": lambda r: r.randint(r.key(6), N, -1000, 1000, "int8"),
    "randint u32": lambda r: r.randint(r.key(6), N, 0, 7, "uint32"),
    "randint arrays": lambda r: r.randint(
        r.key(6), (2, 3), np.array([[0], [10]], np.int32), np.array([5, 20, 3], np.int32)
    ),
    "bernoulli": lambda r: r.bernoulli(r.key(7), 0.3, N),
    "bernoulli of p": lambda r: r.bernoulli(r.key(7), np.linspace(0, 1, 9, dtype=np.float32)),
    "bernoulli high": lambda r: r.bernoulli(r.key(7), 0.3, N, mode="high"),
    "rademacher": lambda r: r.rademacher(r.key(7), N),
    "rademacher f32": lambda r: r.rademacher(r.key(7), N, "float32"),
    "triangular": lambda r: r.triangular(r.key(8), 0.0, 0.3, 1.0, N),
    "geometric": lambda r: r.geometric(r.key(8), np.float32(0.1), N),
}

# Chosen and counted: a comparison would have to be very close for two roundings to differ.
CHOSEN: Mapping[str, Call] = {
    "permutation of 10": lambda r: r.permutation(r.key(11), 10),
    "permutation of 5000": lambda r: r.permutation(r.key(11), 5000),
    "permutation": lambda r: r.permutation(r.key(11), TABLE),
    "permutation axis 1": lambda r: r.permutation(r.key(11), TABLE, axis=1),
    "permutation independent": lambda r: r.permutation(r.key(11), TABLE, 1, independent=True),
    "choice of 10": lambda r: r.choice(r.key(12), 10, (5,)),
    "choice of 10 without replacement": lambda r: r.choice(r.key(12), 10, (2, 3), replace=False),
    "choice axis 1": lambda r: r.choice(r.key(12), TABLE, (2, 3), axis=1),
    "choice axis 1 without replacement": lambda r: r.choice(r.key(12), TABLE, (2, 2), replace=False, axis=1),
    "choice by weight": lambda r: r.choice(r.key(12), 4, (50,), p=WEIGHTS),
    "choice of rows by weight": lambda r: r.choice(r.key(12), TABLE, (5,), p=WEIGHTS),
    "choice by weight without replacement": lambda r: r.choice(r.key(12), 4, (3,), replace=False, p=WEIGHTS),
    "categorical": lambda r: r.categorical(r.key(13), LOGITS),
    "categorical axis 0": lambda r: r.categorical(r.key(13), LOGITS, axis=0),
    "categorical (9, 4)": lambda r: r.categorical(r.key(13), LOGITS, shape=(9, 4)),
    "categorical high": lambda r: r.categorical(r.key(13), LOGITS, mode="high"),
    "categorical without replacement": lambda r: r.categorical(r.key(13), LOGITS, shape=(3, 4), replace=False),
    "categorical axis 0 without replacement": lambda r: r.categorical(
        r.key(13), LOGITS, axis=0, shape=(2, 6), replace=False
    ),
    "poisson 3": lambda r: r.poisson(r.key(14), np.float32(3.0), N),
    "poisson 50": lambda r: r.poisson(r.key(14), np.float32(50.0), N),
    "poisson of lam": lambda r: r.poisson(r.key(14), np.array([0.0, 0.5, 20.0, -1.0, np.nan], np.float32), (9, 5)),
    "binomial 10": lambda r: r.binomial(r.key(15), np.float32(10.0), np.float32(0.3), N),
    "binomial 100": lambda r: r.binomial(r.key(15), np.float32(100.0), np.float32(0.7), N),
    "binomial of n and p": lambda r: r.binomial(
        r.key(15),
        np.array([0.0, 5.0, -1.0, 3.0, 1000.5], np.float32),
        np.array([0.5, 0.0, 0.2, 1.0, 0.999], np.float32),
        (9, 5),
    ),
    "multinomial": lambda r: r.multinomial(r.key(15), np.float32(100.0), WEIGHTS, shape=(9, 4)),
}

# Functions of uniform numbers: equal up to the rounding of both libraries' functions.
CLOSE: Mapping[str, Call] = {
    # JAX's compiler fuses the product and the sum that bring a number into its interval.
    "uniform arrays": lambda r: r.uniform(
        r.key(5), (2, 3), minval=np.array([[-1.0], [2.0]], np.float32), maxval=np.array([3.0, 4.0, 5.0], np.float32)
    ),
    "normal": lambda r: r.normal(r.key(9), N),
    "normal c64": lambda r: r.normal(r.key(9), N, "complex64"),
    "normal f16": lambda r: r.normal(r.key(9), N, "float16"),
    "truncated_normal": lambda r: r.truncated_normal(r.key(9), -1.0, TWO, N),
    "lognormal": lambda r: r.lognormal(r.key(9), np.float32(0.5), N),
    "maxwell": lambda r: r.maxwell(r.key(9), N),
    "double_sided_maxwell": lambda r: r.double_sided_maxwell(r.key(9), 0.5, 2.0, N),
    "double_sided_maxwell of arrays": lambda r: r.double_sided_maxwell(r.key(9), np.array([0.5, 1.0], np.float32), TWO),
    "rayleigh": lambda r: r.rayleigh(r.key(9), TWO, N),
    "wald": lambda r: r.wald(r.key(9), TWO, N),
    "exponential": lambda r: r.exponential(r.key(10), N),
    "gumbel": lambda r: r.gumbel(r.key(10), N),
    "gumbel high": lambda r: r.gumbel(r.key(10), N, mode="high"),
    "laplace": lambda r: r.laplace(r.key(10), N),
    "logistic": lambda r: r.logistic(r.key(10), N),
    "cauchy": lambda r: r.cauchy(r.key(10), N),
    "pareto": lambda r: r.pareto(r.key(10), TWO, N),
    "pareto of b": lambda r: r.pareto(r.key(10), np.array([1.0, 2.0, 4.0], np.float32)),
    "weibull_min": lambda r: r.weibull_min(r.key(10), 2.0, 1.5, N),
    "gamma": lambda r: r.gamma(r.key(16), TWO, N),
    "gamma 0.3": lambda r: r.gamma(r.key(16), np.float32(0.3), N),
    "gamma 10000": lambda r: r.gamma(r.key(16), np.float32(1e4), N),
    "loggamma 0.001": lambda r: r.loggamma(r.key(16), np.float32(1e-3), N),
    "beta": lambda r: r.beta(r.key(16), TWO, np.float32(0.5), N),
    "dirichlet": lambda r: r.dirichlet(r.key(16), np.array([1.0, 2.0, 0.1], np.float32), (20,)),
    "chisquare": lambda r: r.chisquare(r.key(16), np.float32(4.0), N),
    "f": lambda r: r.f(r.key(16), np.float32(4.0), np.float32(6.0), N),
    "t": lambda r: r.t(r.key(16), np.float32(4.0), N),
    "generalized_normal": lambda r: r.generalized_normal(r.key(16), 3.0, N),
    "multivariate_normal": lambda r: r.multivariate_normal(
        r.key(17), np.array([1.0, 2.0, 3.0], np.float32), COVARIANCE, (5,)
    ),
    "multivariate_normal of means": lambda r: r.multivariate_normal(
        r.key(17), np.arange(6, dtype=np.float32).reshape(2, 3), COVARIANCE
    ),
    "orthogonal": lambda r: r.orthogonal(r.key(18), 3),
    "orthogonal 2 by 4": lambda r: r.orthogonal(r.key(18), 2, (3,), m=4),
    "orthogonal 4 by 2": lambda r: r.orthogonal(r.key(18), 4, m=2),
    "ball": lambda r: r.ball(r.key(16), 3, shape=(20,)),
    "ball p 1": lambda r: r.ball(r.key(16), 2, 1.0, (20,)),
}

# `n` is rune.nn.initializers or jax.nn.initializers.
INITIALIZERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "init zeros": lambda r, n: n.zeros(r.key(0), (2, 3)),
    "init ones": lambda r, n: n.ones(r.key(0), (2, 3), "float16"),
    "init constant": lambda r, n: n.constant(2.5)(r.key(0), (2, 3)),
    "init uniform": lambda r, n: n.uniform(0.5)(r.key(0), (4, 3)),
    "init normal": lambda r, n: n.normal(0.1)(r.key(1), (4, 3)),
    "init truncated_normal": lambda r, n: n.truncated_normal(0.1, lower=-1.0)(r.key(1), (4, 3)),
    "init fan_geo_avg normal": lambda r, n: n.variance_scaling(3.0, "fan_geo_avg", "normal")(r.key(2), (3, 3, 4, 5)),
    "init fan_out uniform": lambda r, n: n.variance_scaling(
        1.0, "fan_out", "uniform", in_axis=(0, 1), out_axis=3, batch_axis=2
    )(r.key(2), (3, 3, 4, 5)),
    "init glorot_uniform": lambda r, n: n.glorot_uniform()(r.key(3), (8, 4)),
    "init glorot_normal": lambda r, n: n.glorot_normal()(r.key(3), (8, 4)),
    "init lecun_uniform": lambda r, n: n.lecun_uniform()(r.key(3), (8, 4)),
    "init lecun_normal": lambda r, n: n.lecun_normal(dtype="float16")(r.key(3), (8, 4)),
    "init he_uniform": lambda r, n: n.he_uniform()(r.key(3), (8, 4)),
    "init he_normal": lambda r, n: n.he_normal()(r.key(3), (5, 8, 4)),
    "init xavier_normal": lambda r, n: n.xavier_normal()(r.key(3), (8, 4)),
    "init kaiming_uniform": lambda r, n: n.kaiming_uniform()(r.key(3), (8, 4)),
    "init zeros complex": lambda r, n: n.zeros(r.key(0), (2, 3), "complex64"),
    "init ones complex": lambda r, n: n.ones(r.key(0), (2, 3), "complex64"),
    "init constant complex": lambda r, n: n.constant(1 - 2j, "complex64")(r.key(0), (2, 3)),
    "init normal complex": lambda r, n: n.normal(0.1)(r.key(1), (4, 3), "complex64"),
    "init fan_in normal complex": lambda r, n: n.variance_scaling(3.0, "fan_in", "normal")(
        r.key(2), (7, 3), "complex64"
    ),
    "init glorot_uniform complex": lambda r, n: n.glorot_uniform()(r.key(3), (7, 4), "complex64"),
    "init he_normal complex": lambda r, n: n.he_normal(dtype="complex64")(r.key(3), (7, 4)),
    "init orthogonal complex": lambda r, n: n.orthogonal(2.0)(r.key(4), (5, 3), "complex64"),
    "init delta_orthogonal complex": lambda r, n: n.delta_orthogonal(dtype="complex64")(r.key(4), (3, 3, 5)),
}
