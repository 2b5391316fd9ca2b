"""Conjugate and biconjugate gradients: short recurrences, in memory of a few vectors."""

from __future__ import annotations

from typing import NamedTuple

import rune.numpy as rnp
from rune.array import Array
from rune.control import while_loop
from rune.scipy.sparse.linalg.systems import T, Vectors, solved, squared_length
from rune.typing import ArrayLike


def cg(
    A: object,
    b: T,
    x0: object = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: ArrayLike | None = None,
    M: object = None,
) -> tuple[T, None]:
    """(x with A x = b, None) by conjugate gradients; A is Hermitian and positive definite.

    A:      a square matrix, an object with `@` and a shape, or a linear function from trees like b
    b:      a tree of arrays
    x0:     the initial solution, a tree like b; default zeros
    tol, atol: it stops when the length of b - A x is at most max(tol |b|, atol)
    maxiter: or after this many products; default 10 for each number in b
    M:      an approximate inverse of A, in the same form as A
    Derivatives are those of the solution, by further solves; x0 has none.
    Shapes: x as b.
    Types:  of b; integers become floats.
    Errors: ShapeError if A is not square or x0 unlike b; ArgumentError if it is not an operator.
    Source: Hestenes & Stiefel 1952; with M, Golub & Van Loan, 4th edition, §11.5.2.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.sparse.linalg import cg
    >>> x, _ = cg(rnp.array([[4.0, 1.0], [1.0, 3.0]]), rnp.array([6.0, 7.0]))
    >>> x.round(4)
    Array([1., 2.], f32[2], cpu:0)
    """
    # A real positive definite matrix is its own transpose, a complex one is not.
    return solved("cg", _conjugate, A, b, x0, tol, atol, maxiter, M, lambda x: not rnp.iscomplexobj(x)), None


class _Descent(NamedTuple):
    """x, b - A x, its square in the norm of M, the direction, and the number of steps."""

    x: Array
    residual: Array
    square: Array
    direction: Array
    steps: Array


def _conjugate(system: Vectors) -> Array:
    limit = rnp.square(system.limit)

    def goes_on(s: _Descent) -> Array:
        return (squared_length(s.residual) > limit) & (s.steps < system.most)

    def step(s: _Descent) -> _Descent:
        product = system.product(s.direction)
        share = s.square / rnp.real(rnp.vdot(s.direction, product))
        residual = s.residual - share * product
        better = system.precondition(residual)
        square = rnp.real(rnp.vdot(residual, better))
        direction = better + (square / s.square) * s.direction
        return _Descent(s.x + share * s.direction, residual, square, direction, s.steps + 1)

    residual = system.b - system.product(system.start)
    direction = system.precondition(residual)
    square = rnp.real(rnp.vdot(residual, direction))
    return while_loop(goes_on, step, _Descent(system.start, residual, square, direction, rnp.asarray(0))).x


def bicgstab(
    A: object,
    b: T,
    x0: object = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: ArrayLike | None = None,
    M: object = None,
) -> tuple[T, None]:
    """(x with A x = b, None) by stabilised biconjugate gradients.

    Arguments as for `cg`, except that A is any invertible matrix. If the recurrence breaks down,
    the last iterate is returned.
    Shapes: x as b.
    Types:  of b; integers become floats.
    Errors: as for `cg`.
    Source: van der Vorst 1992, SIAM J. Sci. Stat. Comput. 13(2); the right preconditioner as there.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.sparse.linalg import bicgstab
    >>> x, _ = bicgstab(rnp.array([[4.0, 1.0], [-2.0, 3.0]]), rnp.array([6.0, 4.0]))
    >>> x.round(4)
    Array([1., 2.], f32[2], cpu:0)
    """
    return solved("bicgstab", _stabilised, A, b, x0, tol, atol, maxiter, M, lambda x: False), None


class _Walk(NamedTuple):
    """The state, named as in the source; v is A p̂. `steps` is negative after a breakdown."""

    x: Array
    r: Array
    rho: Array
    alpha: Array
    omega: Array
    p: Array
    v: Array
    steps: Array


def _stabilised(system: Vectors) -> Array:
    limit = rnp.square(system.limit)
    shadow = system.b - system.product(system.start)

    def goes_on(s: _Walk) -> Array:
        return (squared_length(s.r) > limit) & (s.steps < system.most) & (s.steps >= 0)

    def step(s: _Walk) -> _Walk:
        rho = rnp.vdot(shadow, s.r)
        p = s.r + (rho / s.rho) * (s.alpha / s.omega) * (s.p - s.omega * s.v)
        p_hat = system.precondition(p)
        v = system.product(p_hat)
        alpha = rho / rnp.vdot(shadow, v)
        half = s.r - alpha * v
        half_hat = system.precondition(half)
        t = system.product(half_hat)
        # The first half of the step may lead to the solution: then t and omega are 0 / 0.
        is_done = squared_length(half) < limit
        omega = rnp.vdot(t, half) / rnp.vdot(t, t)
        x = s.x + alpha * p_hat
        x, r = (rnp.where(is_done, u, w) for u, w in ((x, x + omega * half_hat), (half, half - omega * t)))
        is_broken = (rho == 0) | (alpha == 0) | (omega == 0)
        return _Walk(x, r, rho, alpha, omega, p, v, rnp.where(is_broken, -1, s.steps + 1))

    one = rnp.ones((), system.b.dtype)
    zeros = rnp.zeros_like(system.b)
    return while_loop(goes_on, step, _Walk(system.start, shadow, one, one, one, zeros, zeros, rnp.asarray(0))).x
