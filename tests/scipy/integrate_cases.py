"""Calls of rune.scipy.integrate: integrals of samples and of functions."""

from __future__ import annotations

from typing import Any

from tests.numpy.spelling import Case, case, f, pos


def _case(name: str, call: Any, *specs: Any, **flags: Any) -> Case:
    return case(f"integrate.{name}", call, *specs, module="scipy", plain=True, **flags)


_SUMS = ("trapezoid", "simpson", "cumulative_trapezoid")
INTEGRATE = [
    *[
        _case(f"{name} of {count}", lambda sp, y, g, name=name: getattr(sp.integrate, name)(
            y, x=g.cumsum()), f(2, count), pos(count), slack=5.0)
        for name in _SUMS for count in (2, 5, 6)
    ],
    *[
        _case(f"{name} of steps", lambda sp, y, name=name: getattr(sp.integrate, name)(
            y, dx=0.3, axis=0), f(6, 2))
        for name in _SUMS
    ],
    _case("cumulative_trapezoid from 0", lambda sp, y: sp.integrate.cumulative_trapezoid(
        y, initial=0), f(2, 5)),
    _case("trapezoid of rows", lambda sp, y, g: sp.integrate.trapezoid(y, g.cumsum(1)), f(2, 5),
          pos(2, 5), slack=5.0),
]  # fmt: skip
