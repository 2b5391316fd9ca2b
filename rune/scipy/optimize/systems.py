"""Newton's method for systems of equations, its steps halved until the residual falls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune.control import while_loop
from rune.numpy import linalg
from rune.scipy.optimize.results import OptimizeResults
from rune.transforms.jacobian import jacfwd


class _State(NamedTuple):
    x: Any
    value: Any
    n: Any
    is_stuck: Any


def _size(value: Any) -> Any:
    return rnp.max(rnp.abs(value), initial=0.0)


def newton_system(fun: Callable[[Any], Any], x0: Any, tol: float, maxiter: int) -> OptimizeResults:
    """The x near x0 with fun(x) = 0, both of shape [N]."""

    def again(s: _State) -> _State:
        step = linalg.solve(jacfwd(fun)(s.x), -s.value)

        def is_worse(halved: Any) -> Any:
            length, value, n = halved
            return ~(_size(value) < (1.0 - 1e-4 * length) * _size(s.value)) & (n < 30)

        def halve(halved: Any) -> Any:
            length, _, n = halved
            return 0.5 * length, fun(s.x + 0.5 * length * step), n + 1

        one = rnp.ones((), s.x.dtype)
        length, value, n = while_loop(is_worse, halve, (one, fun(s.x + step), rnp.asarray(0)))
        return _State(s.x + length * step, value, s.n + 1, n >= 30)

    def goes_on(s: _State) -> Any:
        return (_size(s.value) > tol) & (s.n < maxiter) & ~s.is_stuck

    start = _State(x0, fun(x0), rnp.asarray(0), rnp.zeros((), bool))
    end = while_loop(goes_on, again, start)
    success = _size(end.value) <= tol
    status = rnp.where(success, 0, rnp.where(end.is_stuck, 3, 1))
    return OptimizeResults(
        end.x, success, status, end.value, jacfwd(fun)(end.x), None, end.n + 1, end.n, end.n
    )
