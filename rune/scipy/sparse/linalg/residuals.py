"""gmres: the smallest residual over a Krylov space, restarted every `restart` products.

Arnoldi's process makes orthonormal vectors V with A V = V' H. Then min |b - A x| over the space is
a small least-squares problem in H. "batched" solves it once the space is complete; "incremental"
keeps H triangular by rotations, knows the residual at every step, and may stop within a space.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.control import fori_loop, while_loop
from rune.dims import Size
from rune.errors import ArgumentError
from rune.scipy.linalg import solve_triangular
from rune.scipy.sparse.linalg.systems import T, Vectors, length, solved
from rune.typing import ArrayLike


def gmres(
    A: object,
    b: T,
    x0: object = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    restart: int = 20,
    maxiter: ArrayLike | None = None,
    M: object = None,
    solve_method: str = "batched",
) -> tuple[T, Array]:
    """(x with A x = b, 0) by generalised minimal residuals; (no finite numbers, -1) if it fails.

    restart:      vectors of a Krylov space; there are at most `maxiter` spaces
    M:            an approximate inverse of A, by which both sides are multiplied: it stops when the
                  length of M (b - A x) is at most max(tol, atol / |b|) |M b|
    solve_method: "batched": every space is completed, and solved as one small problem;
                  "incremental": it stops as soon as the residual is small
    Other arguments as for `cg`, except that A is any invertible matrix.
    Shapes: x as b.
    Types:  of b; integers become floats.
    Errors: as for `cg`, and ArgumentError for an unknown solve_method.
    Source: Saad & Schultz 1986, SIAM J. Sci. Stat. Comput. 7(3); rotations: Golub & Van Loan,
            4th edition, §11.4.5; orthogonalised twice: Giraud et al. 2005.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.sparse.linalg import gmres
    >>> x, info = gmres(rnp.array([[4.0, 1.0], [-2.0, 3.0]]), rnp.array([6.0, 4.0]))
    >>> x.round(4), int(info)
    (Array([1., 2.], f32[2], cpu:0), 0)
    """
    if solve_method not in ("batched", "incremental"):
        raise ArgumentError(f"gmres: cannot use solve_method={solve_method!r} ('batched' or 'incremental')")
    method = partial(_restarted, restart, solve_method == "incremental")
    x = solved("gmres", method, A, b, x0, tol, atol, maxiter, M, lambda x: False)
    are_finite = [rnp.all(rnp.isfinite(leaf)) for leaf in tree.leaves(x)]
    return x, rnp.where(rnp.all(rnp.asarray(are_finite, bool)), 0, -1)


class _Space(NamedTuple):
    """The vectors so far [N, K + 1], the rows of Hᵀ [K, K + 1], rotated ones if incremental, the
    rotations [K, 2], the right-hand side [K + 1], and the length of the residual where known."""

    vectors: Array
    rows: Array
    rotations: Array
    right: Array
    residual: Array
    size: Array


def _restarted(restart: int, is_incremental: bool, system: Vectors) -> Array:
    size = min(restart, system.b.shape[0])
    if size < 1:
        return system.start

    norm = length(system.b)
    share = rnp.minimum(1.0, system.limit / rnp.where(norm == 0, 1.0, norm))
    limit = share * length(system.precondition(system.b))

    def of(x: Array) -> Array:
        return system.precondition(system.b - system.product(x))

    def goes_on(state: tuple[Array, Array, Array]) -> Array:
        _, residual, count = state
        return (length(residual) > limit) & (count < system.most)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, residual, count = state
        better = x + _nearest(system, residual, size, limit if is_incremental else None)
        return better, of(better), count + 1

    return while_loop(goes_on, step, (system.start, of(system.start), rnp.asarray(0)))[0]


def _nearest(system: Vectors, residual: Array, size: Size, limit: Array | None) -> Array:
    """The correction of x from the Krylov space of this residual; `limit` is for "incremental"."""
    norm, dtype, is_incremental = length(residual), residual.dtype, limit is not None
    first = rnp.zeros((residual.shape[0], size + 1), dtype).at[:, 0].set(residual / norm.astype(dtype))
    start = _Space(
        first,
        rnp.eye(size, size + 1, dtype=dtype),  # so that the system of a space that ends early is not singular
        rnp.zeros((size, 2), dtype),
        rnp.zeros(size + 1, dtype).at[0].set(norm.astype(dtype)),
        norm,
        rnp.asarray(0),
    )
    least = rnp.zeros_like(norm) if limit is None else limit
    extend = partial(_extended, system, is_incremental)
    space = while_loop(lambda s: (s.size < size) & (s.residual > least), extend, start)
    return space.vectors[:, :-1] @ _coefficients(space, is_incremental)


def _coefficients(space: _Space, is_incremental: bool) -> Array:
    """The least-squares solution of Hᵀ y = right."""
    is_used = rnp.arange(space.rows.shape[0]) < space.size
    if is_incremental:
        right = rnp.where(is_used, space.right[:-1], 0)
        return solve_triangular(space.rows[:, :-1].T, right)
    q, r = rnp.linalg.qr(space.rows.T)
    return rnp.where(is_used, solve_triangular(r, q.conj().T @ space.right), 0)


def _extended(system: Vectors, is_incremental: bool, space: _Space) -> _Space:
    """One step of Arnoldi's process, which ends when the space is invariant under A."""
    k = space.size
    product = system.precondition(system.product(space.vectors[:, k]))
    before = length(product)
    overlaps, remainder = _orthogonal(space.vectors, product)
    norm = length(remainder)
    is_whole = norm <= rnp.finfo(product.dtype).eps * before
    norm = rnp.where(is_whole, 0.0, norm)
    direction = remainder / rnp.where(is_whole, 1.0, norm).astype(product.dtype)
    direction = rnp.where(is_whole, 0, direction)
    row = overlaps.at[k + 1].set(norm.astype(product.dtype))
    vectors = space.vectors.at[:, k + 1].set(direction)
    if not is_incremental:
        residual = rnp.where(is_whole, 0.0, space.residual)
        return _Space(vectors, space.rows.at[k].set(row), space.rotations, space.right, residual, k + 1)
    row = fori_loop(0, k, lambda i, v: _rotated(v, i, space.rotations[i]), row)
    rotation = _rotation(row[k], row[k + 1])
    row, right = (_rotated(v, k, rotation) for v in (row, space.right))
    rows, rotations = space.rows.at[k].set(row), space.rotations.at[k].set(rotation)
    return _Space(vectors, rows, rotations, right, rnp.abs(right[k + 1]), k + 1)


def _orthogonal(vectors: Array, v: Array) -> tuple[Array, Array]:
    """The overlaps of v with the vectors, and v without them; twice is enough."""
    first = vectors.conj().T @ v
    v = v - vectors @ first
    second = vectors.conj().T @ v
    return first + second, v - vectors @ second


def _rotation(a: Array, b: Array) -> Array:
    """[2]: (c, s) with s real or complex, that takes (a, b) to (r, 0). Golub & Van Loan §5.1.8."""
    norm = rnp.sqrt(rnp.square(rnp.abs(a)) + rnp.square(rnp.abs(b)))
    is_zero = norm == 0
    scale = rnp.where(is_zero, 1.0, norm).astype(a.dtype)
    return rnp.stack([rnp.where(is_zero, 1, a.conj() / scale), rnp.where(is_zero, 0, b.conj() / scale)])


def _rotated(v: Array, i: Array, rotation: Array) -> Array:
    """Elements i and i + 1 rotated."""
    c, s = rotation[0], rotation[1]
    a, b = v[i], v[i + 1]
    return v.at[i].set(c * a + s * b).at[i + 1].set(-s.conj() * a + c.conj() * b)
