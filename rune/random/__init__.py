"""rune.random: random numbers under JAX's names.

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

from rune.listing import names as _names
from rune.absent import of as _absent
from rune.random.counts import binomial as binomial, multinomial as multinomial, poisson as poisson
from rune.random.gammas import (
    ball as ball,
    beta as beta,
    chisquare as chisquare,
    dirichlet as dirichlet,
    f as f,
    gamma as gamma,
    generalized_normal as generalized_normal,
    loggamma as loggamma,
    t as t,
)
from rune.random.inverses import (
    cauchy as cauchy,
    exponential as exponential,
    geometric as geometric,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    pareto as pareto,
    power as power,
    triangular as triangular,
    weibull_min as weibull_min,
)
from rune.random.keys import (
    KeyDtype as KeyDtype,
    PRNGKey as PRNGKey,
    clone as clone,
    fold_in as fold_in,
    key as key,
    key_data as key_data,
    key_dtype as key_dtype,
    key_impl as key_impl,
    split as split,
    wrap_key_data as wrap_key_data,
)
from rune.random.matrices import multivariate_normal as multivariate_normal, orthogonal as orthogonal
from rune.random.mixtures import (
    logseries as logseries,
    negative_binomial as negative_binomial,
    noncentral_chisquare as noncentral_chisquare,
    noncentral_f as noncentral_f,
)
from rune.random.normals import (
    double_sided_maxwell as double_sided_maxwell,
    lognormal as lognormal,
    maxwell as maxwell,
    normal as normal,
    rayleigh as rayleigh,
    truncated_normal as truncated_normal,
    wald as wald,
)
from rune.random.orders import categorical as categorical, choice as choice, permutation as permutation
from rune.random.rejections import hypergeometric as hypergeometric, vonmises as vonmises, zipf as zipf
from rune.random.streams import draw as draw, seed as seed
from rune.random.uniforms import (
    bernoulli as bernoulli,
    bits as bits,
    rademacher as rademacher,
    randint as randint,
    uniform as uniform,
)

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
