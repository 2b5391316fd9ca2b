"""Results of minimisations and of searches for roots: trees of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from rune.array import Array


class OptimizeResults(NamedTuple):
    """The result of a minimisation.

    x [N] the point;  fun [] the value, jac [N] the gradient there;  hess_inv [N, N], of BFGS alone.
    success: whether the gradient (or the simplex) became as small as required.
    status:  0 success, 1 too many steps, 2 too many calls, 3 no descent along the line.
    nfev, njev, nit: calls of the function, of its gradient, and steps.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.optimize import minimize
    >>> result = minimize(lambda x: rnp.sum((x - 3.0) ** 2), rnp.array([0.0]), method="BFGS")
    >>> result.x, bool(result.success)
    (Array([3.], f32[1], cpu:0), True)
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Any
    hess_inv: Any
    nfev: Array
    njev: Any
    nit: Array


class RootResults(NamedTuple):
    """The result of a search for a root.

    >>> from rune.scipy.optimize import bisect
    >>> root, report = bisect(lambda x: x * x - 4.0, 0.0, 3.0, full_output=True)
    >>> bool(report.converged), round(float(report.root), 4)
    (True, 2.0)
    """

    root: Array
    converged: Array
    iterations: Array
    residual: Array
