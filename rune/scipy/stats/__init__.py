"""rune.scipy.stats: distributions with locations and scales, and statistics of samples.

    norm.logpdf(x, loc=0.0, scale=1.0);  gamma.cdf(x, a);  poisson.pmf(k, mu);  beta.ppf(q, a, b)

A family is a record of functions (family.py, discrete.py) with the methods pdf, logpdf, cdf,
logcdf, sf, logsf, ppf, isf, or pmf, logpmf, cdf, sf; mean, var, std, median, entropy if there is a
formula. Samples from them are drawn by rune.random.

on_line        norm, t, cauchy, laplace, gumbel_r, vonmises, …
on_half_line   expon, gamma, chi2, lognorm, weibull_min, pareto, f, …
on_interval    uniform, beta, truncnorm, triang, …
counting       bernoulli, binom, poisson, nbinom, …
multivariate   dirichlet, multinomial, multivariate_normal
samples        skew, kurtosis, zscore, rankdata, mode, pearsonr, …     kde   gaussian_kde
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.stats.correlation import pearsonr as pearsonr
from rune.scipy.stats.correlation import spearmanr as spearmanr
from rune.scipy.stats.counting import bernoulli as bernoulli
from rune.scipy.stats.counting import betabinom as betabinom
from rune.scipy.stats.counting import binom as binom
from rune.scipy.stats.counting import dlaplace as dlaplace
from rune.scipy.stats.counting import geom as geom
from rune.scipy.stats.counting import logser as logser
from rune.scipy.stats.counting import nbinom as nbinom
from rune.scipy.stats.counting import poisson as poisson
from rune.scipy.stats.counting import randint as randint
from rune.scipy.stats.counting import zipf as zipf
from rune.scipy.stats.kde import gaussian_kde as gaussian_kde
from rune.scipy.stats.multivariate import dirichlet as dirichlet
from rune.scipy.stats.multivariate import multinomial as multinomial
from rune.scipy.stats.multivariate import multivariate_normal as multivariate_normal
from rune.scipy.stats.on_half_line import betaprime as betaprime
from rune.scipy.stats.on_half_line import chi as chi
from rune.scipy.stats.on_half_line import chi2 as chi2
from rune.scipy.stats.on_half_line import expon as expon
from rune.scipy.stats.on_half_line import f as f
from rune.scipy.stats.on_half_line import fisk as fisk
from rune.scipy.stats.on_half_line import gamma as gamma
from rune.scipy.stats.on_half_line import gompertz as gompertz
from rune.scipy.stats.on_half_line import gumbel_l as gumbel_l
from rune.scipy.stats.on_half_line import gumbel_r as gumbel_r
from rune.scipy.stats.on_half_line import halfcauchy as halfcauchy
from rune.scipy.stats.on_half_line import halfnorm as halfnorm
from rune.scipy.stats.on_half_line import invgamma as invgamma
from rune.scipy.stats.on_half_line import invgauss as invgauss
from rune.scipy.stats.on_half_line import levy as levy
from rune.scipy.stats.on_half_line import loggamma as loggamma
from rune.scipy.stats.on_half_line import loglaplace as loglaplace
from rune.scipy.stats.on_half_line import lognorm as lognorm
from rune.scipy.stats.on_half_line import lomax as lomax
from rune.scipy.stats.on_half_line import maxwell as maxwell
from rune.scipy.stats.on_half_line import pareto as pareto
from rune.scipy.stats.on_half_line import rayleigh as rayleigh
from rune.scipy.stats.on_half_line import weibull_max as weibull_max
from rune.scipy.stats.on_half_line import weibull_min as weibull_min
from rune.scipy.stats.on_interval import arcsine as arcsine
from rune.scipy.stats.on_interval import beta as beta
from rune.scipy.stats.on_interval import powerlaw as powerlaw
from rune.scipy.stats.on_interval import triang as triang
from rune.scipy.stats.on_interval import truncnorm as truncnorm
from rune.scipy.stats.on_interval import uniform as uniform
from rune.scipy.stats.on_line import cauchy as cauchy
from rune.scipy.stats.on_line import dweibull as dweibull
from rune.scipy.stats.on_line import exponnorm as exponnorm
from rune.scipy.stats.on_line import gennorm as gennorm
from rune.scipy.stats.on_line import laplace as laplace
from rune.scipy.stats.on_line import logistic as logistic
from rune.scipy.stats.on_line import norm as norm
from rune.scipy.stats.on_line import skewnorm as skewnorm
from rune.scipy.stats.on_line import t as t
from rune.scipy.stats.on_line import vonmises as vonmises
from rune.scipy.stats.on_line import wrapcauchy as wrapcauchy
from rune.scipy.stats.samples import describe as describe
from rune.scipy.stats.samples import gmean as gmean
from rune.scipy.stats.samples import hmean as hmean
from rune.scipy.stats.samples import iqr as iqr
from rune.scipy.stats.samples import kurtosis as kurtosis
from rune.scipy.stats.samples import mode as mode
from rune.scipy.stats.samples import moment as moment
from rune.scipy.stats.samples import rankdata as rankdata
from rune.scipy.stats.samples import sem as sem
from rune.scipy.stats.samples import skew as skew
from rune.scipy.stats.samples import zmap as zmap
from rune.scipy.stats.samples import zscore as zscore

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
