"""`jax.scipy.stats`."""

import sys
from dataclasses import fields

import rune.numpy as rnp
from rune import absent, random, tree
from rune.array import Array
from rune.core.types import Shape
from rune.scipy import stats
from rune.scipy.stats import *  # pyright: ignore[reportAssignmentType]
from rune.scipy.stats.family import Continuous
from rune.scipy.stats.kde import flatten, unflatten
from rune.typing import ArrayLike

__getattr__ = absent.of(__name__)


class _Normal(Continuous):
    """The normal distribution, whose quantiles have the default dtype in JAX: f64 under x64."""

    def ppf(self, q: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The inverse of cdf; NaN outside of [0, 1]."""
        return rnp.asarray(super().ppf(q, *args, **kwargs), float)

    def isf(self, q: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The inverse of sf; NaN outside of [0, 1]."""
        return rnp.asarray(super().isf(q, *args, **kwargs), float)


class gaussian_kde(stats.gaussian_kde):
    """A kernel density estimate of `dataset`, with `resample`."""

    def resample(self, key: Array, shape: Shape = ()) -> Array:
        """Points [D, *shape] drawn from the density: points of the data plus normal noise.

        Errors: ShapeError for a shape that differs from its reverse, as in JAX.
        """
        first, second = random.split(key)
        number = random.choice(first, self.n, shape, p=self.weights)
        zeros = rnp.zeros(self.d, self.covariance.dtype)
        noise = random.multivariate_normal(second, zeros, self.covariance, shape, self.dataset.dtype)
        return self.dataset[:, number] + noise.T


tree.register_node(gaussian_kde, flatten, lambda info, children: unflatten(gaussian_kde, children))
norm = _Normal(**{f.name: getattr(stats.norm, f.name) for f in fields(Continuous)})
# `import jax.scipy.stats.norm`: JAX's distributions are modules, rune's are records.
_DISTRIBUTIONS = """
bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace
logistic multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy
"""
for _name in _DISTRIBUTIONS.split():
    sys.modules[f"{__name__}.{_name}"] = globals()[_name]
