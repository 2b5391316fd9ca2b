"""Calls of rune.scipy.interpolate: functions through points, their derivatives and integrals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.spelling import Case, case, f, pos, unit


def _case(name: str, call: Any, *specs: Any, **flags: Any) -> Case:
    return case(f"interpolate.{name}", call, *specs, module="scipy", **flags)


def _rising(gaps: Any) -> Any:
    """Points in ascending order."""
    return gaps.cumsum()


def _inside(x: Any, u: Any) -> Any:
    """Points between the first and the last."""
    return x[0] + (x[-1] - x[0]) * (0.5 + 0.5 * u)


def _closed(y: Any) -> Any:
    """Values whose last element equals the first, bit for bit."""
    return y - (y[-1] - y[0]) * _last(y)


def _last(y: Any) -> Any:
    places = (y * 0.0 + 1.0).cumsum(0)
    return 1.0 * (places == places[-1])


_PIECEWISE = ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator")
INTERPOLATE = [
    *[
        _case(
            name,
            lambda sp, g, y, u, name=name: getattr(sp.interpolate, name)(_rising(g), y)(_inside(_rising(g), u)),
            pos(6),
            f(6, 2),
            unit(4),
            slack=20.0,
        )
        for name in _PIECEWISE
    ],
    *[
        _case(
            f"CubicSpline {bc}",
            lambda sp, g, y, u, bc=bc: sp.interpolate.CubicSpline(_rising(g), y, bc_type=bc)(_inside(_rising(g), u)),
            pos(6),
            f(6, 2),
            unit(4),
            slack=20.0,
        )
        for bc in ("natural", "clamped")
    ],
    *[
        _case(
            f"CubicSpline of {count}",
            lambda sp, g, y, u: sp.interpolate.CubicSpline(_rising(g), y, axis=1)(_inside(_rising(g), u)),
            pos(count),
            f(2, count),
            unit(4),
            slack=20.0,
        )
        for count in (2, 3, 4)
    ],
    _case(
        "CubicSpline periodic",
        lambda sp, g, y, u: sp.interpolate.CubicSpline(_rising(g), _closed(y), bc_type="periodic")(
            _inside(_rising(g), u) + 30.0
        ),
        pos(6),
        f(6),
        unit(4),
        slack=400.0,
        static=True,
        smooth=False,
    ),
    _case(
        "CubicSpline derived and integrated",
        lambda sp, g, y, u: [
            sp.interpolate.CubicSpline(_rising(g), y)(_inside(_rising(g), u), 2),
            sp.interpolate.CubicSpline(_rising(g), y).derivative()(_inside(_rising(g), u)),
            sp.interpolate.CubicSpline(_rising(g), y).antiderivative(2)(_inside(_rising(g), u)),
            sp.interpolate.CubicSpline(_rising(g), y).integrate(1.0, 2.0),
        ],
        pos(6),
        f(6),
        unit(4),
        slack=50.0,
    ),
    _case(
        "CubicHermiteSpline",
        lambda sp, g, y, d, u: sp.interpolate.CubicHermiteSpline(_rising(g), y, d)(_inside(_rising(g), u)),
        pos(5),
        f(5, 2),
        f(5, 2),
        unit(4),
        slack=20.0,
    ),
    _case(
        "interp1d along the last axis",
        lambda sp, g, y, u: sp.interpolate.interp1d(_rising(g), y)(_inside(_rising(g), u)),
        pos(5),
        f(2, 5),
        unit(4, 3),
        slack=20.0,
    ),
    _case(
        "PPoly",
        lambda sp, c, g, u: sp.interpolate.PPoly(c[:, 1:], _rising(g))(_inside(_rising(g), u)),
        f(3, 5, 2),
        pos(5),
        unit(6),
        slack=10.0,
    ),
    _case(
        "PPoly outside",
        lambda sp, c, g: sp.interpolate.PPoly(c[:, 1:], _rising(g), False)(_rising(g)[-1] + 1.0),
        f(3, 5),
        pos(5),
        smooth=False,
    ),
    _case(
        "PPoly of coefficients that do not fit",
        lambda sp, c, g, u: sp.interpolate.PPoly(c, _rising(g))(_inside(_rising(g), u)),
        f(3, 4, 2),
        pos(5),
        unit(6),
        slack=10.0,
    ),
    *[
        _case(
            f"make_interp_spline of degree {k}",
            lambda sp, g, y, u, k=k: sp.interpolate.make_interp_spline(_rising(g), y, k)(_inside(_rising(g), u)),
            pos(7),
            f(7, 2),
            unit(4),
            slack=100.0,
        )
        for k in (1, 2, 3, 4)
    ],
    _case(
        "BSpline derived",
        lambda sp, g, y, u: sp.interpolate.make_interp_spline(_rising(g), y, 3)(_inside(_rising(g), u), 1),
        pos(7),
        f(7),
        unit(4),
        slack=400.0,
    ),
    _case(
        "BSpline",
        lambda sp, g, c, u: sp.interpolate.BSpline(_rising(g), c[3:], 2)(_rising(g)[3] + 0.1 * u),
        pos(9),
        f(9, 2),
        unit(3),
        slack=10.0,
    ),
    _case(
        "BSpline along the last axis, repeated",
        lambda sp, c, u: sp.interpolate.BSpline(np.arange(9, dtype=np.float32), c, 2, "periodic", 1)(9.0 * u),
        f(2, 6),
        unit(4),
        keeps={6: "basis functions"},
        slack=10.0,
        smooth=False,
    ),
    _case(
        "PPoly along the last axis, repeated",
        lambda sp, c, g, u: [
            sp.interpolate.PPoly(c, _rising(g), "periodic", 1)(9.0 * u),
            sp.interpolate.PPoly(c, _rising(g), "periodic", 1).integrate(-1.0, 9.0),
        ],
        f(2, 3, 4),
        pos(5),
        unit(4),
        keeps={4: "pieces", 5: "points"},
        slack=50.0,
        smooth=False,
        without={"bool": "gaps of 0 are no points that rise"},
    ),
    _case(
        "interp1d of points in no order",
        lambda sp, x, y, u: sp.interpolate.interp1d(x, y, fill_value="extrapolate")(2.0 + 2.0 * u),
        f(6),
        f(2, 6),
        unit(4),
        slack=50.0,
    ),
    _case(
        "RegularGridInterpolator of falling points",
        lambda sp, g, v, u: sp.interpolate.RegularGridInterpolator((-_rising(g),), v, "linear", False)(
            -_inside(_rising(g), u)[:, None]
        ),
        pos(4),
        f(4, 2),
        unit(5),
        slack=20.0,
        static=True,
        smooth=False,
    ),
    *[
        _case(
            f"interp1d {kind}",
            lambda sp, g, y, u, kind=kind: sp.interpolate.interp1d(_rising(g), y, kind, axis=0)(_inside(_rising(g), u)),
            pos(6),
            f(6, 2),
            unit(4),
            smooth=kind not in ("nearest", "previous", "next"),
            slack=100.0,
        )
        for kind in ("linear", "nearest", "previous", "next", "slinear", "quadratic", "cubic")
    ],
    *[
        _case(
            f"RegularGridInterpolator {method}",
            lambda sp, g, h, v, u, method=method: sp.interpolate.RegularGridInterpolator(
                (_rising(g), _rising(h)), v, method, False
            )((_inside(_rising(g), u[0]), _inside(_rising(h), u[1]))),
            pos(4),
            pos(3),
            f(4, 3, 2),
            unit(2, 5),
            smooth=method == "linear",
            slack=20.0,
        )
        for method in ("linear", "nearest")
    ],
    _case(
        "RegularGridInterpolator beyond",
        lambda sp, v, u: sp.interpolate.RegularGridInterpolator(
            (v[0].cumsum(), v[1].cumsum()), v[:, :1] + v[:1, :], "linear", False, None
        )(u),
        pos(3, 3),
        f(5, 2),
        slack=50.0,
    ),
    _case(
        "BarycentricInterpolator",
        lambda sp, g, y, u: sp.interpolate.BarycentricInterpolator(_rising(g), y)(_inside(_rising(g), u)),
        pos(5),
        f(5, 2),
        unit(4),
        slack=200.0,
    ),
    _case(
        "barycentric_interpolate",
        lambda sp, g, y, u: sp.interpolate.barycentric_interpolate(_rising(g), y, _inside(_rising(g), u)),
        pos(4),
        f(4),
        unit(4),
        slack=200.0,
    ),
]
