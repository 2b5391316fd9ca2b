"""rune.random: random numbers by JAX's names.

keys       key, PRNGKey, split, fold_in, key_data, wrap_key_data, clone, …
uniforms   bits, uniform, randint, bernoulli, rademacher
normals    normal, truncated_normal, lognormal, maxwell, rayleigh, wald, …
inverses   exponential, gumbel, laplace, logistic, cauchy, pareto, power, triangular, geometric, …
gammas     gamma, loggamma, beta, dirichlet, chisquare, f, t, generalized_normal, ball
counts     poisson, binomial, multinomial
rejections vonmises, zipf, hypergeometric
matrices   multivariate_normal, orthogonal
mixtures   negative_binomial, logseries, noncentral_chisquare, noncentral_f
orders     permutation, choice, categorical
streams    seed, draw: samplers called without a key draw one
"""

# isort: off
import typing as _typing

from rune.absent import of as _absent
from rune.random.counts import binomial, multinomial, poisson
from rune.random.gammas import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from rune.random.inverses import (
    cauchy,
    exponential,
    geometric,
    gumbel,
    laplace,
    logistic,
    pareto,
    power,
    triangular,
    weibull_min,
)
from rune.random.keys import KeyDtype, PRNGKey, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data
from rune.random.matrices import multivariate_normal, orthogonal
from rune.random.mixtures import logseries, negative_binomial, noncentral_chisquare, noncentral_f
from rune.random.normals import double_sided_maxwell, lognormal, maxwell, normal, rayleigh, truncated_normal, wald
from rune.random.orders import categorical, choice, permutation
from rune.random.rejections import hypergeometric, vonmises, zipf
from rune.random.streams import draw, seed
from rune.random.uniforms import bernoulli, bits, rademacher, randint, uniform

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
