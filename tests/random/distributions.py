"""Every sampler with its distribution in SciPy.

`draw(key, shape)` draws; `support` is the closed interval in which all numbers lie. Parameters are
chosen so that no number is special.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import rune
import rune.numpy as rnp
from rune import random

INF = np.inf
PI = float(np.float32(np.pi))
COVARIANCE = rnp.array([[2.0, 0.5], [0.5, 1.5]])
WEIGHTS = rnp.array([0.2, 0.3, 0.5])


@dataclass(frozen=True)
class Case:
    """One sampler with parameters, and its distribution."""

    name: str
    draw: Callable[[Any, tuple[int, ...]], Any]
    law: Any
    support: tuple[float, float]

    def __str__(self) -> str:
        return self.name


class _DoubleSidedMaxwell(stats.rv_continuous):
    def _cdf(self, x: Any, *args: Any) -> Any:
        return 0.5 + 0.5 * np.sign(x) * stats.maxwell.cdf(np.abs(x))

    def _stats(self, *args: Any, **kwargs: Any) -> Any:
        return 0.0, 3.0, 0.0, 5 / 3 - 3  # moments 3 and 15 of order 2 and 4


_double_sided_maxwell = _DoubleSidedMaxwell(name="double_sided_maxwell")

CONTINUOUS = (
    Case("uniform", lambda k, s: random.uniform(k, s), stats.uniform(), (0, 1)),
    Case("uniform -3..5", lambda k, s: random.uniform(k, s, minval=-3.0, maxval=5.0), stats.uniform(-3, 8), (-3, 5)),
    Case("normal", lambda k, s: random.normal(k, s), stats.norm(), (-INF, INF)),
    Case("normal of philox", lambda k, s: random.normal(_philox(k), s), stats.norm(), (-INF, INF)),
    Case(
        "truncated_normal",
        lambda k, s: random.truncated_normal(k, -0.5, 2.0, s),
        stats.truncnorm(-0.5, 2.0),
        (-0.5, 2.0),
    ),
    Case("lognormal", lambda k, s: random.lognormal(k, 0.5, s), stats.lognorm(0.5), (0, INF)),
    Case("maxwell", lambda k, s: random.maxwell(k, s), stats.maxwell(), (0, INF)),
    Case(
        "double_sided_maxwell",
        lambda k, s: random.double_sided_maxwell(k, 1.0, 2.0, s),
        _double_sided_maxwell(1, 2),
        (-INF, INF),
    ),
    Case("rayleigh", lambda k, s: random.rayleigh(k, 2.0, s), stats.rayleigh(scale=2), (0, INF)),
    Case("wald", lambda k, s: random.wald(k, 0.7, s), stats.invgauss(0.7), (0, INF)),
    # Parameters at which a difference, or a number below the smallest float, left nothing right.
    Case("wald of 10,000", lambda k, s: random.wald(k, 1e4, s), stats.invgauss(1e4), (0, INF)),
    Case("t of few degrees", lambda k, s: random.t(k, 0.05, s), stats.t(0.05), (-INF, INF)),
    Case("generalized_normal of 100", lambda k, s: random.generalized_normal(k, 100.0, s), stats.gennorm(100), (-2, 2)),
    # The limits, in which JAX draws -1 or 1 alone.
    Case("generalized_normal of inf", lambda k, s: random.generalized_normal(k, INF, s), stats.uniform(-1, 2), (-1, 1)),
    Case("ball of inf", lambda k, s: random.ball(k, 3, INF, s)[..., 0], stats.uniform(-1, 2), (-1, 1)),
    Case("exponential", lambda k, s: random.exponential(k, s), stats.expon(), (0, INF)),
    Case("gumbel", lambda k, s: random.gumbel(k, s), stats.gumbel_r(), (-INF, INF)),
    Case("gumbel high", lambda k, s: random.gumbel(k, s, mode="high"), stats.gumbel_r(), (-INF, INF)),
    Case("laplace", lambda k, s: random.laplace(k, s), stats.laplace(), (-INF, INF)),
    Case("logistic", lambda k, s: random.logistic(k, s), stats.logistic(), (-INF, INF)),
    Case("cauchy", lambda k, s: random.cauchy(k, s), stats.cauchy(), (-INF, INF)),
    Case("pareto", lambda k, s: random.pareto(k, 3.0, s), stats.pareto(3), (1, INF)),
    Case("power", lambda k, s: random.power(k, 3.0, s), stats.powerlaw(3), (0, 1)),
    Case("weibull_min", lambda k, s: random.weibull_min(k, 2.0, 1.5, s), stats.weibull_min(1.5, scale=2), (0, INF)),
    Case("triangular", lambda k, s: random.triangular(k, -1.0, 0.5, 2.0, s), stats.triang(0.5, -1, 3), (-1, 2)),
    Case("gamma", lambda k, s: random.gamma(k, 2.5, s), stats.gamma(2.5), (0, INF)),
    Case("gamma 0.2", lambda k, s: random.gamma(k, 0.2, s), stats.gamma(0.2), (0, INF)),
    Case("gamma 1000", lambda k, s: random.gamma(k, 1e3, s), stats.gamma(1e3), (0, INF)),
    Case("loggamma", lambda k, s: random.loggamma(k, 0.5, s), stats.loggamma(0.5), (-INF, INF)),
    Case("beta", lambda k, s: random.beta(k, 2.0, 0.7, s), stats.beta(2, 0.7), (0, 1)),
    Case(
        "dirichlet", lambda k, s: random.dirichlet(k, rnp.array([1.0, 2.0, 3.0]), s)[..., 1], stats.beta(2, 4), (0, 1)
    ),
    Case("chisquare", lambda k, s: random.chisquare(k, 5.0, s), stats.chi2(5), (0, INF)),
    Case("f", lambda k, s: random.f(k, 5.0, 12.0, s), stats.f(5, 12), (0, INF)),
    Case("t", lambda k, s: random.t(k, 6.0, s), stats.t(6), (-INF, INF)),
    Case("generalized_normal", lambda k, s: random.generalized_normal(k, 3.0, s), stats.gennorm(3), (-INF, INF)),
    Case("noncentral_chisquare", lambda k, s: random.noncentral_chisquare(k, 3.0, 2.0, s), stats.ncx2(3, 2), (0, INF)),
    Case(
        "noncentral_chisquare 0.5",
        lambda k, s: random.noncentral_chisquare(k, 0.5, 3.0, s),
        stats.ncx2(0.5, 3),
        (0, INF),
    ),
    Case("noncentral_f", lambda k, s: random.noncentral_f(k, 3.0, 20.0, 2.0, s), stats.ncf(3, 20, 2), (0, INF)),
    Case("vonmises", lambda k, s: random.vonmises(k, 0.0, 1.5, s), stats.vonmises(1.5), (-PI, PI)),
    # So concentrated that the circle is a line.
    Case("vonmises 1e6", lambda k, s: random.vonmises(k, 0.0, 1e6, s) * 1e3, stats.norm(), (-INF, INF)),
    Case(
        "multivariate_normal",
        lambda k, s: random.multivariate_normal(k, rnp.array([1.0, 2.0]), COVARIANCE, s)[..., 1],
        stats.norm(2, 1.5**0.5),
        (-INF, INF),
    ),
    *(
        Case(
            f"multivariate_normal {m}",
            lambda k, s, m=m: (
                random.multivariate_normal(k, rnp.zeros(2), COVARIANCE, s, method=m) @ rnp.array([1.0, -1.0])
            ),
            stats.norm(0, 2.5**0.5),
            (-INF, INF),
        )
        for m in ("eigh", "svd")
    ),
    # An element of a rotation in space is as likely anywhere as a point's height on a sphere.
    Case("orthogonal", lambda k, s: random.orthogonal(k, 3, s)[..., 1, 2], stats.uniform(-1, 2), (-1, 1)),
    # One coordinate of a point in the ball of dimension 3: density 3/4 (1 - x²).
    Case("ball", lambda k, s: random.ball(k, 3, 2.0, s)[..., 0], stats.beta(2, 2, -1, 2), (-1, 1)),
)

DISCRETE = (
    Case("bernoulli", lambda k, s: random.bernoulli(k, 0.3, s), stats.bernoulli(0.3), (0, 1)),
    Case("bernoulli high", lambda k, s: random.bernoulli(k, 0.3, s, mode="high"), stats.bernoulli(0.3), (0, 1)),
    Case(
        "rademacher", lambda k, s: random.rademacher(k, s), stats.rv_discrete(values=([-1, 1], [0.5, 0.5]))(), (-1, 1)
    ),
    Case("randint", lambda k, s: random.randint(k, s, -3, 9), stats.randint(-3, 9), (-3, 8)),
    Case("randint u8", lambda k, s: random.randint(k, s, 0, 5, "uint8"), stats.randint(0, 5), (0, 4)),
    Case("geometric", lambda k, s: random.geometric(k, 0.3, s), stats.geom(0.3), (1, INF)),
    Case("zipf", lambda k, s: random.zipf(k, 5.5, s), stats.zipf(5.5), (1, INF)),
    Case("logseries", lambda k, s: random.logseries(k, 0.7, s), stats.logser(0.7), (1, INF)),
    Case("negative_binomial", lambda k, s: random.negative_binomial(k, 2.5, 0.4, s), stats.nbinom(2.5, 0.4), (0, INF)),
    Case("hypergeometric", lambda k, s: random.hypergeometric(k, 20, 7, 12, s), stats.hypergeom(27, 20, 12), (5, 12)),
    Case(
        "hypergeometric 1e6",
        lambda k, s: random.hypergeometric(k, 3e5, 7e5, 6e5, s),
        stats.hypergeom(1_000_000, 300_000, 600_000),
        (0, 300_000),
    ),
    Case("poisson 3", lambda k, s: random.poisson(k, 3.0, s), stats.poisson(3), (0, INF)),
    Case("poisson 40", lambda k, s: random.poisson(k, 40.0, s), stats.poisson(40), (0, INF)),
    Case("poisson 30000", lambda k, s: random.poisson(k, 3e4, s), stats.poisson(3e4), (0, INF)),
    Case("binomial 20", lambda k, s: random.binomial(k, 20, 0.3, s), stats.binom(20, 0.3), (0, 20)),
    Case("binomial 300", lambda k, s: random.binomial(k, 300, 0.8, s), stats.binom(300, 0.8), (0, 300)),
    Case("binomial 100000", lambda k, s: random.binomial(k, 1e5, 0.4, s), stats.binom(1e5, 0.4), (0, 1e5)),
    Case(
        "multinomial",
        lambda k, s: random.multinomial(k, 30.0, rnp.array([0.2, 0.3, 0.5]), shape=(*s, 3))[..., 1],
        stats.binom(30, 0.3),
        (0, 30),
    ),
    Case(
        "categorical",
        lambda k, s: random.categorical(k, rnp.log(WEIGHTS), shape=s),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.3, 0.5]))(),
        (0, 2),
    ),
    Case(
        "categorical without replacement",
        lambda k, s: rune.vmap(lambda one: random.categorical(one, rnp.log(WEIGHTS), shape=(2,), replace=False)[0])(
            random.split(k, math.prod(s))
        ).reshape(s),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.3, 0.5]))(),
        (0, 2),
    ),
    Case("choice", lambda k, s: random.choice(k, 7, s), stats.randint(0, 7), (0, 6)),
    Case(
        "choice by weight",
        lambda k, s: random.choice(k, 3, s, p=WEIGHTS),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.3, 0.5]))(),
        (0, 2),
    ),
    Case(
        "permutation",
        lambda k, s: rune.vmap(lambda one: random.permutation(one, 5)[0])(random.split(k, math.prod(s))).reshape(s),
        stats.randint(0, 5),
        (0, 4),
    ),
)

# One case of each sampler, for what does not depend on parameters.
SAMPLERS = tuple({c.name.split()[0]: c for c in reversed((*CONTINUOUS, *DISCRETE))}.values())[::-1]


def _philox(key: Any) -> Any:
    """A key of the other generator, made of the words of this one."""
    return random.wrap_key_data(random.key_data(key), impl="philox4x32")
