"""rune.scipy.stats: distributions with locations and scales, and statistics of samples.

    norm.logpdf(x, loc=0.0, scale=1.0);  gamma.cdf(x, a);  poisson.pmf(k, mu);  beta.ppf(q, a, b)

A family is a record of functions (family.py, discrete.py) with the methods pdf, logpdf, cdf,
logcdf, sf, logsf, ppf, isf, or pmf, logpmf, cdf, sf; mean, var, std, median, entropy where there is
a formula. Drawing from them is rune.random's.
on_line        norm, t, cauchy, laplace, gumbel_r, vonmises, …
on_half_line   expon, gamma, chi2, lognorm, weibull_min, pareto, f, …
on_interval    uniform, beta, truncnorm, triang, …
counting       bernoulli, binom, poisson, nbinom, …
multivariate   dirichlet, multinomial, multivariate_normal
samples        skew, kurtosis, zscore, rankdata, mode, pearsonr, …     kde   gaussian_kde
"""

import typing as _typing

from rune.absent import of as _absent
from rune.scipy.stats.counting import (
    bernoulli,
    betabinom,
    binom,
    dlaplace,
    geom,
    logser,
    nbinom,
    poisson,
    randint,
    zipf,
)
from rune.scipy.stats.kde import gaussian_kde
from rune.scipy.stats.multivariate import dirichlet, multinomial, multivariate_normal
from rune.scipy.stats.on_half_line import (
    betaprime,
    chi,
    chi2,
    expon,
    f,
    fisk,
    gamma,
    gompertz,
    halfcauchy,
    halfnorm,
    invgamma,
    invgauss,
    levy,
    loglaplace,
    lognorm,
    lomax,
    maxwell,
    pareto,
    rayleigh,
    weibull_max,
    weibull_min,
)
from rune.scipy.stats.on_interval import arcsine, beta, powerlaw, triang, truncnorm, uniform
from rune.scipy.stats.on_line import (
    cauchy,
    dweibull,
    exponnorm,
    gennorm,
    gumbel_l,
    gumbel_r,
    laplace,
    loggamma,
    logistic,
    norm,
    skewnorm,
    t,
    vonmises,
    wrapcauchy,
)
from rune.scipy.stats.samples import (
    describe,
    gmean,
    hmean,
    iqr,
    kurtosis,
    mode,
    moment,
    pearsonr,
    rankdata,
    sem,
    skew,
    spearmanr,
    zmap,
    zscore,
)

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
