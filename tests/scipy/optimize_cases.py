"""Calls of rune.scipy.optimize: minima and roots that SciPy also finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.numpy.spelling import LOOP, Case, case, f, pos

_ROOTS = {"all 0": "of no unknowns"}
_MINIMA = _ROOTS | {"f64": "the search ends at a slope of 1e-5", "odd": "its steps are too few"}


def _case(name: str, call: Any, *specs: Any, without: Mapping[str, str] = _ROOTS, **flags: Any) -> Case:
    return case(
        f"optimize.{name}",
        lambda sp, *xs: call(sp.optimize, *xs),
        *specs,
        module="scipy",
        without={**LOOP, "c*": "of real numbers", **without},
        **flags,
    )


def _bowl(a: Any) -> Any:
    """A function with one minimum, not quadratic."""
    return lambda x: ((x - a) ** 2).sum() + 0.1 * (x**4).sum()


OPTIMIZE = [
    *[
        _case(name, lambda s, a, name=name: getattr(s, name)(lambda x: x**3 - a, 0.0, 4.0), pos())
        for name in ("brentq", "bisect")
    ],
    _case("newton", lambda s, a: s.newton(lambda x: x**3 - a, 1.0 + 0.0 * a, fprime=lambda x: 3.0 * x**2), pos(3)),
    _case(
        "golden",
        lambda s, a: s.golden(lambda x: (x - a) ** 2, brack=(-1.0, 4.0)),
        pos(),
        smooth=False,
        slack=1e3,
        without=_MINIMA,
    ),  # the values are flat at the minimum
    _case(
        "golden downhill",
        lambda s, a: s.golden(lambda x: (x - 9.0 * a) ** 2),
        pos(),
        smooth=False,
        slack=1e3,
        without=_MINIMA,
        plain=True,
    ),
    *[
        _case(
            f"minimize {method}",
            lambda s, a, method=method: s.minimize(_bowl(a), 0.0 * a, method=method).x,
            f(3),
            smooth=False,
            slack=slack,
            without=_MINIMA,
        )
        for method, slack in (("BFGS", 20.0), ("Nelder-Mead", 100.0))
    ],
    _case("root", lambda s, a: s.root(lambda x: x + 0.3 * x**3 - a, 0.0 * a).x, f(3), smooth=False, slack=20.0),
    _case(
        "least_squares",
        lambda s, a: s.least_squares(lambda x: x + 0.1 * x**3 - a, 0.0 * a).x,
        f(3),
        smooth=False,
        slack=50.0,
    ),
]
