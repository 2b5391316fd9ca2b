"""solve_ivp: the steps of a Runge-Kutta method from Python, outside of transformations.

The number of steps depends on values, so the loop is Python's; each step is one compiled program.
Under jit use odeint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.errors import ArgumentError, ShapeError
from rune.ops.promote import promoted
from rune.records import dataclass
from rune.scipy.integrate.dormand_prince_853 import DORMAND_PRINCE_853
from rune.scipy.integrate.runge_kutta import (
    BOGACKI_SHAMPINE,
    DORMAND_PRINCE,
    MOST,
    Method,
    all_stages_of,
    between,
    end_of,
    first_step,
    next_step,
    stages_of,
    step_norm,
)
from rune.scipy.special.arguments import widened
from rune.transforms.arguments import require_callable
from rune.transforms.compile.jit import jit
from rune.typing import ArrayLike

_METHODS = {m.name: m for m in (DORMAND_PRINCE, BOGACKI_SHAMPINE, DORMAND_PRINCE_853)}


class OdeResult(NamedTuple):
    """The result of `solve_ivp`.

    Times t [T], solution y [N, T], the solution as a function (or None), the number of calls of the
    function, status 0 (success) or -1 (the step became too small), and whether it succeeded.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.integrate import solve_ivp
    >>> solution = solve_ivp(lambda t, y: -y, (0.0, 1.0), rnp.array([1.0]))
    >>> solution.success, solution.status, solution.y.shape[0]
    (True, 0, 1)
    """

    t: Array
    y: Array
    sol: Any
    nfev: int
    status: int
    success: bool


@dataclass(frozen=True)
class OdeSolution:
    """A solution between the steps: times ts [S + 1], and of each step start, length, stages.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.integrate import solve_ivp
    >>> solution = solve_ivp(lambda t, y: -y, (0.0, 1.0), rnp.array([1.0]), dense_output=True)
    >>> solution.sol(rnp.array([0.0, 0.5])).shape
    (1, 2)
    """

    method: Method
    ts: Array
    starts: Array
    lengths: Array
    stages: tuple[Array, ...]

    def __call__(self, t: Array) -> Array:
        """The solution at times of any shape -> [N, *t.shape]."""
        times = rnp.asarray(t, self.ts.dtype)
        sign = 1.0 if float(self.ts[-1]) >= float(self.ts[0]) else -1.0
        inner = self.ts[1:-1] * sign
        step = rnp.searchsorted(inner, rnp.ravel(times) * sign)
        share = ((rnp.ravel(times) - self.ts[step]) / self.lengths[step])[:, None]
        stages = [k[step] for k in self.stages]
        length = self.lengths[step][:, None]
        values = between(self.method, self.starts[step], length, stages, share)
        return rnp.reshape(values.T, (values.shape[1], *times.shape))


def solve_ivp(
    fun: Callable[..., object],
    t_span: tuple[float, float],
    y0: ArrayLike,
    method: str = "RK45",
    t_eval: object = None,
    dense_output: bool = False,
    *,
    args: Sequence[object] = (),
    rtol: float = 1e-3,
    atol: float = 1e-6,
    max_step: float = np.inf,
    first: float | None = None,
) -> OdeResult:
    """The solution of dy/dt = fun(t, y, *args) over t_span, with y(t_span[0]) = y0 [N], real or
    complex.

    method: "RK45" (Dormand & Prince), "RK23" (Bogacki & Shampine) or "DOP853" (order 8, for small
            tolerances, in f64).
    t_eval: times to give the solution at, in order; those of the steps by default.
    first:  the first step; chosen by the slope there by default.
    Not for jit, vmap or derivatives (see odeint).
    Shapes: y0 [N] -> t [T], y [N, T], T times of t_eval, or as many as steps were taken.
    Types:  y in the dtype of y0, of 32 bits at least, t in its real one; integers become f32.
    Errors: ShapeError for y0 of another rank; ArgumentError for an unknown method, a step that is
            not positive, and times that are not in order within t_span.
    Source: Dormand & Prince 1980; Shampine 1986; Hairer, Nørsett & Wanner 1993, section II.10.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.integrate import solve_ivp
    >>> solve_ivp(lambda t, y: -y, (0.0, 1.0), rnp.ones(1)).success
    True
    """
    require_callable("solve_ivp", fun)
    start = widened(*promoted("solve_ivp", y0, kind="inexact"))[0]
    if start.ndim != 1 or start.shape[0] == 0:
        raise ShapeError(f"solve_ivp: cannot start at y0 of shape {start.shape} (rank 1 required)")
    table = _method(method)
    func = lambda t, y: rnp.asarray(fun(t, y, *args)).astype(y.dtype)  # noqa: E731
    if not (max_step > 0 and (first is None or first > 0)):
        raise ArgumentError(f"solve_ivp: cannot use max_step={max_step}, first={first} (positive)")
    if t_eval is not None:
        _require_within(t_span, np.asarray(t_eval))
    is_dense = dense_output or t_eval is not None
    ts, starts, stages, ends, tries = _steps(table, func, t_span, start, (rtol, atol), max_step, first, is_dense)
    if not ends:  # the right side is NaN or infinite from the start
        return OdeResult(rnp.asarray(np.asarray(ts)), start[:, None], None, tries, -1, False)
    success = abs(ts[-1] - t_span[1]) <= 1e-12 * max(1.0, abs(t_span[1]))
    real = rnp.finfo(start.dtype).dtype
    times = rnp.asarray(np.asarray(ts), real)
    solution = OdeSolution(
        table, times, rnp.stack(starts), times[1:] - times[:-1], tuple(rnp.stack(list(k)) for k in zip(*stages))
    )
    values = rnp.stack([start, *ends], axis=1)
    if t_eval is not None:
        times = rnp.asarray(t_eval, real)
        values = solution(times)
    calls = tries * (len(table.nodes) - 1) + 2 + is_dense * len(ends) * len(table.more_nodes)
    status = 0 if success else -1
    return OdeResult(times, values, solution if dense_output else None, calls, status, success)


def _method(name: str) -> Method:
    if name not in _METHODS:
        raise ArgumentError(f"solve_ivp: cannot use method={name!r}", hint="'RK45', 'RK23' or 'DOP853'")
    return _METHODS[name]


def _require_within(t_span: tuple[float, float], times: np.ndarray) -> None:
    low, high = min(t_span), max(t_span)
    steps = np.diff(times) * (1 if t_span[1] >= t_span[0] else -1)
    if times.ndim != 1 or (times < low).any() or (times > high).any() or (steps <= 0).any():
        raise ArgumentError(f"solve_ivp: cannot use t_eval (in order, from {low} to {high})")


def _steps(
    table: Method,
    func: Callable[[Any, Any], Any],
    t_span: tuple[float, float],
    y: Array,
    tolerances: tuple[float, float],
    longest: float,
    first: float | None,
    is_dense: bool,
) -> tuple[list[float], list[Any], list[Any], list[Any], int]:
    """Times, starts, stages and ends of all steps, and the number of steps tried."""
    rtol, atol = tolerances
    t, end = map(float, t_span)
    sign = 1.0 if end >= t else -1.0

    @jit
    def attempt(t: Array, y: Array, h: Array, most: Array) -> tuple[Array, list[Array], Array, Array]:
        stages = stages_of(table, func, t, y, h)
        after, _ = end_of(table, y, h, stages)
        norm = step_norm(table, h, stages, y, after, rtol, atol)
        return after, stages, norm, next_step(rnp.abs(h), norm, table.order, most)

    @jit
    def more(t: Array, y: Array, h: Array, stages: list[Array]) -> list[Array]:
        return all_stages_of(table, func, t, y, h, stages)

    number = lambda v: rnp.asarray(v, rnp.finfo(y.dtype).dtype)  # noqa: E731
    h = first or float(first_step(func, number(t), y, sign, table.order, rtol, atol))
    least = 10 * float(rnp.finfo(y.dtype).eps)
    ts, starts, step_stages, ends, tries = [t], [], [], [], 0
    most = MOST
    while sign * (end - t) > 0 and h > least * abs(t):
        length = min(h, longest, abs(end - t))
        after, stages, norm, following = attempt(number(t), y, number(sign * length), number(most))
        tries += 1
        h = float(following)
        # After a step that failed, the next one must not grow at once.
        most = MOST if float(norm) <= 1.0 else 1.0
        if float(norm) <= 1.0:
            starts.append(y)
            if is_dense and table.more_nodes:
                stages = more(number(t), y, number(sign * length), stages)
            step_stages.append(stages)
            ends.append(after)
            is_last = length == abs(end - t)
            t, y = end if is_last else t + sign * length, after
            ts.append(t)
    return ts, starts, step_stages, ends, tries
