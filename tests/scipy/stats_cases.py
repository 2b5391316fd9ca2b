"""Calls of rune.scipy.stats: every method of every family, and the statistics of samples.

A family is called at parameters and points inside its support: points of an interval that `_POINTS`
states.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from tests.numpy.spelling import Case, case, f, n, pos, unit

_CONTINUOUS: dict[str, tuple[tuple[float, ...], Any]] = {
    # name: parameters, and how a number of [-0.9, 0.9] becomes a point
    **{name: ((), lambda u: 2.0 * u) for name in ("norm", "cauchy", "laplace", "logistic", "gumbel_l", "gumbel_r")},
    **{name: ((), lambda u: u + 1.2) for name in ("expon", "halfnorm", "halfcauchy", "rayleigh", "maxwell", "levy")},
    **{name: ((), lambda u: 0.5 + 0.5 * u) for name in ("uniform", "arcsine")},
    **{
        name: ((1.7,), lambda u: u + 1.2)
        for name in (
            "gamma",
            "chi2",
            "chi",
            "weibull_min",
            "invgamma",
            "lognorm",
            "lomax",
            "fisk",
            "invgauss",
            "gompertz",
        )
    },
    "loglaplace": ((1.7,), lambda u: u + 2.2),
    "pareto": ((1.7,), lambda u: u + 2.2),
    "weibull_max": ((1.7,), lambda u: u - 1.2),
    "powerlaw": ((1.7,), lambda u: 0.5 + 0.5 * u),
    "triang": ((0.3,), lambda u: 0.5 + 0.5 * u),
    "beta": ((1.7, 2.4), lambda u: 0.5 + 0.5 * u),
    "betaprime": ((1.7, 2.4), lambda u: u + 1.2),
    "f": ((3.5, 5.5), lambda u: u + 1.2),
    "t": ((3.5,), lambda u: 2.0 * u),
    "gennorm": ((1.7,), lambda u: 1.0 + u),
    "dweibull": ((1.7,), lambda u: 1.0 + u),
    "skewnorm": ((1.7,), lambda u: 2.0 * u),
    "exponnorm": ((1.7,), lambda u: 2.0 * u),
    "loggamma": ((1.7,), lambda u: 2.0 * u),
    "truncnorm": ((-1.1, 1.4), lambda u: u),
    "vonmises": ((1.7,), lambda u: 3.0 * u),
    "wrapcauchy": ((0.4,), lambda u: 1.5 + 1.5 * u),
}
# What becomes of shapes, strides and dtypes is one piece of code for all families, and each variant
# is compiled: all are tried of these families, and of the others some.
_TRIED = ("norm", "triang", "gompertz", "pareto", "bernoulli", "randint")
_ALIKE: dict[str, str] = dict.fromkeys(
    ("all 1", "* to *", "reversed", "by columns", "views *", "bool", "i8", "i16", "i64", "u*", "*f16", "f32", "c*"),
    "as of other families",
)
_SEARCH = _ALIKE | dict.fromkeys(("odd", "every other", "i32", "f16"), "loops take long to compile")
_NO_CDF = {"vonmises"}
_NO_PPF = {"vonmises", "wrapcauchy", "skewnorm", "exponnorm", "invgauss"}
_DISCRETE = {
    "bernoulli": (0.3,),
    "binom": (5.0, 0.3),
    "betabinom": (5.0, 1.7, 2.4),
    "geom": (0.3,),
    "nbinom": (3.5, 0.4),
    "poisson": (2.3,),
    "randint": (-1.0, 4.0),
    "dlaplace": (0.8,),
    "logser": (0.6,),
    "zipf": (3.4,),
}
_FEW = {"bernoulli", "geom", "logser", "zipf"}  # a logarithm of 0 is among the points
_NO_MOMENTS = {"wrapcauchy", "gompertz"}
_MEAN_ALONE = {"vonmises", "fisk", "loglaplace", "zipf"}
_NO_ENTROPY = {
    "chi",
    "invgauss",
    "gompertz",
    "betaprime",
    "f",
    "skewnorm",
    "exponnorm",
    "dweibull",
    "truncnorm",
    "binom",
    "betabinom",
    "nbinom",
    "poisson",
    "dlaplace",
    "logser",
    "zipf",
}


def _case(name: str, call: Any, *specs: Any, **flags: Any) -> Case:
    return case(f"stats.{name}", call, *specs, module="scipy", **flags)


def _varied_parameters(shapes: tuple[float, ...], moves: Any, integers: int = 0) -> list[Any]:
    """The parameters plus small moves; the first `integers` of them stay whole numbers."""
    return [s + 0.0 * m if i < integers else s * (1.0 + 0.01 * m) for i, (s, m) in enumerate(zip(shapes, moves))]


def _specs(shapes: tuple[float, ...], *others: Any) -> tuple[Any, ...]:
    """A move for each shape parameter, of shapes that broadcast; then those of loc and scale."""
    return *(unit(3) if i % 2 == 0 else unit(2, 1) for i in range(len(shapes))), *others


def _at_points(name: str, methods: str, shapes: tuple[float, ...], point: Any) -> Case:
    """Methods at points, with the parameters, loc and scale differentiated as well."""

    def call(sp: Any, u: Any, *moves: Any) -> Any:
        loc, scale = 0.3 + 0.1 * moves[-2], 1.5 + 0.1 * moves[-1]
        at = {"ppf": 0.5 + 0.5 * u, "isf": 0.5 + 0.5 * u}
        return [
            getattr(getattr(sp.stats, name), method)(
                at.get(method, loc + scale * point(u)), *_varied_parameters(shapes, moves), loc=loc, scale=scale
            )
            for method in methods.split()
        ]

    return _case(
        f"{name}: {methods}", call, unit(2, 3), *_specs(shapes, unit(2, 1), unit()), without=_spared(name, methods)
    )


def _spared(name: str, methods: str = "") -> dict[str, str]:
    if name in _TRIED:
        return {}
    return _SEARCH if "ppf" in methods else _ALIKE


def _at_counts(name: str, methods: str, shapes: tuple[float, ...]) -> Case:
    def call(sp: Any, k: Any, *moves: Any) -> Any:
        parameters = _varied_parameters(shapes, moves, _WHOLE.get(name, 0))
        return [getattr(getattr(sp.stats, name), method)(k + 1, *parameters, loc=1) for method in methods.split()]

    return _case(f"{name}: {methods}", call, n(2, 3), *_specs(shapes), smooth=name not in _FEW, without=_spared(name))


def _counts_of(name: str, shapes: tuple[float, ...]) -> Case:
    """Counts at probabilities, a step function, away from its steps."""

    def call(sp: Any, u: Any, *moves: Any) -> Any:
        parameters = _varied_parameters(shapes, moves, _WHOLE.get(name, 0))
        family = getattr(sp.stats, name)
        return [getattr(family, m)(0.5 + 0.5 * u, *parameters, loc=1) for m in ("ppf", "isf")]

    return _case(f"{name}: ppf isf", call, unit(2, 3), *_specs(shapes), smooth=False, without=_spared(name, "ppf"))


def _of_moments(name: str, shapes: tuple[float, ...]) -> Case:
    """The moments and entropy that the family has."""
    known = name not in _NO_MOMENTS
    methods = ["mean"] * known + ["var", "std"] * (known and name not in _MEAN_ALONE)
    methods += ["entropy"] * (name not in _NO_ENTROPY)

    def call(sp: Any, loc: Any, *moves: Any) -> Any:
        parameters = _varied_parameters(shapes, moves, _WHOLE.get(name, 0))
        return [getattr(getattr(sp.stats, name), m)(*parameters, loc=0.2 + loc) for m in methods]

    return _case(f"{name}: {' '.join(methods)}", call, unit(3), *_specs(shapes), without=_spared(name))


# The parameters of each family that are tried.
SHAPES: dict[str, tuple[float, ...]] = {**{k: v[0] for k, v in _CONTINUOUS.items()}, **_DISCRETE}

_WHOLE = {"binom": 1, "betabinom": 1, "randint": 2}
FAMILIES = [
    *[
        _at_points(name, methods, shapes, point)
        for name, (shapes, point) in _CONTINUOUS.items()
        for methods in ("pdf logpdf", "cdf sf logcdf logsf", "ppf isf")
        if not (name in _NO_CDF and "cdf" in methods) and not (name in _NO_PPF and "ppf" in methods)
    ],
    *[
        _at_counts(name, methods, shapes)
        for name, shapes in _DISCRETE.items()
        for methods in ("pmf logpmf", "cdf sf logcdf logsf")
    ],
    *[_counts_of(name, shapes) for name, shapes in _DISCRETE.items()],
]
WHOLES = [
    _of_moments(name, shapes)
    for name, shapes in SHAPES.items()
    if not (name in _NO_MOMENTS and name in _NO_ENTROPY)
    and name not in ("cauchy", "halfcauchy", "levy", "invgamma", "pareto", "lomax")
]


def _named(name: str, *specs: Any, **flags: Any) -> Case:
    return _case(name, lambda sp, *xs: attrgetter(name)(sp.stats)(*xs), *specs, **flags)


SAMPLES = [
    _named("skew", f(7, 2)),
    _named("kurtosis", f(7, 2)),
    _named("sem", f(7, 2)),
    _named("zscore", f(7, 2)),
    _named("zmap", f(3, 2), f(7, 2)),
    _named("gmean", pos(7, 2)),
    _named("hmean", pos(7, 2)),
    _named("rankdata", f(7), smooth=False),
    _case("skew corrected", lambda sp, x: sp.stats.skew(x, axis=1, bias=False), f(2, 7)),
    _case("kurtosis corrected", lambda sp, x: sp.stats.kurtosis(x, axis=None, fisher=False, bias=False), f(2, 4)),
    _case("moment", lambda sp, x: sp.stats.moment(x, 3, axis=1), f(2, 7)),
    _case("iqr", lambda sp, x: sp.stats.iqr(x, axis=0), f(7, 2)),
    _case("describe", lambda sp, x: list(sp.stats.describe(x))[2:], f(7, 2)),
    *[
        _case(
            f"rankdata {method}",
            lambda sp, x, method=method: sp.stats.rankdata(x, method, axis=1),
            n(3, 6),
            smooth=False,
        )
        for method in ("average", "min", "max", "dense", "ordinal")
    ],
    _case("mode", lambda sp, x: list(sp.stats.mode(x, axis=1)), n(3, 6), smooth=False),
    _case("mode kept", lambda sp, x: list(sp.stats.mode(x, axis=0, keepdims=True)), n(3, 6), smooth=False),
    _case("mode of all kept", lambda sp, x: list(sp.stats.mode(x, axis=None, keepdims=True)), n(3, 6), smooth=False),
    _case("rankdata of all", lambda sp, x: sp.stats.rankdata(x, axis=None), n(3, 4), smooth=False),
    *[
        _case(f"{name} kept", lambda sp, x, name=name: getattr(sp.stats, name)(x, axis=1, keepdims=True), pos(3, 6))
        for name in ("skew", "kurtosis", "moment", "sem", "gmean", "hmean", "iqr")
    ],
    _case("sem of all kept", lambda sp, x: sp.stats.sem(x, axis=None, keepdims=True), f(3, 4)),
    _case("zscore of all", lambda sp, x: sp.stats.zscore(x, axis=None), f(3, 4)),
    _case("gmean weighted", lambda sp, x, w: sp.stats.gmean(x, axis=1, weights=w), pos(2, 5), pos(2, 5)),
    _case("hmean weighted", lambda sp, x, w: sp.stats.hmean(x, axis=None, weights=w), pos(2, 5), pos(2, 5)),
    _case(
        "iqr scaled",
        lambda sp, x: sp.stats.iqr(x, axis=1, rng=(10, 80), scale="normal", interpolation="lower"),
        f(2, 7),
    ),
    _case("iqr of two axes", lambda sp, x: sp.stats.iqr(x, axis=(0, 2)), f(2, 3, 4)),
    _case("moments", lambda sp, x: sp.stats.moment(x, [2, 3], axis=1), f(2, 7)),
    _case("pearsonr", lambda sp, x, y: list(sp.stats.pearsonr(x, y)), f(6), f(6)),
    _case("spearmanr", lambda sp, x, y: sp.stats.spearmanr(x, y).statistic, f(6), f(6), smooth=False),
]

VECTORS = [
    _case(
        "dirichlet",
        lambda sp, x, a: [getattr(sp.stats.dirichlet, m)(x / x.sum(), a) for m in ("pdf", "logpdf")],
        pos(3),
        pos(3),
    ),
    _case(
        "dirichlet as a whole",
        lambda sp, a: [getattr(sp.stats.dirichlet, m)(a) for m in ("mean", "var", "entropy")],
        pos(3),
    ),
    _case(
        "multinomial",
        lambda sp, x, p: [getattr(sp.stats.multinomial, m)(x, x.sum(), p / p.sum()) for m in ("pmf", "logpmf")],
        n(3),
        pos(3),
    ),
    _case(
        "multivariate_normal",
        lambda sp, x, m, r: [getattr(sp.stats.multivariate_normal, k)(x, m, _covariance(r)) for k in ("pdf", "logpdf")],
        f(4, 3),
        f(3),
        f(3, 3),
    ),
    _case(
        "multivariate_normal of numbers",
        lambda sp, x, v: sp.stats.multivariate_normal.logpdf(x, 0.5, v),
        f(4),
        pos(),
        plain=True,
    ),
    _case(
        "multivariate_normal.entropy",
        lambda sp, m, r: sp.stats.multivariate_normal.entropy(m, _covariance(r)),
        f(3),
        f(3, 3),
    ),
    _case(
        "gaussian_kde",
        lambda sp, x, p: [sp.stats.gaussian_kde(x).logpdf(p), sp.stats.gaussian_kde(x, "silverman")(p)],
        f(2, 6),
        f(2, 3),
    ),
    _case(
        "gaussian_kde weighted",
        lambda sp, x, w: [
            sp.stats.gaussian_kde(x, 0.7, w).evaluate(x),
            sp.stats.gaussian_kde(x, weights=w).integrate_box_1d(-1.0, 2.0),
        ],
        f(6),
        pos(6),
    ),
    _case(
        "gaussian_kde products",
        lambda sp, x, y, m, r: [
            sp.stats.gaussian_kde(x).integrate_kde(sp.stats.gaussian_kde(y, 0.7)),
            sp.stats.gaussian_kde(x).integrate_gaussian(m, _covariance(r)),
        ],
        f(3, 7),
        f(3, 11),
        f(3),
        f(3, 3),
    ),
]


def _covariance(root: Any) -> Any:
    """A symmetric matrix with eigenvalues of at least 1, equal for both libraries."""
    return root @ root.T + (root * 0.0 + 1.0) * 0.5 + _identity(root)


def _identity(root: Any) -> Any:
    rows = (root * 0.0 + 1.0).cumsum(0)
    return 1.0 * (rows == rows.T)


STATS = [*FAMILIES, *WHOLES, *SAMPLES, *VECTORS]
