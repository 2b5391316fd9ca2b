"""BFGS, L-BFGS and Newton's method with conjugate gradients, each one loop over a fixed state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune.array import Array
from rune.control import fori_loop, while_loop
from rune.scipy.optimize.results import OptimizeResults
from rune.scipy.optimize.wolfe import Line, strong_wolfe
from rune.transforms.derivatives.directional import jvp
from rune.transforms.derivatives.grad import grad, value_and_grad

Function = Callable[[Any], Any]


class _State(NamedTuple):
    x: Array
    value: Array
    gradient: Array
    memory: Array  # the method's memory of the curvature
    is_done: Array
    has_failed: Array
    n: Array
    calls: Array


class _Method(NamedTuple):
    """first(state) -> memory;  direction(gradient, memory, x);  learn(memory, step, change)."""

    first: Callable[[Any, Any], Any]
    direction: Callable[[Any, Any, Any], Any]
    learn: Callable[[Any, Any, Any], Any]
    is_scaled: bool  # whether the first step is the direction itself


def _largest(x: Array) -> Array:
    return rnp.max(rnp.abs(x), initial=0.0)


def _downhill(method: _Method, s: _State) -> tuple[Array, Array, Array]:
    """A direction, the slope along it, and the first length to try."""
    direction = method.direction(s.gradient, s.memory, s.x)
    slope = rnp.sum(direction * s.gradient)
    # Rounding, or a curvature that is not positive, can make the direction lead uphill: then take
    # steepest descent.
    is_downhill = slope < 0
    direction = rnp.where(is_downhill, direction, -s.gradient)
    slope = rnp.where(is_downhill, slope, -rnp.sum(s.gradient * s.gradient))
    size = rnp.sqrt(rnp.sum(rnp.square(direction)))
    is_raw = ~is_downhill if method.is_scaled else (s.n == 0) | ~is_downhill
    first = rnp.where(is_raw, rnp.minimum(1.0, 1.0 / size), 1.0)
    return direction, slope, first.astype(s.value.dtype)


def _stepped(evaluate: Callable[[Any], Any], method: _Method, gtol: float, s: _State) -> _State:
    """One search along a line."""
    direction, slope, first = _downhill(method, s)

    def at(a: Array) -> Line:
        objective, g = evaluate(s.x + a * direction)
        return Line(a, objective, rnp.sum(g * direction), g)

    begin = Line(rnp.zeros_like(s.value), s.value, slope, s.gradient)
    end, is_found, calls = strong_wolfe(at, begin, first)
    step = end.a * direction
    is_moved = end.value < s.value
    memory = method.learn(s.memory, step, end.gradient - s.gradient)
    is_done = _largest(end.gradient) <= gtol
    has_failed = ~is_found & ~is_moved & ~is_done
    return _State(s.x + step, end.value, end.gradient, memory, is_done, has_failed, s.n + 1, s.calls + calls)


def _run(
    fun: Function, x0: Array, method: _Method, gtol: float, maxiter: int | None, inverse: Callable[[Any], Any]
) -> OptimizeResults:
    evaluate = value_and_grad(fun)
    value, gradient = evaluate(x0)
    most = x0.shape[0] * 200 if maxiter is None else maxiter
    one, no = rnp.ones((), rnp.int32), rnp.zeros((), bool)
    memory = method.first(x0, gradient)
    is_done = _largest(gradient) <= gtol
    start = _State(x0, value, gradient, memory, is_done, no, 0 * one, one)

    def goes_on(s: _State) -> Array:
        return ~s.is_done & ~s.has_failed & (s.n < most)

    end = while_loop(goes_on, lambda s: _stepped(evaluate, method, gtol, s), start)
    status = rnp.where(end.is_done, 0, rnp.where(end.has_failed, 3, 1))
    return OptimizeResults(
        end.x, end.is_done, status, end.value, end.gradient, inverse(end.memory), end.calls, end.calls, end.n
    )


# --- BFGS -------------------------------------------------------------------------------------


def _dense_update(inverse: Array, step: Array, change: Array) -> Array:
    """The inverse Hessian after a step; unchanged where the curvature is not positive.

    Source: Nocedal & Wright 2006, equations 6.17 and 6.20.
    """
    curvature = rnp.sum(step * change)
    is_good = curvature > 1e-10 * rnp.sum(change * change) * 1e-6
    rho = 1.0 / rnp.where(is_good, curvature, 1.0)
    product = inverse @ change
    outer = rnp.outer(step, product)
    factor = rho * (1.0 + rho * rnp.sum(change * product))
    new_inverse = inverse - rho * (outer + outer.T) + factor * rnp.outer(step, step)
    return rnp.where(is_good, new_inverse, inverse)


def bfgs(fun: Function, x0: Array, gtol: float = 1e-5, maxiter: int | None = None) -> OptimizeResults:
    """Broyden, Fletcher, Goldfarb and Shanno's method."""
    method = _Method(lambda x, g: rnp.eye(x.shape[0], dtype=x.dtype), lambda g, h, x: -(h @ g), _dense_update, False)
    return _run(fun, x0, method, gtol, maxiter, lambda memory: memory)


# --- L-BFGS -----------------------------------------------------------------------------------


class _Pairs(NamedTuple):
    """The last steps and changes of the gradient [K, N], newest last, and 1 / (sᵀy), 0 if none."""

    steps: Array
    changes: Array
    rhos: Array
    scale: Array


def _no_pairs(x: Array, count: int) -> _Pairs:
    empty = rnp.zeros((count, x.shape[0]), x.dtype)
    return _Pairs(empty, empty, rnp.zeros((count,), x.dtype), rnp.ones((), x.dtype))


def _remember(pairs: _Pairs, step: Array, change: Array) -> _Pairs:
    curvature = rnp.sum(step * change)
    is_good = curvature > 0
    safe = rnp.where(is_good, curvature, 1.0)

    def appended(rows: Array, row: Array) -> Array:
        return rnp.where(is_good, rnp.concatenate([rows[1:], row[None]]), rows)

    scale = rnp.where(is_good, safe / rnp.sum(change * change), pairs.scale)
    rhos = appended(pairs.rhos, 1.0 / safe)
    return _Pairs(appended(pairs.steps, step), appended(pairs.changes, change), rhos, scale)


def _two_loops(gradient: Array, pairs: _Pairs, x: Array) -> Array:
    """Minus the inverse Hessian times the gradient. Source: Nocedal & Wright 2006, alg. 7.4."""
    count = pairs.rhos.shape[0]

    def back(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        q, alphas = carry
        k = count - 1 - i
        alpha = pairs.rhos[k] * rnp.sum(pairs.steps[k] * q)
        return q - alpha * pairs.changes[k], alphas.at[k].set(alpha)

    def forth(k: Array, r: Array) -> Array:
        beta = pairs.rhos[k] * rnp.sum(pairs.changes[k] * r)
        return r + (alphas[k] - beta) * pairs.steps[k]

    q, alphas = fori_loop(0, count, back, (gradient, rnp.zeros_like(pairs.rhos)))
    return -fori_loop(0, count, forth, pairs.scale * q)


def l_bfgs(
    fun: Function, x0: Array, gtol: float = 1e-5, maxiter: int | None = None, maxcor: int = 10
) -> OptimizeResults:
    """Limited-memory BFGS: the last `maxcor` steps represent the curvature."""
    method = _Method(lambda x, g: _no_pairs(x, maxcor), _two_loops, _remember, False)
    return _run(fun, x0, method, gtol, maxiter, lambda memory: None)


# --- Newton's method --------------------------------------------------------------------------


def _solved(fun: Function, x: Array, gradient: Array) -> Array:
    """An inexact solution of H d = -g by conjugate gradients, which stop at curvature that is not
    positive. Source: Nocedal & Wright 2006, algorithm 7.1.
    """
    size = rnp.sqrt(rnp.sum(gradient * gradient))
    goal = rnp.minimum(0.5, rnp.sqrt(size)) * size

    def goes_on(carry: tuple[Array, Array, Array, Array, Array]) -> Array:
        _, r, _, is_done, n = carry
        return ~is_done & (rnp.sqrt(rnp.sum(r * r)) > goal) & (n < 20 * x.shape[0])

    def again(carry: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        d, r, p, _, n = carry
        product = jvp(grad(fun), (x,), (p,))[1]
        curvature = rnp.sum(p * product)
        is_bad = curvature <= 0
        square = rnp.sum(r * r)
        alpha = square / rnp.where(is_bad, 1.0, curvature)
        # At the first step there is no direction yet, and the steepest descent is taken.
        d = rnp.where(is_bad, rnp.where(n == 0, p, d), d + alpha * p)
        r = rnp.where(is_bad, r, r + alpha * product)
        p = -r + rnp.sum(r * r) / square * p
        return d, r, p, is_bad, n + 1

    start = rnp.zeros_like(x), gradient, -gradient, rnp.zeros((), bool), rnp.zeros((), rnp.int32)
    return while_loop(goes_on, again, start)[0]


def newton_cg(fun: Function, x0: Array, gtol: float = 1e-5, maxiter: int | None = None) -> OptimizeResults:
    """Newton's method; conjugate gradients solve its systems, by products with the Hessian
    alone.
    """
    method = _Method(lambda x, g: (), lambda g, _, x: _solved(fun, x, g), lambda memory, step, change: (), True)
    return _run(fun, x0, method, gtol, maxiter, lambda memory: None)
