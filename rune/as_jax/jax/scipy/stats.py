"""`jax.scipy.stats`."""

import sys

from rune import absent
from rune.scipy import stats
from rune.scipy.stats import *

__getattr__ = absent.of(__name__)
# `import jax.scipy.stats.norm`: JAX's distributions are modules, rune's are records.
_DISTRIBUTIONS = """
bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace
logistic multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy
"""
for _name in _DISTRIBUTIONS.split():
    sys.modules[f"{__name__}.{_name}"] = getattr(stats, _name)
