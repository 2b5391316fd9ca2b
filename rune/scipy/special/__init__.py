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
1e-13 of the result in f64 and 1e-6 in f32, except where the function is ill-conditioned: near its
zeros, in the far tails of distributions (whose exponents are rounded), and where the module says
so.
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.special.bessel import i0 as i0
from rune.scipy.special.bessel import i0e as i0e
from rune.scipy.special.bessel import i1 as i1
from rune.scipy.special.bessel import i1e as i1e
from rune.scipy.special.bessel import k0 as k0
from rune.scipy.special.bessel import k0e as k0e
from rune.scipy.special.bessel import k1 as k1
from rune.scipy.special.bessel import k1e as k1e
from rune.scipy.special.bessel_waves import bessel_jn as bessel_jn
from rune.scipy.special.bessel_waves import j0 as j0
from rune.scipy.special.bessel_waves import j1 as j1
from rune.scipy.special.bessel_waves import y0 as y0
from rune.scipy.special.bessel_waves import y1 as y1
from rune.scipy.special.combinatorial import beta as beta
from rune.scipy.special.combinatorial import betaln as betaln
from rune.scipy.special.combinatorial import binom as binom
from rune.scipy.special.combinatorial import comb as comb
from rune.scipy.special.combinatorial import factorial as factorial
from rune.scipy.special.combinatorial import multigammaln as multigammaln
from rune.scipy.special.combinatorial import perm as perm
from rune.scipy.special.combinatorial import poch as poch
from rune.scipy.special.elementary import bernoulli as bernoulli
from rune.scipy.special.elementary import boxcox as boxcox
from rune.scipy.special.elementary import boxcox1p as boxcox1p
from rune.scipy.special.elementary import cosm1 as cosm1
from rune.scipy.special.elementary import entr as entr
from rune.scipy.special.elementary import expit as expit
from rune.scipy.special.elementary import expm1 as expm1
from rune.scipy.special.elementary import exprel as exprel
from rune.scipy.special.elementary import huber as huber
from rune.scipy.special.elementary import inv_boxcox as inv_boxcox
from rune.scipy.special.elementary import inv_boxcox1p as inv_boxcox1p
from rune.scipy.special.elementary import kl_div as kl_div
from rune.scipy.special.elementary import log1p as log1p
from rune.scipy.special.elementary import log_expit as log_expit
from rune.scipy.special.elementary import logit as logit
from rune.scipy.special.elementary import pseudo_huber as pseudo_huber
from rune.scipy.special.elementary import rel_entr as rel_entr
from rune.scipy.special.elementary import xlog1py as xlog1py
from rune.scipy.special.elementary import xlogy as xlogy
from rune.scipy.special.elliptic import ellipe as ellipe
from rune.scipy.special.elliptic import ellipk as ellipk
from rune.scipy.special.elliptic import ellipkm1 as ellipkm1
from rune.scipy.special.error_functions import dawsn as dawsn
from rune.scipy.special.error_functions import erf as erf
from rune.scipy.special.error_functions import erfc as erfc
from rune.scipy.special.error_functions import erfcinv as erfcinv
from rune.scipy.special.error_functions import erfcx as erfcx
from rune.scipy.special.error_functions import erfi as erfi
from rune.scipy.special.error_functions import erfinv as erfinv
from rune.scipy.special.error_functions import log_ndtr as log_ndtr
from rune.scipy.special.error_functions import ndtr as ndtr
from rune.scipy.special.error_functions import ndtri as ndtri
from rune.scipy.special.error_functions import ndtri_exp as ndtri_exp
from rune.scipy.special.faddeeva import wofz as wofz
from rune.scipy.special.gammas import digamma as digamma
from rune.scipy.special.gammas import gamma as gamma
from rune.scipy.special.gammas import gammaln as gammaln
from rune.scipy.special.gammas import gammasgn as gammasgn
from rune.scipy.special.gammas import loggamma as loggamma
from rune.scipy.special.gammas import polygamma as polygamma
from rune.scipy.special.gammas import psi as psi
from rune.scipy.special.gammas import zeta as zeta
from rune.scipy.special.hypergeometric import hyp1f1 as hyp1f1
from rune.scipy.special.hypergeometric import hyp2f1 as hyp2f1
from rune.scipy.special.incomplete_beta import betainc as betainc
from rune.scipy.special.incomplete_beta import betaincc as betaincc
from rune.scipy.special.incomplete_beta import betainccinv as betainccinv
from rune.scipy.special.incomplete_beta import betaincinv as betaincinv
from rune.scipy.special.incomplete_gamma import gammainc as gammainc
from rune.scipy.special.incomplete_gamma import gammaincc as gammaincc
from rune.scipy.special.incomplete_gamma import gammainccinv as gammainccinv
from rune.scipy.special.incomplete_gamma import gammaincinv as gammaincinv
from rune.scipy.special.integrals import exp1 as exp1
from rune.scipy.special.integrals import expi as expi
from rune.scipy.special.integrals import expn as expn
from rune.scipy.special.integrals import fresnel as fresnel
from rune.scipy.special.integrals import sici as sici
from rune.scipy.special.integrals import spence as spence
from rune.scipy.special.lambert import lambertw as lambertw
from rune.scipy.special.orthogonal import eval_chebyt as eval_chebyt
from rune.scipy.special.orthogonal import eval_chebyu as eval_chebyu
from rune.scipy.special.orthogonal import eval_hermite as eval_hermite
from rune.scipy.special.orthogonal import eval_hermitenorm as eval_hermitenorm
from rune.scipy.special.orthogonal import eval_laguerre as eval_laguerre
from rune.scipy.special.orthogonal import eval_legendre as eval_legendre
from rune.scipy.special.orthogonal import sph_harm_y as sph_harm_y
from rune.scipy.special.owens import owens_t as owens_t
from rune.scipy.special.sums import log_softmax as log_softmax
from rune.scipy.special.sums import logsumexp as logsumexp
from rune.scipy.special.sums import softmax as softmax

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
