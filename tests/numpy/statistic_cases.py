"""Calls of covariance and correlation, and copies."""

from __future__ import annotations

from tests.numpy.complex_cases import z
from tests.numpy.spelling import case, f, n, named, pos

STATISTICS = [
    *named("cov corrcoef", f(3, 6)),
    *named("cov corrcoef", f(6)),
    *named("cov corrcoef", z(3, 6)),
    case("cov of two", lambda xp, x, y: xp.cov(x, y), f(2, 6), f(6)),
    case("corrcoef of columns", lambda xp, x: xp.corrcoef(x, rowvar=False), f(6, 3)),
    case("cov biased", lambda xp, x: xp.cov(x, bias=True), f(3, 6)),
    case("cov with ddof", lambda xp, x: xp.cov(x, ddof=2), f(3, 6)),
    case("cov weighted", lambda xp, x, w: xp.cov(x, aweights=w), f(3, 6), pos(6)),
    case("cov weighted by counts", lambda xp, x, w: xp.cov(x, fweights=w + 1), f(3, 6), n(6)),
    case(
        "cov weighted by both", lambda xp, x, v, w: xp.cov(x, fweights=v + 1, aweights=w, ddof=0), f(3, 6), n(6), pos(6)
    ),
    *named("copy asanyarray", f(2, 3)),
    case("asarray_chkfinite", lambda xp, x: xp.asarray_chkfinite(x), f(2, 3), static=True, smooth=False),
]
