"""custom_root: a zero of a function, by a user's solver, with exact derivatives.

Along the root f(x(θ), θ) = 0, so (∂f/∂x) dx = -(∂f/∂θ) dθ: the derivative is one linear solve at
the solution, whatever the solver does.
Source: the implicit function theorem; Blondel et al. 2022, arXiv:2105.15183.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import dtypes, tree
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.errors import ArgumentError
from rune.ops import neg, zeros_like
from rune.ops.family import zeros_of
from rune.transforms.arguments import require_callable
from rune.transforms.custom.closure_convert import capture_convert
from rune.transforms.custom.jvp import custom_jvp
from rune.transforms.derivatives.directional import jvp, linearize
from rune.transforms.derivatives.tangents import float0_zeros, host_as
from rune.transforms.eval_shape import ShapeDtypeStruct, eval_shape

Function = Callable[[Any], Any]


def custom_root(
    f: Function,
    initial_guess: object,
    solve: Callable[[Function, Any], Any],
    tangent_solve: Callable[[Function, Any], Any],
    has_aux: bool = False,
) -> Any:
    """x with f(x) = 0, computed by solve(f, initial_guess).

    f:              a function from trees like the guess to trees like the guess
    solve:          solve(f, guess) -> x, or (x, auxiliary) with `has_aux`; it is not differentiated
    tangent_solve:  tangent_solve(g, y) -> x with g(x) = y, for a linear function g; reverse mode
                    transposes its computation
    All three are traced, and may close over values that are differentiated. The root depends only
    on values that `f` closes over: the guess, and values in `solve`, have zero derivatives.
    Shapes: initial_guess any -> x of the shapes and dtypes that `solve` returns.
    Errors: those of `f`, `solve` and `tangent_solve`; ArgumentError unless f(x) is a tree of
            shapes like x.

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
    # A custom rule gets tangents of arguments only, so closed-over values become arguments.
    pure_f, of_f = capture_convert(f, initial_guess)

    def at(values: Sequence[Value]) -> Function:
        return lambda x: pure_f(x, *values)

    solver, of_solve = capture_convert(lambda x, values: solve(at(values), x), initial_guess, of_f)
    # The solver may return a wider dtype than the guess, so its result is the example of x.
    solution = eval_shape(solver, initial_guess, of_f, *of_solve)
    like_x = tree.map(_zeros_of, solution[0] if has_aux else solution)
    like_rhs = _residual_like(at(of_f), like_x)
    # Both derivatives are taken at the solution; the solver is not differentiated.
    solve_tangent, of_tangents = capture_convert(
        lambda x, values, rhs: tangent_solve(linearize(at(values), x)[1], rhs), like_x, of_f, like_rhs
    )

    @custom_jvp
    def root(guess: object, values: Sequence[Value], of_solve: Sequence[Value], of_tangents: object) -> Any:
        return solver(guess, values, *of_solve)

    @root.defjvp
    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        values, of_tangents = primals[1], primals[3]
        solution = root(*primals)
        x, aux = solution if has_aux else (solution, None)
        _, rhs = jvp(lambda v: at(v)(x), (values,), (tangents[1],))
        # rhs is (∂f/∂θ) dθ with x fixed; the solve is linear, so the sign can follow it.
        tangent = tree.map(neg, solve_tangent(x, values, rhs, *of_tangents))
        return solution, (tangent, tree.map(_zeros, aux)) if has_aux else tangent

    return root(initial_guess, of_f, of_solve, of_tangents)


def _residual_like(f: Function, x: object) -> object:
    """An example of f(x). Errors: ArgumentError unless it is a tree of shapes like x."""
    residual = eval_shape(f, x)
    structures = [tree.structure(t) for t in (x, residual)]
    shapes = [[leaf.shape for leaf in tree.leaves(t)] for t in (x, residual)]
    if structures[0] != structures[1] or shapes[0] != shapes[1]:
        raise ArgumentError(
            f"custom_root: cannot find where f is 0 (x is {structures[0]} of shapes {shapes[0]}, "
            f"f(x) {structures[1]} of shapes {shapes[1]})"
        )
    return tree.map(_zeros_of, residual)


def _zeros_of(struct: ShapeDtypeStruct) -> Value:
    """Zeros of a type, of 64 bits if the type has them."""
    return host_as(zeros_of(struct.array_type), struct.array_type)


def _zeros(leaf: Value) -> Any:
    """The zero tangent of a leaf."""
    type = type_of(leaf)
    return zeros_like(leaf) if type.dtype in dtypes.INEXACT else float0_zeros(type)
