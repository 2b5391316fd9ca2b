"""Newton's method for systems of equations; and the derivative of a minimum in what its function
closes over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.control import while_loop
from rune.numpy import linalg
from rune.scipy.optimize.results import OptimizeResults
from rune.transforms.custom.closure_convert import closure_convert
from rune.transforms.custom.jvp import custom_jvp
from rune.transforms.derivatives.directional import jvp, linearize
from rune.transforms.derivatives.jacobian import jacfwd

Function = Callable[..., Any]


class _State(NamedTuple):
    x: Array
    value: Array
    n: Array
    is_stuck: Array


def _size(value: Array) -> Array:
    return rnp.max(rnp.abs(value), initial=0.0)


def newton_system(fun: Function, x0: Array, tol: float, maxiter: int) -> OptimizeResults:
    """The x near x0 with fun(x) = 0, both of shape [N]."""

    def again(s: _State) -> _State:
        step = linalg.solve(jacfwd(fun)(s.x), -s.value)

        def is_worse(state: tuple[Array, Array, Array]) -> Array:
            length, value, n = state
            return ~(_size(value) < (1.0 - 1e-4 * length) * _size(s.value)) & (n < 30)

        def halve(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            length, _, n = state
            return 0.5 * length, fun(s.x + 0.5 * length * step), n + 1

        one = rnp.ones((), s.x.dtype)
        length, value, n = while_loop(is_worse, halve, (one, fun(s.x + step), rnp.asarray(0)))
        return _State(s.x + length * step, value, s.n + 1, n >= 30)

    def goes_on(s: _State) -> Array:
        return (_size(s.value) > tol) & (s.n < maxiter) & ~s.is_stuck

    start = _State(x0, fun(x0), rnp.asarray(0), rnp.zeros((), bool))
    end = while_loop(goes_on, again, start)
    success = _size(end.value) <= tol
    status = rnp.where(success, 0, rnp.where(end.is_stuck, 3, 1))
    return OptimizeResults(end.x, success, status, end.value, jacfwd(fun)(end.x), None, end.n + 1, end.n, end.n)


def stationary(
    fun: Function, x: Array, slope: Callable[[Function], Function], solve: Callable[[Function, Array], Array]
) -> Array:
    """`x`, a minimum of fun, with the derivatives of the implicit function slope(fun)(x) = 0.

    They are derivatives in the values that `fun` closes over; `fun` need not be differentiable
    unless they are taken.
    solve: solve(g, y) -> the x with g(x) = y, for the linear function g.
    """
    of_hidden, closure_values = closure_convert(fun, x)

    @custom_jvp
    def minimum(x: Array, values: list[Array]) -> Array:
        return x

    @minimum.defjvp
    def rule(primals: tuple[Array, list[Array]], tangents: tuple[Array, list[Array]]) -> tuple[Array, Array]:
        at = minimum(*primals)

        def slope_at(x: Array, values: list[Array]) -> Array:
            return slope(lambda u: of_hidden(u, *values))(x)

        _, slope_tangent = jvp(lambda values: slope_at(at, values), primals[1:], tangents[1:])
        _, along_x = linearize(lambda x: slope_at(x, primals[1]), at)
        return at, -solve(along_x, slope_tangent)

    return minimum(ops.stop_gradient(x), closure_values)
