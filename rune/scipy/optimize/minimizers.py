"""minimize, the common entry to the methods, and least_squares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune.array import Array
from rune.control import while_loop
from rune.errors import ArgumentError, ShapeError
from rune.numpy import linalg
from rune.scipy.optimize.nelder_mead import nelder_mead
from rune.scipy.optimize.quasi_newton import bfgs, l_bfgs, newton_cg
from rune.scipy.optimize.results import OptimizeResults
from rune.scipy.special.arguments import reals
from rune.transforms.arguments import require_callable
from rune.transforms.derivatives.jacobian import jacfwd
from rune.typing import ArrayLike

# The method, the option that `tol` sets, and its options.
_METHODS: Mapping[str, tuple[Callable[..., OptimizeResults], str, tuple[str, ...]]] = {
    "bfgs": (bfgs, "gtol", ("gtol", "maxiter")),
    "l-bfgs": (l_bfgs, "gtol", ("gtol", "maxiter", "maxcor")),
    "l-bfgs-experimental-do-not-rely-on-this": (l_bfgs, "gtol", ("gtol", "maxiter", "maxcor")),
    "newton-cg": (newton_cg, "gtol", ("gtol", "maxiter")),
    "nelder-mead": (nelder_mead, "xatol", ("xatol", "fatol", "maxiter")),
}


def minimize(
    fun: Callable[..., object],
    x0: ArrayLike,
    args: Sequence[object] = (),
    *,
    method: str = "BFGS",
    tol: float | None = None,
    options: Mapping[str, object] | None = None,
) -> OptimizeResults:
    """A local minimum of fun(x, *args) near x0.

    fun:     returns a floating number of rank 0; its gradients are taken by rune.
    x0:      [N].
    method:  "BFGS", "L-BFGS", "Newton-CG" (which need derivatives) or "Nelder-Mead".
    tol:     the bound for the largest component of the gradient (for Nelder-Mead: the simplex).
    options: maxiter; gtol; maxcor of L-BFGS; xatol and fatol of Nelder-Mead.
    Works under jit and vmap. The result is not meant to be differentiated: it is a point where the
    gradient is nearly 0, so use implicit differentiation there.
    Shapes: x0 [N] -> x, jac [N], fun, status and the counts [], hess_inv of BFGS [N, N].
    Types:  real, in the dtype of x0; bools and integers become f32; the counts i32.
    Errors: ShapeError for x0 of another rank, ArgumentError for an unknown method or option.
    Source: Nocedal & Wright 2006, Numerical Optimization.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.optimize import minimize
    >>> result = minimize(lambda x: rnp.sum((x - 3.0) ** 2), rnp.zeros(2))
    >>> rnp.round(result.x, 2)
    Array([3., 3.], f32[2], cpu:0)
    """
    require_callable("minimize", fun)
    (x,) = reals("minimize", x0)
    if x.ndim != 1:
        raise ShapeError(f"minimize: cannot start at x0 of shape {x.shape} (rank 1 required)")
    known = _METHODS.get(method.lower())
    if known is None:
        raise ArgumentError(
            f"minimize: cannot use method={method!r}", hint="'BFGS', 'L-BFGS', 'Newton-CG' or 'Nelder-Mead'"
        )
    run, tolerance, names = known
    settings = dict(options or {})
    wrong = sorted(set(settings) - set(names))
    if wrong:
        raise ArgumentError(
            f"minimize: cannot use the options {', '.join(wrong)} with {method}", hint=f"it has {', '.join(names)}"
        )
    if tol is not None:
        settings.setdefault(tolerance, tol)
    return run(lambda v: fun(v, *args), x, **settings)


# --- least squares ----------------------------------------------------------------------------


class LeastSquaresResults(NamedTuple):
    """The end of a fit: the point, half the sum of squares, residuals [M], Jacobian [M, N], …

    >>> import rune.numpy as rnp
    >>> from rune.scipy.optimize import least_squares
    >>> result = least_squares(lambda x: x - 3.0, rnp.array([0.0]))
    >>> result.x, bool(result.success)
    (Array([3.], f32[1], cpu:0), True)
    """

    x: Array
    cost: Array
    fun: Array
    jac: Array
    grad: Array
    success: Array
    nfev: Array


class _Fit(NamedTuple):
    x: Array
    residuals: Array
    jacobian: Array
    damping: Array
    is_done: Array
    n: Array


def least_squares(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: Sequence[object] = (),
    *,
    ftol: float = 1e-8,
    xtol: float = 1e-8,
    gtol: float = 1e-8,
    max_nfev: int | None = None,
) -> LeastSquaresResults:
    """The x that minimises the sum of squares of fun(x, *args), by Levenberg and Marquardt's
    method.

    fun:   returns residuals [M]; rune takes the Jacobian.  x0: [N].
    ftol, xtol, gtol: it stops at this relative change of the cost or of x, or this gradient; none
           is taken below the precision of the dtype.
    Works under jit and vmap. Errors: ShapeError for x0 of another rank.
    Shapes: x0 [N], fun(x) [M] -> x, grad [N], cost [], fun [M], jac [M, N].
    Types:  real, in the dtype of x0; bools and integers become f32; nfev i32.
    Source: Nocedal & Wright 2006, section 10.3; damping by Nielsen 1999.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.optimize import least_squares
    >>> least_squares(lambda x: x - rnp.array([1.0, 2.0]), rnp.zeros(2)).x
    Array([1., 2.], f32[2], cpu:0)
    """
    require_callable("least_squares", fun)
    (x,) = reals("least_squares", x0)
    if x.ndim != 1:
        raise ShapeError(f"least_squares: cannot start at x0 of shape {x.shape} (rank 1 required)")
    most = 100 * x.shape[0] if max_nfev is None else max_nfev
    least = float(rnp.finfo(x.dtype).eps)
    f_tol, x_tol, g_tol = (max(t, least) for t in (ftol, xtol, gtol))
    eye = rnp.eye(x.shape[0], dtype=x.dtype)

    def residuals_at(v: Array) -> Array:
        return fun(v, *args)

    def again(s: _Fit) -> _Fit:
        gradient = s.jacobian.T @ s.residuals
        normal = s.jacobian.T @ s.jacobian
        scale = rnp.maximum(rnp.diagonal(normal), least)
        step = -linalg.solve(normal + s.damping * scale * eye, gradient)
        trial = residuals_at(s.x + step)
        before, after = _cost(s.residuals), _cost(trial)
        is_better = after < before
        x = rnp.where(is_better, s.x + step, s.x)
        is_small = _norm(step) <= x_tol * (x_tol + _norm(s.x))
        is_still = is_better & (before - after <= f_tol * before)
        is_flat = rnp.max(rnp.abs(gradient)) <= g_tol
        damping = rnp.where(is_better, s.damping * 0.2, s.damping * 4.0)
        residuals = rnp.where(is_better, trial, s.residuals)
        has_converged = is_small | is_still | is_flat
        return _Fit(x, residuals, jacfwd(residuals_at)(x), damping, has_converged, s.n + 1)

    no = rnp.zeros((), bool)
    first = _Fit(x, residuals_at(x), jacfwd(residuals_at)(x), rnp.asarray(1e-3, x.dtype), no, rnp.asarray(1))
    end = while_loop(lambda s: ~s.is_done & (s.n < most), again, first)
    gradient = end.jacobian.T @ end.residuals
    return LeastSquaresResults(end.x, _cost(end.residuals), end.residuals, end.jacobian, gradient, end.is_done, end.n)


def _cost(residuals: Array) -> Array:
    return 0.5 * rnp.sum(residuals * residuals)


def _norm(x: Array) -> Array:
    return rnp.sqrt(rnp.sum(x * x))
