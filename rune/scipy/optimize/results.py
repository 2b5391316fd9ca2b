"""What a minimisation or a search for a root gives back: trees of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple


class OptimizeResults(NamedTuple):
    """The end of a minimisation.

    x [N] the point;  fun [] the value, jac [N] the gradient there;  hess_inv [N, N], of BFGS alone.
    success: whether the gradient (or the simplex) became as small as asked for.
    status:  0 success, 1 too many steps, 2 too many calls, 3 no descent along the line.
    nfev, njev, nit: calls of the function, of its gradient, and steps.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


class RootResults(NamedTuple):
    """The end of a search for a root."""

    root: Any
    converged: Any
    iterations: Any
    residual: Any
