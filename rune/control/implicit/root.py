"""custom_root: a zero of a function, by a solver of the user's, with exact derivatives.

Along the root f(x(θ), θ) = 0, so (∂f/∂x) dx = -(∂f/∂θ) dθ: the derivative is one linear solve at
the solution, however the solver got there.
Source: the implicit function theorem; Blondel et al. 2022, arXiv:2105.15183.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import dtypes, tree
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.ops import neg, zeros_like
from rune.transforms.arguments import require_callable
from rune.transforms.custom.closure_convert import closure_convert
from rune.transforms.custom.jvp import custom_jvp
from rune.transforms.derivatives.directional import jvp, linearize
from rune.transforms.derivatives.tangents import float0_zeros

Function = Callable[[Any], Any]


def custom_root(
    f: Function,
    initial_guess: object,
    solve: Callable[[Function, Any], Any],
    tangent_solve: Callable[[Function, Any], Any],
    has_aux: bool = False,
) -> Any:
    """x with f(x) = 0, computed by solve(f, initial_guess).

    f:              a function from a tree like the guess to a tree like it; it may close over the
                    values that are differentiated
    solve:          solve(f, guess) -> x, or (x, auxiliary) with `has_aux`; derivatives never look
                    into it
    tangent_solve:  tangent_solve(g, y) -> x with g(x) = y, for a linear function g; reverse mode
                    transposes what it does
    Derivatives are taken in what `f` closes over; in the guess they are zero.
    Shapes: initial_guess any -> x of the shapes and dtypes that `solve` returns.
    Errors: those of `f`, `solve` and `tangent_solve`; ArgumentError if trees are not alike.

    >>> import rune
    >>> from rune import lax
    >>> def sqrt(a):
    ...     newton = lambda f, x: lax.fori_loop(0, 20, lambda i, v: v - f(v) / (2 * v), x)
    ...     return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> float(sqrt(4.0)), float(rune.grad(sqrt)(4.0))
    (2.0, 0.25)
    """
    for function in (f, solve, tangent_solve):
        require_callable("custom_root", function)
    # A custom rule sees arguments only, so what f closes over becomes one.
    converted, hidden = closure_convert(f, initial_guess)

    def at(values: Any) -> Function:
        return lambda x: converted(x, *values)

    @custom_jvp
    def root(guess: object, values: Any) -> Any:
        return solve(at(values), guess)

    @root.defjvp
    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        guess, values = primals
        solution = root(guess, values)
        x, aux = solution if has_aux else (solution, None)
        # Both derivatives are taken at the solution; the solver is not looked into.
        _, along_x = linearize(at(values), x)
        _, rhs = jvp(lambda v: at(v)(x), (values,), (tangents[1],))
        tangent = tree.map(neg, tangent_solve(along_x, rhs))
        return solution, (tangent, tree.map(_zeros, aux)) if has_aux else tangent

    return root(initial_guess, hidden)


def _zeros(leaf: Value) -> Any:
    """The zero tangent of a leaf."""
    type = type_of(leaf)
    return zeros_like(leaf) if type.dtype in dtypes.INEXACT else float0_zeros(type)
