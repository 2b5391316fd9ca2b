"""Calls of rune.scipy.integrate: integrals of samples and of functions."""

from __future__ import annotations

from typing import Any

from tests.numpy.spelling import LOOP, Case, case, f, pos


def _case(name: str, call: Any, *specs: Any, **flags: Any) -> Case:
    return case(f"integrate.{name}", call, *specs, module="scipy", **flags)


_SUMS = ("trapezoid", "simpson", "cumulative_trapezoid")


def _solved(method: str) -> Case:
    """A case for an integration method of SciPy, step by step."""
    return _case(
        f"solve_ivp {method}",
        lambda sp, a: _times_and_values(
            sp.integrate.solve_ivp(
                lambda t, y: -a * y * y, (0.0, 1.5), 1.0 / a, method=method, rtol=1e-4, t_eval=[0.5, 1.0]
            )
        ),
        pos(3),
        static=True,
        smooth=False,
        slack=5.0,
        without=LOOP,
    )


def _times_and_values(solution: Any) -> Any:
    return [solution.t, solution.y]


INTEGRATE = [
    *[
        _case(
            f"{name} of {count}",
            lambda sp, y, g, name=name: getattr(sp.integrate, name)(y, x=g.cumsum()),
            f(2, count),
            pos(count),
            slack=5.0,
        )
        for name in _SUMS
        for count in (2, 5, 6)
    ],
    *[
        _case(f"{name} of steps", lambda sp, y, name=name: getattr(sp.integrate, name)(y, dx=0.3, axis=0), f(6, 2))
        for name in _SUMS
    ],
    _case("cumulative_trapezoid from 0", lambda sp, y: sp.integrate.cumulative_trapezoid(y, initial=0), f(2, 5)),
    _case("quad", lambda sp, a: sp.integrate.quad(lambda x: 1.0 / (1.0 + a * x * x), 0.0, 1.0)[0], pos(), without=LOOP),
    _case(
        "odeint",
        lambda sp, a: sp.integrate.odeint(lambda y, t: -a * y * y, 1.0 / a, 0.5 * (a * 0.0 + 1.0).cumsum()),
        pos(3),
        smooth=False,
        slack=5.0,
        without={**LOOP, "all 0": "there is no first time", "f64": "SciPy ends at errors of 1e-8"},
    ),
    *[_solved(method) for method in ("RK45", "RK23", "DOP853")],
    _case("trapezoid of rows", lambda sp, y, g: sp.integrate.trapezoid(y, g.cumsum(1)), f(2, 5), pos(2, 5), slack=5.0),
]
