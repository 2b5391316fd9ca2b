"""rune.scipy.special: SciPy's special functions of real arrays, with derivatives.

gammas           gamma, gammaln, digamma, polygamma, zeta      combinatorial   beta, binom, poch, …
error_functions  erf, erfcx, ndtr, ndtri, log_ndtr, dawsn, …   faddeeva        wofz, owens_t
incomplete_gamma gammainc, gammaincc and inverses              incomplete_beta betainc and inverses
integrals        exp1, expi, expn, sici, fresnel, spence       elementary      expit, xlogy, entr, …
bessel           i0, i1, k0, k1 and scaled                     bessel_waves    j0, y0, bessel_jn, …
elliptic         ellipk, ellipe                                hypergeometric  hyp1f1, hyp2f1
orthogonal       eval_legendre, …, sph_harm_y                  sums            logsumexp, softmax, …
lambert          lambertw

Types: f32 and f64, in the dtype of the arguments; half types are computed in f32. Errors are within
1e-13 of the result in f64 and 1e-6 in f32, but for what a condition number magnifies: near zeros of
the function, in the far tails of distributions (whose exponents are rounded), and where the module
says so.
"""

import typing as _typing

from rune.absent import of as _absent
from rune.scipy.special.bessel import i0, i0e, i1, i1e, k0, k0e, k1, k1e
from rune.scipy.special.bessel_waves import bessel_jn, j0, j1, y0, y1
from rune.scipy.special.combinatorial import beta, betaln, binom, comb, factorial, multigammaln, perm, poch
from rune.scipy.special.elementary import (
    bernoulli,
    boxcox,
    boxcox1p,
    cosm1,
    entr,
    expit,
    expm1,
    exprel,
    huber,
    inv_boxcox,
    inv_boxcox1p,
    kl_div,
    log1p,
    log_expit,
    logit,
    pseudo_huber,
    rel_entr,
    xlog1py,
    xlogy,
)
from rune.scipy.special.elliptic import ellipe, ellipk, ellipkm1
from rune.scipy.special.error_functions import (
    dawsn,
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfi,
    erfinv,
    log_ndtr,
    ndtr,
    ndtri,
    ndtri_exp,
)
from rune.scipy.special.faddeeva import owens_t, wofz
from rune.scipy.special.gammas import digamma, gamma, gammaln, gammasgn, loggamma, polygamma, psi, zeta
from rune.scipy.special.hypergeometric import hyp1f1, hyp2f1
from rune.scipy.special.incomplete_beta import betainc, betaincc, betainccinv, betaincinv
from rune.scipy.special.incomplete_gamma import gammainc, gammaincc, gammainccinv, gammaincinv
from rune.scipy.special.integrals import exp1, expi, expn, fresnel, sici, spence
from rune.scipy.special.lambert import lambertw
from rune.scipy.special.orthogonal import (
    eval_chebyt,
    eval_chebyu,
    eval_hermite,
    eval_hermitenorm,
    eval_laguerre,
    eval_legendre,
    sph_harm_y,
)
from rune.scipy.special.sums import log_softmax, logsumexp, softmax

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
