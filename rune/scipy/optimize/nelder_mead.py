"""Nelder and Mead's simplex, which needs no derivatives.

Source: Nelder & Mead 1965; Gao & Han 2012 for the adaptive coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import rune.numpy as rnp
from rune.array import Array
from rune.control import cond, while_loop
from rune.numpy import linalg
from rune.scipy.optimize.results import OptimizeResults
from rune.scipy.optimize.systems import stationary
from rune.transforms.batching.vmap import vmap
from rune.transforms.derivatives.grad import grad


class _Simplex(NamedTuple):
    """Points [N + 1, N] and values [N + 1], best first."""

    points: Array
    values: Array
    calls: Array
    n: Array


def _sorted(s: _Simplex) -> _Simplex:
    order = rnp.argsort(s.values, stable=True)
    return s._replace(points=s.points[order], values=s.values[order])


def _first(fun: Callable[[Array], Array], x0: Array) -> _Simplex:
    """The start, and a neighbouring point along each axis."""
    size = x0.shape[0]
    sides = rnp.where(x0 == 0, 0.00025, 0.05 * x0)
    points = rnp.concatenate([x0[None], x0[None] + rnp.diag(sides)])
    values = vmap(fun)(points)
    return _sorted(_Simplex(points, values, rnp.asarray(size + 1), rnp.asarray(0)))


def _replaced(s: _Simplex, point: Array, value: Array, calls: int) -> _Simplex:
    """The simplex with another point in place of its worst."""
    points = rnp.concatenate([s.points[:-1], point[None]])
    values = rnp.concatenate([s.values[:-1], rnp.reshape(value, (1,))])
    return s._replace(points=points, values=values, calls=s.calls + calls)


def _step(fun: Callable[[Array], Array], s: _Simplex) -> _Simplex:
    """Reflect the worst point; expand, contract or shrink by the value there."""
    size = s.points.shape[1]
    centre, worst = rnp.mean(s.points[:-1], 0), s.points[-1]
    reflection = 2.0 * centre - worst
    value = fun(reflection)

    def expand() -> _Simplex:
        farther = 3.0 * centre - 2.0 * worst
        farther_value = fun(farther)
        is_better = farther_value < value
        return _replaced(s, rnp.where(is_better, farther, reflection), rnp.where(is_better, farther_value, value), 2)

    def contract() -> _Simplex:
        is_outside = value < s.values[-1]
        point = rnp.where(is_outside, 1.5 * centre - 0.5 * worst, 0.5 * (centre + worst))
        inner_value = fun(point)
        is_good = rnp.where(is_outside, inner_value <= value, inner_value < s.values[-1])
        return cond(is_good, lambda: _replaced(s, point, inner_value, 2), shrink)

    def shrink() -> _Simplex:
        points = s.points[:1] + 0.5 * (s.points - s.points[:1])
        values = rnp.concatenate([s.values[:1], vmap(fun)(points[1:])])
        return s._replace(points=points, values=values, calls=s.calls + 2 + size)

    def settle() -> _Simplex:
        is_middling = value < s.values[-2]
        return cond(is_middling, lambda: _replaced(s, reflection, value, 1), contract)

    return _sorted(cond(value < s.values[0], expand, settle)._replace(n=s.n + 1))


def nelder_mead(
    fun: Callable[[Array], Array], x0: Array, xatol: float = 1e-4, fatol: float = 1e-4, maxiter: int | None = None
) -> OptimizeResults:
    """The minimum, by a simplex that moves downhill.

    Its derivatives are those of the implicit function ∂fun/∂x = 0.
    """
    most = 200 * x0.shape[0] if maxiter is None else maxiter

    def is_wide(s: _Simplex) -> Array:
        apart = rnp.max(rnp.abs(s.points[1:] - s.points[:1]), initial=0.0)
        return (apart > xatol) | (rnp.max(rnp.abs(s.values - s.values[0])) > fatol)

    end = while_loop(lambda s: is_wide(s) & (s.n < most), lambda s: _step(fun, s), _first(fun, x0))
    success = ~is_wide(end)
    status = rnp.where(success, 0, 1)
    best = stationary(fun, end.points[0], grad, _solved)
    return OptimizeResults(best, success, status, fun(best), None, None, end.calls + 1, 0, end.n)


def _solved(linear: Callable[[Array], Array], y: Array) -> Array:
    """The x with linear(x) = y, by the matrix of `linear`."""
    return linalg.solve(vmap(linear)(rnp.eye(y.size, dtype=y.dtype)).T, y)
