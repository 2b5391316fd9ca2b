"""Calls of rune.scipy.special: every name, at points where it is smooth."""

from __future__ import annotations

from typing import Any

from tests.numpy.fourier_cases import z
from tests.numpy.spelling import Case, big, case, f, n, named, pos, unit


def _of(names: str, *specs: Any, **flags: Any) -> list[Case]:
    return named(" ".join(f"special.{name}" for name in names.split()), *specs, module="scipy", **flags)


def _case(name: str, call: Any, *specs: Any, **flags: Any) -> Case:
    return case(f"special.{name}", call, *specs, module="scipy", **flags)


_LINE = "erf erfc erfcx erfi dawsn ndtr log_ndtr expit log_expit exprel cosm1 expm1 i0 i0e i1 i1e"
_POSITIVE = "gammaln loggamma psi digamma exp1 expi spence entr log1p k0 k0e k1 k1e j0 j1 y0 y1"
SPECIAL = [
    *_of(f"{_LINE} gamma", f(2, 3)),
    *_of(_POSITIVE, pos(2, 3)),
    *_of("gammasgn", f(2, 3), smooth=False),
    *_of("erfinv ellipk ellipe", unit(2, 3)),
    *_of("xlogy xlog1py rel_entr kl_div beta betaln boxcox boxcox1p inv_boxcox", pos(2, 3), pos(3)),
    *_of("gammainc gammaincc poch huber pseudo_huber inv_boxcox1p", pos(2, 3), pos(3)),
    *_of("betainc betaincc", pos(2, 3), pos(3), pos(1), smooth=False),
    *_of("zeta", big(2, 3), pos(3)),
    *_of("owens_t", f(2, 3), f(3)),
    *_of("hyp1f1", pos(2, 3), pos(3), f(2, 1)),
    *_of("fresnel", f(2, 3)),
    *_of("sici", pos(2, 3)),
    _case("zeta of one", lambda sp, x: sp.special.zeta(x), big(2, 3)),
    _case("zeta below", lambda sp, x: sp.special.zeta(-x), pos(2, 3)),
    _case("binom", lambda sp, x, y: sp.special.binom(x + 2.5, y), pos(2, 3), pos(3)),
    _case("digamma below", lambda sp, x: sp.special.digamma(0.3 * x - 1.5), unit(2, 3)),
    _case("erfcinv", lambda sp, x: sp.special.erfcinv(1.0 - x), unit(2, 3)),
    _case("ndtri", lambda sp, x: sp.special.ndtri(0.5 + 0.5 * x), unit(2, 3)),
    _case("ndtri_exp", lambda sp, x: sp.special.ndtri_exp(-x), pos(2, 3)),
    _case("logit", lambda sp, x: sp.special.logit(0.5 + 0.5 * x), unit(2, 3)),
    _case("ellipkm1", lambda sp, x: sp.special.ellipkm1(x), pos(2, 3)),
    _case("betainc inside", lambda sp, a, b, x: sp.special.betainc(a, b, 0.5 + 0.5 * x), pos(2, 3), pos(3), unit(2, 1)),
    _case(
        "betaincc inside", lambda sp, a, b, x: sp.special.betaincc(a, b, 0.5 + 0.5 * x), pos(2, 3), pos(3), unit(2, 1)
    ),
    _case("betainc of large", lambda sp, a, b: sp.special.betainc(50.0 * a, 40.0 * b, 0.55), pos(2, 3), pos(3)),
    _case("betaincinv", lambda sp, a, b, x: sp.special.betaincinv(a, b, 0.5 + 0.5 * x), pos(2, 3), pos(3), unit(2, 1)),
    _case(
        "betainccinv", lambda sp, a, b, x: sp.special.betainccinv(a, b, 0.5 + 0.5 * x), pos(2, 3), pos(3), unit(2, 1)
    ),
    _case("gammainc of large", lambda sp, a, x: sp.special.gammainc(20.0 * a, 20.0 * x), pos(2, 3), pos(3)),
    _case("gammaincinv", lambda sp, a, x: sp.special.gammaincinv(a, 0.5 + 0.5 * x), pos(2, 3), unit(3)),
    _case("gammainccinv", lambda sp, a, x: sp.special.gammainccinv(a, 0.5 + 0.5 * x), pos(2, 3), unit(3)),
    *[
        _case(f"polygamma {order}", lambda sp, x, order=order: sp.special.polygamma(order, x), pos(2, 3))
        for order in (0, 1, 3)
    ],
    *[
        _case(f"expn {order}", lambda sp, x, order=order: sp.special.expn(order, x), pos(2, 3))
        for order in (0, 1, 2, 7)
    ],
    _case("multigammaln", lambda sp, x: sp.special.multigammaln(x + 1.0, 3), pos(4)),
    _case("factorial", lambda sp, x: sp.special.factorial(x), pos(2, 3)),
    _case("factorial of integers", lambda sp, k: sp.special.factorial(k), n(2, 3), smooth=False),
    _case("comb", lambda sp, k: sp.special.comb(9, k), n(2, 3), smooth=False),
    _case("comb with repetition", lambda sp, k: sp.special.comb(4, k, repetition=True), n(3), smooth=False),
    _case("perm", lambda sp, k: sp.special.perm(9, k), n(2, 3), smooth=False),
    _case("bernoulli", lambda sp: sp.special.bernoulli(12)),
    _case("hyp2f1", lambda sp, a, b, x: sp.special.hyp2f1(a, b, 2.5, x), pos(2, 3), pos(3), unit(2, 1)),
    _case("hyp2f1 far below", lambda sp, a, x: sp.special.hyp2f1(a, 1.3, 2.5, -3.0 * x), pos(2, 3), pos(3)),
    *[
        _case(name, lambda sp, x, name=name: getattr(sp.special, name)([0, 1, 2, 5], x), f(2, 4))
        for name in ("eval_legendre", "eval_chebyt", "eval_chebyu", "eval_hermite", "eval_hermitenorm", "eval_laguerre")
    ],
    _case("sph_harm_y", lambda sp, t, p: sp.special.sph_harm_y(3, -2, t, p), pos(2, 3), f(3)),
    _case("sph_harm_y of angles outside", lambda sp, t, p: sp.special.sph_harm_y(2, 1, -1.0 * t, p), pos(2, 3), f(3)),
    _case("wofz", lambda sp, x: sp.special.wofz(x), f(2, 3)),
    _case("logsumexp", lambda sp, x: sp.special.logsumexp(x, axis=1), f(3, 4)),
    _case(
        "logsumexp weighted", lambda sp, x, b: sp.special.logsumexp(x, axis=0, b=b, keepdims=True), f(3, 4), pos(3, 4)
    ),
    _case("lambertw", lambda sp, x: sp.special.lambertw(x), pos(2, 3)),
    _case("lambertw of complex numbers", lambda sp, x: sp.special.lambertw(2.0 * x), z(2, 3)),
    *[_case(f"lambertw on branch {k}", lambda sp, x, k=k: sp.special.lambertw(x, k), z(3)) for k in (-2, -1, 1)],
    _case(
        "lambertw below",
        lambda sp, x: sp.special.lambertw(-0.1 - 0.05 * x, [[-1], [0]]),
        unit(3),
        static=True,
        smooth=False,
    ),
    _case("softmax", lambda sp, x: sp.special.softmax(x, axis=-1), f(3, 4)),
    _case("log_softmax", lambda sp, x: sp.special.log_softmax(x, axis=0), f(3, 4)),
    *_of("softmax log_softmax", f(3, 4)),
]
