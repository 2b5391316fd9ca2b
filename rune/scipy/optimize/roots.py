"""Roots of functions of one number, elementwise minima, and how roots move with parameters.

Every search is a loop in which lanes that have converged keep their value. A root's derivative in
`args` is that of the implicit function, -∂f/∂args / ∂f/∂x: exact, and independent of the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.control import custom_root, while_loop
from rune.errors import ArgumentError
from rune.scipy.optimize.results import OptimizeResults, RootResults
from rune.scipy.optimize.systems import newton_system, stationary
from rune.scipy.special.arguments import points_of, reals
from rune.transforms.arguments import require_callable
from rune.transforms.derivatives.directional import jvp
from rune.typing import ArrayLike

Function = Callable[..., Any]


class _Bracket(NamedTuple):
    a: Array  # the best point
    b: Array  # a point where the sign differs
    c: Array  # the previous point
    fa: Array
    fb: Array
    fc: Array
    last: Array  # the last step, and the one before
    before: Array
    is_done: Array
    n: Array


def _implicit(f: Function, root: Array, args: Sequence[Array]) -> Array:
    """`root`, with the derivatives of the implicit function of args, of every order."""
    return custom_root(lambda x: f(x, *args), ops.stop_gradient(root), lambda _, solution: solution, _divided)


def _divided(linear: Function, y: Array) -> Array:
    """The x with linear(x) = y, elementwise."""
    return y / linear(rnp.ones_like(y))


def _slope(f: Function) -> Function:
    """The derivative of an elementwise function."""
    return lambda x: jvp(f, (x,), (rnp.ones_like(x),))[1]


def _brent_step(s: _Bracket, xtol: float, rtol: float, f: Function) -> _Bracket:
    """One step of Brent's method: inverse quadratic interpolation where safe, else the middle."""
    swap = rnp.abs(s.fb) < rnp.abs(s.fa)
    a, b = rnp.where(swap, s.b, s.a), rnp.where(swap, s.a, s.b)
    fa, fb = rnp.where(swap, s.fb, s.fa), rnp.where(swap, s.fa, s.fb)
    c, fc = rnp.where(swap, s.a, s.c), rnp.where(swap, s.fa, s.fc)
    tolerance = 0.5 * (xtol + rtol * rnp.abs(a))
    middle = 0.5 * (b - a)
    is_done = s.is_done | (fa == 0) | (rnp.abs(middle) <= tolerance)
    step = _interpolated(a, b, c, fa, fb, fc)
    limit = rnp.minimum(rnp.abs(s.before), 1.5 * rnp.abs(middle))
    is_good = (rnp.abs(step) < limit) & (step * middle > 0) & rnp.isfinite(step)
    step = rnp.where(is_good, step, middle)
    before = rnp.where(is_good, s.last, middle)
    stride = rnp.where(rnp.abs(step) > tolerance, step, rnp.copysign(tolerance, middle))
    x = rnp.where(is_done, a, a + stride)
    fx = rnp.where(is_done, fa, f(x))
    # The new point and the end with the other sign bracket the root.
    same = rnp.sign(fx) == rnp.sign(fb)
    return _Bracket(
        x,
        rnp.where(same & ~is_done, a, b),
        a,
        fx,
        rnp.where(same & ~is_done, fa, fb),
        fa,
        step,
        before,
        is_done | rnp.isnan(fx),
        s.n + 1,
    )


def _interpolated(a: Array, b: Array, c: Array, fa: Array, fb: Array, fc: Array) -> Array:
    """The step from a to where the inverse parabola through three points, or the chord, is 0."""
    s, q, r = fa / fc, fc / fb, fa / fb
    is_chord = (c == b) | (fa == fc) | (c == a)
    chord = -fa * (b - a) / (fb - fa)
    above = s * ((b - a) * q * (q - r) - (a - c) * (r - 1.0))
    return rnp.where(is_chord, chord, -above / ((q - 1.0) * (r - 1.0) * (s - 1.0)))


def brentq(
    f: Function,
    a: ArrayLike,
    b: ArrayLike,
    args: Sequence[Any] = (),
    xtol: float = 2e-12,
    rtol: float | None = None,
    maxiter: int = 100,
    full_output: bool = False,
) -> Any:
    """A root of f(x, *args) between a and b, where it has different signs, by Brent's method.

    f:      elementwise: a, b of one shape give as many roots.
    rtol:   four times the precision of the dtype by default.
    Differentiable in `args`. NaN where f has one sign at both ends.
    Source: Brent 1973, Algorithms for Minimization Without Derivatives, chapter 4.
    Shapes: a, b broadcast together, a root for each.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.optimize import brentq
    >>> brentq(lambda x: x * x - 2.0, 0.0, 2.0)
    Array(1.4142135, f32*[], cpu:0)
    """
    constants = [ops.stop_gradient(v) for v in args]
    low, high = points_of("brentq", lambda x: f(x, *constants), a, b)
    relative = 4 * float(rnp.finfo(low.dtype).eps) if rtol is None else rtol
    f_low, f_high = f(low, *constants), f(high, *constants)
    no = rnp.isnan(f_low) | rnp.isnan(f_high)
    start = _Bracket(low, high, high, f_low, f_high, f_high, high - low, high - low, no, rnp.asarray(0))
    end = while_loop(
        lambda s: rnp.any(~s.is_done) & (s.n < maxiter),
        lambda s: _brent_step(s, xtol, relative, lambda x: f(x, *constants)),
        start,
    )
    bad = (rnp.sign(f_low) * rnp.sign(f_high) > 0) | no | rnp.isnan(end.fa)
    best = rnp.where(rnp.abs(end.fb) < rnp.abs(end.fa), end.b, end.a)
    root = rnp.where(bad, rnp.nan, _implicit(f, best, args))
    if not full_output:
        return root
    return root, RootResults(root, end.is_done & ~bad, end.n, f(root, *args))


def bisect(
    f: Function,
    a: ArrayLike,
    b: ArrayLike,
    args: Sequence[Any] = (),
    xtol: float = 2e-12,
    rtol: float | None = None,
    maxiter: int = 100,
    full_output: bool = False,
) -> Any:
    """A root of f(x, *args) between a and b, where it has different signs, by halving.

    `f`, `rtol` and derivatives: as for `brentq`.
    Shapes: a, b broadcast together, a root for each.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 3.8(ii) and 3.8(iii).

    >>> from rune.scipy.optimize import bisect
    >>> bisect(lambda x: x * x - 2.0, 0.0, 2.0)
    Array(1.4142134, f32*[], cpu:0)
    """
    constants = [ops.stop_gradient(v) for v in args]
    low, high = points_of("bisect", lambda x: f(x, *constants), a, b)
    relative = 4 * float(rnp.finfo(low.dtype).eps) if rtol is None else rtol
    sign, last = rnp.sign(f(low, *constants)), rnp.sign(f(high, *constants))

    def is_wide(s: tuple[Array, Array, Array]) -> Array:
        x, span, _ = s
        return rnp.abs(span) > xtol + relative * rnp.abs(x)

    def again(s: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, span, n = s
        half = 0.5 * span
        side = rnp.sign(f(x + half, *constants))
        end = rnp.where(rnp.isnan(side), rnp.nan, rnp.where(side == sign, x + half, x))  # NaN is not wide
        is_open = is_wide(s)
        return rnp.where(is_open, end, x), rnp.where(is_open, half, span), n + 1

    start = low, high - low, rnp.asarray(0)
    x, span, n = end = while_loop(lambda s: rnp.any(is_wide(s)) & (s[2] < maxiter), again, start)
    best = rnp.where(last == 0, high, rnp.where(sign == 0, low, x + 0.5 * span))
    bad = (sign * last > 0) | rnp.isnan(sign + last) | rnp.isnan(x)
    root = rnp.where(bad, rnp.nan, _implicit(f, best, args))
    return (root, RootResults(root, ~(bad | is_wide(end)), n, f(root, *args))) if full_output else root


def newton(
    func: Function,
    x0: ArrayLike,
    fprime: Function | None = None,
    args: Sequence[Any] = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Function | None = None,
    full_output: bool = False,
) -> Any:
    """A root of func(x, *args) near x0, by Newton's method; elementwise.

    fprime:  its derivative; rune's by default.   fprime2: the second one: then Halley's method.
    tol:     how small a step ends the search (not below the precision of the dtype).
    Differentiable in `args`. NaN where it does not converge.
    Shapes: as x0, a root for each.
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.
    Source: DLMF 3.8(ii) and 3.8(iii).

    >>> from rune.scipy.optimize import newton
    >>> newton(lambda x: x * x - 2.0, 1.0)
    Array(1.4142135, f32*[], cpu:0)
    """
    constants = [ops.stop_gradient(v) for v in args]
    (x,) = points_of("newton", lambda v: func(v, *constants), x0)
    least = 4 * float(rnp.finfo(x.dtype).eps)

    def both(v: Array) -> tuple[Array, Array]:
        if fprime is not None:
            return func(v, *constants), fprime(v, *constants)
        return jvp(lambda u: func(u, *constants), (v,), (rnp.ones_like(v),))

    def again(s: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        v, is_done, n = s
        value, slope = both(v)
        step = value / rnp.where(slope == 0, rnp.where(value == 0, 1.0, rnp.nan), slope)
        if fprime2 is not None:
            step = step / (1.0 - 0.5 * step * fprime2(v, *constants) / slope)
        has_converged = is_done | (rnp.abs(step) <= rnp.maximum(tol, least * rnp.abs(v)))
        return rnp.where(is_done, v, v - step), has_converged, n + 1

    start = x, rnp.zeros(x.shape, bool), rnp.asarray(0)
    end, is_done, n = while_loop(lambda s: rnp.any(~s[1]) & (s[2] < maxiter), again, start)
    root = rnp.where(is_done, _implicit(func, end, args), rnp.nan)
    return (root, RootResults(root, is_done, n, func(root, *args))) if full_output else root


_GOLDEN = 0.3819660112501051  # 2 - the golden ratio


def _downhill(f: Function, a: Array, b: Array, maxiter: int) -> tuple[Array, Array]:
    """Two points with a lower one between them: steps from a past b, each longer than the last."""
    fa, fb = f(a), f(b)
    a, b, fb = rnp.where(fa < fb, b, a), rnp.where(fa < fb, a, b), rnp.minimum(fa, fb)

    def falls(s: tuple[Array, Array, Array, Array, Array, Array]) -> Array:
        return rnp.any(s[4] < s[3]) & (s[5] < maxiter)

    def again(s: tuple[Array, Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array, Array]:
        a, b, c, fb, fc, n = s
        on = fc < fb
        a, b, fb = rnp.where(on, b, a), rnp.where(on, c, b), rnp.where(on, fc, fb)
        c = rnp.where(on, b + (b - a) / (1.0 - _GOLDEN), c)
        return a, b, c, fb, rnp.where(on, f(c), fc), n + 1

    c = b + (b - a) / (1.0 - _GOLDEN)
    a, _, c, *_ = while_loop(falls, again, (a, b, c, fb, f(c), rnp.asarray(0)))
    return a, c


def golden(
    func: Function,
    args: Sequence[object] = (),
    brack: Sequence[Any] = (0.0, 1.0),
    tol: float | None = None,
    maxiter: int = 200,
) -> Array:
    """The minimum of a function of one number, by golden-section search.

    func:   elementwise, with one minimum.   tol: √precision of the dtype by default.
    brack:  two numbers, from which steps go downhill until the function rises again; or three,
            with the minimum between the outer ones.
    Differentiable in `args`, where func is twice differentiable at the minimum.  Source: Kiefer
    1953.
    Shapes: those of `brack` [*S], or broadcast to that -> [*S], one minimum for each.
    Types:  real, of `brack`; bools and integers become f32.
    Errors: ArgumentError for a bracket that is not two or three numbers.

    >>> from rune.scipy.optimize import golden
    >>> bool(abs(golden(lambda x: (x - 0.3) ** 2) - 0.3) < 1e-3)
    True
    """
    if len(brack) not in (2, 3):
        raise ArgumentError(f"golden: cannot use {len(brack)} numbers as brack (two or three)")
    low, high = points_of("golden", lambda x: func(x, *args), brack[0], brack[-1])
    if len(brack) == 2:
        low, high = _downhill(lambda x: func(x, *args), low, high, maxiter)
    low, high = rnp.minimum(low, high), rnp.maximum(low, high)
    small = float(rnp.finfo(low.dtype).eps) ** 0.5 if tol is None else tol

    def again(s: tuple[Array, ...]) -> tuple[Array, ...]:
        a, b, x, y, fx, fy, n = s
        is_low = fx < fy
        a, b = rnp.where(is_low, a, x), rnp.where(is_low, y, b)
        point = rnp.where(is_low, a + _GOLDEN * (b - a), b - _GOLDEN * (b - a))
        value = func(point, *args)
        x, y, fx, fy = (rnp.where(is_low, u, v) for u, v in ((point, y), (x, point), (value, fy), (fx, value)))
        return a, b, x, y, fx, fy, n + 1

    def is_wide(s: tuple[Array, ...]) -> Array:
        return rnp.any(s[1] - s[0] > small * (rnp.abs(s[2]) + rnp.abs(s[3]))) & (s[6] < maxiter)

    x, y = low + _GOLDEN * (high - low), high - _GOLDEN * (high - low)
    start = low, high, x, y, func(x, *args), func(y, *args), rnp.asarray(0)
    _, _, x, y, fx, fy, _ = while_loop(is_wide, again, start)
    return stationary(lambda x: func(x, *args), rnp.where(fx < fy, x, y), _slope, _divided)


def root(
    fun: Function, x0: ArrayLike, args: Sequence[object] = (), *, tol: float = 1e-6, maxiter: int = 100
) -> OptimizeResults:
    """A root of a system: x [N] with fun(x, *args) = 0 [N], near x0, by a damped Newton method.

    Each step solves the system of the Jacobian, and is halved until the residual falls.
    Works under jit and vmap. Source: Nocedal & Wright 2006, section 11.2.
    Shapes: x0 [N] -> x, fun [N], jac [N, N], status and the counts [].
    Types:  in the dtype of x0; bools and integers become f32; the counts i32.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match exactly.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.optimize import root
    >>> root(lambda x: x - rnp.array([1.0, 2.0]), rnp.zeros(2)).x
    Array([1., 2.], f32[2], cpu:0)
    """
    require_callable("root", fun)
    (start,) = reals("root", x0)
    return newton_system(lambda x: fun(x, *args), start, tol, maxiter)
