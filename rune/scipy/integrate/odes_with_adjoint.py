"""odeint: ordinary differential equations by an adaptive Runge-Kutta method, at given times.

Reverse mode solves the adjoint equation backwards in time, in memory that does not grow with the
number of steps; forward mode is not defined.
Source: Chen et al. 2018, Neural Ordinary Differential Equations, arXiv:1806.07366.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.control import scan, while_loop
from rune.errors import ShapeError
from rune.scipy.integrate.runge_kutta import (
    DORMAND_PRINCE,
    between,
    end_of,
    error_norm,
    first_step,
    next_step,
    stages_of,
)
from rune.scipy.special.arguments import reals
from rune.transforms.arguments import require_callable
from rune.transforms.custom.closure_convert import closure_convert
from rune.transforms.custom.shares import each_own, summed
from rune.transforms.custom.vjp import custom_vjp
from rune.transforms.derivatives.vjp import vjp
from rune.typing import ArrayLike

Residuals = tuple[Array, Array, Array, tuple[Array, ...]]  # the solution, its start and times, other arguments
Adjoints = tuple[Array, tuple[Array, ...]]  # of the solution, and of other arguments
Function = Callable[..., Any]


class _Walk(NamedTuple):
    """The solver's position, and the step that led there."""

    t: Array
    y: Array
    h: Array
    before: Array
    last_y: Array
    last_h: Array
    stages: list[Array]
    n: Array


def _ravelled(y: object) -> tuple[Any, Callable[[Any], Any]]:
    """The leaves of a tree concatenated to one vector, and the inverse for any rows of such
    vectors.
    """
    leaves, treedef = tree.flatten(y)
    arrays = [rnp.asarray(v) for v in leaves]
    sizes, shapes = [a.size for a in arrays], [a.shape for a in arrays]
    vector = rnp.concatenate([rnp.ravel(a) for a in arrays])

    def back(rows: Array) -> Any:
        parts, start = [], 0
        for array, size, shape in zip(arrays, sizes, shapes):
            part = rows[..., start : start + size]
            part = part if rnp.iscomplexobj(array) else rnp.real(part)
            parts.append(rnp.reshape(part, (*rows.shape[:-1], *shape)))
            start += size
        return tree.unflatten(treedef, parts)

    return vector, back


def _walked(func: Function, y0: Array, times: Array, rtol: float, atol: float, most: int, longest: float) -> Array:
    """The solution [T, N] of y' = func(t, y) at times that rise or fall."""
    method = DORMAND_PRINCE
    direction = rnp.sign(times[-1] - times[0])
    h = first_step(func, times[0], y0, direction, method.order, rtol, atol)
    stages = [rnp.zeros_like(y0)] * len(method.nodes)
    start = _Walk(times[0], y0, h, times[0], y0, h, stages, rnp.asarray(0))

    def towards(target: Array) -> Any:
        return lambda s: (direction * (target - s.t) > 0) & (s.n < most) & (s.h > 0)

    def step(s: _Walk) -> _Walk:
        length = direction * rnp.minimum(s.h, longest)
        stages = stages_of(method, func, s.t, s.y, length)
        y, error = end_of(method, s.y, length, stages)
        norm = error_norm(error, s.y, y, rtol, atol)
        is_accepted = norm <= 1.0
        following = next_step(rnp.abs(length), norm, method.order)
        last_stages = [rnp.where(is_accepted, a, b) for a, b in zip(stages, s.stages)]
        next_state = (
            rnp.where(is_accepted, a, b)
            for a, b in ((s.t + length, s.t), (y, s.y), (s.t, s.before), (s.y, s.last_y), (length, s.last_h))
        )
        t, y, before, last_y, last_h = next_state
        return _Walk(t, y, following, before, last_y, last_h, last_stages, s.n + 1)

    def reach(s: _Walk, target: Array) -> tuple[_Walk, Array]:
        s = while_loop(towards(target), step, s._replace(n=rnp.asarray(0)))
        share = (target - s.before) / s.last_h
        is_at_target = direction * (s.t - target) >= 0
        value = between(method, s.last_y, s.last_h, s.stages, share)
        return s, rnp.where(is_at_target, value, rnp.nan)

    _, later = scan(reach, start, times[1:])
    return rnp.concatenate([y0[None], later])


def _solve(settings: tuple[float, float, int, float], func: Function, y0: Array, times: Array, *args: object) -> Array:
    return _walked(lambda t, y: func(y, t, *args), y0, times, *settings)


_solve_vjp = custom_vjp(_solve, nondiff_argnums=(0, 1))


def _forward(
    settings: tuple[float, float, int, float], func: Function, y0: Array, times: Array, *args: Array
) -> tuple[Array, Residuals]:
    solution = _solve_vjp(settings, func, y0, times, *args)
    return solution, (solution, y0, times, args)


def _backward(
    settings: tuple[float, float, int, float], func: Function, residuals: Residuals, cotangents: Array
) -> tuple[Array, ...]:
    """The adjoint equation, solved from each time back to the one before."""
    # Devices may take different numbers of steps, so none waits for others on the way.
    solution, times, args, cotangents = each_own((residuals[0], *residuals[2:], cotangents))
    _, back = _ravelled((solution[0], solution[0], args))

    def augmented(v: Array, t: Array, *extra: object) -> Array:
        """d/d(-t) of solution, adjoint and the adjoints of args, concatenated."""
        y, adjoint, _ = back(v)
        value, pull = vjp(lambda y, args: func(y, -t, *args), y, args)
        slopes = pull(adjoint)
        return _ravelled((-value, slopes[0], slopes[1]))[0]

    def across(carry: Adjoints, i: Array) -> tuple[Adjoints, Array]:
        adjoint, total = carry
        value = func(solution[i], times[i], *args)
        time_slope = rnp.real(rnp.sum(value * cotangents[i]))
        start = _ravelled((solution[i], adjoint, total))[0]
        span = rnp.stack([-times[i], -times[i - 1]])
        end = _solve_vjp(settings, augmented, start, span)[1]
        _, adjoint, total = back(end)
        return (adjoint + cotangents[i - 1], total), time_slope

    zeros = tree.map(lambda a: rnp.zeros_like(rnp.asarray(a)), args)
    last = solution.shape[0] - 1
    (adjoint, total), slopes = scan(across, (cotangents[-1], zeros), rnp.arange(last, 0, -1))
    # A later start shortens the way to all times but the first.
    start_slope = -rnp.real(rnp.sum(func(solution[0], times[0], *args) * (adjoint - cotangents[0])))
    by_time = rnp.concatenate([rnp.reshape(start_slope, (1,)), rnp.flip(slopes, 0)])
    return summed((adjoint, by_time, *total), (*residuals[1:3], *residuals[3]))


_solve_vjp.defvjp(_forward, _backward)


def odeint(
    func: Function,
    y0: Any,
    t: ArrayLike,
    *args: object,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = rnp.inf,
    hmax: float = rnp.inf,
) -> Any:
    """The solution of dy/dt = func(y, t, *args) with y(t[0]) = y0, at the times `t`.

    func:   returns a tree like y0.    y0: a tree of floating or complex arrays.
    t:      [T], strictly rising or falling.
    args:   trees of arrays; derivatives are taken in y0, t, args and the values that func closes
            over.
    rtol, atol: relative and absolute error of a step.  mxstep: maximal number of steps from one
            time to the next; NaN if they do not suffice.  hmax: the longest step.
    Shapes: every leaf of y0 with a leading axis T.
    Differentiable in reverse mode, by the adjoint equation; not in forward mode.
    Errors: ShapeError for `t` of another rank, or a func that returns another number of values.
    Source: Dormand & Prince 1980; Chen et al. 2018, arXiv:1806.07366.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.integrate import odeint
    >>> odeint(lambda y, t: -y, 1.0, rnp.array([0.0, 1.0]))
    Array([1.        , 0.36787942], f32[2], cpu:0)
    """
    require_callable("odeint", func)
    (times,) = reals("odeint", t)
    if times.ndim != 1 or times.shape[0] == 0:
        raise ShapeError(f"odeint: cannot solve at times of shape {times.shape} (rank 1 required)")
    start, back = _ravelled(y0)
    start, times = _alike(start, times)

    def flat(v: Array, s: Array, *extra: Array) -> Array:
        slope = _ravelled(func(back(v), s, *extra))[0]
        if slope.shape != v.shape:
            raise ShapeError(f"odeint: cannot solve for {v.shape[0]} numbers (func gives {slope.shape[0]})")
        return slope.astype(start.dtype)

    pure_function, captures = closure_convert(flat, start, times[0], *args)
    most = 2**31 - 1 if mxstep == rnp.inf else int(mxstep)
    settings = (rtol, atol, most, hmax)
    solution = _solve_vjp(settings, pure_function, start, times, *args, *captures)
    return back(solution)


def _alike(start: Array, times: Array) -> tuple[Array, Array]:
    """Both in one floating dtype; times are real where the solution is complex."""
    dtype = rnp.result_type(start, times, rnp.float32)
    return rnp.astype(start, dtype), rnp.astype(times, rnp.finfo(dtype).dtype)
